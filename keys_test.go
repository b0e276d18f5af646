package redlock

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/redistest"
	"github.com/quorumlock/redlock/internal/redistest/need"
	"github.com/quorumlock/redlock/internal/waitlist"
	"github.com/redis/go-redis/v9"
)

var paths = &Options{Separator: "/", MaxTTL: time.Minute}

// refused checks that another holder has the lock.
func refused(t *testing.T, lk *Locker, name string, options ...AcquireOption) {
	t.Helper()
	if l, err := lk.TryAcquire(t.Context(), name, options...); !errors.Is(err, ErrHeld) {
		t.Fatalf("%s: %v, %v; want %v", name, l, err, ErrHeld)
	}
}

// TestEachForItsOwnTime: each of several holders of a key conflicts until its own TTL ends, whichever
// others came before or after it with a longer or shorter one.
func TestEachForItsOwnTime(t *testing.T) {
	type want struct {
		name    string
		options []AcquireOption
	}
	const short, long = time.Second, 10 * time.Second
	const soon = 3 * time.Millisecond
	heartbeat := waitlist.Heartbeat(long) // of a waiter that knows until when one slot is held, and not the other
	shared, slot := []AcquireOption{Shared()}, []AcquireOption{Slots(2)}
	for _, tt := range []struct {
		what        string
		short, long want
		wanted      want
		after, late time.Duration
	}{
		{"readers, and a writer", want{"a", shared}, want{"a", shared}, want{"a", nil}, long, soon},
		{"slots, and who wants it alone", want{"a", slot}, want{"a", slot}, want{"a", nil}, long, soon},
		{"slots, and a third who wants one", want{"a", slot}, want{"a", slot}, want{"a", slot}, short, heartbeat},
		{"two in a folder", want{"a/b", nil}, want{"a/c", nil}, want{"a", nil}, long, soon},
		{"two in a folder, and a reader of it", want{"a/b", nil}, want{"a/c", nil}, want{"a", shared}, long, soon},
		{"two readers in a folder", want{"a/b", shared}, want{"a/c/d", shared}, want{"a", nil}, long, soon},
		{"a writer in a folder, a reader for longer, and a reader of all", want{"a/b", nil}, want{"a/c", shared}, want{"a", shared}, short, soon},
		{"a reader in a folder, a writer for longer, and a reader of all", want{"a/b", shared}, want{"a/c", nil}, want{"a", shared}, long, soon},
		{"a slot in a folder, a reader for longer, and a reader of all", want{"a/b", slot}, want{"a/c", shared}, want{"a", shared}, short, soon},
		{"a reader of a folder, and one in it for longer", want{"a", shared}, want{"a/b", shared}, want{"a", nil}, long, soon},
		{"a reader of a folder for longer than one in it", want{"a/b", shared}, want{"a", shared}, want{"a/b", nil}, long, soon},
		{"several names", want{"b", []AcquireOption{Shared(), Also("a")}}, want{"c", []AcquireOption{Shared(), Also("a")}}, want{"a", nil}, long, soon},
	} {
		for _, first := range []string{"the short one first", "the long one first"} {
			t.Run(tt.what+", "+first, func(t *testing.T) {
				fences(t, func(f *fenced) {
					t := f.T
					one, two, third, fourth := f.locker(paths), f.locker(paths), f.locker(paths), f.locker(paths)
					begin := time.Now()
					take := func(lk *Locker, w want, ttl time.Duration) {
						acquired(t, lk, w.name, append([]AcquireOption{TTL(ttl)}, w.options...)...)
					}
					if first == "the short one first" {
						take(one, tt.short, short)
						take(two, tt.long, long)
					} else {
						take(two, tt.long, long)
						take(one, tt.short, short)
					}
					for time.Since(begin) < tt.after-tt.after/8 {
						refused(t, third, tt.wanted.name, tt.wanted.options...)
						pass(tt.after / 9)
					}
					time.Sleep(tt.after - time.Since(begin) - time.Millisecond)
					refused(t, third, tt.wanted.name, tt.wanted.options...)
					l, err := fourth.Acquire(t.Context(), tt.wanted.name, tt.wanted.options...)
					if err != nil {
						t.Fatal(err)
					}
					if took := time.Since(begin); took > tt.after+tt.late {
						t.Errorf("had after %v, want %v", took, tt.after)
					}
					f.release(l)
				})
			})
		}
	}
}

