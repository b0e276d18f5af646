package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/wire"
)

// settings are those options that the programs of a set must have in common. Zero: the program has not said.
type settings struct {
	quorum    int
	separator string
	maxTTL    time.Duration
}

// errChanged is why a call failed that had begun before the set's settings were known.
var errChanged = errors.New("what the nodes keep about their set was not known when the call began, and makes it another lock: try again")

// agree waits until the set's description is known to a quorum, or for so long.
func (lk *Locker) agree(ctx context.Context, limit time.Duration) error {
	if lk.lanes.Agreed() {
		return nil
	}
	o := &lk.opts
	proposal := &wire.Description{
		Epoch: 1, Quorum: o.wants.quorum, Separator: o.wants.separator, MaxTTL: o.wants.maxTTL.Milliseconds(),
		Since: o.Clock.Now().UnixMilli(),
	}
	for _, n := range lk.lanes.View().Lanes {
		proposal.Members = append(proposal.Members, n.Name)
	}
	return lk.lanes.Agree(ctx, limit, proposal.Named())
}

// ready is agree for a caller that does not use the lanes yet.
func (lk *Locker) ready(ctx context.Context) error {
	if err := lk.enter(); err != nil {
		return err
	}
	defer lk.leave()
	return lk.agree(ctx, lk.opts.NodeTimeout)
}

// accepts reports why this program cannot use a set with this description, and otherwise takes from it what
// the program has left open.
func (lk *Locker) accepts(d *wire.Description) error {
	o := lk.opts
	if err := lk.rejects(d); err != nil {
		return err
	}
	if d.MaxTTL > 0 && o.wants.maxTTL == 0 {
		o.MaxTTL = max(o.MaxTTL, wire.Milliseconds(d.MaxTTL))
	}
	if o.Separator = d.Separator; o.Separator != lk.current.Load().Separator || o.MaxTTL != lk.current.Load().MaxTTL {
		lk.current.Store(&o)
	}
	return nil
}

// rejects reports why this program cannot use a set with this description.
func (lk *Locker) rejects(d *wire.Description) error {
	o := lk.opts
	var errs []error
	refuse := func(what, set, ours, change string) {
		errs = append(errs, fmt.Errorf("redlock: Options.%s is %s, and that of the set is %s: all its programs must have the same; leave it out, or change the set with redlock members set %s", what, ours, set, change))
	}
	if o.wants.quorum != 0 && o.wants.quorum != d.Needs() {
		refuse("Quorum", strconv.Itoa(d.Needs()), strconv.Itoa(o.wants.quorum), "quorum "+strconv.Itoa(o.wants.quorum))
	}
	if o.wants.separator != "" && o.wants.separator != d.Separator {
		refuse("Separator", strconv.Quote(d.Separator), strconv.Quote(o.wants.separator), "separator "+o.wants.separator)
	}
	if most := wire.Milliseconds(d.MaxTTL); d.MaxTTL > 0 && o.MaxTTL > most {
		errs = append(errs, fmt.Errorf("redlock: Options.MaxTTL is %v, and the set allows %v: ask for less, or change the set with redlock members set max-ttl %v", o.MaxTTL, most, o.MaxTTL))
	}
	return errors.Join(errs...)
}

// acquisition is what a call wants, by what the set says if that can be known in time.
func (lk *Locker) acquisition(ctx context.Context, name string, options []AcquireOption) (*acquisition, error) {
	o := lk.current.Load()
	a, err := o.acquisition(name, options)
	if err != nil || lk.lanes.Agreed() {
		return a, err
	}
	if err := ended(ctx); err != nil {
		return nil, fmt.Errorf("redlock: acquire %q: %w", a.name, err)
	}
	a.began = o.Clock.Now()
	switch err := lk.ready(ctx); {
	case err == ErrClosed:
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("redlock: acquire %q: %w", a.name, err)
	case ctx.Err() != nil && !lk.lanes.Agreed():
		return nil, lk.unagreed(ctx, a, a.began)
	}
	if now := lk.current.Load(); now != o {
		began := a.began
		a, err = now.acquisition(name, options)
		a.began = began
	}
	return a, err
}

