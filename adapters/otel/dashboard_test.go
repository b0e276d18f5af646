package otelredlock_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/quorumlock/redlock"
	otelredlock "github.com/quorumlock/redlock/adapters/otel"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
)

// A dashboard has the parts that Grafana needs.
type dashboard struct {
	Title, UID    string
	SchemaVersion int
	Templating    struct{ List []variable }
	Panels        []panel
}

type variable struct {
	Name, Type string
	Query      any
	Datasource source
}

type panel struct {
	ID         int
	Type       string
	Title      string
	Datasource source
	GridPos    struct{ X, Y, W, H int }
	Targets    []struct {
		RefID      string
		Datasource source
		Expr       string
	}
}

type source struct{ Type, UID string }

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDashboardLoads: the parts that Grafana needs are there, and fit together.
func TestDashboardLoads(t *testing.T) {
	d := readDashboard(t)
	if d.Title == "" || d.UID == "" || d.SchemaVersion == 0 || len(d.Panels) == 0 {
		t.Errorf("no dashboard: %+v", d)
	}
	if !slices.ContainsFunc(d.Templating.List, func(v variable) bool {
		return v.Name == "datasource" && v.Type == "datasource" && v.Query == "prometheus"
	}) {
		t.Error("there is no variable for the data source")
	}
	ours := source{"prometheus", "${datasource}"}
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Type == "" || p.Title == "" || p.Datasource != ours || len(p.Targets) == 0 {
			t.Errorf("panel %+v", p)
		}
		ids[p.ID] = true
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if refs[target.RefID] || target.RefID == "" || target.Datasource != ours || target.Expr == "" {
				t.Errorf("%s: target %+v", p.Title, target)
			}
			refs[target.RefID] = true
		}
		if p.GridPos.W <= 0 || p.GridPos.H <= 0 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%s: it is at %+v", p.Title, p.GridPos)
		}
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other := taken[at]; other != "" {
					t.Fatalf("%s lies over %s", p.Title, other)
				}
				taken[at] = p.Title
			}
		}
	}
}

// TestDashboardMetrics: the exporter for Prometheus has each metric and each label of the queries
// after one event of every kind; and the dashboard shows each metric that exists.
func TestDashboardMetrics(t *testing.T) {
	exposed := exposition(t)
	shown := map[string]bool{}
	check := func(where, expr string) {
		metrics, labels := parseQuery(expr)
		if len(metrics) == 0 {
			t.Errorf("%s: no metric in %s", where, expr)
		}
		known := map[string]bool{"job": true, "instance": true} // added by the scrape
		for _, m := range metrics {
			if exposed[m] == nil {
				t.Errorf("%s: there is no metric %s", where, m)
			}
			for _, l := range exposed[m] {
				known[l] = true
			}
			shown[m] = true
		}
		for _, l := range labels {
			if !known[l] {
				t.Errorf("%s: %v have no label %s", where, metrics, l)
			}
		}
	}
	d := readDashboard(t)
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			check(p.Title, target.Expr)
		}
	}
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		query, _ := v.Query.(map[string]any)["query"].(string)
		if m := regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`).FindStringSubmatch(query); m != nil {
			check("variable "+v.Name, fmt.Sprintf("sum by (%s) (%s)", m[2], m[1]))
		} else {
			t.Errorf("variable %s: %s", v.Name, query)
		}
	}
	for _, family := range []string{
		"redlock_operation_duration_seconds_bucket", "redlock_wait_duration_seconds_bucket", "redlock_hold_duration_seconds_bucket",
		"redlock_node_duration_seconds_bucket", "redlock_lost_total", "redlock_contended_total", "redlock_node_surplus_total",
		"redlock_wait_overdue", "redlock_renewal_failed_total", "redlock_votes_spare", "redlock_votes_missing", "redlock_node_status",
		"redlock_node_quarantines_total", "redlock_node_clock_steps_total", "redlock_warnings_total",
	} {
		if !shown[family] {
			t.Errorf("%s is not on the dashboard", family)
		}
	}
}

func TestParseQuery(t *testing.T) {
	metrics, labels := parseQuery(`histogram_quantile(0.99, sum by (le, node) (rate(a_bucket{job=~"$job, b{", c!=""}[$__rate_interval]))) / 2 * on(x) rate(d:e[5m] offset 1h)`)
	if want := []string{"a_bucket", "d:e"}; !slices.Equal(metrics, want) {
		t.Errorf("metrics %q, want %q", metrics, want)
	}
	if want := []string{"c", "job", "le", "node", "x"}; !slices.Equal(labels, want) {
		t.Errorf("labels %q, want %q", labels, want)
	}
}

var (
	quoted   = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	selector = regexp.MustCompile(`\{([^}]*)\}`)
	matcher  = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)`)
	grouping = regexp.MustCompile(`\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)`)
	interval = regexp.MustCompile(`\[[^\]]*\]|\boffset\s+\w+`)
	function = regexp.MustCompile(`\b[a-z_]+\s*\(`)
	operator = regexp.MustCompile(`\b(?:sum|min|max|avg|count|and|or|unless|bool)\b`)
	word     = regexp.MustCompile(`[a-zA-Z_:][\w:]*`)
)

