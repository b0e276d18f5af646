package redlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
	"github.com/quorumlock/redlock/internal/wire"
)

// A model is a Redis of a few lines, for behaviour that is about the quorum and
// not about the wire. It counts time by the bubble's clock.
type model struct {
	name string
	mark string    // its marker
	told wire.Kept // what it keeps

	mu      sync.Mutex
	keys    map[string]entry
	queues  map[string]*wire.Queue
	ears    map[chan string]string // to their channels
	mute    bool
	dead    string // of this process nothing arrives any more
	down    bool
	hung    chan struct{}       // closed on resume; nil: answering
	delay   time.Duration       // before and after each batch
	jitter  time.Duration       // and up to so much more before
	deaf    int                 // batches to carry out without a reply
	fails   error               // the reply to everything
	only    string              // or to what is about this key
	spy     func(*lane.Request) // called with everything that is carried out
	seen    []string            // what was carried out, in order: "acquire a"
	ended   chan struct{}
	endOnce sync.Once
}

type entry struct {
	token   string
	expires time.Time
}

func newModel(name string) *model {
	return &model{name: name, mark: script.Settled(name, time.Now()), keys: make(map[string]entry), queues: make(map[string]*wire.Queue), ears: make(map[chan string]string), ended: make(chan struct{})}
}

// A modelConn is a lane's connection to a model.
type modelConn struct {
	*model
	session lane.Session
	turns   map[*lane.Request]*turn // by the first request of the batch
	last    <-chan struct{}         // closed when the last one has been carried out
}

// An execs is a modelConn, or one that something is done to: Exec carries out a batch, and answers.
type execs interface {
	Connect(ctx context.Context) error
	Join() error
	Exec(batch []*lane.Request) error
	Interrupt()
	Subscribe(ctx context.Context, channel string, ready func(), onMessage func(string)) error
	queued(batch []*lane.Request) *turn
}

// A turn is when a batch is carried out: after the one that was sent before it.
type turn struct {
	before <-chan struct{}
	once   sync.Once
	over   chan struct{}
}

func (t *turn) end() { t.once.Do(func() { close(t.over) }) }

// queued gives a batch its turn.
func (c *modelConn) queued(batch []*lane.Request) *turn {
	t := &turn{over: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	t.before, c.last = c.last, t.over
	c.turns[batch[0]] = t
	return t
}

// under is how many batches are under way, in all models: each has a goroutine.
var under atomic.Int32

// A pipelined is an execs for a lane: batches are under way at the same time, and are carried out in order.
type pipelined struct {
	execs
	encoded []*lane.Request
	replies chan replied
}

type replied struct {
	batch []*lane.Request
	err   chan error
}

// Connect forgets what was written over the connection before, which nobody waits for any more.
func (p *pipelined) Connect(ctx context.Context) error {
	for range len(p.replies) {
		<-p.replies
	}
	return p.execs.Connect(ctx)
}

func (p *pipelined) Refresh(context.Context) error { return nil }

func (p *pipelined) Outdated() bool { return false }

func (p *pipelined) Encode(batch []*lane.Request) {
	p.encoded = nil
	for _, q := range batch { // what is answered after the lane has given up the connection changes nothing
		sent := *q
		p.encoded = append(p.encoded, &sent)
	}
}

func (p *pipelined) Send() error {
	r := replied{p.encoded, make(chan error, 1)}
	t := p.queued(r.batch)
	under.Add(1)
	go func() {
		defer under.Add(-1)
		defer t.end()
		r.err <- p.Exec(r.batch)
	}()
	p.replies <- r
	return nil
}

func (p *pipelined) Receive(batch []*lane.Request, _ time.Duration) ([]*lane.Request, error) {
	r := <-p.replies
	err := <-r.err
	for i, q := range batch {
		q.Reply, q.Shown = r.batch[i].Reply, r.batch[i].Shown
	}
	return nil, err
}

func (m *model) open(s lane.Session) *modelConn {
	return &modelConn{m, s, make(map[*lane.Request]*turn), closed}
}

// closed is a channel that is closed.
var closed = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }()

// Connect finds a node that has been there for long.
func (c *modelConn) Connect(ctx context.Context) error {
	err := c.answers(ctx)
	if err == nil {
		c.mu.Lock()
		mark, told := c.mark, c.told
		c.mu.Unlock()
		c.session.Joined(wire.Mark{Value: mark, Before: mark, Now: c.session.Now().UnixMicro(), Kept: told}, c.session.Now())
	}
	return err
}

func (c *modelConn) Join() error { return nil }