// unagreed makes the error of a call whose context ended before the set's description was known: what each
// node has to do with that.
func (lk *Locker) unagreed(ctx context.Context, a *acquisition, began time.Time) error {
	r := lk.newRound(wire.Acquire, lk.newLock(a, 0, lk.opts.host.Token()), nil)
	r.sent = began
	for _, n := range r.view.Lanes {
		if why := n.Away(); why != nil {
			r.told[n.Index], r.reqs[n.Index].Reply = true, wire.Reply{Status: why.Status, Err: why.Err}
			r.ballot.add(voteNone)
		}
	}
	return r.explain(lk.opts.Clock.Now(), ended(ctx))
}

// Members says which nodes a set has, and what they have agreed on.
type Members struct {
	Set   string   // names the set
	Epoch int64    // counts the changes of the set, from 1; 0: it has no description yet
	Nodes []string // their addresses

	Quorum    int           // of the nodes, how many must grant a lock
	Separator string        // see Options
	MaxTTL    time.Duration // the longest TTL that a program may ask for; 0: programs are free to announce longer ones
	Since     time.Time     // when this was proposed, by the clock of who did
}

func membersOf(v *lane.View) Members {
	m := Members{Quorum: v.Quorum}
	if d := v.Description; d != nil {
		m.Set, m.Epoch, m.Nodes = d.Set, d.Epoch, slices.Clone(d.Members)
		m.Separator, m.MaxTTL, m.Since = d.Separator, wire.Milliseconds(d.MaxTTL), time.UnixMilli(d.Since)
		return m
	}
	for _, n := range v.Lanes {
		m.Nodes = append(m.Nodes, n.Name)
	}
	return m
}

// Members gives the members of the set as this Locker knows them. It learns of a change with the first
// request that follows it.
func (lk *Locker) Members() Members { return membersOf(lk.lanes.View()) }

// A Change is what [Locker.Change] does to a set: one thing of those that are not zero.
type Change struct {
	Add    string // the address of a node that becomes a member
	Remove string // the address of a member that is to be none, as Members has it

	Quorum *int           // of the members; 0: a majority of them, however many there are
	MaxTTL *time.Duration // 0: programs are free to announce longer ones

	// Separator changes what names mean. No program may run that uses the set: one could hold a path as
	// one key, and another one the folder above it. Change waits until the locks are over of programs
	// that ran before, and cannot find out whether one still runs.
	Separator *string
}

// ErrOvertaken says that another change of the set came first, perhaps one that somebody had begun and that
// is finished now: look at [Locker.Members], and decide anew.
var ErrOvertaken = lane.ErrOvertaken

// next is the description that follows one.
func (c *Change) next(d *wire.Description, now time.Time) (*wire.Description, error) {
	then := *d
	then.Epoch, then.Former, then.Since = d.Epoch+1, d.Members, now.UnixMilli()
	then.Members = slices.Clone(d.Members)
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
	if c.MaxTTL != nil {
		things++
		if why := notATTL(*c.MaxTTL); why != "" && *c.MaxTTL != 0 {
			return nil, fmt.Errorf("redlock: MaxTTL %v %s", *c.MaxTTL, why)
		}
		then.MaxTTL = c.MaxTTL.Milliseconds()
	}
	if c.Separator != nil {
		things++
		then.Separator = *c.Separator
	}
	if things != 1 {
		return nil, fmt.Errorf("redlock: a change is of one thing, and this is of %d", things)
	}
	return &then, nil
}

