package redlocktest

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
)

// Lose takes a lock away from its holders, whatever their modes, as if the nodes had dropped it. Its keys are gone, and its
// contexts have ended with redlock.ErrLost, when Lose returns. No node is in quarantine then, and the lock is free: for the
// holder that begins anew, a waiter, or [Nodes.Hold]. Lose ends the test if nobody holds it ([Nodes.Held]).
//
// A holder learns of the loss by an extension. While a node is killed, hung or cut off, that may fail before a quorum has
// answered that the lock is gone: the holder goes on until the validity of the lock ends, within its TTL, and Lose waits for
// that. Lose does not wait for a holder whose Locker was not made by [Nodes.Locker]. It finds such a lock by its key: name
// must begin with Options.Prefix. That holder's next extension is after a third of the TTL if the lock is renewed.
func (n *Nodes) Lose(name string) {
	n.t.Helper()
	locks, keys := n.holding(name)
	found := false
	for node, key := range n.having(keys) {
		found = node.Engine.Mini().Del(key) || found
	}
	if !found {
		n.t.Fatalf("redlocktest: nobody holds %q", name)
	}
	// An extension is how a holder finds out. One that was under way may have filled up nodes that were
	// empty by then, but only if it had a quorum of the others, and those are empty now. Two extensions of
	// one lock take turns: this one comes after it, and no quorum confirms it or a later one.
	for _, l := range locks {
		if err := l.Extend(context.Background()); err == nil || errors.Is(err, redlock.ErrNoQuorum) {
			<-l.Context(context.Background()).Done()
		}
	}
}

// Held reports whether somebody holds a lock on the name, in any mode, or is about to: some node has its key.
// For a Locker that was not made by [Nodes.Locker], the name is the key, with Options.Prefix.
func (n *Nodes) Held(name string) bool {
	_, keys := n.holding(name)
	for range n.having(keys) {
		return true
	}
	return false
}

// having yields each node that has one of these keys, or the key of one of its semaphore slots, with the key found.
func (n *Nodes) having(keys []string) iter.Seq2[*memredis.Node, string] {
	return func(yield func(*memredis.Node, string) bool) {
		for _, node := range n.nodes {
			for _, there := range node.Engine.Keys() {
				if slices.ContainsFunc(keys, func(key string) bool { return there == key || strings.HasPrefix(there, key+script.SlotInfix) }) && !yield(node, there) {
					return
				}
			}
		}
	}
}

// holding returns the locks with this name that Lockers of n.Locker hold, and their keys. The name itself is among the
// keys, for holders whose Locker was made elsewhere.
func (n *Nodes) holding(name string) (locks []*redlock.Lock, keys []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	keys = []string{name}
	for l, prefix := range n.held {
		if l.Name() == name {
			locks = append(locks, l)
			keys = append(keys, prefix+name)
		}
	}
	return locks, keys
}

// holdPatience is how long Hold waits for its turn.
const holdPatience = 5 * time.Second

// Hold makes another process have the lock, and keep it until it is released:
//
//	other := nodes.Hold("report")
//	...
//	other.Release(t.Context())
//
// The other process has the options of the Locker that [Nodes.Locker] has made last, except for its Hooks
// and Owner. It waits in line for up to five seconds, virtual ones in a bubble, and ends the test if it
// does not get the lock. To take it from a holder in the test, [Nodes.Lose] it first.
func (n *Nodes) Hold(name string, options ...redlock.AcquireOption) *redlock.Lock {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), holdPatience)
	defer cancel()
	l, err := n.other().Acquire(ctx, name, append(options[:len(options):len(options)], redlock.AutoRenew())...)
	if err != nil {
		n.t.Fatalf("redlocktest: another process cannot have the lock: %v", err)
	}
	return l
}

// other returns a new Locker, which stands for another process, for Hold.
func (n *Nodes) other() *redlock.Locker {
	n.t.Helper()
	n.mu.Lock()
	o := n.opts
	n.mu.Unlock()
	o.Hooks, o.Owner = nil, "another process"
	return n.locker(o)
}
