package load

import (
	"context"
	"sync"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktrace"
)

// A Survey measures how far away each node is. It acquires and releases one lock at a time, and waits for all nodes:
// otherwise the requests to a slow node would queue, since a cycle goes on without it.
type Survey struct {
	Locker  *redlock.Locker
	Timeout time.Duration // NodeTimeout of the Locker
	Nodes   []*Visited
}

// A Visited node has the answers of a node in a survey.
type Visited struct {
	Name   string
	Trips  Histogram
	Counts int   // the answers that were part of the majority
	Failed Tally // the answers that were no grant
}

// Steps returns to how many requests the node's answer was counted.
func (v *Visited) Steps() int { return int(v.Trips.count) + v.Failed.Total() }

type askKey struct{}

// An asking is one step at all nodes, with their answers so far.
type asking struct {
	op      string
	nodes   []*Visited
	mu      sync.Mutex
	answers map[string]redlocktrace.Reply // by node
	all     chan struct{}                 // closed when all are there
	over    bool                          // later answers do not count
}

// Heard is the callback Trace.Node of the survey's Locker: it stores a node's first answer to the step under way.
func Heard(ctx context.Context, a redlocktrace.Reply) {
	s, ok := ctx.Value(askKey{}).(*asking)
	// The answer may be of no step, of the second round of an acquire, or to an attempt by plain
	// commands that the script follows.
	if !ok || a.Step != s.op || a.Outcome == redlock.OutcomeVoid.String() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, again := s.answers[a.Node]; s.over || again {
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

// step runs do, one step (op) of the lock, and waits for the answers of all nodes, also those for which a lock does not
// wait, for Survey.Timeout at most. After a step that has failed it does not wait: the library has not asked the other
// nodes then.
func (s *Survey) step(op string, do func(context.Context) error) error {
	one := &asking{op: op, nodes: s.Nodes, answers: make(map[string]redlocktrace.Reply), all: make(chan struct{})}
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

// note counts the node's answer to a step that ended with err; an empty Reply: it has not answered.
func (v *Visited) note(a redlocktrace.Reply, err error) {
	switch {
	case a.Node == "" && err == nil:
		v.Failed[redlock.OutcomeTimeout.String()]++
	case a.Node == "":
	case a.Err != nil:
		v.Failed[a.Outcome]++
	default:
		v.Trips.Add(a.Elapsed)
		if !a.Late {
			v.Counts++
		}
	}
}