// Change changes the set: its members, one node at a time, or what they have agreed on. Programs that use the
// set follow by themselves, with their next request. It returns the members that there are then. If ctx ends
// before, the change may come into force all the same; the next one finds out, and finishes it. Progress, if
// it is not nil, is told what is waited for, and for how long at most; 0: until it happens.
//
// A node that is added has no vote while it is in quarantine, and is waited for. Before the next change
// after one of members, the locks must be over that were counted before that: for that the
// longest TTL of the set is waited.
//
// A change after which too few nodes could vote is refused.
func (lk *Locker) Change(ctx context.Context, c Change, progress func(what string, most time.Duration)) (Members, error) {
	return lk.change(ctx, c, false, progress)
}

// PlanChange is Change, but changes nothing and waits for nothing: it returns the members that there would be,
// or why not, and progress is told what would be waited for.
func (lk *Locker) PlanChange(ctx context.Context, c Change, progress func(what string, most time.Duration)) (Members, error) {
	return lk.change(ctx, c, true, progress)
}

func (lk *Locker) change(ctx context.Context, c Change, plan bool, progress func(string, time.Duration)) (Members, error) {
	if err := lk.enter(); err != nil {
		return Members{}, err
	}
	defer lk.leave()
	if progress == nil {
		progress = func(string, time.Duration) {}
	}
	ctx, cancel := lk.untilClosed(ctx)
	defer cancel()
	for !lk.lanes.Agreed() {
		if err := cmp.Or(lk.agree(ctx, lk.opts.NodeTimeout), ended(ctx)); err != nil {
			return Members{}, err
		}
		lk.pause(ctx)
	}
	view := lk.lanes.View()
	if view.Description == nil {
		return Members{}, errors.New("redlock: without Options.Quarantine there is no description of the set that could be changed")
	}
	d, err := c.next(view.Description, lk.opts.Clock.Now())
	if err != nil {
		return Members{}, err
	}
	// A description that this program cannot use would be chosen, and told to no node: neither in force nor undone.
	if err := lk.rejects(d); err != nil {
		return Members{}, fmt.Errorf("redlock: the set was not changed, since this program could not use it afterwards: %w", err)
	}
	if err := lk.voting(ctx, view, d); err != nil {
		return Members{}, err
	}
	var comes *lane.Lane
	if c.Add != "" {
		comes = lk.lanes.Consider(c.Add)
	}
	if err := lk.lanes.Change(ctx, view, d, comes, plan, progress); err != nil {
		return Members{}, fmt.Errorf("redlock: the set was not changed: %w", err)
	}
	if plan {
		m := membersOf(view)
		m.Epoch, m.Nodes, m.Quorum, m.MaxTTL = d.Epoch, d.Members, d.Needs(), wire.Milliseconds(d.MaxTTL)
		m.Separator = d.Separator
		return m, nil
	}
	return lk.Members(), nil
}

// untilClosed gives a context that ends when Close is called, too: a change may wait for longer than any
// round, and Close waits for all calls.
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

// pause waits before the nodes are looked at again. If they are known to be away, agree returns at once: without
// a pause a change would look at them all the time.
func (lk *Locker) pause(ctx context.Context) {
	if lk.lanes.Agreed() {
		return
	}
	timer := time.NewTimer(lk.opts.NodeTimeout)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// voting returns an error if too few members would be left that can vote. A node that comes can: it is waited
// for.
func (lk *Locker) voting(ctx context.Context, view *lane.View, d *wire.Description) error {
	nodes, err := lk.survey(ctx, view, nobodys, 0)
	if err != nil {
		return err
	}
	votes, away := 0, []string(nil)
	for i, n := range nodes {
		switch member := view.Lanes[i].Member(); {
		case !d.Has(member):
		case n.Err == nil:
			votes++
		default:
			away = append(away, n.Err.Error())
		}
	}
	for _, member := range d.Members {
		if !view.Description.Has(member) {
			votes++
		}
	}
	if need := d.Needs(); votes < need {
		return fmt.Errorf("redlock: the set was not changed: of %d members %d must vote, and only %d could (%s)", len(d.Members), need, votes, strings.Join(away, "; "))
	}
	return nil
}
