package otelredlock_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	otelredlock "github.com/quorumlock/redlock/adapters/otel"
	"github.com/quorumlock/redlock/redlocktrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

const ms = time.Millisecond

// want checks the samples of a metric.
func (s *station) want(metric string, want map[string]sample) {
	s.t.Helper()
	if got := s.samples(metric); !maps.Equal(got, want) {
		s.t.Errorf("%s is\n\t%v, want\n\t%v", metric, got, want)
	}
}

// TestSlowAndDead: of five nodes one is slow and one is dead. The acquire is not affected, and its
// trace and the metrics show which nodes they are.
func TestSlowAndDead(t *testing.T) {
	stationed(t, func(t *testing.T, s *station) {
		s.nodes.Kill(0)
		for i := 1; i < 4; i++ {
			s.nodes.Path(i).SetDelay(ms) // the dead node's answer, which comes at once, is not the last of the acquire
		}
		s.nodes.Path(4).SetDelay(30 * ms)
		pass(time.Second) // it is known to be dead
		ctx, job := s.tracer.Tracer("job").Start(t.Context(), "job")
		l, err := s.lk.Acquire(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		job.End()
		pass(time.Second)

		spans := s.named("redlock acquire")
		if len(spans) != 1 {
			t.Fatalf("%d spans of the acquire", len(spans))
		}
		acquire := spans[0]
		if acquire.Parent.SpanID() != job.SpanContext().SpanID() {
			t.Error("the acquire is not below the job")
		}
		if took := acquire.EndTime.Sub(acquire.StartTime); took != ms || acquire.Status.Code != codes.Unset {
			t.Errorf("the acquire took %v, and its status is %v", took, acquire.Status)
		}
		for key, want := range map[attribute.Key]string{
			"redlock.name": "a", "redlock.tries": "1", "redlock.operation": "acquire", "redlock.fence": fmt.Sprint(l.Fence()), "error.type": "",
		} {
			if got := value(acquire.Attributes, key); got != want {
				t.Errorf("%s is %q, want %q", key, got, want)
			}
		}

		nodes := s.below(acquire)
		if len(nodes) != 5 {
			t.Fatalf("%d spans of nodes", len(nodes))
		}
		for _, span := range nodes {
			type facts struct {
				outcome, late, failed string
				status                codes.Code
				took                  time.Duration
			}
			want := facts{outcome: "granted", late: "false", took: ms}
			switch span.Name {
			case "acquire " + s.nodes.Addr(0):
				want = facts{outcome: "unreachable", late: "false", failed: "unreachable", status: codes.Error}
			case "acquire " + s.nodes.Addr(4):
				want.late, want.took = "true", 30*ms
			}
			got := facts{
				outcome: value(span.Attributes, "redlock.outcome"), late: value(span.Attributes, "redlock.late"),
				failed: value(span.Attributes, "error.type"), status: span.Status.Code, took: span.EndTime.Sub(span.StartTime),
			}
			if got != want {
				t.Errorf("%s: got %+v, want %+v", span.Name, got, want)
			}
			address := value(span.Attributes, "server.address") + ":" + value(span.Attributes, "server.port")
			if span.Name != "acquire "+address || value(span.Attributes, "db.system.name") != "redis" || span.SpanKind != trace.SpanKindClient {
				t.Errorf("%s: kind %v, %v", span.Name, span.SpanKind, span.Attributes)
			}
		}

		at := func(i int, outcome string) string {
			host, port, _ := strings.Cut(s.nodes.Addr(i), ":")
			return "redlock.outcome=" + outcome + ",redlock.step=acquire,server.address=" + host + ",server.port=" + port
		}
		s.want("redlock.operation.duration", map[string]sample{"redlock.operation=acquire": {1, ms}})
		s.want("redlock.node.duration", map[string]sample{
			at(0, "unreachable"): {1, 0}, at(1, "granted"): {1, ms}, at(2, "granted"): {1, ms}, at(3, "granted"): {1, ms}, at(4, "granted"): {1, 30 * ms},
		})
		s.want("redlock.node.surplus", map[string]sample{at(4, "granted"): {1, 0}})
		s.want("redlock.wait.duration", map[string]sample{})
		s.want("redlock.contended", map[string]sample{})
		l.Release(t.Context())
		s.want("redlock.hold.duration", map[string]sample{"redlock.end=released": {1, time.Second}})
	})
}

// TestWaiting: a call that waits, a call that asks once, and a call that gives up.
func TestWaiting(t *testing.T) {
	stationed(t, func(t *testing.T, s *station) {
		ctx := t.Context()
		rival, err := s.locker(nil).Acquire(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.lk.TryAcquire(ctx, "a"); !errors.Is(err, redlock.ErrHeld) {
			t.Fatal(err)
		}
		brief, cancel := context.WithTimeout(ctx, 50*ms)
		defer cancel()
		if _, err := s.lk.Acquire(brief, "a"); !errors.Is(err, redlock.ErrHeld) {
			t.Fatal(err)
		}
		go func() {
			pass(200 * ms)
			rival.Release(ctx)
		}()
		l, err := s.lk.Acquire(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		pass(0)
		s.want("redlock.contended", map[string]sample{"redlock.operation=acquire": {2, 0}, "redlock.operation=try-acquire": {1, 0}})
		s.want("redlock.wait.duration", map[string]sample{"": {1, 200 * ms}, "error.type=held": {1, 50 * ms}})
		s.want("redlock.operation.duration", map[string]sample{
			"redlock.operation=acquire":                     {1, 200 * ms},
			"error.type=held,redlock.operation=acquire":     {1, 50 * ms},
			"error.type=held,redlock.operation=try-acquire": {1, 0},
		})
		if span := s.named("redlock try-acquire")[0]; span.Status.Code != codes.Unset || value(span.Attributes, "error.type") != "held" {
			t.Errorf("that it is held is no failure of who asks once: %v %v", span.Status, span.Attributes)
		}
		spans := s.named("redlock acquire")
		if len(spans) != 2 || spans[0].Status.Code != codes.Error || spans[1].Status.Code != codes.Unset {
			t.Fatalf("got %v", spans)
		}
		if events := spans[1].Events; len(events) == 0 || events[0].Name != "wait" || !strings.Contains(value(events[0].Attributes, "redlock.reason"), "held by another") {
			t.Errorf("the span does not say that it waits: %v", events)
		}
		l.Release(ctx)
	})
}

// TestRenewedAndLost: a renewal is a trace of its own, which leads to the acquire; and a
// lock that is lost was held until then.
func TestRenewedAndLost(t *testing.T) {
	stationed(t, func(t *testing.T, s *station) {
		ctx, job := s.tracer.Tracer("job").Start(t.Context(), "job")
		l, err := s.lk.TryAcquire(ctx, "a", redlock.AutoRenew())
		if err != nil {
			t.Fatal(err)
		}
		job.End()
		pass(4 * time.Second)
		acquire, renewals := s.named("redlock try-acquire")[0], s.named("redlock renew")
		if len(renewals) != 1 || len(s.below(renewals[0])) != 5 {
			t.Fatalf("got %v", renewals)
		}
		renewal := renewals[0]
		if renewal.Parent.IsValid() || len(renewal.Links) != 1 || renewal.Links[0].SpanContext.SpanID() != acquire.SpanContext.SpanID() {
			t.Errorf("the renewal has parent %v, links %v", renewal.Parent, renewal.Links)
		}
		for i := range s.nodes.Len() {
			s.nodes.Hang(i)
		}
		<-l.Context(t.Context()).Done()
		pass(0)
		held := l.Until().Sub(l.Since()).Round(time.Microsecond)
		s.want("redlock.lost", map[string]sample{"redlock.end=expired": {1, 0}, "redlock.end=quorum": {}, "redlock.end=closed": {}})
		if failed := s.samples("redlock.renewal.failed")[""]; failed.count < 3 {
			t.Errorf("%d renewals are counted as failed", failed.count)
		}
		s.want("redlock.hold.duration", map[string]sample{"redlock.end=expired": {1, held}})
		if failed := s.samples("redlock.operation.duration")["error.type=no_quorum,redlock.operation=renew"]; failed.count == 0 {
			t.Error("no renewal has failed")
		}
		for i := range s.nodes.Len() {
			s.nodes.Resume(i)
		}
	})
}

// TestLabel: names are on metrics only as labels.
func TestLabel(t *testing.T) {
	stationed(t, func(t *testing.T, s *station) {
		for _, name := range []string{"invoice/17", "invoice/18", "report"} {
			l, err := s.lk.TryAcquire(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			l.Release(t.Context())
		}
		s.want("redlock.hold.duration", map[string]sample{"redlock.end=released,redlock.label=invoice": {2, 0}, "redlock.end=released": {1, 0}})
	}, otelredlock.WithLabel(func(name string) string {
		if kind, _, ok := strings.Cut(name, "/"); ok {
			return kind
		}
		return ""
	}))
}

// TestUnsampled: operations that are not sampled leave no spans, renewals included.
func TestUnsampled(t *testing.T) {
	stationed(t, func(t *testing.T, s *station) {
		remote := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, Remote: true})
		l, err := s.lk.TryAcquire(trace.ContextWithSpanContext(t.Context(), remote), "a", redlock.AutoRenew())
		if err != nil {
			t.Fatal(err)
		}
		pass(4 * time.Second)
		l.Release(trace.ContextWithSpanContext(t.Context(), remote))
		if spans := s.spans.GetSpans(); len(spans) > 0 {
			t.Errorf("got %v", spans)
		}
		if n := s.samples("redlock.operation.duration")["redlock.operation=renew"].count; n != 1 {
			t.Errorf("%d renewals counted", n)
		}
	})
}

// TestJoined: the program's own hooks are called, too, within the span.
func TestJoined(t *testing.T) {
	stationed(t, func(t *testing.T, s *station) {
		hooks, err := otelredlock.Hooks(otelredlock.WithTracerProvider(s.tracer))
		if err != nil {
			t.Fatal(err)
		}
		var traced atomic.Int64
		lk := s.locker(redlock.JoinHooks(hooks, &redlock.Hooks{Trace: &redlocktrace.Trace{End: func(ctx context.Context, _ redlocktrace.Operation) {
			if trace.SpanContextFromContext(ctx).IsSampled() {
				traced.Add(1)
			}
		}}}))
		if _, err := lk.TryAcquire(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := traced.Load(); n != 1 {
			t.Errorf("%d operations told with their span", n)
		}
		spans := s.named("redlock try-acquire")
		if len(spans) != 1 {
			t.Fatalf("got %v", spans)
		}
		if status, err := lk.Inspect(t.Context(), "a"); err != nil || status.By.Trace != spans[0].SpanContext.TraceID().String() {
			t.Errorf("the lock is of the trace %q, %v; its span %v", status.By.Trace, err, spans[0].SpanContext)
		}
	})
}
