package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/redlock"
)

// breather is how long somebody rests who has failed. Nodes that are down say so at
// once, so who asks again at once measures nothing but himself.
const breather = 10 * time.Millisecond

// A tally counts failures by their kind.
type tally map[string]int

func (t tally) String() string {
	if len(t) == 0 {
		return "-"
	}
	var parts []string
	for _, kind := range slices.SortedFunc(maps.Keys(t), func(a, b string) int { return cmp.Or(t[b]-t[a], strings.Compare(a, b)) }) {
		parts = append(parts, digits(t[kind])+" "+kind)
	}
	return strings.Join(parts, ", ")
}

func (t tally) total() (sum int) {
	for _, n := range t {
		sum += n
	}
	return sum
}

// A survey finds out how far away each node is. One lock is taken and released at a
// time, and all nodes are waited for: else what a slow node says would be kept waiting
// by what it was asked before, since a cycle goes on without it.
type survey struct {
	locker  *redlock.Locker
	timeout time.Duration // of the library, for a node's answer
	nodes   []*visited
}

// A visited node is what it has said in a survey.
type visited struct {
	name   string
	trips  histogram
	counts int   // answers that came before the majority was full
	failed tally // what was no grant
}

// steps is how often it was asked.
func (v *visited) steps() int { return int(v.trips.count) + v.failed.total() }

type askKey struct{}

// An asking is one step at all nodes, and what they have said to it so far.
type asking struct {
	op      string
	nodes   []*visited
	mu      sync.Mutex
	answers map[string]redlock.Answer // by node
	all     chan struct{}             // closed: they are all there
	over    bool                      // what comes now is too late
}

