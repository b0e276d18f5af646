package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/set"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/wire"
)

// Break takes a lock away from its holder: each node deletes this token, and no other one, from the name's keys, and wakes
// the first waiter, as for a release. [Status] has the token: Status.Token, or that of one of Status.Holders. The lock may
// be of any kind: exclusive, shared, a slot, in a folder (Options.Separator); or another library's, which has no fence.
//
// Break does not stop the holder. The holder's next extension fails with ErrLost. A lock that is renewed is extended every
// third of its TTL; a lock that is not extended is valid for its holder until its validity ends, within a TTL. Until then
// the holder may go on writing. The next lock's fence is larger than the broken one's: a resource that rejects smaller
// fences refuses these writes after the next holder's first one.
//
// Break returns nil if a quorum of nodes has confirmed that the token is gone. Then no extension that begins later is
// confirmed, and every lock whose attempt begins later has a larger fence. The other nodes get the request as soon as they
// can be reached, while the Locker is open; the TTL is the backstop.
//
// An error that is ErrLost says that the lock had ended before: a quorum of nodes answered, and none had the token. Nothing
// was changed. ErrNoQuorum says that too few nodes have confirmed: those that the error names may still have the token, and
// its holder may keep the lock and extend it. Call Break again once they can be reached. If ctx ended, it is ctx's, too.
//
// Break takes three rounds as a rule: it looks for the token, asks the nodes to note that it is broken, and checks that they
// have. Each takes at most Options.NodeTimeout. There are more while nodes lose their data, or the set is changed; and for a
// slot, to find which one.
//
// A lock of several names (Also) ends as a whole if it is broken at one of them, for no extension is confirmed any more. The
// keys of its other names go with their TTL, or when each of these names is broken, too.
func (lk *Locker) Break(ctx context.Context, name, token string) error {
	if err := lk.made(); err != nil {
		return err
	}
	o := lk.settings()
	name, err := o.normalizeName(name)
	switch {
	case err != nil:
		return fmt.Errorf("redlock: break: %w", err)
	case token == "":
		return fmt.Errorf("redlock: break %q: the token is empty", name)
	}
	if err := ended(ctx); err != nil { // otherwise the nodes may answer a first look before the end of ctx is seen
		return fmt.Errorf("redlock: break %q: %w", name, err)
	}
	t := lk.begins(ctx, "break", name, nil)
	untilClosed, cancel := lk.untilClosed(ctx)
	defer cancel()
	err = lk.breaks(untilClosed, t, name, token)
	if why := quorumError(err); why != nil && errors.Is(why.Cause, ErrClosed) && ctx.Err() == nil {
		why.Cause = ErrClosed // and not the context that Break has made
	}
	t.ends(nil, err)
	return err
}

