package redlock

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/wire"
)

// A Handle is a lock between two processes: [Lock.Detach] returns it and [Locker.Attach] takes it. It can be written as
// JSON, if its names are UTF-8. Any process that has it can extend and release the lock, so keep it secret.
type Handle struct {
	Name   string   `json:"name"`
	Also   []string `json:"also,omitempty"` // other names that it takes in
	Shared bool     `json:"shared,omitempty"`
	Slot   int      `json:"slot,omitempty"` // which one of Slots; 0: the lock is no slot
	Slots  int      `json:"slots,omitempty"`

	Token string        `json:"token"`
	Fence int64         `json:"fence"`
	TTL   time.Duration `json:"ttl_ns"`
	Since time.Time     `json:"since"`         // when it was acquired
	Until time.Time     `json:"until"`         // the end of validity, by the clock of the process that detached it
	Last  time.Time     `json:"last,omitzero"` // MaxHold: it ends by then

	// Of Options, which have to be the same where it is attached.
	Prefix    string `json:"prefix,omitempty"`
	Separator string `json:"separator,omitempty"`

	// Healed are the nodes without a vote on the lock: they had lost it and were given it anew, or never answered.
	Healed []string `json:"healed,omitempty"`
}

// MarshalJSON returns an error for a name that is not UTF-8: JSON would change it, and the lock could not be released.
func (h Handle) MarshalJSON() ([]byte, error) {
	for i, name := range append([]string{h.Prefix, h.Separator, h.Name}, h.Also...) {
		if !utf8.ValidString(name) {
			return nil, fmt.Errorf("redlock: the handle's %s %q is not UTF-8, so JSON cannot carry it", [...]string{"prefix", "separator", "name"}[min(i, 2)], name)
		}
	}
	type plain Handle // without this method
	return json.Marshal(plain(h))
}

