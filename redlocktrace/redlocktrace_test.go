package redlocktrace

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// TestJoin: each callback of each trace is called, in order; what one Start returns is what the next
// one gets; and without a callback there is no trace, so that nothing is paid.
func TestJoin(t *testing.T) {
	type key struct{}
	var calls []string
	one := func(who string) *Trace {
		call := func(what string) { calls = append(calls, what+" "+who) }
		return &Trace{
			Start: func(ctx context.Context, _ Operation) context.Context {
				before, _ := ctx.Value(key{}).(string)
				call("start after " + before)
				return context.WithValue(ctx, key{}, who)
			},
			Wait: func(context.Context, Operation) { call("wait") },
			Node: func(context.Context, Reply) { call("node") },
			End:  func(context.Context, Operation) { call("end") },
			ID: func(context.Context) string {
				call("id")
				return strings.Trim(who, "a")
			},
		}
	}
	j := Join(one("a"), nil, new(Trace), one("b"))
	ctx := j.Start(t.Context(), Operation{})
	if got, _ := ctx.Value(key{}).(string); got != "b" {
		t.Errorf("Start returned the context of %q", got)
	}
	j.Wait(ctx, Operation{})
	j.Node(ctx, Reply{})
	j.End(ctx, Operation{})
	if id := j.ID(ctx); id != "b" {
		t.Errorf("the id is %q: the first that is not empty counts", id)
	}
	if want := []string{"start after  a", "start after a b", "wait a", "wait b", "node a", "node b", "end a", "end b", "id a", "id b"}; !slices.Equal(calls, want) {
		t.Errorf("called %q, want %q", calls, want)
	}
	if Join() != nil || Join(nil, new(Trace)) != nil {
		t.Error("there is a trace that does nothing")
	}
}
