package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/redlock/bench/contender"
)

// An acquisition is one process's wait for a lock and its result, in nanoseconds of the clock that
// all processes of a machine share.
type acquisition struct {
	Asked int64
	Got   int64 // 0: it never had the lock
	Gave  int64 // when it began to release
	Tries int64 // the number of attempts
	by    int   // the process
}

// acquireRepeatedly waits for the name again and again. The last acquisition may have failed
// because time was up.
func acquireRepeatedly(ctx context.Context, locker contender.Waiter, o order) ([]acquisition, error) {
	if err := sleep(ctx, time.Until(o.At)); err != nil {
		return nil, err
	}
	waiting, cancel := context.WithDeadline(ctx, o.Until)
	defer cancel()
	var acquisitions []acquisition
	for (o.Most == 0 || len(acquisitions) < o.Most) && waiting.Err() == nil {
		tries := contender.Tries(locker)
		t := acquisition{Asked: time.Now().UnixNano()}
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
				return acquisitions, err
			}
		case waiting.Err() == nil:
			return acquisitions, err
		}
		acquisitions = append(acquisitions, t)
		if o.Pause > 0 {
			time.Sleep(o.Pause)
		}
	}
	return acquisitions, ctx.Err()
}

// A history has all acquisitions of one name: the successful ones, in their order, and then the others.
type history struct {
	acquisitions []acquisition
	had          int // how many succeeded
	processes    int
	begin, end   int64
}

func newHistory(answers []answer, begin, end time.Time) (*history, error) {
	h := &history{processes: len(answers), begin: begin.UnixNano(), end: end.UnixNano()}
	for by, a := range answers {
		for _, t := range a.Acquisitions {
			t.by = by
			h.acquisitions = append(h.acquisitions, t)
			if t.Got != 0 {
				h.had++
			}
		}
	}
	slices.SortFunc(h.acquisitions, func(a, b acquisition) int { return cmp.Compare(uint64(a.Got)-1, uint64(b.Got)-1) }) // 0 is last
	if h.had == 0 {
		return nil, fmt.Errorf("none of %d processes had the lock", h.processes)
	}
	for i := range h.had - 1 {
		if h.acquisitions[i+1].Got < h.acquisitions[i].Gave {
			return nil, fmt.Errorf("two processes had the lock at once, for %v", time.Duration(h.acquisitions[i].Gave-h.acquisitions[i+1].Got))
		}
	}
	return h, nil
}

// served returns the successful acquisitions.
func (h *history) served() []acquisition { return h.acquisitions[:h.had] }

// handOvers returns the times of the hand-overs: from when a holder began to release until the next
// one, which was already waiting, had the lock.
func (h *history) handOvers() (took []time.Duration) {
	for i := 1; i < h.had; i++ {
		if before, t := h.acquisitions[i-1], h.acquisitions[i]; t.Asked < before.Gave {
			took = append(took, time.Duration(t.Got-before.Gave))
		}
	}
	return took
}

// switches is how often the next holder was another process.
func (h *history) switches() (n int) {
	for i := 1; i < h.had; i++ {
		if h.acquisitions[i].by != h.acquisitions[i-1].by {
			n++
		}
	}
	return n
}

// inOrder is the share of acquisitions that overtook none that had asked earlier by more than the margin.
func (h *history) inOrder(margin time.Duration) float64 {
	earliest, well := int64(1<<63-1), 0 // of those that were served later, or never
	for i := len(h.acquisitions) - 1; i >= 0; i-- {
		if i < h.had && h.acquisitions[i].Asked <= earliest+min(margin.Nanoseconds(), 1<<63-1-earliest) {
			well++
		}
		earliest = min(earliest, h.acquisitions[i].Asked)
	}
	return float64(well) / float64(h.had)
}

// waits returns the waiting times of the acquisitions that began at least so long after the
// beginning. One that has waited until the end counts with its time until then.
func (h *history) waits(after time.Duration) []time.Duration {
	var all []time.Duration
	for _, t := range h.acquisitions {
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

// tries is the number of attempts for each successful acquisition.
func (h *history) tries() float64 {
	var sum int64
	for _, t := range h.acquisitions {
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
