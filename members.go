package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/aside"
	"github.com/quorumlock/redlock/internal/set"
	"github.com/quorumlock/redlock/internal/wire"
)

func membersOf(v *set.View) Members {
	if v.Description != nil {
		return described(v.Description)
	}
	m := Members{Quorum: v.Quorum}
	for _, n := range v.Lanes {
		m.Nodes = append(m.Nodes, n.Name)
	}
	return m
}

// Members returns the members of the set as this Locker knows them. It learns of a change with the first request that
// follows it. For a Locker that New or Connect did not make, it returns the zero Members.
func (lk *Locker) Members() Members {
	if lk.made() != nil {
		return Members{}
	}
	return membersOf(lk.lanes.View())
}

// A Change is what [Locker.Change] does to a set. Exactly one thing of it is not zero.
type Change struct {
	Add    string // the address of a node that becomes a member
	Remove string // the address of a member that is to be no member any more, as Members has it

	Quorum *int // of the members; 0: a majority of them, however many there are

	// MaxTTL is the longest TTL of a lock from then on. A lock with a longer one is refused, and a held one is not
	// extended any more: it ends with its TTL.
	//
	// MaxTTL changes in two steps. For a longer one all members must answer, and Change makes both steps. For a shorter
	// one Change makes the first step, which bounds new locks. Quarantines last for as long as before (LongerTTL in
	// Members) until the same Change is called again, which waits until all locks have ended that may live longer; with
	// LongerOver it does not wait.
	MaxTTL     *time.Duration
	LongerOver bool // declares that no lock is held any more that lives longer than MaxTTL

	// Separator changes what names mean. No program that uses the set may run meanwhile: one could hold a path as one key,
	// and another one the folder above it. Change waits until the locks of programs that ran before are over, but cannot
	// find out whether one still runs.
	Separator *string
}

// ErrOvertaken says that another change of the set came first, perhaps an earlier one that was unfinished until now:
// look at [Locker.Members], and decide anew.
var ErrOvertaken = set.ErrOvertaken

// next makes the set's next description from d, the present one, with this change; now is when it is proposed. If the result
// has not c's MaxTTL yet (Toward), the caller calls next again. An error: the change cannot be made.
func (c *Change) next(d *wire.Description, now time.Time) (*wire.Description, error) {
	if unknown := d.Fields(); len(unknown) > 0 {
		return nil, fmt.Errorf("redlock: the description of the set has fields that this version does not know (%s), and a change would lose them: use a later version", strings.Join(unknown, ", "))
	}
	then := d.Next()
	then.Since = now.UnixMilli()
	things := 0
	if c.Add != "" {
		things++
		if d.Has(c.Add) {
			return nil, fmt.Errorf("redlock: node %s is a member already", c.Add)
		}
		then.Members = append(then.Members, c.Add)
	}
	if c.Remove != "" {
		things++
		if !d.Has(c.Remove) {
			return nil, fmt.Errorf("redlock: node %s is no member: the members are %s", c.Remove, strings.Join(d.Members, ", "))
		}
		if len(d.Members) == 1 {
			return nil, fmt.Errorf("redlock: node %s is the only member: a set has one at least", c.Remove)
		}
		then.Members = slices.DeleteFunc(then.Members, func(m string) bool { return m == c.Remove })
	}
	if c.Quorum != nil {
		things++
		then.Quorum = *c.Quorum
	}
	if n := len(then.Members); then.Quorum != 0 && (then.Quorum < majority(n) || then.Quorum > n) {
		return nil, fmt.Errorf("redlock: with %d members the quorum can be %d to %d, and it would be %d: change the quorum first, with redlock members set quorum", n, majority(n), n, then.Quorum)
	}
	then.Other = 0 // the locks of before are over before any other change (settle)
	if c.MaxTTL != nil {
		things++
		if why := notATTL(*c.MaxTTL); why != "" {
			return nil, fmt.Errorf("redlock: MaxTTL %v %s", *c.MaxTTL, why)
		}
		then.MaxTTL, then.Other = d.Toward(c.MaxTTL.Milliseconds())
	}
	if c.Separator != nil {
		things++
		then.Separator = *c.Separator
	}
	if c.LongerOver && c.MaxTTL == nil {
		return nil, errors.New("redlock: LongerOver goes with MaxTTL")
	}
	if things != 1 {
		return nil, fmt.Errorf("redlock: a change is of one thing, and this is of %d", things)
	}
	if err := then.Check(); err != nil {
		return nil, fmt.Errorf("redlock: the set cannot be changed so: %w", err)
	}
	return then, nil
}

