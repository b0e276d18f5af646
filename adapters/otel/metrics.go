package otelredlock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// The bounds of the buckets, in seconds. An answer takes a tenth of a millisecond on the same host,
// a wait as long as the holder works, and a lock may be held for a day.
var (
	ofAnswers    = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1}
	ofOperations = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	ofWaits      = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
	ofHolds      = []float64{.001, .01, .1, .5, 1, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400}
)

type metrics struct {
	operation, wait, hold, node metric.Float64Histogram
	lost, contended, surplus    metric.Int64Counter

	label   func(name string) string
	answers sync.Map // of answerKind: its attributes, since there are some for every node and step
}

func newMetrics(meter metric.Meter, label func(string) string) (*metrics, error) {
	m := &metrics{label: label}
	var errs []error
	histogram := func(name, description string, bounds []float64) metric.Float64Histogram {
		h, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description), metric.WithExplicitBucketBoundaries(bounds...))
		errs = append(errs, err)
		return h
	}
	counter := func(name, unit, description string) metric.Int64Counter {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		errs = append(errs, err)
		return c
	}
	m.operation = histogram("redlock.operation.duration", "Duration of operations on locks, waiting included.", ofOperations)
	m.wait = histogram("redlock.wait.duration", "How long those waited who could not have a lock at once.", ofWaits)
	m.hold = histogram("redlock.hold.duration", "How long locks were held.", ofHolds)
	m.node = histogram("redlock.node.duration", "How long nodes took to answer.", ofAnswers)
	m.lost = counter("redlock.lost", "{lock}", "Locks that ended before they were released.")
	m.contended = counter("redlock.contended", "{operation}", "Acquisitions that found the lock held.")
	m.surplus = counter("redlock.node.surplus", "{answer}", "Answers beyond the quorum: those that came when it had decided.")
	return m, errors.Join(errs...)
}

func (m *metrics) hooks() *redlock.Hooks {
	return &redlock.Hooks{Lost: m.loss, Trace: &redlocktrace.Trace{Start: m.start, Wait: m.waits, Node: m.answer, End: m.end}}
}

// foundHeld is the key of a *bool in the context of an acquire: whether it was counted as
// contended, since it counts once, however many attempts it makes.
type foundHeld struct{}

func (m *metrics) start(ctx context.Context, op redlocktrace.Operation) context.Context {
	switch op.Op {
	case "acquire":
		return context.WithValue(ctx, foundHeld{}, new(bool))
	case "release":
		m.held(ctx, op.Lock, "released")
	}
	return ctx
}

func (m *metrics) held(ctx context.Context, l redlocktrace.Lock, end string) {
	m.hold.Record(ctx, time.Since(l.Since()).Seconds(), m.with(l.Name(), endKey.String(end)))
}

func (m *metrics) loss(l *redlock.Lock, cause error) {
	end := endOf(cause)
	m.lost.Add(context.Background(), 1, m.with(l.Name(), endKey.String(end)))
	m.held(context.Background(), l, end)
}

func (m *metrics) waits(ctx context.Context, op redlocktrace.Operation) {
	if found, ok := ctx.Value(foundHeld{}).(*bool); ok && !*found && (op.Err == nil || errors.Is(op.Err, redlock.ErrHeld)) {
		*found = true
		m.contended.Add(ctx, 1, m.with(op.Name, operationKey.String(op.Op)))
	}
}

func (m *metrics) end(ctx context.Context, op redlocktrace.Operation) {
	var failed []attribute.KeyValue
	if op.Err != nil {
		failed = append(failed, semconv.ErrorTypeKey.String(errorType(op.Err)))
	}
	if op.Waited > 0 {
		m.wait.Record(ctx, op.Waited.Seconds(), m.with(op.Name, failed...))
	}
	operation := operationKey.String(op.Op)
	if op.Op == "try-acquire" && errors.Is(op.Err, redlock.ErrHeld) {
		m.contended.Add(ctx, 1, m.with(op.Name, operation))
	}
	m.operation.Record(ctx, op.Elapsed.Seconds(), m.with(op.Name, append(failed, operation)...))
}

// An answerKind has the values that distinguish answers in metrics.
type answerKind struct {
	node, step, outcome string
}

func (m *metrics) answer(ctx context.Context, a redlocktrace.Reply) {
	kind := answerKind{a.Node, a.Step, a.Outcome}
	with, ok := m.answers.Load(kind)
	if !ok {
		with = metric.WithAttributeSet(attribute.NewSet(append(server(a.Node), stepKey.String(a.Step), outcomeKey.String(a.Outcome))...))
		m.answers.Store(kind, with)
	}
	m.node.Record(ctx, a.Elapsed.Seconds(), with.(metric.MeasurementOption))
	if a.Late {
		m.surplus.Add(ctx, 1, with.(metric.MeasurementOption))
	}
}

// with gives attributes, and the label of the lock if it has one.
func (m *metrics) with(name string, attributes ...attribute.KeyValue) metric.MeasurementOption {
	if m.label != nil {
		if label := m.label(name); label != "" {
			attributes = append(attributes, labelKey.String(label))
		}
	}
	return metric.WithAttributeSet(attribute.NewSet(attributes...))
}
