package load

import (
	"context"
	"testing"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktrace"
)

// TestAskedTwice: a node that leaves it to the script, since it has no vote by plain commands, answers an
// acquire twice. A second grant, after the step was complete, changes nothing.
func TestAskedTwice(t *testing.T) {
	s := &asking{op: "acquire", nodes: make([]*Visited, 2), answers: make(map[string]redlocktrace.Reply), all: make(chan struct{})}
	ctx := context.WithValue(t.Context(), askKey{}, s)
	void, granted := redlock.OutcomeVoid.String(), "granted"
	for _, a := range []redlocktrace.Reply{
		{Step: "acquire", Node: "a", Outcome: void}, {Step: "acquire", Node: "b", Outcome: void},
		{Step: "acquire", Node: "a", Outcome: granted}, {Step: "raise", Node: "a", Outcome: granted}, {Step: "acquire", Node: "a", Outcome: granted},
	} {
		Heard(ctx, a)
		select {
		case <-s.all:
			t.Fatalf("%+v: all are there: %v", a, s.answers)
		default:
		}
	}
	Heard(ctx, redlocktrace.Reply{Step: "acquire", Node: "b", Outcome: granted})
	<-s.all
	Heard(ctx, redlocktrace.Reply{Step: "acquire", Node: "b", Outcome: granted})
	for node, a := range s.answers {
		if a.Outcome != granted {
			t.Errorf("%s: %s", node, a.Outcome)
		}
	}
}