// Change changes the set: its members, one node at a time, or its quorum, MaxTTL or separator. Programs that use the set
// follow by themselves, with their next request. Change returns the members after the change. If ctx ends before, the change
// may come into force all the same; other errors say how the set is left. The next call of Change finds out, and finishes
// it. progress, if it is not nil, is called with what Change waits for, and for how long at most; 0: nobody knows. It runs
// on a goroutine of its own: a slow one delays only its next call, and Change waits for it a second at most.
//
// Change waits until a node that is added is out of quarantine and can vote. After a change of members, the next change
// waits until the locks acquired before are over, which takes the longest TTL of the set.
//
// A change after which too few nodes could vote is refused, with an error that is ErrNoQuorum.
func (lk *Locker) Change(ctx context.Context, c Change, progress func(what string, most time.Duration)) (Members, error) {
	return lk.change(ctx, c, false, progress)
}

// PlanChange is Change, but changes nothing and waits for nothing: it returns the members that there would be, or why not,
// and tells progress what Change would wait for.
func (lk *Locker) PlanChange(ctx context.Context, c Change, progress func(what string, most time.Duration)) (Members, error) {
	return lk.change(ctx, c, true, progress)
}

func (lk *Locker) change(ctx context.Context, c Change, plan bool, progress func(string, time.Duration)) (Members, error) {
	if err := lk.made(); err != nil {
		return Members{}, err
	}
	if err := lk.enter(); err != nil {
		return Members{}, err
	}
	defer lk.leave()
	tell := func(string, time.Duration) {}
	if progress != nil {
		var told aside.Queue
		defer told.Close(time.Second)
		tell = func(what string, most time.Duration) {
			told.Add(aside.Detail, "progress", func() { progress(what, most) })
		}
	}
	ctx, cancel := lk.untilClosed(ctx)
	defer cancel()
	for {
		m, half, err := lk.changeOnce(ctx, &c, plan, tell)
		if err != nil || !half {
			return m, err
		}
	}
}

// changeOnce makes one step of a change, and returns the members after it. half: it was the first of two steps (MaxTTL), so
// call it again. With plan, it changes nothing, and returns those after all steps. tell gets what it waits for.
func (lk *Locker) changeOnce(ctx context.Context, c *Change, plan bool, tell set.Progress) (_ Members, half bool, _ error) {
	for !lk.lanes.Agreed() {
		if err := cmp.Or(lk.agree(ctx, lk.settings().NodeTimeout), ended(ctx)); err != nil {
			return Members{}, false, err
		}
		lk.pause(ctx)
	}
	view := lk.lanes.View()
	if view.Description == nil {
		return Members{}, false, errors.New("redlock: without Options.Quarantine there is no description of the set that could be changed")
	}
	d, err := c.next(view.Description, lk.now())
	if err != nil {
		return Members{}, false, err
	}
	// If this program cannot use a description, it could have it chosen, but would store it on no node: neither in force
	// nor undone.
	if err := lk.settings().rejects(d); err != nil {
		return Members{}, false, fmt.Errorf("redlock: the set was not changed, since this program could not use it afterwards: %w", err)
	}
	few := lk.voting(ctx, view, d, c)
	if few != nil {
		few = fmt.Errorf("redlock: %s: %w", c.left(view.Description), few)
	}
	if few != nil && !plan { // a plan also looks at the node that comes, and returns few later
		return Members{}, false, few
	}
	if err := lk.lanes.Change(ctx, view, d, c.Add, c.LongerOver, plan, tell); err != nil {
		return Members{}, false, fmt.Errorf("redlock: %s: %w", c.left(view.Description), err)
	}
	switch {
	case few != nil:
		return Members{}, false, few
	case plan:
		for c.MaxTTL != nil && d.MaxTTL != c.MaxTTL.Milliseconds() {
			if d, err = c.next(d, lk.now()); err != nil {
				return Members{}, false, err
			}
		}
		return described(d), false, nil
	}
	return lk.Members(), c.MaxTTL != nil && d.MaxTTL != c.MaxTTL.Milliseconds(), nil
}

// left says, for the error of a failed change, whether the set is as before or half changed. d is its description before.
func (c *Change) left(d *wire.Description) string {
	if c.MaxTTL == nil || d.Other == 0 {
		return "the set was not changed"
	}
	return fmt.Sprintf("the change of MaxTTL is half done (locks live for %v at most, and quarantines go by %v), and goes on when it is made again", wire.Milliseconds(d.MaxTTL), d.Longest())
}

