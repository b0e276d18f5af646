package load

import (
	"context"
	"sync"
	"time"

	"github.com/quorumlock/redlock"
)

// A Survey finds out how far away each node is. One lock is taken and released at a
// time, and all nodes are waited for: else what a slow node says would be kept waiting
// by what it was asked before, since a cycle goes on without it.
type Survey struct {
	Locker  *redlock.Locker
	Timeout time.Duration // of the library, for a node's answer
	Nodes   []*Visited
}

// A Visited node is what it has said in a survey.
type Visited struct {
	Name   string
	Trips  Histogram
	Counts int   // answers that came before the majority was full
	Failed Tally // what was no grant
}

// Steps is how often it was asked.
func (v *Visited) Steps() int { return int(v.Trips.count) + v.Failed.Total() }

type askKey struct{}

// An asking is one step at all nodes, and what they have said to it so far.
type asking struct {
	op      string
	nodes   []*Visited
	mu      sync.Mutex
	answers map[string]redlock.NodeReply // by node
	all     chan struct{}                // closed: they are all there
	over    bool                         // what comes now is too late
}

// Heard is Hooks.Node of the survey's Locker.
func Heard(ctx context.Context, a redlock.NodeReply) {
	s, ok := ctx.Value(askKey{}).(*asking)
	if !ok || a.Step != s.op { // of no step, or the second round of an acquire
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

// Run locks and releases a name again and again, until ctx ends.
func (s *Survey) Run(ctx context.Context, name string) {
	for ctx.Err() == nil {
		var lock *redlock.Lock
		err := s.step("acquire", func(ctx context.Context) (err error) {
			lock, err = s.Locker.TryAcquire(ctx, name)
			return err
		})
		if err == nil {
			err = s.step("release", func(ctx context.Context) error { return lock.Release(ctx) })
		}
		if err != nil {
			time.Sleep(Breather)
		}
	}
}

// step does one, and waits for the nodes that a lock does not wait for. What a node has
// not said by then is no answer any more. After a lost step it does not wait for the rest:
// the nodes without which it was lost have not been asked.
func (s *Survey) step(op string, do func(context.Context) error) error {
	one := &asking{op: op, nodes: s.Nodes, answers: make(map[string]redlock.NodeReply), all: make(chan struct{})}
	limit := time.NewTimer(s.Timeout)
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
	for _, v := range s.Nodes {
		v.note(one.answers[v.Name], err)
	}
	one.over = true
	return err
}

// note takes in what the node has said to a step that ended with err.
func (v *Visited) note(a redlock.NodeReply, err error) {
	switch {
	case a.Node == "" && err == nil:
		v.Failed[redlock.OutcomeTimeout.String()]++
	case a.Node == "":
	case a.Outcome != redlock.OutcomeGranted:
		v.Failed[a.Outcome.String()]++
	default:
		v.Trips.Add(a.Elapsed)
		if !a.Late {
			v.Counts++
		}
	}
}
