package operate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/peek"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
	"github.com/quorumlock/redlock/internal/fresh"
	"github.com/quorumlock/redlock/internal/nodeurl"
	lua "github.com/quorumlock/redlock/internal/script"
)

// A node whose clock was far ahead once has given fences that are still ahead, and its grants do not count until the
// time has caught up. A reset mends that. It deletes the node's marker, so that the node has no vote until all that
// it may have granted has ended; then it deletes the fences that no client has accepted. (By then, an accepted fence
// is no further ahead of the node's time than the fences that the node proposes: acquire.go.)

// A reset is redlock prepare --reset-fences for some of the nodes.
type reset struct {
	nodes []*redis.Client
	most  time.Duration // how far their clocks may be from the median
}

// newReset finds the nodes with these addresses or URLs. The caller closes the reset.
func newReset(named []string, servers []*redis.Options, o *redlock.Options) (*reset, error) {
	r := &reset{most: farthest(o)}
	for _, name := range named {
		address := name
		if u, err := nodeurl.Parse(name); err == nil {
			address = u.Addr
		}
		i := slices.IndexFunc(servers, func(o *redis.Options) bool { return o.Addr == address })
		if i < 0 {
			return nil, exit.Fail(exit.Usage, "give the address of a node as in messages, host:port", "--reset-fences %s is not one of the nodes", name)
		}
		r.nodes = append(r.nodes, peek.Client(servers[i]))
	}
	return r, nil
}

func (r *reset) close() {
	for _, n := range r.nodes {
		_ = n.Close()
	}
}

// refuse returns an error if the clock of a node is still wrong: its fences would be ahead again.
func (r *reset) refuse(servers []*redis.Options) error {
	clocks, all := make(map[string]time.Duration), []time.Duration(nil)
	for _, o := range servers {
		if p := examine(o); p.err == nil {
			clocks[p.name] = p.Clock
			all = append(all, p.Clock)
		}
	}
	slices.Sort(all)
	for _, n := range r.nodes {
		name := n.Options().Addr
		clock, ok := clocks[name]
		if !ok {
			return exit.Fail(exit.NoQuorum, "does it run, and can it be reached from here?", "the fences of %s cannot be reset: it does not answer", name)
		}
		if apart := clock - all[(len(all)-1)/2]; apart.Abs() > r.most {
			return exit.Fail(exit.NoQuorum, "correct its clock first", "the fences of %s cannot be reset: its clock is %v %s the others'", name, apart.Abs().Round(time.Millisecond), ahead(apart))
		}
	}
	return nil
}

// forget deletes the nodes' markers. The next client to connect writes new ones.
func (r *reset) forget(ctx context.Context) error {
	for _, n := range r.nodes {
		if err := fresh.Unsettle(ctx, n); err != nil {
			return exit.Fail(exit.NoQuorum, remedyFor(err), "the fences of %s cannot be reset: %v", n.Options().Addr, err)
		}
	}
	return nil
}

// drop deletes the fences that are ahead, and reports how many there were. The nodes must vote again.
func (r *reset) drop(ctx context.Context, report *prepareReport, say func(format string, args ...any)) error {
	for _, n := range r.nodes {
		addr := n.Options().Addr
		now, err := n.Time(ctx).Result()
		if err != nil {
			return exit.Fail(exit.NoQuorum, remedyFor(err), "the fences of %s are not reset: %v", addr, err)
		}
		limit, dropped := fmt.Sprint(now.Add(r.most+2*clamp).UnixMicro()), int64(0)
		for _, table := range []string{lua.Fences, lua.Belows} {
			some, err := n.ZRemRangeByScore(ctx, table, limit, "+inf").Result()
			if err != nil {
				return exit.Fail(exit.NoQuorum, remedyFor(err), "the fences of %s are not reset: %v", addr, err)
			}
			dropped += some
		}
		for i := range report.Nodes {
			if report.Nodes[i].Node == addr {
				report.Nodes[i].Fences = &dropped
			}
		}
		say("%s: %s deleted that were ahead of the time", addr, phrase.Count(int(dropped), "fence"))
	}
	return nil
}

// clamp is how far from its own time a node accepts a fence.
const clamp = 500 * time.Millisecond

// farthest returns the library's default for how far a node's clock may be from the median of all clocks.
func farthest(o *redlock.Options) time.Duration {
	return max(min((reach.Quarantine(o)-3*clamp)/2, 10*time.Second), 250*time.Millisecond)
}
