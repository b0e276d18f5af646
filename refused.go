package redlock

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/facts"
	"github.com/quorumlock/redlock/internal/set"
	"github.com/quorumlock/redlock/internal/wire"
)

// refusalPatience is for how long the nodes must refuse a client before its waiters give up. Credentials that are
// changed in a running service reach servers and clients one after another, and a lane connects again once a second
// at the latest: a few seconds are enough where somebody is at it, and few for a program that never will be let in.
const refusalPatience = 5 * time.Second

var errRefused = errors.New("the nodes refuse this client, and waiting does not end that")

// shutOuts has a shutOut for each local queue that calls wait in. The zero value is ready to use.
type shutOuts struct {
	mu sync.Mutex
	of map[string]*shutOut
}

// enter gives the shutOut of a queue to a call, which must leave it.
func (s *shutOuts) enter(queue string) *shutOut {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.of[queue]
	if o == nil {
		if s.of == nil {
			s.of = make(map[string]*shutOut)
		}
		o = &shutOut{nodes: make(map[string]*refusal)}
		s.of[queue] = o
	}
	o.calls++
	return o
}

func (s *shutOuts) leave(queue string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[queue].calls--; s.of[queue].calls == 0 {
		delete(s.of, queue)
	}
}

// A shutOut remembers since when each node refuses what calls wait for, for a reason that waiting does not end
// (facts.Lasting). It takes in all answers, late ones, too: an attempt ends with the first answers that decide it, and
// those may always come from the same nodes. It is for one name, or several at once: a user may have the right to
// some names and not to others. The calls that wait for the same share it: the first of them speaks for all.
type shutOut struct {
	calls int // under the mutex of shutOuts

	mu    sync.Mutex // protects what follows
	nodes map[string]*refusal
}

// A refusal is how a node refused first and last, without another answer in between.
type refusal struct {
	since, last time.Time
	err         error
}

// heard takes in what came of a request to a node. One that was not answered shows nothing, nor do answers that are far
// apart about the time in between.
func (s *shutOut) heard(node string, did Outcome, err error, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.nodes[node]
	switch {
	case !facts.Lasting(err):
		switch did {
		case OutcomeGranted, OutcomeHeld, OutcomeReserved, OutcomeQuarantined, OutcomeNotALock, OutcomeVoid:
			delete(s.nodes, node)
		}
		return
	case r == nil, elapsed(r.last, now) > refusalPatience:
		r = &refusal{since: now}
		s.nodes[node] = r
	}
	r.last, r.err = now, err
}

// ends reports whether so many nodes have refused for long enough that the others are no quorum. If so, it makes why,
// which is the error of the last attempt, say that, and which nodes refuse.
func (s *shutOut) ends(why *QuorumError, view *set.View, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var refusing []*NodeError
	for _, n := range view.Lanes {
		if r := s.nodes[n.Name]; r != nil && elapsed(r.since, now) >= refusalPatience && elapsed(r.last, now) <= refusalPatience {
			refusing = append(refusing, &NodeError{Node: n.Name, Outcome: Outcome(wire.Classify(r.err)), Err: r.err})
		}
	}
	if len(view.Lanes)-len(refusing) >= view.Quorum {
		return false
	}
	why.Kind, why.Cause = ErrNoQuorum, errRefused
	said := why.Nodes()
	for _, n := range refusing { // the attempt was over without the answers of some
		if !slices.ContainsFunc(said, func(other *NodeError) bool { return other.Node == n.Node }) {
			why.note(n)
			why.Failed++
		}
	}
	return true
}
