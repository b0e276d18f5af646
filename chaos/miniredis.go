package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/embedded"
	"github.com/quorumlock/redlock/internal/model"
	"github.com/quorumlock/redlock/internal/pipes"
	"github.com/quorumlock/redlock/internal/seed"
)

// Miniredis runs the library with the real client and the real scripts against
// nodes in this process, in virtual time. What go-redis does with a connection
// that hangs, breaks or is answered by halves is in it, and a node's Lua is run; a
// seed gives the same faults every time, and nearly the same history.
//
// It can make nearly all troubles there are. But the nodes' clocks all run at one speed,
// so it makes no use of Plan.Rates.
var Miniredis = &Arena{
	Name:  "miniredis",
	About: "the library with go-redis and Lua over in-process nodes, in virtual time",
	Lag:   4 * model.Moment,
	Exact: true,
	cannot: []Trouble{
		Churn, Forge, Replay, Still, // which the model has, and real servers
	},
	ready: embedded.Available,
	run:   runMiniredis,
}

func runMiniredis(p *Plan) (*History, error) {
	return virtually(p, func() world { return newMiniWorld(p) })
}

type miniWorld struct {
	seed  seed.Seed
	nodes []*pipeNode
	keys  []string

	mu        sync.Mutex
	processes []*miniProcess
}

func newMiniWorld(p *Plan) *miniWorld {
	w := &miniWorld{seed: seed.Seed(p.Run.Seed).For(p.Run.Scenario)}
	for _, name := range p.Names {
		w.keys = append(w.keys, p.options.Prefix+name)
	}
	for i := range p.Run.Nodes {
		n := &pipeNode{Node: pipes.NewNode(i), seed: w.seed.For(fmt.Sprintf("node%d", i)), rtt: p.RTT}
		n.latency(0)
		w.nodes = append(w.nodes, n)
	}
	return w
}

func (w *miniWorld) enter(_ int, name string) (process, error) {
	p := &miniProcess{world: w, name: name, host: model.NewHost(w.seed, name), sockets: make(map[*socket]struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.processes = append(w.processes, p)
	return p, nil
}

func (w *miniWorld) strike(f Fault, begin bool) { w.nodes[f.Node].strike(f, begin, w.keys) }

func (w *miniWorld) left() (all []leftover) {
	for i := range w.nodes {
		all = append(all, w.on(i)...)
	}
	return all
}

// on lists what is on a node.
func (w *miniWorld) on(i int) (all []leftover) {
	engine := w.nodes[i].Engine
	for _, key := range engine.Keys() {
		db := engine.Mini().DB(0)
		token, err := db.Get(key)
		if err == nil {
			all = append(all, leftover{i, key, token})
			continue
		}
		set, err := db.SortedSet(key)
		if err != nil { // it is no lock
			all = append(all, leftover{i, key, ""})
		}
		for _, token := range slices.Sorted(maps.Keys(set)) {
			if counts(set[token], time.Now()) {
				all = append(all, leftover{i, key, token})
			}
		}
	}
	return all
}

func (w *miniWorld) weigh() (all []Weight) {
	const perKey, perOne = 72, 24 // what Redis needs for a key, and for each member of a set
	for i, n := range w.nodes {
		_ = n.Engine.Keys() // what has expired is gone
		mini, weight := n.Engine.Mini(), Weight{Node: i}
		for _, key := range mini.Keys() {
			weight.Keys++
			weight.Bytes += perKey + len(key)
			if value, err := mini.Get(key); err == nil {
				weight.Bytes += len(value)
			} else if set, err := mini.SortedSet(key); err == nil {
				for member := range set {
					weight.Bytes += perOne + len(member)
				}
			}
		}
		all = append(all, weight)
	}
	return all
}

// close reports connections that Lockers have left open: they are closed by now,
// all of them.
func (w *miniWorld) close() error {
	synctest.Wait()
	var errs []error
	for _, p := range w.processes {
		for _, c := range p.strangers {
			_ = c.Close()
		}
		if n := p.open(); n > 0 && p.strangers == nil {
			errs = append(errs, fmt.Errorf("%s has left %d connections open", p.name, n))
		}
	}
	for _, n := range w.nodes {
		n.Close()
	}
	return errors.Join(errs...)
}

// A miniProcess is a process, which its sockets die and stand still with.
type miniProcess struct {
	world     *miniWorld
	name      string
	host      *model.Host
	strangers []*redis.Client // that are no redlock's

	mu      sync.Mutex // never held while waiting
	sockets map[*socket]struct{}
	stopped time.Time // it stands still until then
	dead    bool
}

// locker makes it as a program would, from clients that are its own.
func (p *miniProcess) locker(opts *redlock.Options) (*redlock.Locker, error) {
	opts.Clock = p.host
	clients := make([]*redis.Client, len(p.world.nodes))
	for i, n := range p.world.nodes {
		clients[i] = redis.NewClient(p.options(n))
		defer clients[i].Close() // it has no connection, and nobody uses it
	}
	return redlock.New(clients, opts)
}

// options are stock, but for the dialer.
func (p *miniProcess) options(n *pipeNode) *redis.Options {
	o := n.Options()
	o.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) { return p.dial(ctx, n) }
	return o
}

func (p *miniProcess) pass(worker, n int) { p.host.Pass(worker, n) }

func (p *miniProcess) hold(d time.Duration, machine bool) {
	if machine {
		p.host.Suspend(d)
	} else {
		p.host.Stop(d)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := time.Now().Add(d); until.After(p.stopped) {
		p.stopped = until
	}
}

func (p *miniProcess) skew(d time.Duration)       { p.host.Skew(d) }
func (p *miniProcess) real(t time.Time) time.Time { return p.host.Real(t) }
func (p *miniProcess) lanes() []int               { return p.host.Lanes() }

func (p *miniProcess) holders(_, token string) (has, silent int) {
	for i := range p.world.nodes {
		if slices.ContainsFunc(p.world.on(i), func(l leftover) bool { return l.token == token }) {
			has++
		}
	}
	return has, 0
}

// crash closes the sockets, as the kernel does: what was sent before may arrive.
func (p *miniProcess) crash() {
	p.host.Crash()
	p.mu.Lock()
	p.dead = true
	p.stopped = time.Time{}
	all := slices.Collect(maps.Keys(p.sockets))
	p.mu.Unlock()
	for _, s := range all {
		_ = s.Close()
	}
}

// stands waits for as long as the process stands still, and says whether it lives.
func (p *miniProcess) stands() bool {
	for {
		p.mu.Lock()
		rest, dead := time.Until(p.stopped), p.dead
		p.mu.Unlock()
		if dead || rest <= 0 {
			return !dead
		}
		time.Sleep(rest)
	}
}

func (p *miniProcess) open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.sockets)
}

