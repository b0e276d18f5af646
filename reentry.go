package redlock

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/quorumlock/redlock/internal/wire"
)

// Locks are reentrant through their context, if a call asks for it (Reentrant): Go's goroutines have
// no names by which a lock could know its holder. With Reentrant, a call under a lock's context for
// something that the lock takes in joins its hold, which lasts until the last handle of it is
// released. Without Reentrant it is an error: four goroutines that are started under one lock's
// context, and each acquire that lock to exclude the others, would all be in at once. A call for
// more than the lock takes in would wait for itself, so it is an error in any case.

// heldBy is the key of a Locker's locks in a context.
type heldBy struct{ *Locker }

// Value makes the lock known to calls under the context.
func (c *lockContext) Value(key any) any {
	if key == (heldBy{c.lock.locker}) {
		return c
	}
	return c.Context.Value(key)
}

// held yields the locks under whose context ctx is, the innermost first.
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

// within joins a lock of the context that takes in what the call asks for, if the call is reentrant,
// and returns an error if it is not. It returns nil and no error if there is no such lock.
func (lk *Locker) within(ctx context.Context, a *acquisition) (*Lock, error) {
	for l := range lk.held(ctx) {
		switch {
		case l.covers(a) && a.reentrant:
			if j := l.join(a); j != nil {
				return j, nil
			}
		case l.covers(a) && l.why() == nil:
			return nil, fmt.Errorf("redlock: acquire %q: ctx is of the lock on %q (%s), which takes that in: with Reentrant() the call joins that lock; to exclude it, give another context", a.name, l.name, l.how())
		case l.overlaps(a) && l.why() == nil:
			return nil, fmt.Errorf("redlock: acquire %q: ctx is of the lock on %q (%s), which does not take that in: the call would wait for itself", a.name, l.name, l.how())
		}
	}
	return nil, nil
}

// wanted reports whether the mode is one that a caller asks for, and not an intention mode or a
// slot's.
func wanted(m wire.Mode) bool { return m == wire.ModeX || m == wire.ModeS || m == wire.ModeSlots }

// covers reports whether the lock takes in all that the call asks for.
func (l *Lock) covers(a *acquisition) bool {
	for i, want := range a.keys {
		if !wanted(a.modes[i]) {
			continue
		}
		covered := false
		for j, key := range l.claim.Keys {
			same := l.claim.Modes[j] == wire.ModeX || l.claim.Modes[j] == a.modes[i]
			below := a.separator != "" && strings.HasPrefix(want, key+a.separator)
			covered = covered || wanted(l.claim.Modes[j]) && same && (want == key || below)
		}
		if !covered {
			return false
		}
	}
	return true
}

// overlaps reports whether the lock and the call have something in common.
func (l *Lock) overlaps(a *acquisition) bool {
	for i, want := range a.keys {
		if j := slices.Index(l.claim.Keys, want); j >= 0 && (wanted(a.modes[i]) || wanted(l.claim.Modes[j])) {
			return true
		}
	}
	return false
}

// how is the lock's mode in a word, for errors.
func (l *Lock) how() string {
	switch {
	case l.claim.Slots > 0:
		return fmt.Sprintf("slot %d of %d", l.claim.Slot, l.claim.Slots)
	case strings.IndexByte(l.claim.Modes, wire.ModeS) >= 0:
		return "shared"
	}
	return "alone"
}

// join returns another handle of the lock's hold; nil: the hold has ended.
func (l *Lock) join(a *acquisition) *Lock {
	hold := cmp.Or(l.hold, l)
	j := &Lock{locker: l.locker, name: a.name, claim: hold.claim, hold: hold}
	hold.mu.Lock()
	if hold.endErr != nil || l != hold && l.why() != nil {
		hold.mu.Unlock()
		return nil
	}
	if hold.joined == nil {
		hold.joined = make(map[*Lock]struct{})
	}
	hold.joined[j] = struct{}{}
	alive := hold.watch() // so that this handle's contexts end with the hold
	hold.mu.Unlock()
	if !alive {
		hold.end(errShut)
		return nil
	}
	if a.renewed {
		j.renewed = true
		hold.keep()
	}
	return j
}
