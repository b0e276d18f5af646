// Package listing finds the locks on the nodes of a set, for redlock ls. Its tests are with those of
// recording, which uses it.
//
// Each node is walked with SCAN, all nodes at once, over one connection of its own to each. A step looks for the
// next keys and reads some locks that were found. It takes a node less than 50 µs, and a pause follows of a hundred
// times as long, so that other clients of the node do not notice the walk. Nothing is written.
//
// What the nodes say of a name is judged as [redlock.Locker.Inspect] does it. A walk takes seconds, in
// which locks come and go: a name of which the nodes gave no clear picture is therefore asked about once
// more, at all nodes at once. A lock that is acquired or released during the walk may be listed or not,
// as with SCAN itself; one that is held all the time is.
package listing

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
)

// Patience is the usual time for which a node may leave a step unanswered.
const Patience = 2 * time.Second

// A Node is a node to walk.
type Node struct {
	Name    string
	Options *redis.Options

	// Err says why the node has no vote; nil: it has one. Only a node that has a vote, or is in
	// quarantine, is walked. Find sets it for a node that did not answer.
	Err *redlock.NodeError
}

// A Query says which locks to find.
type Query struct {
	// Prefix is that of the locks' keys. It is in none of the names that are found.
	Prefix string

	// Pattern is for names: * stands for any bytes, ? for any byte, [a-c] and [^a-c] for one byte of
	// a set, and \ takes the meaning from the next byte, as in Redis's MATCH. "": all names.
	Pattern string

	// Quorum is how many of the nodes must have granted a lock.
	Quorum int

	Patience time.Duration // for which a node may leave a step unanswered: then it counts as down; 0: Patience
}

// Locks are the locks that were found. On five nodes they take some 400 bytes a name, besides the names and tokens.
type Locks struct {
	nodes []Node
	query Query
	found *found
	names []string
}

// Find lists the locks on the nodes that match q. It fails only if ctx ends, with ctx's cause. A node that could not be
// walked to the end counts for nothing, and has an Err in Locks.Nodes: one that hangs is given up after q.Patience.
//
// If q.Pattern has no wildcard, Find asks the nodes about that one name, and walks through no keys.
func Find(ctx context.Context, nodes []Node, q Query) (*Locks, error) {
	if q.Pattern == "" {
		q.Pattern = "*"
	}
	if q.Patience == 0 {
		q.Patience = Patience
	}
	l := &Locks{nodes: slices.Clone(nodes), query: q, found: &found{nodes: len(nodes), named: make(map[string]*lock)}}
	walks := make([]*walk, 0, len(nodes))
	for i := range l.nodes {
		if n := &l.nodes[i]; n.Walked() {
			walks = append(walks, newWalk(n, i, &l.query, l.found))
		}
	}
	hangUp := func() {
		for _, w := range walks {
			_ = w.client.Close()
		}
	}
	defer hangUp()
	stop := context.AfterFunc(ctx, hangUp) // a client that reads a reply does not look at ctx
	defer stop()

	all(walks, func(w *walk) { w.run(ctx) })
	l.names = slices.Sorted(maps.Keys(l.found.named))
	var unclear []string
	for s := range l.judged() {
		if s.State != redlock.StateHeld {
			unclear = append(unclear, s.Name)
		}
	}
	for chunk := range slices.Chunk(unclear, chunk) {
		all(walks, func(w *walk) { w.again(ctx, chunk) })
	}
	return l, context.Cause(ctx)
}

// all calls run for each walk whose node has not been lost, all at once, and returns when the calls have.
func all(walks []*walk, run func(*walk)) {
	var group sync.WaitGroup
	for _, w := range walks {
		if !w.lost {
			group.Go(func() { run(w) })
		}
	}
	group.Wait()
}

// Nodes returns the nodes in the order in which Find got them; those that did not answer have an Err.
func (l *Locks) Nodes() []Node { return l.nodes }

// Walked reports whether the node was walked to the end: its answers count, even if it is in quarantine and cannot vote.
func (n *Node) Walked() bool { return n.Err == nil || n.Err.Outcome == redlock.OutcomeQuarantined }

// All iterates over the locks in the order of their names: names that some node holds, or for which somebody waits, without
// the fences. Another program may have a value of its own where a lock's queue would be. If the lock is StateFree, a string
// at its key on that node is that program's, too, and no token.
func (l *Locks) All() iter.Seq[*redlock.Status] {
	return func(yield func(*redlock.Status) bool) {
		for s := range l.judged() {
			is := len(s.Waiting) > 0 || len(s.Holders) > 0
			for i, n := range s.Nodes {
				is = is || n.Token != "" && (s.State != redlock.StateFree || !l.found.named[s.Name].at[i].strange)
			}
			if is && !yield(s) {
				return
			}
		}
	}
}

// judged iterates over all names that were found, also those that no node holds any more, with the state of each.
func (l *Locks) judged() iter.Seq[*redlock.Status] {
	return func(yield func(*redlock.Status) bool) {
		for _, name := range l.names {
			has := l.found.named[name]
			nodes := make([]redlock.NodeStatus, len(l.nodes))
			for i := range nodes {
				n, at := &l.nodes[i], &nodes[i]
				if at.Node, at.Err = n.Name, n.Err; n.Walked() {
					has.at[i].tell(at, has.token)
				}
			}
			if !yield(redlock.Judge(name, nodes, l.query.Quorum)) {
				return
			}
		}
	}
}

// A found has what the walks have found. All walks add to it at the same time.
type found struct {
	nodes int

	mu    sync.Mutex // protects named and all locks in it, while walks run
	named map[string]*lock
}

// A lock is what the nodes know of a name.
type lock struct {
	token string    // the first that a node has said: mostly all say the same, and it is kept once
	at    []reading // by node
}

// A reading is what one node knows of a name.
type reading struct {
	wanted, queued bool // the walk reads it, and its queue
	mine           bool // the token is that of the lock
	foreign        bool // the key is no lock
	strange        bool // another program has a value where its queue would be
	ttl            time.Duration
	more           *more // nil: nothing
}

// A more is what few locks have.
type more struct {
	token   string // if it is another one
	holders []redlock.Holder
	waiting []redlock.Waiter
}

// tell copies the reading into s, the status of its node. token is lock.token, which the node has if r.mine.
func (r *reading) tell(s *redlock.NodeStatus, token string) {
	s.TTL = r.ttl
	if r.mine {
		s.Token = token
	}
	if m := r.more; m != nil {
		s.Holders, s.Waiting = m.holders, m.waiting
		if m.token != "" {
			s.Token = m.token
		}
	}
	if r.foreign {
		s.Err = &redlock.NodeError{Node: s.Node, Outcome: redlock.OutcomeNotALock}
	}
}

// want notes that node number node has a key of the lock with this name (queue: that of its queue). It returns true if the
// caller must add the lock to what is read: for the first time, or now with its queue. Caller holds f.mu.
func (f *found) want(node int, name string, queue bool) bool {
	l := f.named[name]
	if l == nil {
		name = strings.Clone(name) // not the whole key
		l = &lock{at: make([]reading, f.nodes)}
		f.named[name] = l
	}
	r := &l.at[node]
	if r.wanted && (r.queued || !queue) {
		return false
	}
	r.wanted, r.queued = true, queue
	return true
}