// A breaking is one call of Break.
//
// Break must bring about that no later extension is confirmed. It is not enough that the nodes of a quorum drop the
// token, one after another. Five nodes; the holder can reach them all, and Break cannot reach the nodes 4 and 5:
//
//	Break     node 1 drops the token
//	holder    extension: node 1 says that it is gone, 2 to 5 confirm; node 1 is given the token anew (refill)
//	holder    extension: 2 to 5 confirm, so node 1 counts again (counts)
//	Break     2 and 3 drop the token: three of five nodes have confirmed
//	holder    extension: 1, 4 and 5 confirm
//
// The holder could extend the lock for ever. So a node also stores a note that the token is broken, in the step in
// which it drops the token (break.lua), and confirms no extension of the token while it has the note. When a quorum has
// the note, every other quorum has a node that confirms none, whether the token is there again or not: put back by the
// holder, or by a request of the acquisition that was under way, however late, over whatever connection, or for the
// second time. Several operators may break the same lock.
//
// A node that loses its data loses the note. Then it may be given the token anew, and it counts after an extension that
// began later was confirmed by so many others that the rest is no quorum (counts). If a quorum had the note at one
// instant, these others are too few without a node that has it, or that had it and counts again; and no node can be the
// first of those. So Break looks whether the nodes of a quorum have the note, after all of them have confirmed it.
// Without that second look, an extension that a node confirmed before it stored the note could have made another node
// count that had lost the note in between. It would not do that a node has the note at the second look: it may have
// lost the note, and have it from another operator's Break. So the node must also have the same marker (a key that
// names one life of its data) as before it was asked: then it has lost nothing since.
//
// What remains is a node that loses the note, and gets a request of the acquisition after that; or a node that is
// restarted with older data, in which it has the token.
//
// The note lives for twice as long as any lock of the set may. The holder relies on its lock for a TTL after the start
// of its last confirmed extension, and that was before a quorum had the note.
//
// The fence: a quorum of nodes stored that of the broken lock with its grants, before they dropped the token. Each later
// lock has a grant of one of them, after that, and so a larger number (see errUnfenced). Break leaves the counters alone. A
// lock whose fence no quorum had stored when it was broken, and whose attempt is won later, is no earlier lock.
//
// docs/model/break.pml has these rules, and what happens without each of them.
type breaking struct {
	locker *Locker
	trace  *opTrace
	key    string // names the waiting goroutine to a simulator (sim.Host)
	handle Handle // what is known of the lock, as far as fromHandle needs it
	waits  int    // of this call, for a simulator
	rounds int32  // how often tell has asked the nodes
}

func (lk *Locker) breaks(ctx context.Context, t *opTrace, name, token string) error {
	if err := lk.enter(); err != nil {
		return err
	}
	defer lk.leave()
	if err := lk.agree(ctx, lk.settings().NodeTimeout); err != nil {
		return fmt.Errorf("redlock: break %q: %w", name, err)
	}
	o := lk.settings()
	b := &breaking{locker: lk, trace: t, key: lk.parts.Host.Token()}
	longest := o.MaxTTL // for which the note lives, and a node is owed it: the token's own TTL is not known
	if d := lk.lanes.View().Description; d != nil {
		longest = d.Longest()
	}
	b.handle = Handle{Name: name, Token: token, TTL: longest, Since: lk.now(), Prefix: o.Prefix, Separator: o.Separator}
	slot, err := b.find(ctx)
	if slot && err == nil {
		err = b.findSlot(ctx)
	}
	for again := err == nil; again; again = again && b.rounds < maxRounds {
		again, err = b.tell(ctx)
	}
	return err
}

// maxRounds is how often Break asks the nodes to note that the token is broken. It asks again if a node has lost the
// note, or the set was changed.
const maxRounds = 10

// find looks for the token at all nodes, and notes in b.handle whether it is that of a shared lock. slot: it is that of a
// slot, and findSlot finds which. It returns an error if no node has the token, or it is that of a lock below the name.
func (b *breaking) find(ctx context.Context) (slot bool, err error) {
	lk := b.locker
	view, nodes, err := lk.survey(ctx, b.handle.Name, 0)
	if err != nil {
		return false, err
	}
	b.waits++
	lk.parts.Host.Woke(sim.Caller, b.key, -b.waits)
	found := false
	for _, n := range nodes {
		found = found || n.Token == b.handle.Token
		for _, h := range n.Holders {
			if h.Token != b.handle.Token {
				continue
			}
			found = true
			switch h.Mode {
			case ModeShared:
				b.handle.Shared = true
			case ModeSlot:
				slot = true
			default:
				return false, fmt.Errorf("redlock: break %q: the token is that of a lock below it: name that lock itself", b.handle.Name)
			}
		}
	}
	if !found {
		return false, b.nothing(ctx, view.Quorum, nodes)
	}
	return slot, nil
}

