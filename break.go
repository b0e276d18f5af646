package redlock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/wire"
)

// Break takes a lock away from its holder: the nodes delete this token, and no other one, from the name's
// keys, and wake the first waiter, as for a release. [Status] has the token:
// Status.Token, or that of one of the Status.Holders. The lock may be of any kind: exclusive, shared, a slot, below
// folders. It may be of another library, too, which has no fence.
//
// Break does not stop the holder. The holder is told by its next extension, which fails with ErrLost. A lock
// that is renewed is extended every third of its TTL. A lock that is not extended is believed in until its
// validity ends, which is within a TTL. Until it is told, the holder may go on writing. The next lock's fence
// is larger than the broken one's: a resource that rejects smaller fences refuses these writes after the next
// holder's first one.
//
// Break returns nil if a quorum of nodes has confirmed that the token is gone. Then no extension that begins
// later is confirmed, and every lock whose attempt begins later has a larger fence. The other nodes are
// told as soon as they can be reached, while the Locker is open; the TTL is the backstop.
//
// An error that is ErrLost says that the lock had ended before: no node of a quorum had the token. Nothing was
// changed. ErrNoQuorum says that too few nodes have confirmed: those that the error names may still have the
// token, and its holder may keep the lock and extend it. Call Break again once they can be reached.
//
// Each round of Break takes at most Options.NodeTimeout. As a rule there are three, or four. There are more, until
// ctx ends, while the holder's extension puts the token back at nodes that have dropped it. If the nodes that are
// known to have had the token are no quorum, Break waits for as long as another node may still be asked to
// take it: Options.NodeTimeout, which should be the holder's.
//
// A lock of several names (Also) ends as a whole if it is broken at one of its names, for no extension is
// confirmed any more. The keys of its other names go with their TTL, or when each of these names is broken, too.
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
	if why := (*QuorumError)(nil); errors.As(err, &why) && errors.Is(why.Cause, ErrClosed) && ctx.Err() == nil {
		why.Cause = ErrClosed // and not the context that Break has made
	}
	t.ends(nil, err)
	return err
}