func (p *miniProcess) dial(ctx context.Context, n *pipeNode) (net.Conn, error) {
	if !p.stands() {
		return nil, n.DialError(net.ErrClosed)
	}
	conn, err := n.Dial(ctx)
	p.stands()
	if err != nil {
		return nil, err
	}
	s := &socket{Conn: conn, process: p}
	p.mu.Lock()
	dead := p.dead
	if !dead {
		p.sockets[s] = struct{}{}
	}
	p.mu.Unlock()
	if dead {
		_ = conn.Close()
		return nil, n.DialError(net.ErrClosed)
	}
	return s, nil
}

// A socket is a connection of a process.
type socket struct {
	net.Conn
	process *miniProcess
}

// Read, too, returns only when the process goes on.
func (s *socket) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if !s.process.stands() {
		return 0, net.ErrClosed
	}
	return n, err
}

func (s *socket) Write(b []byte) (int, error) {
	if !s.process.stands() {
		return 0, net.ErrClosed
	}
	return s.Conn.Write(b)
}

func (s *socket) Close() error {
	s.process.mu.Lock()
	delete(s.process.sockets, s)
	s.process.mu.Unlock()
	return s.Conn.Close()
}

// SyscallConn is how go-redis looks whether an idle connection has been closed.
func (s *socket) SyscallConn() (syscall.RawConn, error) {
	return s.Conn.(syscall.Conn).SyscallConn()
}

func (p *miniProcess) plain() []plainNode {
	nodes := make([]plainNode, len(p.world.nodes))
	for i, n := range p.world.nodes {
		o := p.options(n)
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout = plainPatience, plainPatience, plainPatience
		o.MaxRetries = -1 // a SET NX that is sent twice finds its own key
		o.Protocol = 2
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		o.Dialer = pipes.Quiet(o.Dialer)
		c := redis.NewClient(o)
		p.strangers = append(p.strangers, c)
		nodes[i] = plainRedis{c}
	}
	return nodes
}

const plainPatience = 50 * time.Millisecond

// A plainRedis is a node for a client that is no redlock.
type plainRedis struct{ client *redis.Client }

func (n plainRedis) setNX(ctx context.Context, key, token string, ttl time.Duration) (bool, error) {
	err := n.client.SetArgs(ctx, key, token, redis.SetArgs{Mode: "NX", TTL: ttl}).Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil, err
}

func (n plainRedis) compareAndDelete(ctx context.Context, key, token string) error {
	const script = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`
	return n.client.Eval(ctx, script, []string{key}, token).Err()
}