// nothing makes the error of a Break that found no token: ErrLost if a quorum answered, else ErrNoQuorum (with ended(ctx)).
func (b *breaking) nothing(ctx context.Context, quorum int, nodes []NodeStatus) error {
	e := &QuorumError{Op: "break", Name: b.handle.Name, N: len(nodes), Need: quorum, Kind: ErrNoQuorum}
	for _, n := range nodes {
		switch {
		case n.Err != nil && n.Err.Outcome != OutcomeQuarantined:
			e.Failed++
			e.note(n.Err)
		case n.Token != "":
			e.Held++
			e.note(&NodeError{Node: n.Node, Outcome: OutcomeStolen, Holder: n.Token, TTL: n.TTL})
		default:
			e.Held++
			e.note(&NodeError{Node: n.Node, Outcome: OutcomeGone})
		}
	}
	if e.Held >= e.Need {
		e.Kind = ErrLost
	} else {
		e.Cause = ended(ctx)
	}
	return e
}

// slotsAtOnce is how many slots the nodes are asked about in one round.
const slotsAtOnce = 50

// findSlot looks for the number of the slot that the token holds, at the keys of all slots, and sets it in b.handle. If it
// finds none, the error is ctx's, or find's if the token is gone by now, or says that no node has the key of such a slot.
func (b *breaking) findSlot(ctx context.Context) error {
	view := b.locker.lanes.View()
	for first := 1; first <= MaxSlots; first += slotsAtOnce {
		if slot := b.slotAmong(ctx, view, first, min(first+slotsAtOnce-1, MaxSlots)); slot > 0 {
			b.handle.Slot, b.handle.Slots = slot, slot
			return nil
		}
		if err := ended(ctx); err != nil {
			return fmt.Errorf("redlock: break %q: %w", b.handle.Name, err)
		}
	}
	if _, err := b.find(ctx); err != nil { // it has just been released
		return err
	}
	return fmt.Errorf("redlock: break %q: the token is that of a slot, and no node that answers has the key of that slot", b.handle.Name)
}

// slotAmong asks all nodes about the slots from first to last, and returns the one that the token holds; 0: none.
func (b *breaking) slotAmong(ctx context.Context, view *set.View, first, last int) (slot int) {
	var keys []string
	for i := first; i <= last; i++ {
		keys = append(keys, b.locker.settings().Prefix+b.handle.Name+script.SlotInfix+strconv.Itoa(i))
	}
	b.inspect(ctx, view, keys, func(a answer) (enough bool) {
		if a.Reply.Holder == b.handle.Token {
			slot = first + slices.Index(keys, a.Claim.Key)
		}
		return slot > 0
	})
	return slot
}

