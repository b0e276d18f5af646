package modelarena

import (
	"context"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/chaos/internal/client"
	"github.com/quorumlock/redlock/internal/replace"
	"github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/wire"
)

type process struct {
	world *World
	host  *model.Host
	given []string // addresses; nil: all
}

func (p *process) Locker(opts *redlock.Options) (*redlock.Locker, error) {
	opts.Clock = p.host
	given := p.given
	if given == nil {
		given = p.world.Addrs()
	}
	replace.In(opts, p.host.Parts(p.world.at))
	return redlock.New(model.Clients(given), opts)
}

func (p *process) Addrs() []string { return p.world.Addrs() }

func (p *process) Give(addrs []string) { p.given = addrs }

func (p *process) Pass(worker, n int) { p.host.Pass(worker, n) }

func (p *process) Hold(d time.Duration, machine bool) {
	if machine {
		p.host.Suspend(d)
	} else {
		p.host.Stop(d)
	}
}

func (p *process) Far(node int, d time.Duration) { p.host.Far(p.world.nodes[node].Name, d) }

func (p *process) Token() string { return p.host.Token() }

func (p *process) Skew(d time.Duration) { p.host.Skew(d) }

func (p *process) Real(t time.Time) time.Time { return p.host.Real(t) }

func (p *process) Crash() { p.host.Crash() }

func (p *process) Lanes() []int { return p.host.Lanes() }

func (p *process) Holders(_, token string) (has, silent int) {
	for _, n := range p.world.nodes {
		for _, other := range n.Tokens() {
			if other == token {
				has++
				break
			}
		}
	}
	return has, 0
}

func (p *process) Plain() []client.ForeignNode {
	nodes := make([]client.ForeignNode, len(p.world.nodes))
	for i, n := range p.world.nodes {
		nodes[i] = &plainModel{server: n.Dial(p.host, client.PlainPatience)}
	}
	return nodes
}

func (p *process) Foreign(patience time.Duration) []client.ForeignNode {
	nodes := make([]client.ForeignNode, len(p.world.nodes))
	for i, n := range p.world.nodes {
		nodes[i] = &foreignModel{plainModel{server: n.Dial(p.host, patience)}}
	}
	return nodes
}

// A plainModel is a model node for a client of another library, which does by single commands what
// the scripts do.
type plainModel struct {
	server    *model.Link
	connected bool
}

func (n *plainModel) call(c model.Call) (any, error) {
	if !n.connected {
		if _, err := n.server.Connect(context.Background(), wire.Hello{}); err != nil {
			return nil, err
		}
		n.connected = true
	}
	calls := []model.Call{c}
	if err := n.server.Exec(calls); err != nil {
		n.connected = false
		return nil, err
	}
	return calls[0].Value, calls[0].Err
}

func (n *plainModel) SetNX(_ context.Context, key, token string, ttl time.Duration) (bool, error) {
	v, err := n.call(model.Call{Op: wire.Set, Keys: []string{key}, Token: token, TTL: ttl})
	return v == "OK", err
}

func (n *plainModel) CompareAndDelete(_ context.Context, key, token string) error {
	_, err := n.call(model.Call{Op: wire.Release, Keys: []string{key}, Modes: string(wire.ModeX), Token: token})
	return err
}

func (n *plainModel) CompareAndExpire(_ context.Context, key, token string, ttl time.Duration) (bool, error) {
	v, err := n.call(model.Call{Op: model.CompareAndExpire, Keys: []string{key}, Token: token, TTL: ttl})
	return v == int64(1), err
}

// A foreignModel is the same, but a release is that of a real server: no waiter is called.
type foreignModel struct{ plainModel }

func (n *foreignModel) CompareAndDelete(_ context.Context, key, token string) error {
	_, err := n.call(model.Call{Op: model.CompareAndDelete, Keys: []string{key}, Token: token})
	return err
}
