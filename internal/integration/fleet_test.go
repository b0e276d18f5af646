package integration_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/replace"
	arena "github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/testbed/modelset"
	"github.com/quorumlock/redlock/internal/wire"
)

// bubble runs f in a bubble of virtual time.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// pass lets virtual time go by, and everything that it sets going come to rest.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// A fleet is a number of model nodes, and the processes that use them.
type fleet struct {
	*modelset.Fleet
	nodes []*arena.Node
	host  map[*redlock.Locker]*arena.Host
	weigh map[*redlock.Locker]func() []int
}

func newFleet(t *testing.T, n int) *fleet {
	f := modelset.New(t, n)
	return &fleet{f, f.Nodes, make(map[*redlock.Locker]*arena.Host), make(map[*redlock.Locker]func() []int)}
}

// client is a process of its own, whose clock is ahead.
func (f *fleet) client(opts *redlock.Options, ahead time.Duration) *redlock.Locker {
	f.Helper()
	lk, err := f.tries(opts, ahead)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { lk.Close() })
	return lk
}

// locker is a process that is given some nodes, and knows nothing of them yet.
func (f *fleet) locker(opts redlock.Options, nodes ...*arena.Node) *redlock.Locker {
	f.Helper()
	lk, err := f.over(opts, nodes...)
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

// described gives a client of nodes that keep the first description, and one that can follow that.
func (f *fleet) described() (lk *redlock.Locker, next wire.Description) {
	f.Helper()
	lk = f.locker(redlock.Options{}, f.nodes...)
	f.locks(lk, true)
	pass(time.Second)
	next = *f.Agrees(f.nodes...).Next()
	next.Since++
	return lk, next
}

// changed gives a client of nodes that keep the second description, and that description.
func (f *fleet) changed() (lk *redlock.Locker, second wire.Description) {
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
func (f *fleet) locks(lk *redlock.Locker, want bool) (err error) {
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

type warnings struct {
	mu   sync.Mutex
	text []string
}

func (w *warnings) add(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, err.Error())
}

func (w *warnings) all() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.text, "\n")
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// change has a process change the set.
func (f *fleet) change(lk *redlock.Locker, c redlock.Change) redlock.Members {
	f.Helper()
	m, err := lk.Change(f.Context(), c, func(what string, most time.Duration) { f.Logf("waits for %s, %v", what, most) })
	if err != nil {
		f.Fatal(err)
	}
	return m
}

// spelled is a process that reaches nodes by other addresses than the set has for them.
func (f *fleet) spelled(opts redlock.Options, addr func(name string) string) *redlock.Locker {
	f.Helper()
	h := f.Process()
	opts.Clock = h
	var given []string
	for _, n := range f.nodes {
		given = append(given, addr(n.Name))
	}
	replace.In(&opts, h.Parts(func(at string) *arena.Node {
		if i := slices.Index(given, at); i >= 0 {
			return f.nodes[i]
		}
		return f.Node(at)
	}))
	lk, err := redlock.New(arena.Clients(given), &opts)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { lk.Close() })
	return lk
}

// taken makes a set, and has node0 and node1 take the next description, for an operator that ends before the next step. Two
// of three nodes have taken it, so it is chosen.
func (f *fleet) taken() (lk *redlock.Locker, chosen *wire.Description) {
	f.Helper()
	lk, next := f.described()
	for _, n := range f.nodes[:2] {
		f.Choose(n, "000000000000000800000000", &next)
	}
	return lk, &next
}

// keeps reports an error unless all nodes keep this description.
func (f *fleet) keeps(d *wire.Description) {
	f.Helper()
	if kept := f.Agrees(f.nodes...); kept.Text() != d.Text() {
		f.Errorf("they keep %s", kept.Text())
	}
}

// reboot has nodes go down, and come back empty, with clocks that are wrong.
func (f *fleet) reboot(off time.Duration, nodes ...int) {
	for _, i := range nodes {
		f.nodes[i].Kill()
		f.nodes[i].Step(off)
		f.nodes[i].Restart(false)
	}
	pass(3 * time.Second) // all lanes have tried to reach them
}

// reconnect has a client find out that its connections have broken.
func (f *fleet) reconnect(lk *redlock.Locker) {
	_, _ = lk.TryAcquire(f.Context(), "any")
	pass(3 * time.Second)
}

// alone checks that no other client gets a held lock as long as it is valid, and that one gets it
// then within a quarantine of a minute.
func (f *fleet) alone(l *redlock.Lock, rivals ...func() *redlock.Locker) {
	f.Helper()
	for served := false; !served; pass(500 * time.Millisecond) {
		for i, rival := range rivals {
			other, err := rival().TryAcquire(f.Context(), l.Name())
			if err != nil {
				continue
			}
			served = true
			if rest := time.Until(l.Until()); rest > 0 {
				f.Errorf("rival %d has the lock, and so has its holder for %v", i, rest)
			}
			if err := other.Release(f.Context()); err != nil {
				f.Error(err)
			}
		}
		if rest := time.Until(l.Until()); rest < -2*time.Minute {
			f.Fatalf("no client has the lock %v after its end", -rest)
		}
	}
}

func same(lk *redlock.Locker) func() *redlock.Locker { return func() *redlock.Locker { return lk } }

// tries is client, if New says no error.
func (f *fleet) tries(opts *redlock.Options, ahead time.Duration) (*redlock.Locker, error) {
	h := f.Process()
	h.Skew(ahead)
	return f.open(h, *opts, f.nodes)
}

// over is another process, which is given these nodes. It is closed when the test ends.
func (f *fleet) over(opts redlock.Options, nodes ...*arena.Node) (*redlock.Locker, error) {
	opts.Owner = "host:1"
	lk, err := f.open(f.Process(), opts, nodes)
	if err == nil {
		f.Cleanup(func() { lk.Close() })
	}
	return lk, err
}

// open opens a Locker in a process. The fleet remembers the process, and what counts the Locker's lanes.
func (f *fleet) open(h *arena.Host, opts redlock.Options, nodes []*arena.Node) (*redlock.Locker, error) {
	opts.Clock = h
	parts := h.Parts(f.Node)
	var weigh func() []int
	parts.Weigh = func(lanes func() []int) { weigh = lanes }
	replace.In(&opts, parts)
	var given []string
	for _, n := range nodes {
		given = append(given, n.Name)
	}
	lk, err := redlock.New(arena.Clients(given), &opts)
	if err == nil {
		f.host[lk], f.weigh[lk] = h, weigh
	}
	return lk, err
}

// lanes is how many lanes a Locker has: one for each node that it sends to, and for those that it still gives locks back to.
func (f *fleet) lanes(lk *redlock.Locker) int { return len(f.weigh[lk]()) }

// atRest acquires a lock, and waits until all that this has set going has come to rest.
func atRest(t *testing.T, lk *redlock.Locker, name string, options ...redlock.AcquireOption) *redlock.Lock {
	t.Helper()
	l := acquired(t, lk, name, options...)
	synctest.Wait()
	return l
}

// whyEnded is the cause for which a lock has ended; nil: it has not.
func whyEnded(l *redlock.Lock) error { return context.Cause(l.Context(context.Background())) }
