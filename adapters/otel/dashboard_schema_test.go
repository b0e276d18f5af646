package otelredlock_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// The part of Grafana's schema that the dashboard uses: names, types, required fields, and the
// allowed words. It follows the types that Grafana publishes for programs that write dashboards
// (@grafana/schema 11.6 to 13.2, and the foundation SDK); take a new kind of panel from there. A
// name that is not here is rejected, so that a misspelt one does not look like an option, which
// Grafana would ignore. Beyond Grafana's own demands the dashboard must have a title and a uid, or
// a link to it would break with each import.
var (
	dataSource = object(fields{"type": one("prometheus"), "uid": one("${datasource}")})
	panels     = list(object(fields{
		"id": number(1, 1e6), "type": one("timeseries"), "title": text(`.`), "description?": text(`.`),
		"datasource": dataSource,
		"gridPos":    object(fields{"x": number(0, 23), "y": number(0, 1e6), "w": number(1, 24), "h": number(1, 100)}),
		"fieldConfig": object(fields{
			"defaults":  object(fields{"unit?": one("s", "ops", "percentunit"), "min?": number(-1e6, 1e6)}),
			"overrides": none,
		}),
		"options": object(fields{
			"legend": object(fields{
				"calcs": none, "displayMode": one("list", "table", "hidden"), "placement": one("bottom", "right"), "showLegend": flag,
			}),
			"tooltip": object(fields{"mode": one("single", "multi", "none"), "sort": one("asc", "desc", "none")}),
		}),
		"targets": list(object(fields{"refId": text(`^[A-Z]$`), "datasource": dataSource, "expr": text(`.`), "legendFormat?": text(`.`)})),
	}))
	sources = object(fields{
		"name": one("datasource"), "label?": text(`.`), "type": one("datasource"), "query": text(`.`),
		"hide?": number(0, 2), "refresh?": number(0, 2),
	})
	queries = object(fields{
		"name": text(`^\w+$`), "label?": text(`.`), "type": one("query"), "datasource": dataSource,
		"query": object(fields{"qryType": number(0, 5), "query": text(`.`), "refId": text(`.`)}),
		"hide?": number(0, 2), "refresh?": number(0, 2), "sort?": number(0, 8),
		"includeAll?": flag, "multi?": flag, "allValue?": text(`.`),
		"current?": object(fields{"text": list(text(`.`)), "value": list(text(`.`))}),
	})
	variables = list(func(v any) error {
		if m, ok := v.(map[string]any); ok && m["type"] == "datasource" {
			return sources(v)
		}
		return queries(v)
	})
	grafana = object(fields{
		"title": text(`.`), "uid": text(`^[\w-]{1,40}$`), "tags?": list(text(`.`)),
		"schemaVersion": number(39, 39), "version?": number(1, 1e6), // 39: Grafana 11; later ones raise it when they load it
		"editable?": flag, "graphTooltip?": number(0, 2), "refresh?": text(`^\d+[smh]$`),
		"time":       object(fields{"from": text(`^now-`), "to": one("now")}),
		"templating": object(fields{"list": variables}), "annotations?": object(fields{"list": none}), "links?": none,
		"panels": panels,
	})
)

// TestDashboardIsGrafanas: Grafana knows every field of the dashboard, and every field that Grafana
// needs is there.
func TestDashboardIsGrafanas(t *testing.T) {
	if err := grafana(dashboardJSON(t)); err != nil {
		t.Error(err)
	}
}

