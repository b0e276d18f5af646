// Package otelredlock makes a redlock.Locker report to OpenTelemetry.
//
// There is a span for each operation: acquire, try-acquire, extend, renew and release. Below it
// there is one for each node's answer, also for answers after a quorum has decided: so the trace
// shows which node is slow, and which one refused. A renewal has no caller, and a lock may be
// renewed for days, so it begins a trace of its own, with a link to the span in which the lock was
// acquired; none, if that was not sampled.
//
// The metrics, in seconds where they are durations:
//
//	redlock.operation.duration  operations, by redlock.operation and error.type
//	redlock.wait.duration       how long acquisitions waited that found the lock held, by error.type
//	redlock.hold.duration       how long locks were held, by redlock.end: released, expired, quorum or closed
//	redlock.wait.overdue        calls that wait now, and have for longer than [WithWaitBound]
//	redlock.lost                locks that ended before they were released, by redlock.end
//	redlock.renewal.failed      renewals that failed while the lock was still valid
//	redlock.votes.spare         votes beyond the quorum, by redlock.set; 0: no further node may fail; below 0: no quorum
//	redlock.votes.missing       members that have no vote now, by redlock.set
//	redlock.node.status         1 for the state of a node, 0 for the others: votes, down, quarantined or ineligible
//	redlock.node.quarantines    how often a node has lost its vote, since it may have forgotten locks
//	redlock.node.clock.steps    how often a node's clock was set, or was too fast or too slow
//	redlock.warnings            what should be changed: redlock.Hooks.Warning has the text
//	redlock.contended           acquisitions that found the lock held
//	redlock.node.duration       answers of nodes, by server.address, server.port, redlock.step and redlock.outcome
//	redlock.node.surplus        those of them that came when the step was over, by the same
//
// The names of locks are on spans only, for there may be any number of them: see [WithLabel]. A
// lock that expires without a watcher (its Context, or a renewal) is in none of the metrics of its
// end.
package otelredlock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/quorumlock/redlock"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

const scope = "github.com/quorumlock/redlock/adapters/otel"

// An Option varies what [Hooks] does.
type Option func(*config)

type config struct {
	tracers trace.TracerProvider
	meters  metric.MeterProvider
	label   func(name string) string
	bound   time.Duration
}

// WithTracerProvider makes p the source of spans. The default is the global one.
func WithTracerProvider(p trace.TracerProvider) Option { return func(c *config) { c.tracers = p } }

// WithMeterProvider makes p the source of metrics. The default is the global one.
func WithMeterProvider(p metric.MeterProvider) Option { return func(c *config) { c.meters = p } }

// WithLabel adds an attribute redlock.label to the metrics of operations: the result of label for
// the lock's name, which must be one of a few words, or "" for none. The default is none.
func WithLabel(label func(name string) string) Option { return func(c *config) { c.label = label } }

// WithWaitBound sets how long a call may wait for a lock before redlock.wait.overdue counts it. The
// default is 30 s. Hooks returns an error if it is not above 0.
func WithWaitBound(d time.Duration) Option { return func(c *config) { c.bound = d } }

// Hooks returns the value for redlock.Options.Hooks. Combine it with hooks of your own by [redlock.JoinHooks].
//
// The state of the nodes and the votes are those of one Locker: call Hooks for each Locker that is in use
// at the same time. After Locker.Close they stay as they were, until another Locker is made with the
// same hooks. Hooks returns an error if the MeterProvider does, or if an option cannot be used.
func Hooks(options ...Option) (*redlock.Hooks, error) {
	c := config{tracers: otel.GetTracerProvider(), meters: otel.GetMeterProvider(), bound: 30 * time.Second}
	for _, o := range options {
		o(&c)
	}
	if c.bound <= 0 {
		return nil, fmt.Errorf("otelredlock: WithWaitBound(%v): every wait would be overdue; give a time above 0", c.bound)
	}
	m, err := newMetrics(c.meters.Meter(scope, metric.WithSchemaURL(semconv.SchemaURL)), &c)
	if err != nil {
		return nil, err
	}
	t := tracing{c.tracers.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL))}
	// Spans come first, so that the metrics find them in the context: exemplars.
	return redlock.JoinHooks(t.hooks(), m.hooks()), nil
}

const (
	operationKey = attribute.Key("redlock.operation")
	stepKey      = attribute.Key("redlock.step")
	outcomeKey   = attribute.Key("redlock.outcome")
	endKey       = attribute.Key("redlock.end")
	labelKey     = attribute.Key("redlock.label")
	nameKey      = attribute.Key("redlock.name")
	fenceKey     = attribute.Key("redlock.fence")
	triesKey     = attribute.Key("redlock.tries")
	lateKey      = attribute.Key("redlock.late")
	stateKey     = attribute.Key("redlock.state")
	setKey       = attribute.Key("redlock.set")
)

// errorType is the error.type of an operation's error.
func errorType(err error) string {
	switch {
	case errors.Is(err, redlock.ErrClosed):
		return "closed"
	case errors.Is(err, redlock.ErrLost):
		return "lost"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, redlock.ErrHeld): // before the deadline: it is how all waiting ends
		return "held"
	case errors.Is(err, redlock.ErrNoQuorum):
		return "no_quorum"
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline_exceeded"
	}
	return semconv.ErrorTypeOther.Value.AsString()
}

// endOf says why a lock was lost.
func endOf(cause error) string {
	switch q := (*redlock.QuorumError)(nil); {
	case errors.Is(cause, redlock.ErrClosed):
		return "closed"
	case errors.As(cause, &q) && q.Cause == nil: // else its validity ended after renewals had failed
		return "quorum"
	}
	return "expired"
}

// answered reports whether an outcome is an answer, also a refusal, and not a fault of the node.
func answered(o redlock.Outcome) bool {
	switch o {
	case redlock.OutcomeGranted, redlock.OutcomeHeld, redlock.OutcomeReserved, redlock.OutcomeGone, redlock.OutcomeStolen, redlock.OutcomeRefilled:
		return true
	}
	return false
}

// server is the address of a node: host and port, or the path of a socket.
func server(node string) []attribute.KeyValue {
	if host, port, err := net.SplitHostPort(node); err == nil {
		if n, err := strconv.Atoi(port); err == nil {
			return []attribute.KeyValue{semconv.ServerAddress(host), semconv.ServerPort(n)}
		}
	}
	return []attribute.KeyValue{semconv.ServerAddress(node)}
}
