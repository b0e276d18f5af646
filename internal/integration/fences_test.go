package integration_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/testbed/reading"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
)

// Five nodes with the real client and scripts, in virtual time.
type fenced struct {
	*testing.T
	*redistest.Bubble
}

func fences(t *testing.T, f func(*fenced)) {
	bubble(t, func(t *testing.T) {
		leaks.Check(t)
		f(&fenced{t, redistest.NewBubble(t, 5)})
	})
}

func (f *fenced) locker(opts *redlock.Options) *redlock.Locker {
	f.Helper()
	lk, err := redlock.New(f.Clients(), opts)
	if err == nil {
		err = f.ready(lk)
	}
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { lk.Close() })
	return lk
}

// apart makes each node answer at another moment, so that the first ones decide: after 10 ms, 12,
// 14, 16 and 18.
func (f *fenced) apart() {
	for i := range f.Len() {
		f.Path(i).SetDelay(time.Duration(10+2*i) * time.Millisecond)
	}
}

// quorumsAnswer is when the third node has answered, of those that are apart.
const quorumsAnswer = 14 * time.Millisecond

// count sets a node's counter for a name, or takes it away: 0.
func (f *fenced) count(node int, name string, n int64) {
	f.Helper()
	var err error
	if n == 0 {
		_, err = f.Mini(node).ZRem(script.Fences, *script.Bucket(name))
	} else {
		_, err = f.Mini(node).ZAdd(script.Fences, float64(n), *script.Bucket(name))
	}
	if err != nil {
		f.Fatal(err)
	}
}

// counters are the nodes' for a name.
func (f *fenced) counters(name string) (all []string) {
	for i := range f.Len() {
		says, err := f.Mini(i).ZScore(script.Fences, *script.Bucket(name))
		if err != nil {
			all = append(all, "")
			continue
		}
		all = append(all, fmt.Sprintf("%.0f", says))
	}
	return all
}

// stored checks that so many nodes have a lock's fence, of those that have answered.
func (f *fenced) stored(l *redlock.Lock, least int) {
	f.Helper()
	n := 0
	for _, says := range f.counters(l.Name()) {
		if says == fmt.Sprint(l.Fence()) {
			n++
		}
	}
	if n < least {
		f.Errorf("the fence %d is on %d nodes, want %d: %v", l.Fence(), n, least, f.counters(l.Name()))
	}
}

// took acquires a lock, and checks how long that takes.
func (f *fenced) took(lk *redlock.Locker, name string, want time.Duration) *redlock.Lock {
	f.Helper()
	begin := time.Now()
	l, err := lk.TryAcquire(f.Context(), name)
	if err != nil {
		f.Fatal(err)
	}
	if d := time.Since(begin); d != want {
		f.Errorf("the lock took %v, want %v: %v", d, want, f.counters(name))
	}
	settle()
	return l
}

func (f *fenced) release(l *redlock.Lock) {
	f.Helper()
	if err := l.Release(f.Context()); err != nil {
		f.Error(err)
	}
	settle()
}

// settle waits until everything has arrived. After a second a connection counts as idle: a look at it takes no time, but
// on Windows, where it shows nothing, a PING.
func settle() { pass(time.Second / 2) }

// free checks that no node has a lock.
func (f *fenced) free(nodes ...int) {
	f.Helper()
	for _, i := range nodes {
		if keys := f.Keys(i); len(keys) > 0 {
			f.Errorf("node %d has %q", i, keys)
		}
	}
}

// wrong is a clock that is wrong, by another amount at each look if there is a range.
type wrong struct{ by, upTo time.Duration }

func (w wrong) Now() time.Time {
	d := w.by
	if w.upTo > 0 {
		d += rand.N(w.upTo)
	}
	return time.Now().Add(d)
}

// threeNodes are three nodes with the real client and scripts, in virtual time.
func threeNodes(t *testing.T, f func(*fenced)) {
	bubble(t, func(t *testing.T) {
		leaks.Check(t)
		f(&fenced{t, redistest.NewBubble(t, 3)})
	})
}

// whileDown has a node hang while something is done.
func (f *fenced) whileDown(node int, do func()) {
	f.Hang(node)
	do()
	f.Resume(node)
	pass(time.Second)
}

// once has a client that has not been here before get a lock and give it back.
func (f *fenced) once(name string, opts redlock.Options, options ...redlock.AcquireOption) (fence int64, err error) {
	f.Helper()
	clients := make([]*redis.Client, f.Len()) // they tick as long as they are open
	for i := range clients {
		clients[i] = redis.NewClient(f.Options(i))
		defer clients[i].Close()
	}
	lk, err := redlock.New(clients, &opts)
	if err != nil {
		f.Fatal(err)
	}
	defer lk.Close()
	l, err := lk.TryAcquire(f.Context(), name, options...)
	if err != nil {
		return 0, err
	}
	synctest.Wait() // the node that was not needed for a quorum is heard, too
	if err := l.Release(f.Context()); err != nil {
		f.Error(err)
	}
	return l.Fence(), nil
}

// must is once where the lock is to be had.
func (f *fenced) must(name string, opts redlock.Options, options ...redlock.AcquireOption) int64 {
	f.Helper()
	fence, err := f.once(name, opts, options...)
	if err != nil {
		f.Fatal(err)
	}
	return fence
}

// locks has the keys on the nodes that no lock should leave.
func (f *fenced) locks() (keys []string) {
	for i := range f.Len() {
		for _, key := range f.Keys(i) {
			if !script.Lasting(key) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// without returns clients for which this node cannot be reached, as if a link were down.
func (f *fenced) without(node int) []*redis.Client {
	clients := f.Clients()
	opts := f.Options(node)
	opts.Dialer = func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.EHOSTUNREACH}
	}
	clients[node] = redis.NewClient(opts)
	f.Cleanup(func() { clients[node].Close() })
	return clients
}

// refused checks that another holder has the lock.
func refused(t *testing.T, lk *redlock.Locker, name string, options ...redlock.AcquireOption) {
	t.Helper()
	if l, err := lk.TryAcquire(t.Context(), name, options...); !errors.Is(err, redlock.ErrHeld) {
		t.Fatalf("%s: %v, %v; want %v", name, l, err, redlock.ErrHeld)
	}
}

var paths = &redlock.Options{Separator: "/", MaxTTL: time.Minute}

// A settable clock is ahead by so much, which its monotonic reading knows nothing of.
type settable struct {
	ahead atomic.Int64 // time.Duration; the lanes look at the clock beside the test
}

func (c *settable) Now() time.Time {
	now := time.Now()
	return reading.Of(now.Add(time.Duration(c.ahead.Load())), now)
}

const day = 24 * time.Hour

// ready waits until a quorum of the nodes keeps the description of the set, or for so long as an attempt would.
func (f *fenced) ready(lk *redlock.Locker) error {
	ctx, cancel := context.WithTimeout(f.Context(), 500*time.Millisecond)
	defer cancel()
	if err := lk.WaitReady(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// slot is the number of the slot that a lock has, by the key that has its token.
func (f *fenced) slot(l *redlock.Lock) string {
	f.Helper()
	for i := range f.Len() {
		for _, key := range f.Keys(i) {
			if number, is := strings.CutPrefix(key, l.Name()+script.SlotInfix); is {
				if token, _ := f.Mini(i).Get(key); token == l.Token() {
					return number
				}
			}
		}
	}
	f.Errorf("no node has a slot of %q for token %s", l.Name(), l.Token())
	return ""
}