// Detach ends the lock in this process, and leaves it on the nodes for another process to take up: see [Locker.Attach].
// Until then nobody renews it: others may have it when its TTL is over. Detach sends nothing, but waits for an
// extension that is under way, and for nodes that have not answered the acquisition, each for at most
// Options.NodeTimeout.
//
// It fails if the lock has ended before, and says why; and for a lock that has joined another one, since only the lock
// that was joined can be detached. Locks that have joined this one end with it.
func (l *Lock) Detach() (Handle, error) {
	if !l.acquired() {
		return Handle{}, errNoLock
	}
	if l.hold != nil {
		return Handle{}, fmt.Errorf("redlock: detach %q: it belongs to the lock on %q, under whose context it was acquired", l.name, l.hold.name)
	}
	if err := l.acquireExtendSem(context.Background(), l); err != nil {
		return Handle{}, err
	}
	defer func() { <-l.extendSem }()
	l.awaitAnswers()
	if left(l.Until(), l.locker.now()) <= 0 {
		return Handle{}, l.expire()
	}
	// Requests may still be under way to the nodes. A grant that comes too late for the acquisition is part of the lock,
	// and must not be given back when its answer arrives, since the next process may count it (releaseLateGrant).
	if first, ok := l.end(errDetached); !ok {
		return Handle{}, first
	}
	o := l.locker.settings()
	h := Handle{
		Name: l.name, Shared: strings.IndexByte(l.claim.Modes, wire.ModeS) >= 0, Slot: int(l.claim.Slot), Slots: int(l.claim.Slots),
		Token: l.claim.Token, Fence: l.claim.Fence, TTL: l.claim.TTL, Since: l.since, Last: l.maxUntil,
		Prefix: o.Prefix, Separator: o.Separator,
	}
	for i, key := range l.claim.Keys {
		if mode := wire.Mode(l.claim.Modes[i]); key != l.claim.Key && (mode == wire.ModeX || mode == wire.ModeS) {
			h.Also = append(h.Also, strings.TrimPrefix(key, o.Prefix))
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	h.Until = l.until
	view := l.locker.lanes.View()
	for i, n := range view.Lanes {
		if n.Unanswered(&l.claim) || !l.counted(n, l.confirmed) {
			h.Healed = append(h.Healed, view.Member(i))
		}
	}
	return h, nil
}

// awaitAnswers waits until all nodes have answered the acquire by plain commands, for a NodeTimeout at most, or until the
// Locker is closed. A node that has not may carry it out much later, when it has lost its data: the next process does not
// count it (lostSight in round.go), and would have fewer nodes than need be if most answers were still on their way.
func (l *Lock) awaitAnswers() {
	begin, pause := l.locker.now(), time.Millisecond/4
	for slices.ContainsFunc(l.locker.lanes.View().Lanes, func(n *lane.Lane) bool { return n.Unanswered(&l.claim) }) {
		rest := l.locker.settings().NodeTimeout - elapsed(begin, l.locker.now())
		if rest <= 0 || l.locker.sleepFor(context.Background(), l.claim.Token, min(pause, rest)) != nil {
			return
		}
		pause *= 2
	}
}

// Attach takes up a lock that another process, or this one, has detached. It extends the lock at once, in one round,
// bounded by ctx and Options.NodeTimeout. It returns a lock that is valid for a full TTL.
//
// An error that is ErrLost means that a quorum of nodes does not have the lock any more. Any other, ErrNoQuorum for
// instance, leaves it as it is, and worth another try. A handle may be attached again, also in several processes, which
// then share the lock: the first of them that releases it ends it for all.
//
// The nodes decide, and not Handle.Until, which is by another clock. After Detach, a node that has lost the token never gets
// it again, so each node that has the token has had it all the time, and has kept all others out. For the same reason a lock
// that was attached is not put back on nodes that have lost it, as other locks are: with each such node it has a vote less.
//
// The only option is [AutoRenew]. Everything else is in the handle.
func (lk *Locker) Attach(ctx context.Context, h Handle, options ...AcquireOption) (*Lock, error) {
	if err := lk.made(); err != nil {
		return nil, err
	}
	if lk.isClosing() {
		return nil, ErrClosed
	}
	if err := lk.agree(ctx, lk.nodeTimeout(max(h.TTL, lk.settings().TTL))); err != nil {
		return nil, fmt.Errorf("redlock: attach %q: %w", h.Name, err)
	}
	l, err := lk.fromHandle(h)
	if err != nil {
		return nil, fmt.Errorf("redlock: attach %q: %w", h.Name, err)
	}
	// Every grant of an exclusive lock has a number, and all are below 2^53 (see Lock.Fence).
	if h.Fence < 0 || h.Fence >= 1<<53 || h.Fence == 0 && !h.Shared {
		return nil, fmt.Errorf("redlock: attach %q: the handle's fence %d is not one that a lock can have: the handle was changed", h.Name, h.Fence)
	}
	var a acquisition
	if err := a.apply(options); err != nil {
		return nil, fmt.Errorf("redlock: attach %q: %w", h.Name, err)
	}
	if only := (acquisition{renewed: a.renewed}); a.while != nil || fmt.Sprintf("%+v", a) != fmt.Sprintf("%+v", only) {
		return nil, fmt.Errorf("redlock: attach %q: the only option is AutoRenew: the handle says what the lock is", h.Name)
	}
	t := lk.begins(ctx, "attach", l.name, nil)
	l.trace = t
	l, err = lk.attach(ctx, t, l)
	if err == nil {
		lk.watched(l)
		if a.renewed {
			l.keep()
		}
	}
	t.ends(l, err)
	return l, err
}

// fromHandle makes a Lock of a handle that could be attached, or says what is wrong with the handle. It asks no node.
func (lk *Locker) fromHandle(h Handle) (*Lock, error) {
	switch o := lk.settings(); {
	case h.Token == "":
		return nil, errors.New("the handle has no token")
	case h.Prefix != o.Prefix:
		return nil, fmt.Errorf("the handle's prefix %q is not Options.Prefix %q", h.Prefix, o.Prefix)
	case h.Separator != o.Separator:
		return nil, fmt.Errorf("the handle's separator %q is not Options.Separator %q", h.Separator, o.Separator)
	case h.Slot < 0 || h.Slot > h.Slots || h.Slots > 0 && h.Slot == 0:
		return nil, fmt.Errorf("the handle's slot %d is none of %d", h.Slot, h.Slots)
	}
	options := []AcquireOption{TTL(h.TTL), Also(h.Also...)}
	if h.Shared {
		options = append(options, Shared())
	}
	if h.Slots != 0 {
		options = append(options, Slots(h.Slots))
	}
	a, err := lk.settings().acquisition(h.Name, options)
	if err != nil {
		return nil, err
	}
	l := lk.newLock(a, int64(h.Slot), h.Token)
	l.claim.Fence, l.since, l.maxUntil, l.attached = h.Fence, h.Since, h.Last, true
	view := lk.lanes.View()
	for _, n := range view.Lanes {
		l.claim.Found(n)
	}
	for _, healed := range h.Healed {
		n := view.Lane(healed)
		if n == nil { // the node is no member any more, or the Locker knows it by another address
			return nil, fmt.Errorf("the handle's node %s, which must have no vote, is none of the Locker's", healed)
		}
		l.record(n).filled = never // a refill of the first process may arrive later than this
	}
	return l, nil
}

// attach extends a lock that fromHandle has made, in one round, and returns it if a quorum confirms. It releases the
// lock at all nodes if a quorum has lost it, or if its MaxHold is over. After other failures the keys stay.
func (lk *Locker) attach(ctx context.Context, t *opTrace, l *Lock) (*Lock, error) {
	if err := lk.enter(); err != nil {
		return nil, err
	}
	defer lk.leave()
	lk.askMaxTTL(ctx, l.claim.TTL)
	r := lk.newRound(wire.Extend, l, nil)
	defer r.drop()
	r.trace = t
	begun, limit := lk.now(), lk.nodeTimeout(l.claim.TTL)
	r.start(begun, begun.Add(limit))
	r.wait(ctx, limit)
	now := lk.now()
	if r.decided() != won {
		err := r.explain(now, ended(ctx))
		if err.Kind == ErrLost {
			l.releaseAsync()
		}
		return nil, err
	}
	if validFor(begun, now, l.claim.TTL, lk.settings().drift(l.claim.TTL)) <= 0 {
		return nil, r.tooLate(now)
	}
	l.until = l.validUntil(begun)
	if left(l.until, now) <= 0 {
		l.releaseAsync()
		return nil, l.lost(errMaxHold)
	}
	if !lk.register(l) {
		return nil, ErrClosed
	}
	return l, nil
}

// Locks are reentrant through their context, if a call asks for it (Reentrant): Go's goroutines have no names by which
// a lock could know its holder. With Reentrant, a call under a lock's context for something that the lock includes
// joins its hold, which lasts until the last handle of it is released. Without Reentrant it is an error: four
// goroutines that are started under one lock's context, and each acquire that lock to exclude the others, would all be
// in at once. A call for more than the lock includes would wait for itself, so it is an error in any case.

// heldBy is the key under which a context has the locks of a Locker.
type heldBy struct{ *Locker }

// Value returns c itself for the key heldBy, so that calls under c find its lock (held), and for others the parent's value.
func (c *lockContext) Value(key any) any {
	if key == (heldBy{c.lock.locker}) {
		return c
	}
	return c.Context.Value(key)
}

// held yields the locks of this Locker, ended or not, from whose contexts (Lock.Context) ctx was made, the innermost first.
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

// within looks for a lock of ctx that includes what the call asks for. It returns a new handle of it if the call is
// reentrant, else an error; and an error if the call would wait for a lock of ctx, so for itself. nil, nil: ask the nodes.
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

// wanted reports whether a caller can ask for the mode. False for an intention mode (the mark that a lock leaves on the
// folders above it) and for the mode of one certain slot.
func wanted(m wire.Mode) bool { return m == wire.ModeX || m == wire.ModeS || m == wire.ModeSlots }

// covers reports whether the lock includes all that the call asks for, in the same mode or exclusively.
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

// overlaps reports whether the lock and the call have a key in common that one of the two callers named (wanted).
func (l *Lock) overlaps(a *acquisition) bool {
	for i, want := range a.keys {
		if j := slices.Index(l.claim.Keys, want); j >= 0 && (wanted(a.modes[i]) || wanted(l.claim.Modes[j])) {
			return true
		}
	}
	return false
}

// how says in a word or two how the lock holds its name, for errors: "slot 1 of 3", "shared" or "alone".
func (l *Lock) how() string {
	switch {
	case l.claim.Slots > 0:
		return fmt.Sprintf("slot %d of %d", l.claim.Slot, l.claim.Slots)
	case strings.IndexByte(l.claim.Modes, wire.ModeS) >= 0:
		return "shared"
	}
	return "alone"
}

// join returns a new handle of the lock; nil: the lock has ended. If a asks for renewal or MinHold, the whole lock gets it.
func (l *Lock) join(a *acquisition) *Lock {
	hold := cmp.Or(l.hold, l)
	j := &Lock{locker: l.locker, name: a.name, claim: hold.claim, hold: hold, renewed: a.renewed}
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
	if a.minHold != nil {
		now := l.locker.now()
		hold.mu.Lock()
		if hold.mustStay(now) < *a.minHold {
			hold.minHold, hold.minUntil = *a.minHold, now.Add(*a.minHold)
		}
		hold.mu.Unlock()
	}
	if a.renewed {
		hold.keep()
	}
	if a.while != nil {
		j.keepWhile(a.while)
	}
	return j
}