// TestDashboardSpoilt: a copy with a field that is not Grafana's, with a value of
// another type, or without something that has to be there, is refused; whichever it is.
func TestDashboardSpoilt(t *testing.T) {
	need.Unraced(t)
	optional := []string{
		"description", "tags", "version", "editable", "graphTooltip", "refresh", "annotations", "links", "unit", "min",
		"legendFormat", "label", "hide", "includeAll", "multi", "allValue", "sort", "current",
	}
	d := dashboardJSON(t)
	tried := 0
	spoilt := func(how string, args ...any) {
		t.Helper()
		tried++
		if grafana(d) == nil {
			t.Errorf("taken: "+how, args...)
		}
	}
	for _, p := range places("", d, func(any) { t.Fatal("the dashboard itself has no place") }) {
		if m, ok := p.value.(map[string]any); ok {
			m["planted"] = 1.
			spoilt("a field %s.planted", p.at)
			delete(m, "planted")
			for name, value := range maps.Clone(m) {
				if !slices.Contains(optional, name) {
					delete(m, name)
					spoilt("no field %s.%s", p.at, name)
					m[name] = value
				}
			}
		}
		if p.at == "" {
			continue
		}
		for _, other := range []any{nil, true, 0.5, "", []any{nil}, map[string]any{}} {
			if fmt.Sprintf("%T", other) != fmt.Sprintf("%T", p.value) {
				p.put(other)
				spoilt("a %T at %s", other, p.at)
				p.put(p.value)
			}
		}
	}
	if tried < 2000 {
		t.Errorf("only %d copies", tried)
	}
	if err := grafana(d); err != nil {
		t.Errorf("it has not been put right again: %v", err)
	}
}

func dashboardJSON(t *testing.T) (d any) {
	t.Helper()
	data, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// A place is where a value is in a JSON document.
type place struct {
	at    string
	value any
	put   func(any)
}

// places gives all there are, with put for the outermost.
func places(at string, v any, put func(any)) []place {
	all := []place{{at, v, put}}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			all = append(all, places(at+"."+name, v[name], func(other any) { v[name] = other })...)
		}
	case []any:
		for i := range v {
			all = append(all, places(at+"."+strconv.Itoa(i), v[i], func(other any) { v[i] = other })...)
		}
	}
	return all
}

// A shape checks a value, and returns what is wrong with it.
type shape func(any) error

// fields are those of an object; one whose name ends with a question mark may be left out.
type fields map[string]shape

func object(f fields) shape {
	return func(v any) error {
		m, ok := v.(map[string]any)
		if !ok {
			return fmt.Errorf("%v is no object", v)
		}
		var errs []error
		for _, name := range slices.Sorted(maps.Keys(m)) {
			value := f[name]
			if value == nil {
				value = f[name+"?"]
			}
			if value == nil {
				errs = append(errs, fmt.Errorf("%s: there is no such field", name))
			} else if err := value(m[name]); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", name, err))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(f)) {
			if _, ok := m[name]; !ok && !strings.HasSuffix(name, "?") {
				errs = append(errs, fmt.Errorf("%s is not there", name))
			}
		}
		return errors.Join(errs...)
	}
}

func list(of shape) shape {
	return func(v any) error {
		l, ok := v.([]any)
		if !ok {
			return fmt.Errorf("%v is no list", v)
		}
		var errs []error
		for i, each := range l {
			if err := of(each); err != nil {
				errs = append(errs, fmt.Errorf("%d: %w", i, err))
			}
		}
		return errors.Join(errs...)
	}
}

// none is an empty list.
var none = list(func(any) error { return errors.New("what may be here is not known") })

func text(pattern string) shape {
	like := regexp.MustCompile(pattern)
	return func(v any) error {
		if s, ok := v.(string); !ok || !like.MatchString(s) {
			return fmt.Errorf("%#v is no text like %s", v, pattern)
		}
		return nil
	}
}

func one(of ...string) shape {
	return func(v any) error {
		if s, ok := v.(string); !ok || !slices.Contains(of, s) {
			return fmt.Errorf("%#v is none of %q", v, of)
		}
		return nil
	}
}

func number(from, to int) shape {
	return func(v any) error {
		if n, ok := v.(float64); !ok || n != float64(int(n)) || int(n) < from || int(n) > to {
			return fmt.Errorf("%#v is no whole number from %d to %d", v, from, to)
		}
		return nil
	}
}

func flag(v any) error {
	if _, ok := v.(bool); !ok {
		return fmt.Errorf("%#v is neither true nor false", v)
	}
	return nil
}
