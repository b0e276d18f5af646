package redlock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/replace"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/sim"
	arena "github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/testbed/modelset"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/internal/wire"
)

// A model is an exact node of the harness (arena.NewNode): a test knows to the nanosecond what comes when.
type model struct {
	*arena.Node

	mu    sync.Mutex          // protects what follows; a test needs it only while requests are under way
	seen  []string            // what the node has executed, in order: "acquire a"
	spy   func(c *arena.Call) // called with each call that the node executes next
	gates map[*arena.Host]gate
}

// A gate is called with each call of one process that the node executes next. The node executes it when the channel is
// closed; nil: at once.
type gate func(c *arena.Call) chan struct{}

// before calls spy and gates.
func (m *model) before(from *arena.Host, calls []arena.Call) (until <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range calls {
		c := &calls[i]
		op := c.Op
		if op == wire.Plain {
			op = wire.Acquire
		}
		m.seen = append(m.seen, op.String()+" "+strings.Join(c.Keys, " "))
		if m.spy != nil {
			m.spy(c)
		}
		if gate := m.gates[from]; gate != nil {
			if ch := gate(c); ch != nil {
				until = ch
			}
		}
	}
	return until
}

// holder says which token the node has under key now.
func (m *model) holder(key string) string {
	for k, token := range m.Tokens() {
		if k == key {
			return token
		}
	}
	return ""
}

func (m *model) put(key, token string, ttl time.Duration) {
	m.Delete(key)
	m.SetNX(key, token, ttl)
}

func (m *model) forget() { m.Delete() }

func (m *model) kill() { m.Kill() }

func (m *model) revive() { m.Return() }

func (m *model) hang() { m.Hang(true) }

func (m *model) resume() { m.Hang(false) }

// slow delays each message by d, and each answer.
func (m *model) slow(d time.Duration) { m.Delay(2*d, 0) }

// A modelConn is a lane's connection to a model.
type modelConn struct {
	lane.Server
	session lane.Session
	model   *model
	host    *arena.Host // the process of the Locker
}

// gate makes f the gate of the connection's process at its node.
func (c *modelConn) gate(f gate) {
	c.model.mu.Lock()
	defer c.model.mu.Unlock()
	c.model.gates[c.host] = f
}

// processes counts the Lockers over models: each is a process of its own.
var processes atomic.Int32

// models is a set of nodes that any number of Lockers may use.
type models []*model

func newModels(n int) models {
	ms := make(models, n)
	for i := range ms {
		m := &model{Node: arena.NewNode(sim.Seed(1), fmt.Sprint("node", i), 0), gates: make(map[*arena.Host]gate)}
		m.Before(m.before)
		ms[i] = m
	}
	return ms
}

// locker opens a Locker over the models that is closed when the test ends.
func (ms models) locker(t *testing.T, opts *Options) *Locker {
	t.Helper()
	return ms.over(t, opts, func(*modelConn) {})
}

// over is locker. It calls do with each connection before it is made.
func (ms models) over(t *testing.T, opts *Options, do func(*modelConn)) *Locker {
	t.Helper()
	lk, err := ms.start(opts, do)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lk.Close() })
	return lk
}

func (ms models) start(opts *Options, do func(*modelConn)) (*Locker, error) {
	names := make([]string, len(ms))
	for i, m := range ms {
		names[i] = m.Name
	}
	set := &wire.Description{MaxTTL: 10_000, Epoch: 1, Set: "models", Members: names}
	if opts != nil {
		set.Quorum, set.Separator = opts.Quorum, opts.Separator
		set.MaxTTL = max(opts.TTL, opts.MaxTTL, 10*time.Second).Milliseconds()
	}
	for _, m := range ms {
		m.Keep(wire.Kept{Self: m.Name, Description: set}.String())
	}
	h := arena.NewHost(sim.Seed(1), fmt.Sprint("c", processes.Add(1)))
	return start(names, opts, func(o *settings) func(int, string, lane.Session) lane.Server {
		parts := h.Parts(func(name string) *arena.Node { return ms[slices.Index(names, name)].Node })
		return func(i int, name string, s lane.Session) lane.Server {
			c := &modelConn{parts.Open(name, patience(o.NodeTimeout), s), s, ms[i], h}
			do(c)
			return c
		}
	}, nil)
}

