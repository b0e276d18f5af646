package otelredlock_test

import (
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	otelredlock "github.com/quorumlock/redlock/adapters/otel"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

func TestMain(m *testing.M) { os.Exit(leaks.Main(m)) }

// A station has nodes, and the OpenTelemetry data about the locks there.
type station struct {
	t      *testing.T
	nodes  *redistest.Bubble
	lk     *redlock.Locker
	tracer *sdktrace.TracerProvider
	spans  *tracetest.InMemoryExporter
	reader *sdkmetric.ManualReader
}

// stationed runs a test in a bubble of virtual time, with five nodes.
func stationed(t *testing.T, f func(*testing.T, *station), options ...otelredlock.Option) {
	synctest.Test(t, func(t *testing.T) {
		s := &station{t: t, nodes: redistest.NewBubble(t, 5), spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
		s.tracer = sdktrace.NewTracerProvider(sdktrace.WithSyncer(s.spans))
		hooks, err := otelredlock.Hooks(append(options,
			otelredlock.WithTracerProvider(s.tracer),
			otelredlock.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(s.reader))))...)
		if err != nil {
			t.Fatal(err)
		}
		s.lk = s.locker(hooks)
		f(t, s)
	})
}

// locker opens another Locker over the nodes.
func (s *station) locker(hooks *redlock.Hooks) *redlock.Locker {
	s.t.Helper()
	lk, err := redlock.New(s.nodes.Clients(), &redlock.Options{Hooks: hooks})
	if err == nil {
		err = lk.WaitReady(s.t.Context()) // and they keep the description of their set
		synctest.Wait()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = lk.Close() })
	return lk
}

// pass lets time go by, and waits until nothing is under way.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// named gives the spans of this name, in the order of their beginnings.
func (s *station) named(name string) (found tracetest.SpanStubs) {
	synctest.Wait() // hooks are called a moment later
	for _, span := range s.spans.GetSpans() {
		if span.Name == name {
			found = append(found, span)
		}
	}
	slices.SortFunc(found, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	return found
}

// below gives the spans that have this one for their parent.
func (s *station) below(parent tracetest.SpanStub) (found tracetest.SpanStubs) {
	for _, span := range s.spans.GetSpans() {
		if span.Parent.SpanID() == parent.SpanContext.SpanID() {
			found = append(found, span)
		}
	}
	return found
}

// value returns one attribute as text; "": it is not there.
func value(attributes []attribute.KeyValue, key attribute.Key) string {
	set := attribute.NewSet(attributes...)
	v, ok := set.Value(key)
	if !ok {
		return ""
	}
	return v.String()
}

// A sample is a value of a metric: a counter, or the number of durations in a histogram with their sum.
type sample struct {
	count int64
	sum   time.Duration
}

// samples gives those of a metric, by their attributes: "redlock.operation=release".
func (s *station) samples(metric string) map[string]sample {
	s.t.Helper()
	synctest.Wait()
	var all metricdata.ResourceMetrics
	if err := s.reader.Collect(s.t.Context(), &all); err != nil {
		s.t.Fatal(err)
	}
	found := make(map[string]sample)
	name := func(set attribute.Set) string { return set.Encoded(attribute.DefaultEncoder()) }
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != metric {
				continue
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					found[name(p.Attributes)] = sample{count: p.Value}
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					found[name(p.Attributes)] = sample{count: p.Value}
				}
			case metricdata.Histogram[float64]:
				if m.Unit != "s" {
					s.t.Errorf("%s is in %q", m.Name, m.Unit)
				}
				for _, p := range data.DataPoints {
					sum := time.Duration(p.Sum * float64(time.Second)).Round(time.Microsecond)
					found[name(p.Attributes)] = sample{int64(p.Count), sum}
				}
			default:
				s.t.Errorf("%s is a %T", m.Name, data)
			}
		}
	}
	return found
}
