package redlock

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/quorumlock/redlock/internal/ways"
)

// Whoever works under a lock's context and wants a lock that it takes in has it already:
// he joins the hold, which is one until the last who is in it has released it. That is
// what re-entry is in a language whose goroutines have no names. Whoever wants more than
// what he has would wait for himself, and is refused.

// heldBy is the key of a Locker's locks in a context.
type heldBy struct{ *Locker }

// Value has those who are given the context find the lock.
func (c *lockContext) Value(key any) any {
	if key == (heldBy{c.lock.locker}) {
		return c
	}
	return c.Context.Value(key)
}

// held goes through the locks that a context is of, the innermost first.
func (lk *Locker) held(ctx context.Context) iter.Seq[*Lock] {
	return func(yield func(*Lock) bool) {
		for {
			c, ok := ctx.Value(heldBy{lk}).(*lockContext)
			if !ok || !yield(c.lock) {
				return
			}
			ctx = c.Context
		}
	}
}

// within joins a lock of the context's that takes in what is wanted. Nil, and no error:
// there is none, and nothing to be said against acquiring it.
func (lk *Locker) within(ctx context.Context, a *acquisition) (*Lock, error) {
	for l := range lk.held(ctx) {
		switch {
		case l.covers(a):
			if j := l.join(a); j != nil {
				return j, nil
			}
		case l.overlaps(a) && l.why() == nil:
			return nil, fmt.Errorf("redlock: acquire %q: ctx is of the lock on %q (%s), which does not take that in: it would wait for itself", a.name, l.name, l.how())
		}
	}
	return nil, nil
}

// wanted reports whether a key is one of those that were asked for, and not for what lies
// below it, or one of several.
func wanted(w ways.Way) bool { return w == ways.Alone || w == ways.Shared || w == ways.Slots }

// covers reports whether whoever has this lock has all that is wanted.
func (l *Lock) covers(a *acquisition) bool {
	for i, want := range a.keys {
		if !wanted(a.ways[i]) {
			continue
		}
		covered := false
		for j, key := range l.claim.Keys {
			same := l.claim.Ways[j] == ways.Alone || l.claim.Ways[j] == a.ways[i]
			below := l.locker.opts.Separator != "" && strings.HasPrefix(want, key+l.locker.opts.Separator)
			covered = covered || wanted(l.claim.Ways[j]) && same && (want == key || below)
		}
		if !covered {
			return false
		}
	}
	return true
}

// overlaps reports whether one of the two takes in something of the other.
func (l *Lock) overlaps(a *acquisition) bool {
	for i, want := range a.keys {
		if j := slices.Index(l.claim.Keys, want); j >= 0 && (wanted(a.ways[i]) || wanted(l.claim.Ways[j])) {
			return true
		}
	}
	return false
}

// how says in a word how the lock is held.
func (l *Lock) how() string {
	switch {
	case l.claim.Slots > 0:
		return fmt.Sprintf("slot %d of %d", l.claim.Slot, l.claim.Slots)
	case strings.IndexByte(l.claim.Ways, ways.Shared) >= 0:
		return "shared"
	}
	return "alone"
}

// join gives another handle of the hold that l is one of; nil: it has ended.
func (l *Lock) join(a *acquisition) *Lock {
	root := l
	if l.root != nil {
		root = l.root
	}
	j := &Lock{locker: l.locker, name: a.name, claim: root.claim, root: root}
	root.mu.Lock()
	if root.cause != nil || l != root && l.why() != nil {
		root.mu.Unlock()
		return nil
	}
	if root.joined == nil {
		root.joined = make(map[*Lock]struct{})
	}
	root.joined[j] = struct{}{}
	alive := root.watch() // whoever joins is told, too
	root.mu.Unlock()
	if !alive {
		root.end(errShut)
		return nil
	}
	if a.renewed {
		j.renewed = true
		root.keep(false)
	}
	return j
}

// quit takes a handle out of the hold that it has joined, and gives the lock back if that
// was the last one.
func (l *Lock) quit(ctx context.Context) error {
	first, ok := l.end(errReleased)
	l.root.mu.Lock()
	delete(l.root.joined, l)
	last := l.root.left && len(l.root.joined) == 0
	l.root.mu.Unlock()
	if l.renewed {
		l.locker.renewals.Unkeep(&l.root.renewal)
	}
	switch {
	case last:
		return l.root.release(ctx)
	case !ok:
		return first
	}
	return nil
}

// leave ends the handle of whoever acquired the lock, if others are still in the hold.
func (l *Lock) leave() bool {
	l.mu.Lock()
	if l.cause != nil || len(l.joined) == 0 {
		l.mu.Unlock()
		return false
	}
	l.left = true
	watchers := l.watchers
	l.watchers = nil
	if l.done != nil {
		close(l.done)
	}
	l.mu.Unlock()
	for w := range watchers {
		w.cancel(errReleased)
	}
	return true
}
