package operate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/peek"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/internal/facts"
	"github.com/quorumlock/redlock/internal/fresh"
)

// A node without a marker is new or has lost its data, and no program can tell which. With --fresh the operator
// tells: nobody can hold a lock on these nodes yet. So they get markers that count as old, and vote at once.
//
// It is all nodes or none. If one node has been used, somebody may hold a lock, and the empty nodes may be those that
// have lost it.

// vouch makes the nodes vote at once if all of them are empty. It changes nothing if one is not, and says so. The error
// names a node that does not answer.
func vouch(ctx context.Context, c *console.Console, servers []*redis.Options) error {
	var nodes []*redis.Client
	var used []string
	marked := true
	defer func() {
		for _, n := range nodes {
			_ = n.Close()
		}
	}()
	for _, opts := range servers {
		n := peek.Client(opts)
		nodes = append(nodes, n)
		empty, err := fresh.Unused(ctx, n)
		switch silent := (net.Error)(nil); {
		case errors.As(err, &silent):
			return exit.Fail(exit.NoQuorum, remedyFor(err), "--fresh has to look at all nodes, and %s does not answer: %v", opts.Addr, facts.Explain(facts.Discreet(err)))
		case err != nil:
			return exit.Fail(exit.NoQuorum, remedyFor(err), "--fresh has to look at all nodes, and %s does not let this user see whether it is empty: %v", opts.Addr, facts.Discreet(err))
		}
		if !empty {
			used = append(used, opts.Addr)
			marked = marked && peek.At(ctx, n).Marked
		}
	}
	switch {
	case len(used) == len(nodes) && marked:
		return nil // as a rule they vote already
	case len(used) > 0:
		c.Note("--fresh changes nothing: %d of %s %s not empty (%s), so somebody may hold a lock", len(used), phrase.Count(len(nodes), "node"), phrase.Verb(len(used), "is", "are"), strings.Join(used, ", "))
		return nil
	}
	c.Say("WARNING: --fresh: %s at once. That is right only if nobody can hold a lock on them yet. Nodes that have lost their data look the same: with --fresh a second process gets a lock that another one still holds", allEmpty(len(nodes)))
	for _, n := range nodes {
		// A node that a client has joined meanwhile has that client's marker, and is waited for.
		if _, err := fresh.SettleUnused(ctx, n); err != nil {
			return exit.Fail(exit.NoQuorum, remedyFor(err), "%s got no marker: %v", n.Options().Addr, facts.Explain(facts.Discreet(err)))
		}
	}
	return nil
}

func allEmpty(n int) string {
	if n == 1 {
		return "the node is empty, and votes"
	}
	return fmt.Sprintf("all %d nodes are empty, and vote", n)
}