// heard is Hooks.Node of the survey's Locker.
func heard(ctx context.Context, a redlock.Answer) {
	s, ok := ctx.Value(askKey{}).(*asking)
	if !ok || a.Step != s.op { // nobody's, or the second round of an acquire
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.answers[a.Node] = a
	if len(s.answers) == len(s.nodes) {
		close(s.all)
	}
}

// run locks and releases a name again and again, until ctx ends.
func (s *survey) run(ctx context.Context, name string) {
	for ctx.Err() == nil {
		var lock *redlock.Lock
		err := s.step("acquire", func(ctx context.Context) (err error) {
			lock, err = s.locker.TryAcquire(ctx, name)
			return err
		})
		if err == nil {
			err = s.step("release", func(ctx context.Context) error { return lock.Release(ctx) })
		}
		if err != nil {
			time.Sleep(breather)
		}
	}
}

// step does one, and waits for the nodes that a lock does not wait for. What a node has
// not said by then is no answer any more. Of a step that was lost nobody waits for the
// rest, for those that it was lost without have not been asked.
func (s *survey) step(op string, do func(context.Context) error) error {
	one := &asking{op: op, nodes: s.nodes, answers: make(map[string]redlock.Answer), all: make(chan struct{})}
	limit := time.NewTimer(s.timeout)
	defer limit.Stop()
	err := do(context.WithValue(context.Background(), askKey{}, one))
	if err == nil {
		select {
		case <-one.all:
		case <-limit.C:
		}
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	for _, v := range s.nodes {
		v.note(one.answers[v.name], err)
	}
	one.over = true
	return err
}

// note takes in what the node has said to a step that ended with err.
func (v *visited) note(a redlock.Answer, err error) {
	switch {
	case a.Node == "" && err == nil:
		v.failed[redlock.Timeout.String()]++
	case a.Node == "":
	case a.Outcome != redlock.Granted:
		v.failed[a.Outcome.String()]++
	default:
		v.trips.add(a.Elapsed)
		if !a.Late {
			v.counts++
		}
	}
}

// A crowd is callers of whom each locks and unlocks a name of his own.
type crowd struct {
	locker *redlock.Locker
	names  []string // each caller's

	cycles histogram
	took   time.Duration
	faults
}

// faults are what went wrong, for several callers.
type faults struct {
	mu     sync.Mutex
	failed tally
	last   error
}

// note counts an error, and has the caller rest.
func (f *faults) note(err error) {
	kind := "other"
	for _, of := range []error{redlock.ErrHeld, redlock.ErrNoQuorum, redlock.ErrLost} {
		if errors.Is(err, of) {
			kind = of.Error()
		}
	}
	f.mu.Lock()
	if f.failed == nil {
		f.failed = make(tally)
	}
	f.failed[kind]++
	f.last = err
	f.mu.Unlock()
	time.Sleep(breather)
}

// run has all callers work until ctx ends. What they have begun by then they do to the
// end, which is not later than the time that the nodes have to answer.
func (c *crowd) run(ctx context.Context) {
	var callers sync.WaitGroup
	begin := time.Now()
	for _, name := range c.names {
		callers.Go(func() {
			for ctx.Err() == nil {
				c.cycle(name)
			}
		})
	}
	callers.Wait()
	c.took = time.Since(begin)
}

func (c *crowd) cycle(name string) {
	begin := time.Now()
	lock, err := c.locker.TryAcquire(context.Background(), name)
	if err == nil {
		err = lock.Release(context.Background())
	}
	if err != nil {
		c.note(err)
		return
	}
	c.cycles.add(time.Since(begin))
}

// waiters is how many wait for one lock to measure how it changes hands: enough that
// there always is a next one, who has waited for longer than it takes to begin. On nodes
// inside this process it is fewer, which are enough to show it, and have no more to do
// than those can.
const waiters, easyWaiters = 8, 3

// A line is clients who wait for one name, each with a Locker of its own: callers of one
// Locker would hand the lock over among themselves, and measure no network.
type line struct {
	lockers []*redlock.Locker
	name    string

	waits     histogram // from asking to having it
	handOvers histogram // from the beginning of a release until the next one has it
	took      time.Duration
	faults

	changes sync.Mutex
	gave    time.Time // when the last holder began to release; zero: there was none
}

// open makes the Lockers. It says nothing of the nodes: one Locker has done so.
func (l *line) open(n int, urls []string, opts redlock.Options) error {
	var opening sync.WaitGroup
	lockers, errs := make([]*redlock.Locker, n), make([]error, n)
	for i := range lockers {
		opening.Go(func() {
			opts := opts
			lockers[i], errs[i] = redlock.Connect(urls, &opts)
		})
	}
	opening.Wait()
	l.lockers = slices.DeleteFunc(lockers, func(lk *redlock.Locker) bool { return lk == nil })
	return errors.Join(errs...)
}

// settle has each lock a name of its own once, so that all are connected, and the nodes
// know the scripts: not to wait for that is to measure it.
func (l *line) settle(ctx context.Context, names []string) {
	ctx, cancel := context.WithTimeout(ctx, checkup)
	defer cancel()
	var all sync.WaitGroup
	for i, locker := range l.lockers {
		all.Go(func() {
			if lock, err := locker.Acquire(ctx, names[i]); err == nil {
				_ = lock.Release(context.Background())
			}
		})
	}
	all.Wait()
}

func (l *line) close() {
	var closing sync.WaitGroup
	for _, locker := range l.lockers {
		closing.Go(func() { locker.Close() })
	}
	closing.Wait()
}

// run has all of them wait for the lock, and wait again as soon as they have had it.
func (l *line) run(ctx context.Context) {
	var all sync.WaitGroup
	begin := time.Now()
	for _, locker := range l.lockers {
		all.Go(func() {
			for ctx.Err() == nil {
				l.turn(ctx, locker)
			}
		})
	}
	all.Wait()
	l.took = time.Since(begin)
}

func (l *line) turn(ctx context.Context, locker *redlock.Locker) {
	asked := time.Now()
	lock, err := locker.Acquire(ctx, l.name)
	now := time.Now()
	switch {
	case err == nil:
	case ctx.Err() != nil && (!errors.Is(err, redlock.ErrNoQuorum) || unfinished(err)):
		l.waits.reach(now.Sub(asked)) // the end has cut it short: it would have taken longer
		return
	default:
		l.note(err)
		return
	}
	l.waits.add(now.Sub(asked))
	l.changes.Lock()
	if asked.Before(l.gave) {
		l.handOvers.add(now.Sub(l.gave))
	}
	l.gave = time.Now()
	l.changes.Unlock()
	if err := lock.Release(context.Background()); err != nil {
		l.note(err)
	}
}

// ownNames are names for callers, in which nobody else can have a part.
func ownNames(key string, callers int) (names []string) {
	for i := range callers {
		names = append(names, fmt.Sprintf("%s:caller-%d", key, i+1))
	}
	return names
}