// held says on how many nodes the key is held with this token.
func (ms models) held(key, token string) (n int) {
	for _, m := range ms {
		if m.holder(key) == token {
			n++
		}
	}
	return n
}

// empty checks that nothing is on the nodes.
func (ms models) empty(t *testing.T) {
	t.Helper()
	if left := ms.left(); len(left) > 0 {
		t.Errorf("left on the nodes: %v", left)
	}
}

// left lists what is still on the nodes.
func (ms models) left() (keys []string) {
	for _, m := range ms {
		for k := range m.Tokens() {
			keys = append(keys, m.Name+": "+k)
		}
		for k, e := range m.Waiters() {
			keys = append(keys, m.Name+": "+k+script.QueueSuffix+" "+e.Waiter)
		}
	}
	slices.Sort(keys)
	return keys
}

// pass lets virtual time go by, and everything that it sets going come to rest.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// bubble runs f in a bubble of virtual time.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// wantQuorumError checks that err is the one sentinel and no other, and adds up.
func wantQuorumError(t *testing.T, err, want error) *QuorumError {
	t.Helper()
	var q *QuorumError
	if !errors.As(err, &q) {
		t.Fatalf("got %v, want a QuorumError", err)
	}
	for _, sentinel := range []error{ErrHeld, ErrNoQuorum, ErrLost} {
		if got := errors.Is(err, sentinel); got != (sentinel == want) {
			t.Errorf("errors.Is(%v, %v) is %v", err, sentinel, got)
		}
	}
	return q
}

func acquired(t *testing.T, lk *Locker, name string, options ...AcquireOption) *Lock {
	t.Helper()
	l, err := lk.TryAcquire(t.Context(), name, options...)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return l
}

// wantEnd waits for the end of a lock's context and checks when and why it came.
func wantEnd(t *testing.T, ctx context.Context, at time.Time, cause error) {
	t.Helper()
	<-ctx.Done()
	if now := time.Now(); !now.Equal(at) {
		t.Errorf("told %v after the end of validity", now.Sub(at))
	}
	if got := context.Cause(ctx); !errors.Is(got, cause) || !errors.Is(got, ErrLost) {
		t.Errorf("the cause is %v, want %v", got, cause)
	}
}

// A fleet is a number of model nodes, and the processes that use them.
type fleet struct {
	*modelset.Fleet
	nodes []*arena.Node
}

func newFleet(t *testing.T, n int) *fleet {
	f := modelset.New(t, n)
	return &fleet{f, f.Nodes}
}

// aFleet opens a Locker over model nodes, in a process of its own.
func aFleet(t *testing.T, n int, opts Options) (*fleet, *Locker, *arena.Host) {
	f := newFleet(t, n)
	lk, h := f.open(opts)
	return f, lk, h
}

// open is another process. It knows the description of the set, if enough nodes answer.
func (f *fleet) open(opts Options) (*Locker, *arena.Host) {
	lk, h, err := f.over(opts, f.nodes...)
	if err == nil {
		err = lk.ready(f.Context())
	}
	if err != nil {
		f.Fatal(err)
	}
	pass(10 * time.Millisecond) // the last node has been told, too
	return lk, h
}

// over is another process, which is given these nodes.
func (f *fleet) over(opts Options, nodes ...*arena.Node) (*Locker, *arena.Host, error) {
	h := f.Process()
	opts.Clock, opts.Owner = h, "host:1"
	replace.In(&opts, h.Parts(f.Node))
	var given []string
	for _, n := range nodes {
		given = append(given, n.Name)
	}
	lk, err := New(arena.Clients(given), &opts)
	if err == nil {
		f.Cleanup(func() { lk.Close() })
	}
	return lk, h, err
}

