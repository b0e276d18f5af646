package main

import (
	"context"
	"time"

	"github.com/quorumlock/redlock/bench/contender"
)

// sizes has the sizes of all measurements. Those that a result depends on are printed with it.
type sizes struct {
	rounds int
	window time.Duration // the length of a load that is measured by time
	ttl    time.Duration // of every lock

	callers   []int // of the throughput scenario
	faulted   int   // cycles of a load with a fault, and of the healthy one beside it
	stuck     int   // the same for contenders that a hung node holds up for seconds
	orphans   int   // uncontended cycles of one round
	contended int   // contended rounds of one round
	held      int   // locks held at once
	counted   int   // acquisitions of one round whose round trips are counted
	step      int   // times that a node executes each step in one round
	handed    int   // hand-overs of one round that are timed
	fifo      int   // hand-overs of one round whose order is checked
	waitedFor int   // names that one process waits for
	listed    int   // locks on each node that are listed
	most      int   // processes that wait, or ask, at once: contests of more are held with so many
}

// Faults outlast the library's own deadlines by far; the window bounds what a
// load of so many cycles may take where the fault holds a contender up.
const faultWindows = 10

func fullSizes() sizes {
	return sizes{
		rounds: 5, window: time.Second, ttl: 10 * time.Second,
		callers: []int{1, 16, 128, 1024},
		faulted: 10_000, stuck: 1,
		orphans: 1_000, contended: 60,
		held:    10_000,
		counted: 2_000, step: 2_500,
		handed: 300, fifo: 3_400, waitedFor: 1_000,
		listed: 100_000,
		most:   50,
	}
}

// quickSizes show the order of magnitude.
func quickSizes() sizes {
	s := fullSizes()
	s.rounds, s.window = 2, 300*time.Millisecond
	s.faulted, s.orphans, s.contended, s.held = 4_000, 500, 30, 2_000
	s.counted, s.step = 500, 500
	s.handed, s.fifo, s.listed = 100, 500, 20_000
	return s
}

// renewal is a third of the TTL, the usual advice and this library's default.
func (s sizes) renewal() time.Duration { return s.ttl / 3 }

// env is what a scenario works with.
type env struct {
	sizes
	contenders []contender.Contender
	fleet      *fleet
	failures   int // measurements that gave no sample

	// For the report.
	began      time.Time
	args       []string
	loadBefore string     // of the machine, before the run
	server     serverInfo // of the first
}

// quorum returns the contenders that use all nodes. Faults of single nodes mean
// something to them only: one node of one either works or it does not.
func (e *env) quorum() []contender.Contender {
	var out []contender.Contender
	for _, c := range e.contenders {
		if !c.Single {
			out = append(out, c)
		}
	}
	return out
}

// with opens the contender on these nodes, warms it up for the load and closes
// it after use. Every measurement has a contender of its own, so that idle connections and
// background work of one contender do not count for another.
func (e *env) with(ctx context.Context, c contender.Contender, addrs []string, l load,
	use func(contender.Locker) error,
) (err error) {
	locker, err := c.Open(contender.Config{Addrs: addrs, TTL: e.ttl, Renewal: e.renewal()})
	if err != nil {
		return err
	}
	defer func() {
		if cerr := locker.Close(); err == nil {
			err = cerr
		}
	}()
	if err := warm(ctx, locker, l); err != nil {
		return err
	}
	return use(locker)
}

// notes lists the contenders' notes on how they are used.
func notes(cs []contender.Contender) []string {
	var out []string
	for _, c := range cs {
		out = append(out, c.Name+": "+c.Note)
	}
	return out
}