// untilClosed returns a context that ends with ctx, and also when Shutdown or Close is called: a change may wait long, and
// Close waits for all calls. The caller must call the CancelFunc.
func (lk *Locker) untilClosed(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-lk.closing:
			cancel(ErrClosed)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// pause waits for a NodeTimeout, or until ctx ends. It returns at once if a quorum is known to keep the set's description.
// So a loop that calls agree until then does not spin.
func (lk *Locker) pause(ctx context.Context) {
	if lk.lanes.Agreed() {
		return
	}
	timer := time.NewTimer(lk.settings().NodeTimeout)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// voting asks the nodes, and returns an ErrNoQuorum if too few members could vote after the change c from view to the
// description d; set.ErrOvertaken if view is not the latest. A node that is added counts as one that can vote: Change waits
// for that, and any client may give it d as soon as d is chosen (Set.comes in package set). But the other nodes must do
// until then. With one of two members down, d cannot be chosen, which takes both; with one of three down, nobody could lock
// until the fourth node, which is added, has d. For a change of MaxTTL a node in quarantine counts, since a shorter MaxTTL
// may be what ends that. And no member may be missing when MaxTTL gets longer (wire.Description.Toward).
func (lk *Locker) voting(ctx context.Context, view *set.View, d *wire.Description, c *Change) error {
	now, nodes, err := lk.survey(ctx, nobodys, 0)
	switch {
	case err != nil:
		return err
	case now.Description != view.Description:
		return set.ErrOvertaken
	}
	votes, away := 0, []string(nil)
	for i, n := range nodes {
		switch member := view.Member(i); {
		case !d.Has(member):
		case n.Err == nil, c.MaxTTL != nil && n.Err.Outcome == OutcomeQuarantined:
			votes++
		default:
			away = append(away, n.Err.Error())
		}
	}
	if c.MaxTTL != nil && c.MaxTTL.Milliseconds() > view.Description.MaxTTL && len(away) > 0 {
		return tooFewError(fmt.Sprintf("a longer MaxTTL needs the answers of all %d members, or a node that is emptied could vote before a longer lock is over: bring back, or remove first, what does not vote (%s)", len(d.Members), strings.Join(away, "; ")))
	}
	for _, member := range d.Members {
		if view.Description.Has(member) {
			continue
		}
		if need := majority(len(d.Members)); votes < need && len(away) > 0 {
			return tooFewError(fmt.Sprintf("of %d members %d must vote before %s can, and only %d could (%s)", len(d.Members), need, member, votes, strings.Join(away, "; ")))
		}
		votes++
	}
	if need := d.Needs(); votes < need {
		return tooFewError(fmt.Sprintf("of %d members %d must vote, and only %d could (%s)", len(d.Members), need, votes, strings.Join(away, "; ")))
	}
	return nil
}

// A tooFewError says which nodes do not vote, so that a change is refused.
type tooFewError string

func (e tooFewError) Error() string      { return string(e) }
func (tooFewError) Is(target error) bool { return target == ErrNoQuorum }

// agree waits until a quorum of the nodes keeps the description of the set (its members and settings), or limit is over, or
// ctx ends. The error says why this program cannot use the set; nil: it can, as far as is known, even if the time was over.
func (lk *Locker) agree(ctx context.Context, limit time.Duration) error {
	_, err := lk.agreeUnless(ctx, limit, func() bool { return false })
	return err
}

// agreeUnless is agree, but also returns when done is true (with a nil error), at first or after news of the set.
// isNew: the nodes kept no description, so that they were asked to choose one; false: they kept one, or nobody knows.
func (lk *Locker) agreeUnless(ctx context.Context, limit time.Duration, done func() bool) (isNew bool, _ error) {
	if lk.lanes.Agreed() {
		return false, nil
	}
	o := lk.settings()
	proposal := &wire.Description{
		Epoch: 1, Set: wire.SetName(lk.parts.Host.Token()), Quorum: o.wants.quorum, Separator: o.wants.separator, MaxTTL: o.MaxTTL.Milliseconds(),
		Since: o.Clock.Now().UnixMilli(),
	}
	for _, n := range lk.lanes.View().Lanes {
		proposal.Members = append(proposal.Members, n.Name)
	}
	return lk.lanes.Agree(ctx, limit, proposal, done)
}

// ready is agree, for a NodeTimeout, for a caller that has not called Locker.enter; so the error may also be ErrClosed.
func (lk *Locker) ready(ctx context.Context) error {
	if err := lk.enter(); err != nil {
		return err
	}
	defer lk.leave()
	return lk.agree(ctx, lk.settings().NodeTimeout)
}
