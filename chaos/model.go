package chaos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/model"
	"github.com/quorumlock/redlock/internal/seam"
	"github.com/quorumlock/redlock/internal/seed"
	"github.com/quorumlock/redlock/internal/ways"
)

// Model runs the library over nodes that are models, in virtual time: thousands
// of schedules a second, each of which is the same whenever it is run.
var Model = &Arena{
	Name:  "model",
	About: "the library over in-memory model nodes, in virtual time",
	Lag:   4 * model.Moment,
	Exact: true,
	run:   runModel,
}

func runModel(p *Plan) (*History, error) {
	return virtually(p, func() world { return newModelWorld(p) })
}

// virtually carries a plan out in virtual time.
func virtually(p *Plan, in func() world) (h *History, err error) {
	blocked := bubble(func() { h, err = drive(p, in()) })
	if blocked != nil && h != nil {
		h.Events = append(h.Events, Event{At: h.Events[len(h.Events)-1].At, Kind: Left, Error: blocked.Error()})
		return h, nil
	}
	return h, errors.Join(err, blocked)
}

// initTesting makes testing's flags, which it looks at, in a program that is no test.
var initTesting = sync.OnceFunc(testing.Init)

// bubble runs f in virtual time, in a goroutine of its own, since a test that fails
// ends its goroutine. The error says that something blocks for ever, or that the
// race detector has found something.
func bubble(f func()) error {
	ended := make(chan error, 1)
	go func() {
		err := errors.New("the test in the bubble has failed: see what the race detector says")
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("goroutines: %v", p)
			}
			ended <- err
		}()
		initTesting()
		synctest.Test(new(testing.T), func(*testing.T) { f() })
		err = nil
	}()
	return <-ended
}

type modelWorld struct {
	seed  seed.Seed
	plan  *Plan
	nodes []*model.Node
}

func newModelWorld(p *Plan) *modelWorld {
	w := &modelWorld{seed: seed.Seed(p.Run.Seed).For(p.Run.Scenario), plan: p}
	for i := range p.Run.Nodes {
		n := model.NewNode(w.seed, fmt.Sprintf("node%d", i), p.RTT)
		n.Rate(p.Rates[i])
		w.nodes = append(w.nodes, n)
	}
	return w
}

func (w *modelWorld) enter(_ int, name string) (process, error) {
	return &modelProcess{world: w, host: model.NewHost(w.seed, name)}, nil
}

func (w *modelWorld) close() error { return nil }

func (w *modelWorld) weigh() (all []Weight) {
	for i, n := range w.nodes {
		keys, bytes := n.Size()
		all = append(all, Weight{Node: i, Keys: keys, Bytes: bytes})
	}
	return all
}

func (w *modelWorld) left() (all []leftover) {
	for i, n := range w.nodes {
		for key, token := range n.Tokens() {
			all = append(all, leftover{i, key, token})
		}
	}
	return all
}

// sayings are what a node says to everything while it has such a trouble.
var sayings = map[Trouble]error{
	Loading: model.Error("LOADING Redis is loading the dataset in memory"),
	Locked:  model.Error("NOAUTH Authentication required."),
	Crowded: model.Error("ERR max number of clients reached"),
	Busy:    model.Error("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."),
}

