package recipes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/fence"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
)

// patience is how long a step may take that takes a moment on an idle machine.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	if text := os.Getenv(holderVariable); text != "" {
		holder(text)
		return
	}
	os.Exit(leaks.Main(m))
}

// TestRecipes: every resource rejects stale fences, and only those: by the rules, with many
// holders at once, and from a holder that was stopped for longer than its lock lasts.
func TestRecipes(t *testing.T) {
	for _, r := range resources {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			where := r.start(t)
			s, err := r.open(where)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.close)

			t.Run("rules", func(t *testing.T) { rules(t, s) })
			t.Run("together", func(t *testing.T) { together(t, s) })

			t.Run("stopped holder", func(t *testing.T) {
				nodes := urls(redistest.Servers(t, 3))
				t.Run("successor has read", func(t *testing.T) {
					t.Parallel()
					stopped(t, nodes, r.name, where, s, false)
				})
				t.Run("successor has written", func(t *testing.T) {
					t.Parallel()
					stopped(t, nodes, r.name, where, s, true)
				})
			})
		})
	}
}

// rules: a number is accepted if none that was larger has been seen, in reading or in
// writing, and then it has been seen.
func rules(t *testing.T, s *store) {
	const name, most = "rules", 1<<53 - 1 // the largest fence there can be
	if err := s.create(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		fence int64
		write string // nothing: it reads
		stale bool
		then  string
	}{
		{fence: 5, write: "a", then: "a"},
		{fence: 5, write: "b", then: "b"}, // one holder may write again
		{fence: 4, write: "c", stale: true, then: "b"},
		{fence: 4, stale: true, then: "b"},
		{fence: 10, then: "b"}, // as a text, 10 would be less than 5
		{fence: 9, write: "c", stale: true, then: "b"},
		{fence: 10, write: "d", then: "d"},
		{fence: most - 1, write: "e", then: "e"},
		{fence: most, write: "f", then: "f"},
		{fence: most - 1, write: "g", stale: true, then: "f"},
		{fence: most - 1, stale: true, then: "f"},
		{fence: most, then: "f"},
	} {
		what := fmt.Sprintf("fence %d writes %q", step.fence, step.write)
		var err error
		if step.write != "" {
			err = s.write(t.Context(), name, step.fence, step.write)
		} else {
			var got string
			what = fmt.Sprintf("fence %d reads", step.fence)
			got, err = s.read(t.Context(), name, step.fence)
			if err == nil && got != step.then {
				t.Errorf("%s %q, want %q", what, got, step.then)
			}
		}
		switch {
		case step.stale && !errors.Is(err, fence.ErrStale):
			t.Errorf("%s: got %v, want %v", what, err, fence.ErrStale)
		case !step.stale && err != nil:
			t.Errorf("%s: %v", what, err)
		}
	}
}

// together: of holders that all write at once, the write of the last one stays.
func together(t *testing.T, s *store) {
	const name, holders = "together", 32
	if err := s.create(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for number := int64(1); number <= holders; number++ {
		all.Go(func() {
			err := s.write(t.Context(), name, number, strconv.FormatInt(number, 10))
			if err != nil && (!errors.Is(err, fence.ErrStale) || number == holders) {
				t.Errorf("fence %d: %v", number, err)
			}
		})
	}
	all.Wait()
	if got, err := s.read(t.Context(), name, holders); err != nil || got != strconv.Itoa(holders) {
		t.Errorf("in the end it has %q, %v, want %d", got, err, holders)
	}
}

// stopped: a holder reads, is stopped with SIGSTOP until its successor has written, goes on and
// writes.
func stopped(t *testing.T, nodes []string, resource, where string, s *store, write bool) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	name := t.Name()
	if err := s.create(ctx, name); err != nil {
		t.Fatal(err)
	}
	lk, err := redlock.Connect(nodes, holderOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lk.Close() }()

	first := startHolder(t, briefing{nodes, resource, where, name})
	first.tell(t, "acquire")
	began := first.report(t)
	first.hang(t)

	l, err := lk.Acquire(ctx, name) // it waits until the first one's lock has ended
	if err != nil {
		t.Fatal(err)
	}
	if l.Fence() <= began.Fence {
		t.Fatalf("fence %d comes after fence %d", l.Fence(), began.Fence)
	}
	if write {
		err = s.write(ctx, name, l.Fence(), "second")
	} else {
		_, err = s.read(ctx, name, l.Fence())
	}
	if err != nil {
		t.Fatalf("the second holder, with fence %d: %v", l.Fence(), err)
	}

	first.tell(t, "write")
	first.resume(t)
	late := first.report(t)
	if late.Ended == "" || !late.Lost {
		t.Errorf("the first look at the lock's context says %q, lost %v: want the loss", late.Ended, late.Lost)
	}
	if !late.Stale {
		t.Errorf("fence %d writes after fence %d, want %v", began.Fence, l.Fence(), fence.ErrStale)
	}

	if err := s.write(ctx, name, l.Fence(), "second"); err != nil {
		t.Errorf("the second holder writes: %v", err)
	}
	first.tell(t, "write")
	if late := first.report(t); !late.Stale {
		t.Errorf("fence %d writes once more after fence %d, want %v", began.Fence, l.Fence(), fence.ErrStale)
	}
	if got, err := s.read(ctx, name, l.Fence()); err != nil || got != "second" {
		t.Errorf("in the end it has %q, %v, want what the second holder wrote", got, err)
	}
	first.end(t)
	t.Logf("fence %d, then %d; the first is told %q", began.Fence, l.Fence(), late.Ended)
}