// TestReaderCrashes: its share ends by itself, although others go on, and leaves nothing in the key that
// they hold.
func TestReaderCrashes(t *testing.T) {
	fences(t, func(f *fenced) {
		t := f.T
		one, two, writer := f.locker(nil), f.locker(nil), f.locker(nil)
		acquired(t, one, "a", Shared(), TTL(2*time.Second))
		l := acquired(t, two, "a", Shared(), TTL(2*time.Second), AutoRenew())
		pass(20 * time.Second)
		if s := inspected(t, writer, "a"); s.State != StateHeld || len(s.Holders) != 1 || s.Holders[0].Token != l.Token() {
			t.Errorf("%+v", s)
		}
		for i := range f.Len() {
			if set, err := f.Mini(i).SortedSet("a"); err != nil || len(set) != 1 {
				t.Errorf("node %d has %v, %v", i, set, err)
			}
		}
		refused(t, writer, "a")
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
		acquired(t, writer, "a")
	})
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

// A crowd has the holders of slots, and checks their number.
type crowd struct {
	*testing.T
	mu   sync.Mutex
	in   map[*Lock]bool
	most int
}

func (c *crowd) enter(l *Lock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.in[l] = true
	n := 0
	for other := range c.in {
		if !other.Until().After(time.Now()) {
			continue
		}
		if n++; other != l && other.claim.Slot == l.claim.Slot {
			c.Errorf("two have slot %d", l.claim.Slot)
		}
	}
	c.most = max(c.most, n)
}

func (c *crowd) leave(l *Lock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.in, l)
}

// TestSlotsWithLinksDown: three clients that each reach another two of three nodes, so that any two of them
// have one node in common, and no node sees more than two of them. There are never more holders than slots,
// and all clients get one.
func TestSlotsWithLinksDown(t *testing.T) {
	for _, slots := range []int{1, 2} {
		bubble(t, func(t *testing.T) {
			redistest.NoLeaks(t)
			f := &fenced{t, redistest.NewBubble(t, 3)}
			c := &crowd{T: t, in: make(map[*Lock]bool)}
			var calls sync.WaitGroup
			for i := range f.Len() {
				f.Path(i).SetJitter(3 * time.Millisecond)
				for caller := range 2 {
					lk, err := New(f.without(i), &Options{TTL: 400 * time.Millisecond})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { lk.Close() })
					calls.Go(func() {
						lots := rand.New(rand.NewPCG(uint64(i), uint64(caller)))
						for n := range need.Sized(15, 30, 300) {
							ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
							l, err := lk.Acquire(ctx, "a", Slots(slots))
							cancel()
							if err != nil {
								t.Errorf("client %d: %v", i, err)
								return
							}
							c.enter(l)
							time.Sleep(time.Duration(lots.Int64N(int64(20 * time.Millisecond))))
							c.leave(l)
							if n%10 > 0 { // otherwise it crashes
								l.Release(t.Context())
							}
							time.Sleep(time.Duration(lots.Int64N(int64(20 * time.Millisecond))))
						}
					})
				}
			}
			calls.Wait()
			if c.most != slots {
				t.Errorf("%d had one of %d slots at once", c.most, slots)
			}
		})
	}
}

