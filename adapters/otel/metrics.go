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
	failed, warnings            metric.Int64Counter

	label   func(name string) string
	labels  sync.Map // those whose counters have begun
	answers sync.Map // of answerKind: its attributes, since there are some for every node and step
	nodes   nodes
	waiting waits
}

func newMetrics(meter metric.Meter, c *config) (*metrics, error) {
	m := &metrics{label: c.label, waiting: waits{bound: c.bound, label: c.label, now: make(map[*call]struct{})}}
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
	m.failed = counter("redlock.renewal.failed", "{renewal}", "Renewals that failed while the lock was still valid.")
	m.warnings = counter("redlock.warnings", "{warning}", "Warnings: settings, clocks or lists of nodes that have to be changed.")
	m.nodes.quarantines = counter("redlock.node.quarantines", "{quarantine}", "How often a node has lost its vote, since it may have forgotten locks.")
	m.nodes.steps = counter("redlock.node.clock.steps", "{step}", "How often a node's clock was set, or ran too fast or too slow.")
	gauge := func(name, unit, description string) metric.Int64ObservableGauge {
		g, err := meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
		errs = append(errs, err)
		return g
	}
	status := gauge("redlock.node.status", "", "1: the node is in this state; 0: it is in another one.")
	spare := gauge("redlock.votes.spare", "{vote}", "Votes beyond the quorum. 0: no further node may fail; below 0: there is no quorum.")
	missing := gauge("redlock.votes.missing", "{vote}", "Members of the set that have no vote now.")
	overdue, err := meter.Int64ObservableUpDownCounter("redlock.wait.overdue", metric.WithUnit("{call}"),
		metric.WithDescription("Calls that have waited for a lock for longer than the bound, and still wait."))
	if errs = append(errs, err); errors.Join(errs...) != nil {
		return nil, errors.Join(errs...)
	}
	m.begin()
	_, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		m.nodes.observe(o, status, spare, missing)
		m.waiting.observe(o, overdue)
		return nil
	}, status, spare, missing, overdue)
	return m, err
}

// begin has the counters of trouble begin at 0, with these attributes besides their own. Prometheus
// sees that a counter rises only if it had another value before: of one that begins with 1, it never
// sees the first event.
func (m *metrics) begin(attributes ...attribute.KeyValue) {
	ctx := context.Background()
	for _, end := range []string{"expired", "quorum", "closed"} {
		m.lost.Add(ctx, 0, metric.WithAttributes(append(attributes, endKey.String(end))...))
	}
	m.failed.Add(ctx, 0, metric.WithAttributes(attributes...))
	if len(attributes) == 0 {
		m.warnings.Add(ctx, 0)
	}
}

func (m *metrics) hooks() *redlock.Hooks {
	return &redlock.Hooks{
		Warning:     func(error) { m.warnings.Add(context.Background(), 1) },
		NodeDown:    m.nodes.wentDown,
		NodeUp:      func(node string, _ time.Duration) { m.nodes.cameUp(node) },
		Quarantined: func(node string, _ time.Duration, _ error) { m.nodes.quarantine(node) },
		Votes:       m.nodes.votes,
		ClockStep:   func(node string, _ time.Duration) { m.nodes.step(node) },
		Joined:      m.nodes.joined,
		Members:     m.nodes.members,
		Lost:        m.loss,
		Trace:       &redlocktrace.Trace{Start: m.start, Wait: m.waits, Node: m.answer, End: m.end},
	}
}

func (m *metrics) start(ctx context.Context, op redlocktrace.Operation) context.Context {
	if m.label != nil && op.Lock == nil {
		if label := m.label(op.Name); label != "" {
			if _, began := m.labels.LoadOrStore(label, true); !began {
				m.begin(labelKey.String(label))
			}
		}
	}
	switch op.Op {
	case "acquire":
		return context.WithValue(ctx, callKey{}, new(call))
	case "release":
		m.held(ctx, op.Lock, op.At, "released")
	}
	return ctx
}

func (m *metrics) held(ctx context.Context, l redlocktrace.Lock, until time.Time, end string) {
	m.hold.Record(ctx, until.Sub(l.Since()).Seconds(), m.with(l.Name(), endKey.String(end)))
}

func (m *metrics) loss(l *redlock.Lock, cause error) {
	end := endOf(cause)
	m.lost.Add(context.Background(), 1, m.with(l.Name(), endKey.String(end)))
	m.held(context.Background(), l, time.Now(), end)
}

func (m *metrics) waits(ctx context.Context, op redlocktrace.Operation) {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok {
		return
	}
	m.waiting.begin(c, op)
	if !c.contended && (op.Err == nil || errors.Is(op.Err, redlock.ErrHeld)) {
		c.contended = true
		m.contended.Add(ctx, 1, m.with(op.Name, operationKey.String(op.Op)))
	}
}

func (m *metrics) end(ctx context.Context, op redlocktrace.Operation) {
	if c, ok := ctx.Value(callKey{}).(*call); ok && op.Op == "acquire" {
		m.waiting.end(c)
	}
	var failed []attribute.KeyValue
	if op.Err != nil {
		failed = append(failed, semconv.ErrorTypeKey.String(errorType(op.Err)))
	}
	if op.Op == "renew" && op.Err != nil && !errors.Is(op.Err, redlock.ErrLost) && !errors.Is(op.Err, redlock.ErrClosed) {
		m.failed.Add(ctx, 1, m.with(op.Name))
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
	if a.Step == "acquire" {
		m.nodes.answered(a.Node, a.Outcome)
	}
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
