package client

import (
	"fmt"
	"math/rand/v2"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/scenario"
)

// own draws the settings of one Locker: its TTL, and what it leaves to the set or not. All of them are good,
// but the set may have others.
func (c *Client) own(o *redlock.Options) {
	rng := rand.New(rand.NewPCG(c.Plan.Run.Seed, uint64(c.Number)<<32|uint64(c.lockers)))
	o.NodeTimeout, o.Quarantine = 0, 0
	o.TTL = c.Plan.TTL / scenario.Pick(rng, scenario.Shares)
	if rng.IntN(3) == 0 {
		o.MaxTTL = o.TTL << rng.IntN(3)
	}
	if rng.IntN(3) == 0 {
		o.Separator = "/"
	}
	if n := c.Plan.Run.Nodes; rng.IntN(3) == 0 {
		o.Quorum = n/2 + 1
		if c.Plan.Large {
			o.Quorum += rng.IntN(n - n/2)
		}
	}
}

// leaves reports whether the settings leave everything to the set, and ask for no longer TTL than any others do.
func (c *Client) leaves() bool {
	o := &c.opts
	return o.MaxTTL == 0 && o.Separator == "" && o.Quorum == 0 && o.TTL == c.Plan.ShortestTTL()
}

// refused records a refusal that cannot be right.
func (c *Client) refused(err error) {
	if s := c.Plan.Scenario; !s.Settings && (!s.Own || c.leaves()) {
		c.note(history.Event{Kind: history.Left, Error: fmt.Sprintf("client %d has settings that no set can refuse: %v", c.Number, err)})
	}
}
