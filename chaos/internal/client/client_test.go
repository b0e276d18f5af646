package client

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/chaos/history"
)

// TestMemoryChecksFences: after a read or a write with a fence the resource accepts no write with a smaller one, and records
// what it has refused. Another name has its own fence.
func TestMemoryChecksFences(t *testing.T) {
	var notes []string
	m := NewMemory(func(e history.Event) {
		notes = append(notes, fmt.Sprint(e.Kind, " ", e.Name, " ", e.Was, " to ", e.Value))
	})
	write := func(name string, value int, fence uint64) {
		m.Write(history.Event{Name: name, Value: value, Fence: fence})
	}
	write("a", 1, 5)
	write("a", 2, 5) // by the same holder
	if got := m.Read("a", 7); got != 2 {
		t.Errorf("it reads %d", got)
	}
	write("a", 3, 6)
	write("b", 4, 1)
	m.Read("a", 1)
	write("a", 5, 6)
	write("a", 6, 7)
	if want := "[wrote a 0 to 1 wrote a 1 to 2 refused a 2 to 3 wrote b 0 to 4 refused a 2 to 5 wrote a 2 to 6]"; fmt.Sprint(notes) != want {
		t.Errorf("recorded %v, want %s", notes, want)
	}
}

// TestWhyIsTheReactionOfACaller: the word that the judge goes by. An error that is two things has the word of the worse one.
func TestWhyIsTheReactionOfACaller(t *testing.T) {
	quorum := func(kind, cause error) error { return &redlock.QuorumError{Kind: kind, Cause: cause} }
	for _, tt := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{redlock.ErrClosed, "closed"},
		{quorum(redlock.ErrLost, nil), "lost"},
		{fmt.Errorf("MaxHold is over: %w", redlock.ErrLost), "max hold"},
		{quorum(redlock.ErrHeld, nil), "held"},
		{quorum(redlock.ErrNoQuorum, nil), "no quorum"},
		{context.Canceled, "cancelled"},
		{quorum(redlock.ErrHeld, context.Canceled), "cancelled"},
		{context.DeadlineExceeded, "cancelled"},
		{quorum(redlock.ErrHeld, context.DeadlineExceeded), "held"}, // it says why there was no lock until then
		{errors.New("redlock: all its programs must have the same Quorum"), "refused"},
		{errors.New("redlock: lock released"), "released"},
		{errors.New("redlock: lock detached"), "detached"},
		{errors.New("something"), "other"},
	} {
		if got := why(tt.err); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.err, got, tt.want)
		}
	}
}