// parseQuery gives the metrics and the labels in a PromQL expression: what is left of it
// are metrics, once all else is taken away.
func parseQuery(expr string) (metrics, labels []string) {
	expr = quoted.ReplaceAllString(expr, "")
	for _, m := range selector.FindAllStringSubmatch(expr, -1) {
		for _, label := range matcher.FindAllStringSubmatch(m[1], -1) {
			labels = append(labels, label[1])
		}
	}
	expr = selector.ReplaceAllString(expr, "")
	for _, m := range grouping.FindAllStringSubmatch(expr, -1) {
		labels = append(labels, word.FindAllString(m[1], -1)...)
	}
	for _, other := range []*regexp.Regexp{grouping, interval, function, operator} {
		expr = other.ReplaceAllString(expr, " ")
	}
	metrics = word.FindAllString(expr, -1)
	slices.Sort(metrics)
	slices.Sort(labels)
	return slices.Compact(metrics), slices.Compact(labels)
}

// exposition returns the labels of each series of the exporter, after locks were refused, waited for in vain,
// renewed, waited for and lost.
func exposition(t *testing.T) map[string][]string {
	registry := prometheus.NewRegistry()
	synctest.Test(t, func(t *testing.T) {
		reader, err := exporter.New(exporter.WithRegisterer(registry))
		if err != nil {
			t.Fatal(err)
		}
		hooks, err := otelredlock.Hooks(otelredlock.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
		if err != nil {
			t.Fatal(err)
		}
		nodes := redistest.NewBubble(t, 5)
		lk, err := redlock.New(nodes.Clients(), &redlock.Options{Hooks: hooks})
		if err != nil {
			t.Fatal(err)
		}
		defer lk.Close()
		first, err := lk.TryAcquire(t.Context(), "a", redlock.AutoRenew())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := lk.TryAcquire(t.Context(), "a"); !errors.Is(err, redlock.ErrHeld) {
			t.Fatal(err)
		}
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := lk.Acquire(brief, "a"); !errors.Is(err, redlock.ErrHeld) {
			t.Fatal(err)
		}
		go func() { pass(5 * time.Second); first.Release(t.Context()) }()
		second, err := lk.Acquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		<-second.Context(t.Context()).Done()
		pass(time.Second)
	})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	exposed := make(map[string][]string)
	for _, f := range families {
		names := []string{f.GetName()}
		if f.GetMetric()[0].GetHistogram() != nil {
			names = []string{f.GetName() + "_bucket", f.GetName() + "_sum", f.GetName() + "_count"}
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				exposed[names[0]] = append(exposed[names[0]], l.GetName())
			}
		}
		for _, name := range names[1:] {
			exposed[name] = exposed[names[0]]
		}
		if len(names) > 1 {
			exposed[names[0]] = append(exposed[names[0]], "le")
		}
	}
	return exposed
}
