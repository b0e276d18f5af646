package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/bench/contender"
)

// A load says how much to lock: each caller locks and unlocks names of its own until the window is
// over or it has done its cycles.
type load struct {
	callers int
	window  time.Duration
	cycles  int  // for each caller; 0: as many as the window allows
	fresh   bool // each cycle locks a name that the nodes have never seen
}

// A job is a prepared load: its names exist and there is room for its figures, so that the harness
// allocates nothing while it runs.
type job struct {
	load
	prefix string // of all names
	names  [][]string
	parts  []tally
}

// A tally is the result of a caller, or of all of them.
type tally struct {
	lock, unlock []time.Duration // of the cycles that succeeded
	failed       int
	err          error // the last failure
	elapsed      time.Duration
}

// namesEach is the number of names that a caller uses in turn. One would do, were it not for
// contenders that return before all nodes have got the release: they would run into their own
// leftovers at once, which the orphans scenario counts.
const namesEach = 16

// freshNames is the number of names of all callers together if each is locked once: more than a
// window has cycles, and made before it begins.
const freshNames = 1 << 18

// each is how many names a caller has.
func (l load) each() int {
	if !l.fresh {
		return namesEach
	}
	return max(freshNames/l.callers, 2*l.cycles)
}

// runs makes the names of every job new, so that leftovers of an earlier one have no effect.
var runs atomic.Int64

// nameEnd ends every name, so that a key that is a name can be told from one
// that merely begins with it.
const nameEnd = "/lock"

func freshPrefix() string { return "bench:" + strconv.FormatInt(runs.Add(1), 10) + ":" }

// ready prepares for about room cycles a caller; more cost an allocation.
func (l load) ready(room int) *job {
	j := &job{load: l, prefix: freshPrefix(), parts: make([]tally, l.callers)}
	for c := range l.callers {
		names := make([]string, l.each())
		for i := range names {
			names[i] = fmt.Sprintf("%s%d:%d%s", j.prefix, c, i, nameEnd)
		}
		j.names = append(j.names, names)
		j.parts[c].lock = make([]time.Duration, 0, room)
		j.parts[c].unlock = make([]time.Duration, 0, room)
	}
	return j
}

// run drives the locker and returns when the last caller is done. A caller
// whose cycle began inside the window finishes it, so slow contenders are
// charged for the time that they really took.
func (j *job) run(ctx context.Context, locker contender.Locker) *tally {
	start := time.Now()
	var all sync.WaitGroup
	for c := range j.callers {
		all.Go(func() { j.caller(ctx, locker, start, c) })
	}
	all.Wait()
	sum := &j.parts[0]
	sum.elapsed = time.Since(start)
	for _, p := range j.parts[1:] {
		sum.lock = append(sum.lock, p.lock...)
		sum.unlock = append(sum.unlock, p.unlock...)
		sum.failed += p.failed
		if p.err != nil {
			sum.err = p.err
		}
	}
	return sum
}

func (j *job) caller(ctx context.Context, locker contender.Locker, start time.Time, c int) {
	names, t := j.names[c], &j.parts[c]
	for i := 0; j.cycles == 0 || i < j.cycles; i++ {
		begin := time.Now()
		if begin.Sub(start) >= j.window || ctx.Err() != nil {
			return
		}
		if j.fresh && i >= len(names) {
			t.failed, t.err = t.failed+1, fmt.Errorf("a caller has used up its %d new names", len(names))
			return
		}
		lock, err := locker.Lock(ctx, names[i%len(names)])
		held := time.Now()
		if err == nil {
			err = lock.Release(ctx)
		}
		if err != nil {
			t.failed, t.err = t.failed+1, err
			continue
		}
		t.lock = append(t.lock, held.Sub(begin))
		t.unlock = append(t.unlock, time.Since(held))
	}
}

// cycles pairs each lock with its unlock.
func (t *tally) cycles() []time.Duration {
	both := make([]time.Duration, len(t.lock))
	for i := range both {
		both[i] = t.lock[i] + t.unlock[i]
	}
	return both
}

// none explains a job without a single cycle.
func (t *tally) none() error {
	switch {
	case len(t.lock) > 0:
		return nil
	case t.err == nil:
		return errors.New("no cycle was begun")
	}
	return fmt.Errorf("no cycle succeeded, %d failed: %w", t.failed, t.err)
}

const warmBound = 30 * time.Second

// warm opens the connections and loads the scripts that the measured load will use. It goes on
// until locks are granted: a contender may reject new nodes for a while, and that is no part of any
// figure here.
//
// One caller comes first: what the first lock of all finds, on nodes that have never been used, happens once in their life.
func warm(ctx context.Context, locker contender.Locker, l load) error {
	l.cycles, l.window, l.fresh = 0, max(l.window/5, 50*time.Millisecond), false
	if l.callers > 1 {
		first := l
		first.callers = 1
		if err := warm(ctx, locker, first); err != nil {
			return err
		}
	}
	for deadline := time.Now().Add(warmBound); ; {
		err := l.ready(0).run(ctx, locker).none()
		if err == nil || ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("warming up for %v: %w", warmBound, err)
		}
	}
}
