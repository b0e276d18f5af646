// Package otelredlock has a redlock.Locker tell OpenTelemetry what it does.
//
// There is a span for each operation: acquire, try-acquire, extend, renew and release.
// Below it there is one for each node's answer, also for those that come when a quorum
// has decided already: which node is slow, and which one refused, is plain to see. A
// renewal has no caller, and a lock may be renewed for days, so it begins a trace of its
// own, with a link to the span in which the lock was acquired; none, if that was not
// sampled.
//
// The metrics, in seconds where they are durations:
//
//	redlock.operation.duration  operations, by redlock.operation and error.type
//	redlock.wait.duration       how long those waited that could not have a lock at once, by error.type
//	redlock.hold.duration       how long locks were held, by redlock.end: released, expired, quorum or closed
//	redlock.lost                locks that ended before they were released, by redlock.end
//	redlock.contended           acquisitions that found the lock held
//	redlock.node.duration       answers of nodes, by server.address, server.port, redlock.step and redlock.outcome
//	redlock.node.surplus        those of them that came when the step was over, by the same
//
// The names of locks are on spans only, for there may be any number of them:
// see [WithLabel]. A lock that just runs out, without anybody having asked to be told
// (by its Context, or by having it renewed), is in none of the metrics of its end.
package otelredlock

import (
	"context"
	"errors"
	"net"
	"strconv"

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
}

// WithTracerProvider has spans made by p. Default the global one.
func WithTracerProvider(p trace.TracerProvider) Option { return func(c *config) { c.tracers = p } }

// WithMeterProvider has metrics made by p. Default the global one.
func WithMeterProvider(p metric.MeterProvider) Option { return func(c *config) { c.meters = p } }

// WithLabel has the metrics of operations carry an attribute redlock.label, which is what
// label makes of a lock's name: one of a few words, and "" for none. Default none.
func WithLabel(label func(name string) string) Option { return func(c *config) { c.label = label } }

// Hooks returns what redlock.Options.Hooks is to be; with [redlock.JoinHooks] if you have
// some of your own.
func Hooks(options ...Option) (*redlock.Hooks, error) {
	c := config{tracers: otel.GetTracerProvider(), meters: otel.GetMeterProvider()}
	for _, o := range options {
		o(&c)
	}
	m, err := newMetrics(c.meters.Meter(scope, metric.WithSchemaURL(semconv.SchemaURL)), c.label)
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
)

// errorType is the error.type of what an operation came to.
func errorType(err error) string {
	cause := err
	if q := (*redlock.QuorumError)(nil); errors.As(err, &q) {
		cause = q.Cause // and not what became of the nodes' own deadlines
	}
	switch {
	case errors.Is(err, redlock.ErrClosed):
		return "closed"
	case errors.Is(err, redlock.ErrLost):
		return "lost"
	case errors.Is(cause, context.Canceled):
		return "canceled"
	case errors.Is(err, redlock.ErrHeld): // before the deadline: it is how all waiting ends
		return "held"
	case errors.Is(err, redlock.ErrNoQuorum):
		return "no_quorum"
	case errors.Is(cause, context.DeadlineExceeded):
		return "deadline_exceeded"
	}
	return semconv.ErrorTypeOther.Value.AsString()
}

// endOf says why a lock was lost.
func endOf(cause error) string {
	switch q := (*redlock.QuorumError)(nil); {
	case errors.Is(cause, redlock.ErrClosed):
		return "closed"
	case errors.As(cause, &q):
		return "quorum"
	}
	return "expired"
}

// answered reports whether an outcome is an answer, be it no, and not a trouble of the
// node's.
func answered(o redlock.Outcome) bool {
	switch o {
	case redlock.OutcomeGranted, redlock.OutcomeHeld, redlock.OutcomeReserved, redlock.OutcomeGone, redlock.OutcomeStolen, redlock.OutcomeRefilled:
		return true
	}
	return false
}

// server is where a node is: host and port, or the path of a socket.
func server(node string) []attribute.KeyValue {
	if host, port, err := net.SplitHostPort(node); err == nil {
		if n, err := strconv.Atoi(port); err == nil {
			return []attribute.KeyValue{semconv.ServerAddress(host), semconv.ServerPort(n)}
		}
	}
	return []attribute.KeyValue{semconv.ServerAddress(node)}
}