func (w *modelWorld) strike(f Fault, begin bool) {
	n := w.nodes[f.Node]
	switch f.Trouble {
	case Kill, KillEmpty:
		if begin {
			n.Kill()
		} else {
			n.Restart(f.Trouble == Kill)
		}
	case Boot:
		if begin {
			n.Kill()
			n.Step(f.By)
			n.Restart(false)
		} else {
			n.Step(-f.By)
		}
	case Hang:
		n.Hang(begin)
	case Slow:
		n.Delay(on(begin, f.By), 0)
	case Jitter:
		n.Delay(0, on(begin, f.By))
	case Cut:
		n.Cut(begin, begin)
	case CutRequests:
		n.Cut(begin, false)
	case CutReplies:
		n.Cut(false, begin)
	case Part:
		n.Cut(begin, begin)
		if !begin {
			n.Reset()
		}
	case Mute:
		n.Mute(begin)
	case Churn:
		n.Churn(begin)
	case Clock:
		if begin {
			n.Step(f.By)
		} else {
			n.Step(-f.By)
		}
	case Full:
		n.Full(begin)
	case ReadOnly:
		n.ReadOnly(begin)
	case Loading, Locked, Crowded, Busy:
		if begin {
			n.Refuse(sayings[f.Trouble])
		} else {
			n.Refuse(nil)
		}
	case Foreign:
		for _, name := range w.plan.Names {
			if begin {
				n.Put(w.plan.options.Prefix + name)
			} else {
				n.Take(w.plan.options.Prefix + name)
			}
		}
	}
	if !begin && f.Trouble == Step && f.For > 0 {
		n.Step(-f.By)
	}
	if !begin && f.Trouble == LoseReplies && f.For > 0 {
		n.Lose(0)
	}
	if !begin {
		return
	}
	switch f.Trouble {
	case Reset:
		n.Reset()
	case LoseReplies:
		n.Lose(f.Times)
	case TearReplies:
		n.Tear(f.Times)
	case Repeat:
		n.Repeat(f.Times)
	case RepeatLate:
		n.RepeatLate(f.Times, f.By)
	case Flush:
		n.Flush()
	case Evict:
		n.Evict(f.Times)
	case FlushScripts:
		n.FlushScripts()
	case Step:
		n.Step(f.By)
	case Deafen:
		n.Deafen()
	case Forge:
		n.Say(forged)
	case Replay:
		n.Say(replayed)
	}
}

func on(begin bool, d time.Duration) time.Duration {
	if begin {
		return d
	}
	return 0
}

type modelProcess struct {
	world *modelWorld
	host  *model.Host
}

func (p *modelProcess) locker(opts *redlock.Options) (*redlock.Locker, error) {
	opts.Clock = p.host
	clients := make([]seam.Client, len(p.world.nodes))
	for i, n := range p.world.nodes {
		clients[i] = n.Client(p.host)
	}
	return redlock.New(clients, opts)
}

func (p *modelProcess) pass(worker, n int) { p.host.Pass(worker, n) }

func (p *modelProcess) hold(d time.Duration, machine bool) {
	if machine {
		p.host.Suspend(d)
	} else {
		p.host.Stop(d)
	}
}

func (p *modelProcess) skew(d time.Duration)       { p.host.Skew(d) }
func (p *modelProcess) real(t time.Time) time.Time { return p.host.Real(t) }
func (p *modelProcess) crash()                     { p.host.Crash() }
func (p *modelProcess) lanes() []int               { return p.host.Lanes() }

func (p *modelProcess) holders(_, token string) (has, silent int) {
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

func (p *modelProcess) plain() []plainNode {
	nodes := make([]plainNode, len(p.world.nodes))
	for i, n := range p.world.nodes {
		nodes[i] = &plainModel{server: n.Dial(p.host, 50*time.Millisecond)}
	}
	return nodes
}

// A plainModel is a model node for a client that is no redlock: it does by
// hand what the scripts do.
type plainModel struct {
	server    seam.Server
	connected bool
}

func (n *plainModel) call(c seam.Call) (any, error) {
	if !n.connected {
		if _, _, err := n.server.Connect(context.Background(), seam.Hello{}); err != nil {
			return nil, err
		}
		n.connected = true
	}
	calls := []seam.Call{c}
	if err := n.server.Exec(calls); err != nil {
		n.connected = false
		return nil, err
	}
	return calls[0].Value, calls[0].Err
}

func (n *plainModel) setNX(_ context.Context, key, token string, ttl time.Duration) (bool, error) {
	v, err := n.call(seam.Call{Op: seam.Set, Keys: []string{key}, Token: token, TTL: ttl})
	return v == "OK", err
}

func (n *plainModel) compareAndDelete(_ context.Context, key, token string) error {
	_, err := n.call(seam.Call{Op: seam.Release, Keys: []string{key}, Ways: string(ways.Alone), Token: token})
	return err
}