func (m *model) Interrupt() { m.endOnce.Do(func() { close(m.ended) }) }

var errCut = errors.New("connection reset")

// answers waits until the model answers, as long as a lane would be patient, and ctx lasts.
func (m *model) answers(ctx context.Context) error {
	m.mu.Lock()
	hung, down, delay := m.hung, m.down, m.delay
	if m.jitter > 0 {
		delay += rand.N(m.jitter)
	}
	m.mu.Unlock()
	if down {
		return errCut
	}
	if hung != nil {
		select {
		case <-hung:
		case <-m.ended:
			return errCut
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Second):
			return fmt.Errorf("reading: %w", context.DeadlineExceeded)
		}
	}
	if delay > 0 {
		time.Sleep(delay)
	}
	return nil
}

func (m *model) Subscribe(ctx context.Context, channel string, ready func(), onMessage func(string)) error {
	if err := m.answers(ctx); err != nil {
		return err
	}
	ear := make(chan string, 1000)
	m.set(func(m *model) { m.ears[ear] = channel })
	defer m.set(func(m *model) { delete(m.ears, ear) })
	ready()
	for {
		select {
		case message, ok := <-ear:
			if !ok {
				return errCut
			}
			if m.answers(ctx) == nil { // which takes as long as an answer
				onMessage(message)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// deafen breaks all subscriptions.
func (m *model) deafen() {
	m.set(func(m *model) {
		for ear := range m.ears {
			close(ear)
		}
		clear(m.ears)
	})
}

// earOf is where a process hears messages; nil: it has not subscribed. Under the mutex.
func (m *model) earOf(process string) chan string {
	for ear, channel := range m.ears {
		if channel == script.WakeChannel+process {
			return ear
		}
	}
	return nil
}

// queue is that of a lock, and wake calls its first. Under the mutex.
func (m *model) queue(key string) *wire.Queue {
	if m.queues[key] == nil {
		m.queues[key] = new(wire.Queue)
	}
	return m.queues[key]
}

func (m *model) wake(key string) {
	if m.mute {
		return
	}
	for _, first := range m.queue(key).Next(time.Now().UnixMicro(), wire.ModeX) {
		if ear := m.earOf(wire.ProcessOf(first.Waiter)); ear != nil {
			ear <- first.Waiter
		}
	}
}

func (m *modelConn) Exec(batch []*lane.Request) error {
	err := m.answers(context.Background())
	m.mu.Lock()
	t := m.turns[batch[0]]
	delete(m.turns, batch[0])
	m.mu.Unlock()
	<-t.before
	defer t.end()
	if err != nil {
		for _, q := range batch {
			q.Reply = wire.Reply{Status: wire.Classify(err), Err: err}
		}
		return err
	}
	m.mu.Lock()
	for _, q := range batch {
		q.Reply = m.do(q)
	}
	deaf, delay := m.deaf > 0, m.delay
	if deaf {
		m.deaf--
	}
	m.mu.Unlock()
	t.end()
	if delay > 0 {
		time.Sleep(delay)
	}
	if deaf {
		for _, q := range batch {
			q.Reply = wire.Reply{Status: wire.Unreachable, Err: errCut}
		}
		return errCut
	}
	return nil
}

func (m *model) do(q *lane.Request) wire.Reply {
	if m.fails != nil && (m.only == "" || m.only == q.Claim.Key) {
		return wire.Reply{Status: wire.Classify(m.fails), Err: m.fails}
	}
	if m.spy != nil {
		m.spy(q)
	}
	m.seen = append(m.seen, q.Op.String()+" "+q.Claim.Key)
	q.Shown = m.mark
	now, c := time.Now(), q.Claim
	e, there := m.keys[c.Key]
	if there && !e.expires.After(now) {
		delete(m.keys, c.Key)
		e, there = entry{}, false
	}
	if m.dead != "" && strings.HasPrefix(c.Waiter, m.dead) {
		return wire.Reply{Status: wire.Unreachable, Err: errCut}
	}
	line, micros := m.queue(c.Key), now.UnixMicro()
	enter := func() {
		if c.Ticket > 0 && q.Ticket != lane.Ours {
			line.Enter(wire.QueueEntry{Waiter: c.Waiter, Ticket: c.Ticket, Deadline: micros/1000 + c.Lease, Mode: wire.ModeX})
		}
	}
	switch {
	case q.Step() == wire.Break:
		m.keys[script.Broken+c.Token] = entry{"1", now.Add(wire.Milliseconds(c.Broken))}
	case q.Op == wire.Extend && m.keys[script.Broken+c.Token].expires.After(now):
		return wire.Reply{Status: wire.Expired}
	}
	switch {
	case q.Op == wire.Inspect:
		return wire.Reply{Status: wire.Granted, Holder: e.token, TTL: e.expires.Sub(now), Time: micros, Mark: m.mark}
	case q.Op == wire.Leave:
		if line.Leave(c.Waiter, c.Ticket) && !there {
			m.wake(c.Key)
		}
	case there && e.token != c.Token:
		o := wire.Stolen
		if q.Op == wire.Acquire {
			enter()
			o = wire.Held
		}
		return wire.Reply{Status: o, Holder: e.token, TTL: e.expires.Sub(now)}
	case q.Op == wire.Acquire:
		if other, rest := line.Admits(micros, q.Ticket, c.Waiter, wire.ModeX); !there && other != nil {
			enter()
			return wire.Reply{Status: wire.Reserved, Holder: other.Waiter, TTL: wire.Milliseconds(rest)}
		}
		if !there {
			line.Leave(c.Waiter, c.Ticket)
			m.keys[c.Key] = entry{c.Token, now.Add(c.TTL)}
		}
	case !there:
		return wire.Reply{Status: wire.Expired}
	case q.Op == wire.Extend:
		m.keys[c.Key] = entry{c.Token, now.Add(c.TTL)}
	case q.Op == wire.Release:
		delete(m.keys, c.Key)
		if c.KeepPlace {
			enter()
		}
		m.wake(c.Key)
	}
	if q.Step() == wire.Plain {
		return wire.Reply{Status: wire.Granted, Fence: q.Number, Mark: q.Mark}
	}
	return wire.Reply{Status: wire.Granted}
}

// holder says which token the node has under key now.
func (m *model) holder(key string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.keys[key]; e.expires.After(time.Now()) {
		return e.token
	}
	return ""
}

func (m *model) set(f func(*model)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(m)
}

func (m *model) put(key, token string, ttl time.Duration) {
	m.set(func(m *model) { m.keys[key] = entry{token, time.Now().Add(ttl)} })
}

func (m *model) forget() { m.set(func(m *model) { clear(m.keys); clear(m.queues) }) }

func (m *model) kill() { m.set(func(m *model) { m.down = true }); m.deafen() }

func (m *model) revive() { m.set(func(m *model) { m.down = false }) }

func (m *model) hang() { m.set(func(m *model) { m.hung = make(chan struct{}) }) }

func (m *model) resume() { m.set(func(m *model) { close(m.hung); m.hung = nil }) }

func (m *model) slow(d time.Duration) { m.set(func(m *model) { m.delay = d }) }

// models is a set of nodes that any number of Lockers may use.
type models []*model

func newModels(n int) models {
	ms := make(models, n)
	for i := range ms {
		ms[i] = newModel(fmt.Sprintf("node%d", i))
	}
	return ms
}

// locker opens a Locker over the models that is closed when the test ends.
func (ms models) locker(t *testing.T, opts *Options) *Locker {
	t.Helper()
	return ms.over(t, opts, func(c *modelConn) execs { return c })
}

// over is locker, with connections that something is done to.
func (ms models) over(t *testing.T, opts *Options, wrap func(*modelConn) execs) *Locker {
	t.Helper()
	lk, err := ms.start(opts, wrap)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lk.Close() })
	return lk
}

func (ms models) start(opts *Options, wrap func(*modelConn) execs) (*Locker, error) {
	names := make([]string, len(ms))
	for i, m := range ms {
		names[i] = m.name
	}
	set := &wire.Description{MaxTTL: 10_000, Epoch: 1, Set: "models", Members: names}
	if opts != nil {
		set.Quorum, set.Separator = opts.Quorum, opts.Separator
		set.MaxTTL = max(opts.TTL, opts.MaxTTL, 10*time.Second).Milliseconds()
	}
	for _, m := range ms {
		m.mu.Lock()
		m.told = wire.Kept{Self: m.name, Description: set}
		mark, _ := wire.ParseMarker(m.mark)
		mark.Epoch = set.Epoch
		m.mark = mark.String()
		m.mu.Unlock()
	}
	return start(names, opts, func(*settings) func(int, string, lane.Session) lane.Server {
		return func(i int, _ string, s lane.Session) lane.Server {
			return &pipelined{execs: wrap(ms[i].open(s)), replies: make(chan replied, 10_000)}
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
		m.mu.Lock()
		for k, e := range m.keys {
			if e.expires.After(time.Now()) {
				keys = append(keys, m.name+": "+k)
			}
		}
		for k, q := range m.queues {
			for e := range q.Alive(time.Now().UnixMicro()) {
				keys = append(keys, m.name+": "+k+script.QueueSuffix+" "+e.Waiter)
			}
		}
		m.mu.Unlock()
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
	*testing.T
	nodes []*arena.Node
	hosts int
}

func newFleet(t *testing.T, n int) *fleet {
	f := &fleet{T: t}
	for i := range n {
		f.nodes = append(f.nodes, arena.NewNode(sim.Seed(1), fmt.Sprint("node", i), 400*time.Microsecond)) // one connection: the others join later
	}
	return f
}

// node returns the node with this name, or nil if there is none.
func (f *fleet) node(name string) *arena.Node {
	return arena.Named(f.nodes, name)
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
	f.hosts++
	h := arena.NewHost(sim.Seed(1), fmt.Sprint("c", f.hosts))
	opts.Clock, opts.Owner = h, "host:1"
	replace.In(&opts, h.Parts(f.node))
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

// tell has a node keep a description, if it keeps none or an earlier one.
func (f *fleet) tell(n *arena.Node, d *wire.Description) {
	f.Helper()
	f.tellAs(n, n.Name, d)
}

func (f *fleet) tellAs(n *arena.Node, self string, d *wire.Description) {
	f.Helper()
	hello := wire.Hello{Marked: true, Time: time.Now().UnixMilli()}
	mark, err := f.join(n, hello)
	hello.Keep, hello.While = wire.Kept{Self: self, Description: wire.ParseDescription(d.Text())}, mark.Value
	if err == nil {
		mark, err = f.join(n, hello)
	}
	if err != nil || mark.Kept.Description == nil {
		f.Fatal(mark, err)
	}
}

// kept is what a node keeps of its set.
func (f *fleet) kept(n *arena.Node) wire.Kept {
	f.Helper()
	mark, err := f.join(n, wire.Hello{Marked: true, Time: time.Now().UnixMilli()})
	if err != nil {
		f.Fatal(err)
	}
	return mark.Kept
}

func (f *fleet) join(n *arena.Node, hello wire.Hello) (wire.Mark, error) {
	f.hosts++
	h := arena.NewHost(sim.Seed(1), fmt.Sprint("c", f.hosts))
	mark, err := n.Dial(h, time.Second).Connect(f.Context(), hello)
	return mark, err
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

// agrees checks that nodes keep the same description, each under its own name, and gives it.
func (f *fleet) agrees(nodes ...*arena.Node) *wire.Description {
	f.Helper()
	var first *wire.Description
	for _, n := range nodes {
		told := f.kept(n)
		if told.Description == nil {
			f.Fatalf("%s keeps nothing", n.Name)
		}
		if first == nil {
			first = told.Description
		}
		if told.Text() != first.Text() || told.Self != n.Name {
			f.Errorf("%s is %s and keeps %s, and another one keeps %s", n.Name, told.Self, told.Text(), first.Text())
		}
	}
	return first
}

// described gives a client of nodes that keep the first description, and one that can follow that.
func (f *fleet) described() (lk *Locker, next wire.Description) {
	f.Helper()
	lk = f.locker(Options{}, f.nodes...)
	f.locks(lk, true)
	pass(time.Second)
	next = *f.agrees(f.nodes...).Next()
	next.Since++
	return lk, next
}

// changed gives a client of nodes that keep the second description, and that description.
func (f *fleet) changed() (lk *Locker, second wire.Description) {
	f.Helper()
	lk, second = f.described()
	for _, n := range f.nodes {
		f.tell(n, &second)
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

// choose has a node take part in a choice, as a client does that ends before the next step.
func (f *fleet) choose(n *arena.Node, ballot string, value *wire.Description) wire.Chosen {
	f.Helper()
	f.hosts++
	l := n.Dial(arena.NewHost(sim.Seed(1), fmt.Sprint("c", f.hosts)), time.Second)
	if _, err := l.Connect(f.Context(), wire.Hello{}); err != nil {
		f.Fatal(err)
	}
	calls := []arena.Call{{Op: wire.Choose, Args: []string{"1", ballot, "", ""}}}
	if value != nil {
		calls[0].Args[0], calls[0].Args[2] = fmt.Sprint(value.Epoch), value.Text()
	}
	if value != nil && value.Epoch > 1 {
		calls[0].Args[3] = value.Set
	}
	if err := l.Exec(calls); err != nil || calls[0].Err != nil {
		f.Fatal(err, calls[0].Err)
	}
	c, ok := wire.ParseChosen(calls[0].Value)
	if !ok {
		f.Fatal(calls[0].Value)
	}
	return c
}

// tokens is how many locks are on a node.
func (f *fleet) tokens(n *arena.Node) (count int) {
	for range n.Tokens() {
		count++
	}
	return count
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

// A driven is a connection to a node of one of the rigs, and what that said when it was joined.
type driven struct {
	lane.Server
	mark string
}

func (d *driven) Now() time.Time                     { return time.Now() }
func (d *driven) Hello() wire.Hello                  { return wire.Hello{Marked: true, Time: time.Now().UnixMilli()} }
func (d *driven) Joined(mark wire.Mark, _ time.Time) { d.mark = mark.Value }

// ask carries out one request, and gives the node's answer: what it says, and for how long what is in the way stays there.
func (d *driven) ask(t *testing.T, q lane.Request) (said string, ttl time.Duration) {
	t.Helper()
	q.Mark, q.Latest = d.mark, time.Now().Add(time.Minute).UnixMicro()
	batch := []*lane.Request{&q}
	d.Encode(batch)
	if err := errors.Join(d.Send(), func() error { _, err := d.Receive(batch, 0); return err }()); err != nil {
		t.Fatal(err)
	}
	switch r := q.Reply; {
	case q.Op == wire.Leave: // nobody reads what a node says to that
		return "", 0
	case r.Status == wire.Held, r.Status == wire.Reserved, r.Status == wire.Stolen:
		return fmt.Sprint(r.Status, " ", r.Holder), r.TTL
	default:
		return r.Status.String(), 0
	}
}

// TestModelsAnswerLikeTheNodesOfTheHarness: the nodes of newModels and those of newFleet give the same answers to the same
// scripts for an exclusive lock. Those of newFleet are compared with miniredis and with Redis (differential_test.go of package
// model). Plain commands are left out: to them a model answers like to the script, and a server with what it has found.
func TestModelsAnswerLikeTheNodesOfTheHarness(t *testing.T) {
	for seed := range need.Sized[uint64](10, 100, 1000) {
		bubble(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			ours, theirs := new(driven), new(driven)
			ours.Server = &pipelined{execs: newModel("node0").open(ours), replies: make(chan replied, 1)}
			f := newFleet(t, 1)
			theirs.Server = arena.NewHost(sim.Seed(seed), "c1").Parts(f.node).Open("node0", time.Second, theirs)
			for _, d := range []*driven{ours, theirs} {
				if err := d.Connect(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			var claims []*lane.Claim
			for i := range 4 {
				name := fmt.Sprint("p", i, ".1")
				claims = append(claims, &lane.Claim{
					Key: "a", Keys: []string{"a"}, Modes: "x", Token: wire.Sign(name, time.Now(), "", "", ""), TTL: wire.Milliseconds(int64(1005 + 1000*i)),
					Waiter: name, Lease: 2005, Millis: int64(1005 + 1000*i),
				})
			}
			var log []string
			for range 60 {
				next := time.Now().Add(time.Duration(1+rng.IntN(60)) * 10 * time.Millisecond)
				time.Sleep(time.Until(next.Truncate(10 * time.Millisecond))) // nothing ends at such a moment
				who := claims[rng.IntN(len(claims))]
				c := *who
				q := lane.Request{Claim: &c, Op: []wire.Op{wire.Acquire, wire.Acquire, wire.Acquire, wire.Extend, wire.Release, wire.Leave, wire.Inspect}[rng.IntN(7)], Number: time.Now().UnixMicro()}
				if waits := rng.IntN(3); q.Op == wire.Leave || waits > 0 && q.Op == wire.Acquire {
					c.Ticket = 1 + int64(c.TTL.Seconds()) // the one with the shortest TTL came first
					q.Ticket = c.Ticket
				}
				if q.Op == wire.Acquire { // each attempt has a token of its own
					c.Token = wire.Sign(fmt.Sprint(c.Waiter, len(log)), time.Now(), "", "", "")
					who.Token = c.Token
				}
				if q.Op == wire.Release && rng.IntN(8) == 0 {
					c.Broken = 1500
				}
				one, left := ours.ask(t, q)
				other, rest := theirs.ask(t, q)
				log = append(log, fmt.Sprintf("%v of %s, ticket %d, step %v: %s", q.Op, c.Waiter, q.Ticket, q.Step(), one))
				if one != other || (left-rest).Abs() > 10*time.Millisecond {
					t.Fatalf("seed %d: the node of the harness says %q, for %v, and the model for %v\n%s", seed, other, rest, left, strings.Join(log, "\n"))
				}
			}
			ours.Interrupt()
			theirs.Interrupt()
		})
	}
}