// locker is a process that is given some nodes, and knows nothing of them yet.
func (f *fleet) locker(opts Options, nodes ...*arena.Node) *Locker {
	f.Helper()
	lk, _, err := f.over(opts, nodes...)
	if err != nil {
		f.Fatal(err)
	}
	return lk
}

// onNodes runs a test on so many nodes that keep no description.
func onNodes(t *testing.T, n int, test func(*fleet)) {
	t.Helper()
	bubble(t, func(t *testing.T) { test(newFleet(t, n)) })
}

// change has a process change the set.
func (f *fleet) change(lk *Locker, c Change) Members {
	f.Helper()
	m, err := lk.Change(f.Context(), c, func(what string, most time.Duration) { f.Logf("waits for %s, %v", what, most) })
	if err != nil {
		f.Fatal(err)
	}
	return m
}

// described gives a client of nodes that keep the first description, and one that can follow that.
func (f *fleet) described() (lk *Locker, next wire.Description) {
	f.Helper()
	lk = f.locker(Options{}, f.nodes...)
	f.locks(lk, true)
	pass(time.Second)
	next = *f.Agrees(f.nodes...).Next()
	next.Since++
	return lk, next
}

// changed gives a client of nodes that keep the second description, and that description.
func (f *fleet) changed() (lk *Locker, second wire.Description) {
	f.Helper()
	lk, second = f.described()
	for _, n := range f.nodes {
		f.Tell(n, &second)
	}
	f.locks(lk, true)
	pass(time.Second)
	return lk, second
}

// locks checks that a Locker can lock, or that it cannot.
func (f *fleet) locks(lk *Locker, want bool) (err error) {
	f.Helper()
	l, err := lk.TryAcquire(f.Context(), "locks")
	if err == nil {
		if e := l.Release(f.Context()); e != nil {
			f.Error(e)
		}
	}
	if err == nil != want {
		f.Errorf("it can lock: %v, want %v: %v", err == nil, want, err)
	}
	pass(100 * time.Millisecond)
	return err
}

// A growing set is of nodes that may all be reached by their addresses.
type growing struct {
	*testing.T
	*redistest.Bubble
}

func grows(t *testing.T, n int, f func(*growing)) {
	bubble(t, func(t *testing.T) {
		leaks.Check(t)
		f(&growing{t, redistest.NewBubble(t, n)})
	})
}

// over returns a Locker that is given some of the nodes.
func (g *growing) over(opts *Options, nodes ...int) *Locker {
	g.Helper()
	clients := make([]*redis.Client, len(nodes))
	for i, node := range nodes {
		o := g.Options(node)
		o.Addr, o.Dialer = g.Addr(node), g.dial
		clients[i] = redis.NewClient(o)
		g.Cleanup(func() { clients[i].Close() })
	}
	lk, err := New(clients, opts)
	if err != nil {
		g.Fatal(err)
	}
	g.Cleanup(func() { lk.Close() })
	return lk
}

func (g *growing) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	for i := range g.Len() {
		if g.Addr(i) == addr {
			return g.Options(i).Dialer(ctx, network, addr)
		}
	}
	return nil, errors.New("nobody lives at " + addr)
}

func (g *growing) change(lk *Locker, c Change) Members {
	g.Helper()
	m, err := lk.Change(g.Context(), c, func(what string, most time.Duration) { g.Logf("waits for %s, %v", what, most) })
	if err != nil {
		g.Fatal(err)
	}
	return m
}

// try checks that a Locker can lock, or cannot.
func (g *growing) try(lk *Locker, want bool) {
	g.Helper()
	l, err := lk.TryAcquire(g.Context(), "tries")
	if err == nil {
		err = l.Release(g.Context())
	}
	if (err == nil) != want {
		g.Errorf("it can lock: %v, want %v: %v", err == nil, want, err)
	}
	time.Sleep(100 * time.Millisecond)
}
