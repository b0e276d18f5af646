package otelredlock

import (
	"context"
	"errors"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

type tracing struct{ tracer trace.Tracer }

func (t tracing) hooks() *redlock.Hooks {
	return &redlock.Hooks{Trace: &redlocktrace.Trace{Start: t.start, Wait: t.wait, Node: t.node, End: t.end, ID: t.id}}
}

func (t tracing) start(ctx context.Context, op redlocktrace.Operation) context.Context {
	options := []trace.SpanStartOption{trace.WithTimestamp(op.At), trace.WithAttributes(operationKey.String(op.Op), nameKey.String(op.Name))}
	if op.Op == "renew" {
		if !trace.SpanContextFromContext(ctx).IsSampled() {
			return ctx
		}
		options = append(options, trace.WithNewRoot(), trace.WithLinks(trace.LinkFromContext(ctx)))
	}
	ctx, _ = t.tracer.Start(ctx, "redlock "+op.Op, options...)
	return ctx
}

// id is the id of the trace, which the lock's token carries.
func (t tracing) id(ctx context.Context) string {
	if c := trace.SpanContextFromContext(ctx); c.HasTraceID() {
		return c.TraceID().String()
	}
	return ""
}

func (t tracing) wait(ctx context.Context, op redlocktrace.Operation) {
	why := "behind another caller of this process"
	if op.Err != nil {
		why = op.Err.Error()
	}
	trace.SpanFromContext(ctx).AddEvent("wait", trace.WithTimestamp(op.At), trace.WithAttributes(triesKey.Int(op.Tries), attribute.String("redlock.reason", why)))
}

func (t tracing) end(ctx context.Context, op redlocktrace.Operation) {
	span := trace.SpanFromContext(ctx)
	defer span.End(trace.WithTimestamp(op.At))
	if !span.IsRecording() {
		return
	}
	if op.Tries > 0 {
		span.SetAttributes(triesKey.Int(op.Tries))
	}
	if op.Lock != nil {
		span.SetAttributes(fenceKey.Int64(op.Lock.Fence()))
	}
	if op.Err == nil {
		return
	}
	span.SetAttributes(semconv.ErrorTypeKey.String(errorType(op.Err)))
	if op.Op != "try-acquire" || !errors.Is(op.Err, redlock.ErrHeld) { // that is an answer
		span.SetStatus(codes.Error, op.Err.Error())
	}
}

// node makes a span of an answer. Its parent may have ended. It has no db.operation.name, since the
// request was part of a pipeline of scripts.
func (t tracing) node(ctx context.Context, a redlocktrace.Reply) {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return
	}
	_, span := t.tracer.Start(ctx, a.Step+" "+a.Node,
		trace.WithSpanKind(trace.SpanKindClient),
		trace.WithTimestamp(a.At.Add(-a.Elapsed)),
		trace.WithAttributes(semconv.DBSystemNameRedis, stepKey.String(a.Step), outcomeKey.String(a.Outcome), lateKey.Bool(a.Late)),
		trace.WithAttributes(server(a.Node)...))
	if failed := (*redlock.NodeError)(nil); errors.As(a.Err, &failed) && !answered(failed.Outcome) {
		span.SetAttributes(semconv.ErrorTypeKey.String(a.Outcome))
		why := ""
		if failed.Err != nil {
			why = failed.Err.Error()
		}
		span.SetStatus(codes.Error, why)
	}
	span.End(trace.WithTimestamp(a.At))
}