// inspect asks all nodes of the view for the values of these keys, and calls take, on this goroutine, with each answer (an
// error, if the node is down), until take returns true, a NodeTimeout is over, or ctx ends.
func (b *breaking) inspect(ctx context.Context, view *set.View, keys []string, take func(answer) (enough bool)) {
	lk := b.locker
	answers := make(answers, len(view.Lanes)*len(keys))
	sent := lk.now()
	for _, key := range keys {
		about := &lane.Claim{Key: key, Keys: []string{key}}
		for _, n := range view.Lanes {
			q := &lane.Request{Op: wire.Inspect, Claim: about, Deadline: sent.Add(lk.settings().NodeTimeout), To: answers, By: view.Description}
			if n.Submit(q, sent) {
				answers.Deliver(n, q)
			}
		}
	}
	limit := time.NewTimer(lk.settings().NodeTimeout)
	defer limit.Stop()
	b.waits++
	defer lk.parts.Host.Woke(sim.Caller, b.key, -b.waits)
	for range cap(answers) {
		select {
		case a := <-answers:
			if take(a) {
				return
			}
		case <-limit.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// An answer is that of one node to a request about one key.
type answer struct {
	*lane.Request
	from *lane.Lane
}

// answers is a channel with room for the answers of all nodes.
type answers chan answer

func (a answers) Deliver(n *lane.Lane, q *lane.Request) { a <- answer{q, n} }

// tell makes one round of a Break: it asks all nodes to drop the token and to note that it is broken, and then looks
// (checkMarkers) whether a quorum of those that confirmed has the note. If so, err is nil. Otherwise err says why not; again
// is true if another round may help: nodes have lost the note, or the set was changed meanwhile.
func (b *breaking) tell(ctx context.Context) (again bool, err error) {
	lk := b.locker
	l, err := lk.fromHandle(b.handle)
	if err != nil {
		return false, fmt.Errorf("redlock: break %q: %w", b.handle.Name, err)
	}
	l.claim.Broken = 2 * l.claim.Millis
	l.trace = b.trace
	r := lk.newRound(wire.Release, l, nil)
	defer r.drop()
	b.rounds++
	r.trace, r.number, r.caller = b.trace, b.rounds, b.key
	view := r.view
	markers := make([]string, len(view.Lanes))
	for i := range view.Lanes {
		markers[i] = view.Marker(i)
	}
	r.start(lk.now(), time.Time{}) // no deadline: a lane keeps it until it can be sent
	r.wait(ctx, lk.nodeTimeout(b.handle.TTL))
	why := ended(ctx)
	if r.decided() != won && (why != nil || view.Description == lk.lanes.View().Description) {
		e := r.explain(lk.now(), why)
		e.Op, e.Kind = "break", ErrNoQuorum
		return false, e
	}
	for i, told := range r.answered() {
		if !told {
			markers[i] = unconfirmed
		}
	}
	return b.checkMarkers(ctx, view, markers)
}

// unconfirmed stands for the marker of a node that has not confirmed its note that the token is broken.
const unconfirmed = "untold"

// checkMarkers asks whether a quorum of the nodes still has the note that the token is broken, and has lost no data since it
// was asked to store that. For the latter, a node's marker, a key that names one life of its data, must be as before: marks
// has those, in the order of the view; unconfirmed there: the node has not confirmed the note. Results as for tell.
func (b *breaking) checkMarkers(ctx context.Context, view *set.View, marks []string) (again bool, _ error) {
	lk := b.locker
	noted, others, sent := 0, make([]NodeError, len(marks)), lk.now()
	for i, n := range view.Lanes {
		others[i] = NodeError{Node: n.Name, Outcome: OutcomeTimeout, Elapsed: lk.settings().NodeTimeout}
	}
	b.inspect(ctx, view, []string{script.Broken + b.handle.Token}, func(a answer) (enough bool) {
		i := view.At(a.from)
		was, _ := wire.ParseMarker(marks[i])
		is, _ := wire.ParseMarker(a.Reply.Mark)
		switch e := nodeError(a.from.Name, &a.Reply, elapsed(sent, lk.now())); {
		case marks[i] == unconfirmed && a.Reply.Err == nil:
			others[i].Outcome = OutcomeGranted // no failure: it answers now, and its confirmation was not waited for
		case a.Reply.Holder != "" && is.Same(was):
			others[i].Outcome = OutcomeGranted
			noted++
		case a.Reply.Err == nil:
			others[i].Outcome = OutcomeGone
		default:
			others[i] = e
		}
		return noted >= view.Quorum
	})
	switch {
	case view.Description != lk.lanes.View().Description:
	case noted >= view.Quorum:
		return false, nil
	}
	e := &QuorumError{Op: "break", Name: b.handle.Name, N: len(marks), Need: view.Quorum, Granted: noted, Failed: len(marks) - noted, Kind: ErrNoQuorum, Cause: ended(ctx)}
	for i := range others {
		if others[i].Outcome != OutcomeGranted {
			e.note(&others[i])
		}
	}
	return e.Cause == nil, e
}

// answered reports for each node, in the view's order, whether its answer to the release r counts as a vote, yes or no.
func (r *round) answered() []bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	said := make([]bool, len(r.view.Lanes))
	for i := range said {
		said[i] = r.replied[i] && classify(r.op, r.reqs[i].Reply.Status) != voteNone
	}
	return said
}
