package client

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/scenario"
)

// Removes begins the Name of a change that removes the node with the address that follows.
const Removes = "remove "

// An operator changes the set, one thing after another, and goes by what its Locker knows: so it goes on
// where another one has died.
type operator struct {
	*Client
	rng    *rand.Rand
	leaves string // the member that is to go next, for which another one has come
}

// operate runs an operator until ctx ends.
func (c *Client) operate(ctx context.Context) {
	o := &operator{Client: c, rng: rand.New(rand.NewPCG(c.Plan.Run.Seed, uint64(c.Number)<<8))}
	c.workers.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			Wait(ctx, o.pause())
			c.Process.Pass(0, n)
			if ctx.Err() == nil {
				o.change(ctx)
			}
		}
	})
}

// pause is for how long it does nothing. Rivals begin at nearly the same moments: what they do is under way
// at once, and one of them may be stopped in the middle of it.
func (o *operator) pause() time.Duration {
	if !o.Plan.Scenario.Rivals {
		return 1 + scenario.Below(o.rng, o.Plan.TTL)
	}
	if o.rng.IntN(2) == 0 {
		return 1 + scenario.Below(o.rng, 4*o.Plan.RTT)
	}
	every := o.Plan.TTL
	now := time.Since(o.Start)
	return now.Truncate(every) + every - now + scenario.Below(o.rng, 4*o.Plan.RTT)
}

// change makes one change, and sometimes gives it up.
func (o *operator) change(ctx context.Context) {
	change, what := o.draw()
	limit := 24 * o.Plan.TTL
	if o.rng.IntN(3) == 0 {
		limit = 1 + scenario.Below(o.rng, 4*o.Plan.TTL)
	}
	op := int(o.ops.Add(1))
	o.note(history.Event{Kind: history.Changing, Op: op, Name: what, Limit: limit})
	changing, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	m, err := o.locker.Change(changing, change, nil)
	if err != nil {
		o.note(history.Event{Kind: history.Changed, Op: op, Name: what, Why: why(err), Error: text(err)})
		return
	}
	o.note(history.Event{Kind: history.Changed, Op: op, Name: what, Also: strings.Join(m.Nodes, " "), Value: int(m.Epoch), Was: m.Quorum})
}

// draw draws the next change: a node comes, a member goes, a member is replaced, which is two changes, or
// another quorum. There are two members at least, mostly three.
func (o *operator) draw() (redlock.Change, string) {
	members := o.locker.Members().Nodes
	others := slices.DeleteFunc(slices.Clone(o.Process.Addrs()), func(addr string) bool { return slices.Contains(members, addr) })
	add := func() (redlock.Change, string) {
		addr := scenario.Pick(o.rng, others)
		return redlock.Change{Add: addr}, "add " + addr
	}
	if leaves := o.leaves; slices.Contains(members, leaves) {
		o.leaves = ""
		return redlock.Change{Remove: leaves}, Removes + leaves
	}
	if o.Plan.Scenario.Rivals { // from four members two may be removed at once that leave no node in common
		if len(members) > 3 || len(others) == 0 {
			addr := scenario.Pick(o.rng, members)
			return redlock.Change{Remove: addr}, Removes + addr
		}
		return add()
	}
	switch least := 2 + min(o.rng.IntN(4), 1); o.rng.IntN(8) {
	case 0, 1:
		if len(others) > 0 {
			return add()
		}
	case 2, 3, 4:
		if len(others) > 0 {
			o.leaves = scenario.Pick(o.rng, members)
			return add()
		}
	case 5, 6:
		if len(members) > least {
			addr := scenario.Pick(o.rng, members)
			return redlock.Change{Remove: addr}, Removes + addr
		}
	}
	quorum := 0
	if n := len(members); o.rng.IntN(2) == 0 {
		quorum = n/2 + 1 + o.rng.IntN(n-n/2)
	}
	return redlock.Change{Quorum: &quorum}, fmt.Sprint("quorum ", quorum)
}
