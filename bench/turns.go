package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/redlock/bench/contender"
)

// A turn is one process's wait for a lock and what came of it, in nanoseconds of the
// clock that all processes of a machine have in common.
type turn struct {
	Asked int64
	Got   int64 // 0: it never had the lock
	Gave  int64 // when it began to release
	Tries int64 // how often it asked the nodes
	by    int   // the process
}

// takeTurns waits for the name again and again. The last turn may be one that came to
// nothing, because time was up.
func takeTurns(ctx context.Context, locker contender.Waiter, o order) ([]turn, error) {
	if err := sleep(ctx, time.Until(o.At)); err != nil {
		return nil, err
	}
	waiting, cancel := context.WithDeadline(ctx, o.Until)
	defer cancel()
	var turns []turn
	for (o.Most == 0 || len(turns) < o.Most) && waiting.Err() == nil {
		tries := contender.Tries(locker)
		t := turn{Asked: time.Now().UnixNano()}
		lock, err := locker.Wait(waiting, o.Name)
		now := time.Now().UnixNano()
		t.Tries = contender.Tries(locker) - tries
		switch {
		case err == nil:
			t.Got = now
			if o.Hold > 0 {
				time.Sleep(o.Hold)
			}
			t.Gave = time.Now().UnixNano()
			if err := lock.Release(ctx); err != nil {
				return turns, err
			}
		case waiting.Err() == nil:
			return turns, err
		}
		turns = append(turns, t)
		if o.Pause > 0 {
			time.Sleep(o.Pause)
		}
	}
	return turns, ctx.Err()
}

// A history is the turns of all processes at one name: those that had it, in that
// order, and then those that did not.
type history struct {
	turns      []turn
	had        int // of them
	processes  int
	begin, end int64
}

func newHistory(answers []answer, begin, end time.Time) (*history, error) {
	h := &history{processes: len(answers), begin: begin.UnixNano(), end: end.UnixNano()}
	for by, a := range answers {
		for _, t := range a.Turns {
			t.by = by
			h.turns = append(h.turns, t)
			if t.Got != 0 {
				h.had++
			}
		}
	}
	slices.SortFunc(h.turns, func(a, b turn) int { return cmp.Compare(uint64(a.Got)-1, uint64(b.Got)-1) }) // 0 is last
	if h.had == 0 {
		return nil, fmt.Errorf("none of %d processes had the lock", h.processes)
	}
	for i := range h.had - 1 {
		if h.turns[i+1].Got < h.turns[i].Gave {
			return nil, fmt.Errorf("two processes had the lock at once, for %v", time.Duration(h.turns[i].Gave-h.turns[i+1].Got))
		}
	}
	return h, nil
}

// served are the turns that had the lock.
func (h *history) served() []turn { return h.turns[:h.had] }

// handOvers is how long each took: from when a holder began to release until the next
// one had the lock, who was waiting already.
func (h *history) handOvers() (took []time.Duration) {
	for i := 1; i < h.had; i++ {
		if before, t := h.turns[i-1], h.turns[i]; t.Asked < before.Gave {
			took = append(took, time.Duration(t.Got-before.Gave))
		}
	}
	return took
}

// switches is how often the next holder was another process.
func (h *history) switches() (n int) {
	for i := 1; i < h.had; i++ {
		if h.turns[i].by != h.turns[i-1].by {
			n++
		}
	}
	return n
}

// inOrder is the share of turns that went past nobody who had asked earlier, by more
// than so much.
func (h *history) inOrder(margin time.Duration) float64 {
	earliest, well := int64(1<<63-1), 0 // of those who were served later, or never
	for i := len(h.turns) - 1; i >= 0; i-- {
		if i < h.had && h.turns[i].Asked <= earliest+min(margin.Nanoseconds(), 1<<63-1-earliest) {
			well++
		}
		earliest = min(earliest, h.turns[i].Asked)
	}
	return float64(well) / float64(h.had)
}

// waits is how long each turn waited that began so long after the beginning. One that
// has waited until the end counts with as long as that was.
func (h *history) waits(after time.Duration) []time.Duration {
	var all []time.Duration
	for _, t := range h.turns {
		if t.Asked < h.begin+after.Nanoseconds() {
			continue
		}
		until := t.Got
		if until == 0 {
			until = h.end
		}
		all = append(all, time.Duration(until-t.Asked))
	}
	return all
}

// tries is how often the nodes were asked for each lock that was had.
func (h *history) tries() float64 {
	var sum int64
	for _, t := range h.turns {
		sum += t.Tries
	}
	return float64(sum) / float64(h.had)
}

// shares is how often each process had the lock.
func (h *history) shares() []float64 {
	all := make([]float64, h.processes)
	for _, t := range h.served() {
		all[t.by]++
	}
	return all
}

// jain is the index of fairness: 1 if all have the same, 1/n if one has it all.
func jain(shares []float64) float64 {
	var sum, squares float64
	for _, x := range shares {
		sum += x
		squares += x * x
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(shares)) * squares)
}

func mean(values []time.Duration) float64 {
	var sum float64
	for _, v := range values {
		sum += float64(v)
	}
	return sum / float64(max(1, len(values)))
}