// A breaking is one call of Break.
//
// What it has to bring about is that no later extension is confirmed. For that it is not enough that a
// quorum of nodes has dropped the token, one after another. Five nodes; the holder can reach them all, and
// Break cannot reach the nodes 4 and 5:
//
//	Break     node 1 drops the token
//	holder    extension: node 1 says that it is gone, 2 to 5 confirm; node 1 is given the token anew (refill)
//	holder    extension: 2 to 5 confirm, so node 1 counts again (counts)
//	Break     2 and 3 drop the token: three of five nodes have confirmed
//	holder    extension: 1, 4 and 5 confirm
//
// The lock would be extended for ever after. So the rule is: there must be an instant at which no node of a
// quorum had the token. A node has two looks: one that ends with "it is gone", or with its deletion, and one
// that begins after such a look has ended at all nodes of the quorum, and that finds nothing to delete. A look
// that does delete it says that the holder has put it back, and there is another look.
//
// That is enough. Let t be the instant at which the second looks begin, and E the first extension of those that
// begin after t that so many nodes confirm that the rest is no quorum; what a quorum confirms is one of these.
// It shares a node with the quorum of the looks. There the token was put back after t, by one of these:
//
//   - A refill. The node counts in E, so an extension C was confirmed by as many that began when the token
//     was known to be back (landed), hence after t. C was confirmed before the node's vote for E, and E is the
//     first one. So there is no E.
//   - The acquisition, of which a request was under way to this node at t: the node had never had the token.
//     The holder need not know yet that it has the lock, or has it by the others. Such a request is refused
//     once its deadline is over (acquire.lua). So a node counts only if it is known to have had the
//     token before, or if Break began longer ago than that.
//
// An extension that began before t may be confirmed late, and counts from when it was sent: the holder believes in
// the lock for a TTL after t at most. That is the bound for a holder that does not extend, or whose extensions reach
// no quorum.
//
// A request without a deadline, as of plain commands (wire.Plain), over a connection that was given up,
// may set the token much later. So may one that is carried out twice; and one with a deadline, until that
// is over, if the connection was given up and the node was given the token anew over another one. The token
// then stays at that node for its TTL, at most, and keeps others out there and nowhere else. For extensions
// it is one vote, and to matter it takes one more of such nodes than Break has had confirmations beyond those
// that it needed. So it takes one, if just a quorum has confirmed.
//
// The second look must not miss a token that was put back. It does if the token goes in another way between
// the beginning of that look and the node's answer: another operator breaks the same lock at that moment, or
// the node loses its data. That is not promised.
//
// The fence: that of the broken lock was stored by a quorum of nodes with its grants, before the token was
// dropped there. Each later lock has a grant of one of them, after that, and so a larger number (see
// errUnfenced). Break leaves the counters alone. A lock whose fence a quorum had not stored when it was broken,
// and whose attempt is won by what comes later, is no earlier lock.
//
// docs/model/break.pml has these rules, and what happens without each of them.
type breaking struct {
	locker *Locker
	trace  *opTrace
	key    string // what the host knows it by
	handle Handle
	began  time.Time
	looks  int32
	finds  int
	last   *round              // the last look, to which answers may still come
	had    map[*lane.Lane]bool // by node: it is known to have had the token
	gone   map[*lane.Lane]bool // by node: its last look has ended, and it does not have the token
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
	b := &breaking{
		locker: lk, trace: t, key: lk.parts.Host.Token(), began: lk.now(),
		had: make(map[*lane.Lane]bool), gone: make(map[*lane.Lane]bool),
	}
	longest := o.MaxTTL // for which a node is owed the release: the token's own TTL is not known
	if d := lk.lanes.View().Description; d != nil {
		longest = d.Longest()
	}
	b.handle = Handle{Name: name, Token: token, TTL: longest, Since: b.began, Prefix: o.Prefix, Separator: o.Separator}
	slot, err := b.find(ctx)
	if slot && err == nil {
		err = b.findSlot(ctx)
	}
	if err != nil {
		return err
	}
	defer func() {
		if b.last != nil {
			b.last.drop()
		}
	}()
	for {
		if done, err := b.look(ctx); done || err != nil {
			return err
		}
	}
}

// find looks for the token, and for how it holds the lock. A slot is yet to be found.
func (b *breaking) find(ctx context.Context) (slot bool, err error) {
	lk := b.locker
	view, nodes, err := lk.survey(ctx, b.handle.Name, 0)
	if err != nil {
		return false, err
	}
	b.finds++
	lk.parts.Host.Woke(sim.Caller, b.key, -b.finds)
	found := false
	for at, n := range nodes {
		i := view.Lanes[at]
		b.had[i] = n.Token == b.handle.Token
		for _, h := range n.Holders {
			if h.Token != b.handle.Token {
				continue
			}
			b.had[i] = true
			switch h.Mode {
			case ModeShared:
				b.handle.Shared = true
			case ModeSlot:
				slot = true
			default:
				return false, fmt.Errorf("redlock: break %q: the token is that of a lock below it: name that lock itself", b.handle.Name)
			}
		}
		found = found || b.had[i]
		b.gone[i] = !b.had[i] && (n.Err == nil || n.Err.Outcome == OutcomeQuarantined)
	}
	if !found {
		return false, b.nothing(ctx, view, nodes)
	}
	return slot, nil
}

