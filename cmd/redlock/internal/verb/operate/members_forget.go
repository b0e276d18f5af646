package operate

import (
	"context"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/flags"
	"github.com/quorumlock/redlock/cmd/redlock/internal/peek"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
	"github.com/quorumlock/redlock/internal/facts"
	"github.com/quorumlock/redlock/internal/fresh"
	"github.com/quorumlock/redlock/internal/nodeurl"
)

// A node that was restored from an old snapshot, or is a copy of another server, keeps something else than the
// others, and has no vote. The operator says which of them are right: redlock members forget.

// parseForget checks the arguments of redlock members forget.
func (cfg *membersConfig) parseForget(f *flags.Set, nodes []string) error {
	cfg.verb, cfg.args = "forget", nodes
	switch {
	case len(nodes) == 0:
		return exit.Fail(exit.Usage, "for example: redlock members forget redis://a:6379", "members forget takes the nodes that are to forget, and was given none")
	case cfg.plan || cfg.stopped || cfg.json || f.Changed("timeout"):
		return exit.Fail(exit.Usage, "members forget knows --yes and the flags that name nodes", "--plan, --programs-stopped, --json and --timeout do not go with members forget")
	}
	return nil
}

// forget makes nodes forget to which set they belong.
func forget(c *console.Console, cfg *membersConfig) error {
	if !cfg.yes {
		if err := c.MayAsk("members forget", "NODE --yes"); err != nil {
			return err
		}
	}
	servers, err := reach.Nodes(c, &cfg.Flags, nil)
	if err != nil {
		return err
	}
	var nodes []*redis.Client
	defer func() {
		for _, n := range nodes {
			_ = n.Close()
		}
	}()
	for _, arg := range cfg.args {
		o, err := forgetful(arg, servers)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(nodes, func(n *redis.Client) bool { return n.Options().Addr == o.Addr }) {
			return exit.Fail(exit.Usage, "name each once", "members forget: %s is there twice", o.Addr)
		}
		nodes = append(nodes, peek.Client(o))
	}
	tell := c.Note
	if !cfg.yes { // the question refers to it
		tell = c.Say
	}
	ctx, cancel := context.WithTimeout(context.Background(), peek.Patience)
	defer cancel()
	for _, n := range nodes {
		k := peek.At(ctx, n)
		if k.Err != nil {
			return exit.Fail(exit.NoQuorum, remedyFor(k.Err), "%s does not answer, and no node was made to forget: %v", k.Addr, k.Err)
		}
		tell("%s: %s", k.Addr, says(&k))
	}
	if !cfg.yes && !c.Asks("It forgets that, and has no vote until all locks that it may have granted are over. Forget? Type yes: ") {
		return exit.Fail(exit.Busy, "", "no node was made to forget")
	}
	for _, n := range nodes {
		ctx, cancel := context.WithTimeout(context.Background(), peek.Patience)
		had, err := fresh.Forget(ctx, n)
		cancel()
		switch {
		case err != nil:
			return exit.Fail(exit.NoQuorum, remedyFor(err), "%s was not made to forget: %v", n.Options().Addr, facts.Discreet(err))
		case !had:
			c.Result("%s has nothing to forget", n.Options().Addr)
		default:
			c.Result("%s has forgotten its set", n.Options().Addr)
		}
	}
	if len(nodes) > 1 {
		c.Note("%s: if they were most members of a set, the next program makes a new set of the nodes that it is given", phrase.Count(len(nodes), "node"))
	}
	return nil
}

// forgetful finds a node by its address or URL. What a URL leaves out is that of the given node with this address, or
// of the first given node.
func forgetful(named string, servers []*redis.Options) (*redis.Options, error) {
	given := func(addr string) *redis.Options {
		if i := slices.IndexFunc(servers, func(o *redis.Options) bool { return o.Addr == addr }); i >= 0 {
			return servers[i]
		}
		return nil
	}
	if strings.Contains(named, "://") {
		if err := reach.CheckURL("members forget", named); err != nil {
			return nil, err
		}
		o, _ := nodeurl.Parse(named)
		if g := given(o.Addr); g != nil && o.Username == "" && o.Password == "" {
			return g, nil
		}
		return o, nil
	}
	switch {
	case given(named) != nil:
		return given(named), nil
	case !aNode(named):
		return nil, exit.Fail(exit.Usage, "write redis://HOST:PORT", "members forget: a node is named by its URL, or by its address, HOST:PORT, and %q is neither", named)
	case len(servers) == 0:
		return nodeurl.Parse("redis://" + named)
	}
	return peek.OptionsAt(servers[0], named), nil
}
