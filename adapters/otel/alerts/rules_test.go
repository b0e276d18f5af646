// Package alerts_test evaluates ../alerts.yml by the library that Prometheus publishes, on the metrics of
// Lockers over nodes that fail. It is a module of its own, so that nobody who uses otelredlock gets
// the dependencies of Prometheus.
package alerts_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// rules reads the file as Prometheus does when it starts: with unknown fields, expressions and
// templates that cannot be parsed as errors.
func rules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile("../alerts.yml", false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Error(err)
	}
	if len(errs) > 0 || len(groups.Groups) != 1 {
		t.Fatal("alerts.yml cannot be read, or has not one group")
	}
	return groups.Groups[0].Rules
}

// A history is what was scraped.
type history struct {
	series map[string]*series
	times  []time.Time
}

type series struct {
	labels  labels.Labels
	samples []chunks.Sample
}

type sample struct {
	t int64
	v float64
}

func (s sample) ST() int64                     { return 0 }
func (s sample) T() int64                      { return s.t }
func (s sample) F() float64                    { return s.v }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

// add takes in a scrape, with the labels that Prometheus adds.
func (h *history) add(now time.Time, families []*dto.MetricFamily) {
	h.times = append(h.times, now)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			put := func(suffix string, v float64) {
				b := labels.NewBuilder(labels.EmptyLabels())
				b.Set("__name__", f.GetName()+suffix).Set("job", "worker").Set("instance", "worker-1:2112")
				for _, l := range m.GetLabel() {
					b.Set(l.GetName(), l.GetValue())
				}
				at := b.Labels()
				s := h.series[at.String()]
				if s == nil {
					s = &series{labels: at}
					h.series[at.String()] = s
				}
				s.samples = append(s.samples, sample{now.UnixMilli(), v})
			}
			switch {
			case m.Counter != nil:
				put("", m.GetCounter().GetValue())
			case m.Gauge != nil:
				put("", m.GetGauge().GetValue())
			case m.Histogram != nil:
				put("_count", float64(m.GetHistogram().GetSampleCount()))
				put("_sum", m.GetHistogram().GetSampleSum())
			}
		}
	}
}

// Querier makes a history what the engine of Prometheus can query.
func (h *history) Querier(_, _ int64) (storage.Querier, error) { return querier{h}, nil }

type querier struct{ *history }

func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
	for _, key := range slices.Sorted(maps.Keys(q.series)) {
		s := q.series[key]
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.labels.Get(m.Name)) }) {
			found = append(found, storage.NewListSeries(s.labels, s.samples))
		}
	}
	return &seriesSet{found, -1}
}

func (querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (querier) Close() error { return nil }

type seriesSet struct {
	series []storage.Series
	at     int
}

func (s *seriesSet) Next() bool                        { s.at++; return s.at < len(s.series) }
func (s *seriesSet) At() storage.Series                { return s.series[s.at] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

func engine() *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{
		Logger: slog.New(slog.DiscardHandler), MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: 5 * time.Minute,
		Parser: parser.NewParser(parser.Options{}),
	})
}

// fired gives the alerts that have fired at some time, by name: how often a series of it has. An
// alert fires when its expression has given the same labels for as long as its for says, at each
// evaluation.
func (h *history) fired(t *testing.T) map[string]int {
	t.Helper()
	fired := make(map[string]int)
	e := engine()
	for _, rule := range rules(t) {
		since := make(map[string]time.Time)
		told := make(map[string]bool)
		for _, now := range h.times {
			q, err := e.NewInstantQuery(t.Context(), h, nil, rule.Expr, now)
			if err != nil {
				t.Fatalf("%s: %v", rule.Alert, err)
			}
			result := q.Exec(t.Context())
			vector, err := result.Vector()
			if err != nil {
				t.Fatalf("%s: %v", rule.Alert, err)
			}
			holds := make(map[string]bool)
			for _, s := range vector {
				key := s.Metric.String()
				holds[key] = true
				if since[key].IsZero() {
					since[key] = now
				}
				if now.Sub(since[key]) >= time.Duration(rule.For) && !told[key] {
					told[key] = true
					fired[rule.Alert]++
				}
			}
			maps.DeleteFunc(since, func(key string, _ time.Time) bool { return !holds[key] })
			q.Close()
		}
	}
	return fired
}

// selects checks that each metric and each label of the rules is there: a rule over a metric that does not
// exist is silent.
func (h *history) selects(t *testing.T) {
	t.Helper()
	for _, rule := range rules(t) {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(rule.Expr)
		if err != nil {
			t.Fatal(err)
		}
		selectors := 0
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			if v, ok := node.(*parser.VectorSelector); ok {
				selectors++
				found := querier{h}.Select(t.Context(), false, nil, v.LabelMatchers...)
				if !found.Next() {
					t.Errorf("%s: there is no %s", rule.Alert, v)
					return nil
				}
				parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
					if by, ok := node.(*parser.AggregateExpr); ok {
						for _, label := range by.Grouping {
							if label != "redlock_label" && found.At().Labels().Get(label) == "" { // that is by option
								t.Errorf("%s: %s has no label %s", rule.Alert, v, label)
							}
						}
					}
					return nil
				})
			}
			return nil
		})
		if selectors == 0 {
			t.Errorf("%s: %s looks at no metric", rule.Alert, rule.Expr)
		}
	}
}

// TestOperationsNamesEach: docs/operations.md has a row for each alert, and for no other.
func TestOperationsNamesEach(t *testing.T) {
	text, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, rule := range rules(t) {
		want = append(want, rule.Alert)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `(Redlock\\w+)` \\|").FindAllStringSubmatch(string(text), -1) {
		got = append(got, row[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("docs/operations.md has %q, and alerts.yml %q", got, want)
	}
}

// TestRulesAreComplete: each rule says how bad it is, what it means and which command to run, says why it
// waits as long as it does, and has a scenario of its own that makes it fire.
func TestRulesAreComplete(t *testing.T) {
	command := regexp.MustCompile("`redlock (doctor|status KEY|members|prepare)[ `]")
	for _, rule := range rules(t) {
		if s := rule.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s has the severity %q", rule.Alert, s)
		}
		if rule.Annotations["summary"] == "" || !command.MatchString(rule.Annotations["description"]) {
			t.Errorf("%s does not say what to run: %v", rule.Alert, rule.Annotations)
		}
		if !slices.ContainsFunc(scenarios, func(s scenario) bool { return s.alert == rule.Alert }) {
			t.Errorf("no scenario makes %s fire", rule.Alert)
		}
	}
	names := make(map[string]bool)
	for _, rule := range rules(t) {
		names[rule.Alert] = true
	}
	for _, s := range scenarios {
		for _, name := range append(strings.Fields(s.with), s.alert) {
			if !names[name] {
				t.Errorf("there is no alert %s", name)
			}
		}
	}
}

// show lists alerts for a failure's text.
func show(fired map[string]int) string {
	return cmp.Or(fmt.Sprint(slices.Sorted(maps.Keys(fired))), "none")
}