// TestInspectKinds: the holders of a lock that several can hold, their modes, and for how long; and the
// holders of something below it.
func TestInspectKinds(t *testing.T) {
	fences(t, func(f *fenced) {
		t, lk := f.T, f.locker(paths)
		held := func(name string, ttl time.Duration, options ...AcquireOption) *Lock {
			t.Helper()
			return acquired(t, lk, name, append(options, TTL(ttl))...)
		}
		type holder struct {
			lock *Lock
			how  string
			ttl  time.Duration
		}
		look := func(name string, verdict State, want ...holder) *Status {
			t.Helper()
			s := inspected(t, lk, name)
			if s.State != verdict || len(s.Holders) != len(want) || s.Token != "" && len(want) > 0 {
				t.Errorf("%s: %v, %+v; want %d holders", name, s.State, s.Holders, len(want))
				return s
			}
			for _, w := range want {
				if !slices.Contains(s.Holders, Holder{Token: w.lock.Token(), Mode: Mode(w.how), TTL: w.ttl, Nodes: f.Len()}) {
					t.Errorf("%s: %+v, and no %q by %s for %v", name, s.Holders, w.how, w.lock.Token(), w.ttl)
				}
			}
			return s
		}

		one, two := held("a", 5*time.Second, Shared()), held("a", 10*time.Second, Shared(), Also("b"))
		if s := look("a", StateHeld, holder{one, "shared", 5 * time.Second}, holder{two, "shared", 10 * time.Second}); s.TTL != 10*time.Second {
			t.Errorf("the last of the readers has it for %v", s.TTL)
		}
		look("b", StateHeld, holder{two, "shared", 10 * time.Second})
		pass(6 * time.Second)
		look("a", StateHeld, holder{two, "shared", 4 * time.Second})
		f.release(two)
		look("a", StateFree)
		look("b", StateFree)

		slot, other := held("jobs", 20*time.Second, Slots(3)), held("jobs", 30*time.Second, Slots(3))
		look("jobs", StateHeld, holder{slot, "slot", 20 * time.Second}, holder{other, "slot", 30 * time.Second})
		f.release(slot)
		f.release(other)
		look("jobs", StateFree)

		reader, writer := held("p/A", 20*time.Second, Shared()), held("p/B/c", 30*time.Second)
		look("p", StateHeld, holder{reader, "shared below", 20 * time.Second}, holder{writer, "below", 30 * time.Second})
		look("/p/A/", StateHeld, holder{reader, "shared", 20 * time.Second})
		look("p/B", StateHeld, holder{writer, "below", 30 * time.Second})
		if s := look("p/B/c", StateHeld); s.Token != writer.Token() || s.Fence != writer.Fence() {
			t.Errorf("%+v", s)
		}
		look("p/C", StateFree)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go f.locker(paths).Acquire(ctx, "p")
		pass(500 * time.Millisecond)
		if s := inspected(t, lk, "p"); len(s.Waiting) != 1 || s.Waiting[0].Nodes != f.Len() || len(s.Holders) != 2 {
			t.Errorf("there is a waiter for the folder: %+v", s)
		}
		pass(time.Second)
		f.release(reader)
		f.release(writer)
		look("p", StateFree)
	})
}

// TestInspectKindsDisagree: a token that no quorum has is no holder.
func TestInspectKindsDisagree(t *testing.T) {
	fences(t, func(f *fenced) {
		lk := f.locker(nil)
		l := acquired(f.T, lk, "a", Shared())
		for i := range 3 {
			f.Mini(i).Del("a")
		}
		if s := inspected(f.T, lk, "a"); s.State != StateFree || len(s.Holders) != 1 || s.Holders[0].Nodes != 2 {
			f.Errorf("two of five nodes know of a reader: %+v", s)
		}
		f.Kill(0)
		if s := inspected(f.T, lk, "a"); s.State != StateSplit || len(s.Holders) != 1 || s.Holders[0].Token != l.Token() {
			f.Errorf("two nodes have the token, and two have none: %+v", s)
		}
	})
}