// nothing makes the error for a token that no node was found to have.
func (b *breaking) nothing(ctx context.Context, view *lane.View, nodes []NodeStatus) error {
	e := &QuorumError{Op: "break", Name: b.handle.Name, N: len(nodes), Need: view.Quorum, Kind: ErrNoQuorum}
	for at, n := range nodes {
		switch {
		case !b.gone[view.Lanes[at]]:
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

// findSlot looks for the slot that the token holds: only the slot's own key has its number.
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

// slotAmong asks all nodes about some slots, and returns the one that the token holds; 0: none.
func (b *breaking) slotAmong(ctx context.Context, view *lane.View, first, last int) int {
	lk := b.locker
	answers := make(slotAnswers, len(view.Lanes)*(last-first+1))
	sent := lk.now()
	for slot := first; slot <= last; slot++ {
		key := lk.settings().Prefix + b.handle.Name + script.SlotInfix + strconv.Itoa(slot)
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
	defer lk.parts.Host.Woke(sim.Caller, b.key, -2-first)
	for range cap(answers) {
		select {
		case q := <-answers:
			if q.Reply.Holder == b.handle.Token {
				slot, _ := strconv.Atoi(q.Claim.Key[len(lk.settings().Prefix+b.handle.Name+script.SlotInfix):])
				return slot
			}
		case <-limit.C:
			return 0
		case <-ctx.Done():
			return 0
		}
	}
	return 0
}

// slotAnswers takes the answers of nodes about slots. It has room for all.
type slotAnswers chan *lane.Request

func (a slotAnswers) Deliver(_ *lane.Lane, q *lane.Request) { a <- q }

// look has all nodes drop the token, and reports whether the lock is broken.
func (b *breaking) look(ctx context.Context) (done bool, err error) {
	lk := b.locker
	l, err := lk.fromHandle(b.handle)
	if err != nil {
		return false, fmt.Errorf("redlock: break %q: %w", b.handle.Name, err)
	}
	if b.last != nil {
		b.take(b.last) // with the answers that have come since
		b.last.drop()
	}
	before, begun := maps.Clone(b.gone), lk.now()
	l.trace = b.trace
	r := lk.newRound(wire.Release, l, nil)
	b.looks++
	r.trace, r.number, r.caller = b.trace, b.looks, b.key
	b.last = r
	// The first two looks end with the first answers of a quorum. Where these are other nodes' each time, none
	// of them may ever have answered two looks in a row, however many there are: a third one waits for all nodes.
	r.all = b.looks > 2
	view := r.view
	r.start(begun, time.Time{}) // no deadline: a lane keeps it until it can be sent
	r.wait(ctx, lk.nodeTimeout(b.handle.TTL))
	b.take(r)
	gone, twice, proven := 0, 0, 0
	for _, n := range view.Lanes {
		if b.gone[n] {
			gone++
		}
		if before[n] && b.gone[n] && r.found(n) != wire.Granted {
			twice++
			if b.had[n] {
				proven++
			}
		}
	}
	// For so long after the first look the token may come to a node that has never had it. A longer NodeTimeout of
	// the holder's is not known.
	rest := lk.settings().NodeTimeout - elapsed(b.began, begun)
	agreed := twice >= view.Quorum && view.Description == lk.lanes.View().Description
	switch why := ended(ctx); {
	case agreed && (proven >= view.Quorum || rest <= 0):
		return true, nil
	case why != nil || gone < view.Quorum:
		e := r.explain(lk.now(), why)
		e.Op, e.Kind = "break", ErrNoQuorum
		return false, e
	case agreed:
		timer := time.NewTimer(rest)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		lk.parts.Host.Woke(sim.Caller, b.key, -3-MaxSlots-int(b.looks))
	}
	return false, nil
}

// take notes what the nodes have answered to a look by now.
func (b *breaking) take(r *round) {
	for _, n := range r.view.Lanes {
		switch said := r.found(n); classify(wire.Release, said) {
		case voteYes:
			b.had[n], b.gone[n] = true, true
		case voteNo:
			b.gone[n] = true
		default:
			b.gone[n] = false
		}
	}
}

// found is a node's answer to a round by now.
func (r *round) found(n *lane.Lane) wire.Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := r.view.At(n)
	if !r.told[i] {
		return wire.Timeout
	}
	return r.reqs[i].Reply.Status
}
