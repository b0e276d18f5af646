package redlock

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/replace"
	"github.com/quorumlock/redlock/internal/sim"
	arena "github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
	"github.com/redis/go-redis/v9"
)

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

// client is a process of its own, whose clock is ahead.
func (f *fleet) client(opts *Options, ahead time.Duration) *Locker {
	f.Helper()
	lk, err := f.tries(opts, ahead)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { lk.Close() })
	return lk
}

func (f *fleet) tries(opts *Options, ahead time.Duration) (*Locker, error) {
	f.hosts++
	h := arena.NewHost(sim.Seed(1), fmt.Sprint("c", f.hosts))
	h.Skew(ahead)
	o := *opts
	o.Clock = h
	replace.In(&o, h.Parts(f.node))
	var given []string
	for _, n := range f.nodes {
		given = append(given, n.Name)
	}
	return New(arena.Clients(given), &o)
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
func (f *fleet) reconnect(lk *Locker) {
	_, _ = lk.TryAcquire(f.Context(), "any")
	pass(3 * time.Second)
}

// alone checks that no other client gets a held lock as long as it is valid, and that one gets it
// then within a quarantine of a minute.
func (f *fleet) alone(l *Lock, rivals ...func() *Locker) {
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

func same(lk *Locker) func() *Locker { return func() *Locker { return lk } }

// TestDifferentTTLs: two programs, one with locks of a minute, and one with locks of two
// seconds. Two of three nodes lose what they have.
func TestDifferentTTLs(t *testing.T) {
	long, short := &Options{TTL: time.Minute}, &Options{TTL: 2 * time.Second}
	first := &Options{TTL: 2 * time.Second, MaxTTL: time.Minute} // of a program that may be the first
	held := func(f *fleet, lk *Locker) *Lock {
		f.Helper()
		l, err := lk.TryAcquire(f.Context(), "a")
		if err != nil {
			f.Fatal(err)
		}
		pass(100 * time.Millisecond)
		return l
	}
	for name, run := range map[string]func(*fleet){
		"both are there": func(f *fleet) {
			first, second := f.client(long, 0), f.client(short, 0)
			l := held(f, first)
			f.reboot(0, 0, 1)
			f.alone(l, same(second))
		},
		"the short one was there before, and has been idle": func(f *fleet) {
			second := f.client(short, 0)
			l := held(f, f.client(long, 0))
			f.reboot(0, 0, 1)
			f.alone(l, same(second))
		},
		"it is idle, and no connection breaks": func(f *fleet) {
			second := f.client(short, 0)
			other := f.client(short, 0)
			l := held(f, f.client(long, 0))
			f.nodes[0].Flush()
			f.nodes[1].Flush()
			_, _ = other.TryAcquire(f.Context(), "b") // which finds out, and writes new markers
			pass(3 * time.Second)
			f.alone(l, same(second), same(other))
		},
		"the short one comes later": func(f *fleet) {
			l := held(f, f.client(long, 0))
			f.reboot(0, 0, 1)
			f.alone(l, func() *Locker { return f.client(short, 0) })
		},
		"the third node is slow": func(f *fleet) {
			l := held(f, f.client(long, 0))
			f.reboot(0, 0, 1)
			f.nodes[2].Delay(600*time.Millisecond, 0)
			f.alone(l, func() *Locker { return f.client(short, 0) })
		},
		"the third node cannot be reached, but somebody who knows has been there since": func(f *fleet) {
			second, first := f.client(short, 0), f.client(long, 0)
			l := held(f, first)
			f.nodes[2].Kill()
			f.reboot(0, 0, 1)
			f.reconnect(first)
			f.alone(l, same(second), func() *Locker { return f.client(short, 0) })
		},
		"the third node hangs, but somebody who knows has been there since": func(f *fleet) {
			second, first := f.client(short, 0), f.client(long, 0)
			l := held(f, first)
			f.nodes[2].Hang(true)
			f.reboot(0, 0, 1)
			f.reconnect(first)
			f.alone(l, same(second))
		},
		"the third node's clock is off": func(f *fleet) {
			second := f.client(first, 0)
			f.nodes[2].Step(2 * time.Hour)
			_, _ = second.TryAcquire(f.Context(), "b") // finds out
			l := held(f, f.client(long, 0))
			f.nodes[0].Flush()
			f.nodes[1].Flush()
			f.alone(l, same(second))
		},
		"one node after another, and the short one has heard of it": func(f *fleet) {
			second, first := f.client(first, 0), f.client(long, 0)
			for i := range f.nodes {
				f.reboot(0, i)
				if _, err := second.TryAcquire(f.Context(), fmt.Sprint(i)); err != nil {
					f.Error(err)
				}
				pass(2 * time.Minute)
			}
			f.reconnect(first)
			l := held(f, first)
			f.reboot(0, 0, 2)
			f.alone(l, same(second), func() *Locker { return f.client(short, 0) })
		},
		"all of them within the lock's life, one after another": func(f *fleet) {
			second := f.client(short, 0)
			l := held(f, f.client(long, 0))
			for _, n := range f.nodes {
				_, _ = second.TryAcquire(f.Context(), "b")
				n.Flush()
				_, _ = second.TryAcquire(f.Context(), "b")
				pass(3 * time.Second)
			}
			_ = second.Close()
			f.alone(l, func() *Locker { return f.client(short, 0) })
		},
		"all of them at once, and the short one has heard of it": func(f *fleet) {
			second, first := f.client(first, 0), f.client(long, 0)
			if l, err := second.TryAcquire(f.Context(), "b"); err != nil || l.Release(f.Context()) != nil {
				f.Fatal(err)
			}
			l := held(f, first)
			f.reboot(0, 0, 1, 2)
			f.alone(l, same(second))
		},
	} {
		if !need.Sample(len(name), 3) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) { run(newFleet(t, 3)) })
		})
	}
}

// TestOneBound: the first program's TTL, or its MaxTTL, or ten seconds bound all locks of the set, and the quarantines of all
// programs outlast that.
func TestOneBound(t *testing.T) {
	for _, tt := range []struct {
		first, next Options
		want        time.Duration
	}{
		{Options{}, Options{TTL: time.Second}, 10 * time.Second},
		{Options{TTL: time.Second}, Options{TTL: 5 * time.Second, Quarantine: 6 * time.Second}, 10 * time.Second},
		{Options{TTL: time.Minute}, Options{TTL: time.Second, MaxTTL: 2 * time.Second}, time.Minute},
		{Options{TTL: time.Second, MaxTTL: 3 * time.Second}, Options{TTL: 3 * time.Second, MaxTTL: 3 * time.Second}, 3 * time.Second},
	} {
		bubble(t, func(t *testing.T) {
			f := newFleet(t, 3)
			if l, err := f.client(&tt.first, 0).TryAcquire(t.Context(), "a"); err != nil || l.Release(t.Context()) != nil {
				t.Fatal(err)
			}
			next := f.client(&tt.next, 0)
			l, err := next.TryAcquire(t.Context(), "a", TTL(tt.want))
			if err != nil {
				t.Fatal(err)
			}
			_ = l.Release(t.Context())
			for _, acquire := range []func() error{
				func() error { _, err := next.TryAcquire(t.Context(), "a", TTL(tt.want+time.Millisecond)); return err },
				func() error { _, err := next.Acquire(t.Context(), "a", TTL(24*time.Hour)); return err },
				func() error {
					_, err := f.client(&Options{TTL: tt.want + time.Second}, 0).TryAcquire(t.Context(), "a")
					return err
				},
				func() error {
					_, err := f.client(&Options{TTL: time.Second, MaxTTL: time.Hour}, 0).TryAcquire(t.Context(), "a", TTL(time.Hour))
					return err
				},
			} {
				begin := time.Now()
				err := acquire()
				for _, want := range []string{"and the set allows " + tt.want.String(), "a node has no vote for so long", "redlock members set max-ttl"} {
					if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, ErrNoQuorum) || time.Since(begin) > time.Second {
						t.Errorf("%+v: %v, want %q", tt, err, want)
					}
				}
			}
			for _, n := range f.nodes[:2] {
				n.Flush()
			}
			_, _ = next.TryAcquire(t.Context(), "a") // finds out
			pass(tt.want - time.Second)
			if _, err := next.TryAcquire(t.Context(), "a"); err == nil {
				t.Errorf("%+v: two nodes vote sooner than after %v", tt, tt.want)
			}
			pass(2*time.Second + max(0, tt.next.Quarantine-tt.want, 2*time.Second-tt.want))
			if _, err := next.TryAcquire(t.Context(), "a"); err != nil {
				t.Errorf("%+v: %v", tt, err)
			}
		})
	}
}

// TestForgottenLongAgo: a node lost its data five seconds ago, and another client has found that out. It votes when its
// quarantine is over, also if others hang by then, and have not been heard of since.
func TestForgottenLongAgo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t, 5)
		opts := &Options{TTL: 3 * time.Second, MaxTTL: 3 * time.Second}
		idle, busy := f.client(opts, 0), f.client(opts, 0)
		for i, lk := range []*Locker{idle, busy, busy} {
			if i == 2 {
				pass(time.Second)
				f.nodes[0].Flush()
			}
			if l, err := lk.TryAcquire(t.Context(), "a"); err != nil || l.Release(t.Context()) != nil {
				t.Fatal(err)
			}
		}
		pass(5 * time.Second)
		f.nodes[1].Hang(true)
		f.nodes[2].Hang(true)
		if _, err := idle.TryAcquire(t.Context(), "a"); err != nil {
			t.Error(err)
		}
	})
}

// TestForeignTTL: a lock of another library, or of a program without a quarantine, makes no quarantine longer, however
// long it lives.
func TestForeignTTL(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t, 3)
		lk := f.client(&Options{TTL: 2 * time.Second, MaxTTL: 2 * time.Second}, 0)
		mute := f.client(&Options{TTL: time.Hour, Quarantine: -1}, 0)
		if _, err := mute.TryAcquire(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := lk.TryAcquire(t.Context(), "a"); !errors.Is(err, ErrHeld) {
				t.Error(err)
			}
			pass(time.Second)
		}
		f.reboot(0, 0, 1)
		f.reconnect(lk)
		if _, err := lk.TryAcquire(t.Context(), "a"); err != nil {
			t.Error(err)
		}
	})
}

// TestBoot: hosts boot with a wrong clock, which is set right later. A marker that was written in
// between makes no client take the node for one that has been running for a long time, nor for one
// that never will have been.
func TestBoot(t *testing.T) {
	opts := &Options{TTL: 10 * time.Second, MaxTTL: 10 * time.Second}
	full := opts.MaxTTL + defaultDrift(opts.MaxTTL)
	for _, tt := range []struct {
		name  string
		off   time.Duration // of the nodes' clocks when they come up
		first time.Duration // and of the client that writes the marker
		next  time.Duration // and of all that come later
	}{
		{"an hour behind", -time.Hour, 0, 0},
		{"a little behind", -12 * time.Second, 0, 0},
		{"two hours ahead", 2 * time.Hour, 0, 0},
		{"a little ahead", 900 * time.Millisecond, 0, 0},
		{"a client an hour ahead", 0, time.Hour, 0},
		{"a client an hour behind", 0, -time.Hour, 0},
		{"all others an hour behind", 0, 0, -time.Hour},
		{"all others, and the nodes", -time.Hour, 0, -time.Hour},
		{"all others, and the nodes are ahead", 2 * time.Hour, 0, -time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFleet(t, 3)
				holder := f.client(opts, 0)
				l, err := holder.TryAcquire(t.Context(), "a")
				if err != nil {
					t.Fatal(err)
				}
				pass(10 * time.Millisecond)
				f.reboot(tt.off, 0, 1)
				writer := f.client(opts, tt.first)
				_ = writer.Close()
				for _, n := range f.nodes[:2] {
					n.Step(-tt.off)
				}
				set := time.Now()
				// Each of them asks once, and has ended when the next one comes.
				for {
					lk := f.client(opts, tt.next)
					other, err := lk.TryAcquire(t.Context(), "a")
					_ = lk.Close()
					if err == nil {
						if rest := time.Until(l.Until()); rest > 0 {
							t.Errorf("a rival has the lock, and so has its holder for %v", rest)
						}
						_ = other
						break
					}
					if since := time.Since(set); since > 2*full {
						t.Fatalf("no client has the lock %v after the clocks were set right: %v", since, err)
					}
					pass(500 * time.Millisecond)
				}
			})
		})
	}
}

// TestFirstMinute: new nodes vote after a quarantine and no later, and at the first request.
func TestFirstMinute(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t, 5)
		for _, n := range f.nodes {
			n.SetMarker("")
		}
		lk := f.client(&Options{TTL: 10 * time.Second}, 0)
		pass(10*time.Second + 103*time.Millisecond)
		if _, err := lk.TryAcquire(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		if _, err := f.client(&Options{TTL: 10 * time.Second}, 0).TryAcquire(t.Context(), "b"); err != nil {
			t.Error(err)
		}
		// Nor if one of them goes away.
		f.nodes[4].Kill()
		for _, n := range f.nodes[:4] {
			n.Flush()
		}
		if _, err := lk.TryAcquire(t.Context(), "c"); err == nil {
			t.Error("granted by nodes that were emptied")
		}
		pass(11 * time.Second)
		if _, err := lk.TryAcquire(t.Context(), "c"); err != nil {
			t.Error(err)
		}
		if _, err := f.client(&Options{TTL: 10 * time.Second}, 0).TryAcquire(t.Context(), "d"); err != nil {
			t.Error(err)
		}
	})
}

// TestOffIsHeardOf: a node whose clock is far off has no vote, but it answers, and shows what it keeps: a node that
// has lost its data is told that again, and votes after a quarantine.
func TestOffIsHeardOf(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t, 3)
		lk := f.client(&Options{TTL: 5 * time.Second, MaxTTL: 5 * time.Second}, 0)
		f.nodes[0].Step(24 * time.Hour)
		f.nodes[1].Flush()
		if _, err := lk.TryAcquire(t.Context(), "a"); err == nil {
			t.Fatal("granted by one node of three")
		}
		pass(6 * time.Second)
		if _, err := lk.TryAcquire(t.Context(), "a"); err != nil {
			t.Error(err)
		}
	})
}

// TestUnfit: New refuses nodes that would break a lock, by what they say of
// themselves, and names node and setting (F1).
func TestUnfit(t *testing.T) {
	type info = map[string]string
	for _, tt := range []struct {
		name string
		info map[int]info
		want []string // in the error; none: it opens
		warn string
	}{
		{"all well", nil, nil, ""},
		{"a replica", map[int]info{1: {"role": "slave", "master_host": "10.0.0.9", "master_port": "6379"}},
			[]string{"10.0.0.2:6379: ineligible: must not vote: it is a slave (INFO role) of 10.0.0.9:6379"}, ""},
		{"a cluster node", map[int]info{0: {"cluster_enabled": "1"}},
			[]string{"10.0.0.1:6379: ineligible", "cluster_enabled:1"}, ""},
		{"the same server twice", map[int]info{0: {"run_id": "abc"}, 2: {"run_id": "abc"}},
			[]string{"it is the same server as 10.0.0.", "run_id abc"}, ""},
		{"eviction", map[int]info{2: {"maxmemory": "1000000", "maxmemory_policy": "allkeys-lru"}},
			[]string{"10.0.0.3:6379: ineligible", "maxmemory-policy allkeys-lru may evict locks (maxmemory 1000000): set noeviction"}, ""},
		{"eviction of keys with a TTL", map[int]info{2: {"maxmemory": "1", "maxmemory_policy": "volatile-ttl"}},
			[]string{"volatile-ttl"}, ""},
		{"an old Redis", map[int]info{1: {"redis_version": "6.2.14"}},
			[]string{"10.0.0.2:6379: ineligible: must not vote: it is Redis 6.2.14, and the scripts need Redis 7.0: use Redis 7.0 or later, Valkey or Redict"}, ""},
		{"Dragonfly", map[int]info{2: {"dragonfly_version": "df-v1.40.1"}},
			[]string{"10.0.0.3:6379: ineligible: must not vote: it is Dragonfly df-v1.40.1, which does not say which process it is"}, ""},
		{"Garnet", map[int]info{0: {"garnet_version": "1.0.99"}},
			[]string{"10.0.0.1:6379: ineligible: must not vote: it is Garnet 1.0.99, which does not run scripts atomically"}, ""},
		{"Kvrocks", map[int]info{0: {"kvrocks_version": "2.12.0"}}, []string{"it is Kvrocks 2.12.0, which keeps scripts on disk"}, ""},
		{"Valkey and Redict", map[int]info{0: {"valkey_version": "9.1.2"}, 1: {"redict_version": "7.3.6"}}, nil, ""},
		{"two at once", map[int]info{0: {"role": "slave"}, 1: {"cluster_enabled": "1"}},
			[]string{"10.0.0.1:6379: ineligible", "10.0.0.2:6379: ineligible"}, ""},
		{"no memory limit yet", map[int]info{2: {"maxmemory_policy": "allkeys-lru"}}, nil,
			"redlock: node 10.0.0.3:6379: its maxmemory-policy is allkeys-lru"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				nodes := redistest.NewBubble(t, 3)
				for i, fields := range tt.info {
					for field, value := range fields {
						nodes.SetInfo(i, field, value)
					}
				}
				var told warnings
				lk, err := New(nodes.Clients(), &Options{Hooks: &Hooks{Warning: told.add}})
				if err == nil {
					defer lk.Close()
				}
				if (err == nil) != (tt.want == nil) {
					t.Errorf("got %v, want %q", err, tt.want)
				}
				for _, want := range tt.want {
					if !strings.Contains(message(err), want) {
						t.Errorf("got %v, want %q", err, want)
					}
				}
				if got := told.all(); (got == "") != (tt.warn == "") || !strings.Contains(got, tt.warn) {
					t.Errorf("warned %q, want %q", got, tt.warn)
				}
			})
		})
	}
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

// TestUnfitLater: a node that was away when New looked, or comes back as
// something else, is checked then, and has no vote while it is unfit.
func TestUnfitLater(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes := redistest.NewBubble(t, 3)
		nodes.Kill(0)
		lk, err := New(nodes.Clients(), &Options{Quarantine: -1})
		if err != nil {
			t.Fatal("a node that is down is no reason to refuse:", err)
		}
		defer lk.Close()
		nodes.SetInfo(0, "role", "slave")
		nodes.Restart(0, false)
		pass(2 * time.Second)
		nodes.SetInfo(1, "run_id", "f00")
		nodes.SetInfo(2, "run_id", "f00")
		nodes.Restart(2, true)
		nodes.Restart(1, true)
		pass(2 * time.Second)
		_, err = lk.TryAcquire(t.Context(), "a")
		for _, e := range wantQuorumError(t, err, ErrNoQuorum).Nodes() {
			if e.Outcome != OutcomeIneligible && e.Outcome != OutcomeUnreachable {
				t.Error(e)
			}
		}
		pass(2 * time.Second) // to and fro: each may have been first
		_, err = lk.TryAcquire(t.Context(), "a")
		q := wantQuorumError(t, err, ErrNoQuorum)
		if len(q.Nodes()) < 2 || q.Nodes()[0].Outcome != OutcomeIneligible || !strings.Contains(err.Error(), "same server as") {
			t.Error(err)
		}
		nodes.SetInfo(0, "role", "")
		nodes.SetInfo(1, "run_id", "")
		nodes.SetInfo(2, "run_id", "")
		nodes.Restart(2, false)
		pass(5 * time.Second)
		if _, err := lk.TryAcquire(t.Context(), "a"); err != nil {
			t.Errorf("all are well again: %v", err)
		}
	})
}

// TestSwappedAddresses: two servers have changed their addresses, and each is where the other
// was. That is no reason to keep them out; but one that is at both addresses is in once.
func TestSwappedAddresses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes := redistest.NewBubble(t, 3)
		ids := []string{"aaa", "bbb", "ccc"}
		for i, id := range ids {
			nodes.SetInfo(i, "run_id", id)
		}
		lk, err := New(nodes.Clients(), &Options{Quarantine: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer lk.Close()
		nodes.SetInfo(0, "run_id", ids[1])
		nodes.SetInfo(1, "run_id", ids[0])
		nodes.Restart(0, true)
		nodes.Restart(1, true)
		_, _ = lk.TryAcquire(t.Context(), "any") // and finds the connections broken
		pass(3 * time.Second)
		status, err := lk.Inspect(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range status.Nodes {
			if n.Err != nil {
				t.Errorf("swapped: %v", n.Err)
			}
		}

		nodes.SetInfo(0, "run_id", ids[0])
		nodes.Restart(0, true)
		_, _ = lk.TryAcquire(t.Context(), "any")
		pass(3 * time.Second)
		if status, err = lk.Inspect(t.Context(), "a"); err != nil || status.Nodes[0].Err == nil || status.Nodes[0].Err.Outcome != OutcomeIneligible || status.Nodes[1].Err != nil {
			t.Errorf("the same server twice: %v, %+v", err, status)
		}
	})
}

// TestRefusedClients: what is no client of one server is refused before anything
// is sent.
func TestRefusedClients(t *testing.T) {
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer cluster.Close()
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	defer ring.Close()
	one := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer one.Close()
	open := func(nodes ...redis.UniversalClient) error {
		lk, err := New(nodes, nil)
		if err == nil {
			lk.Close()
		}
		return err
	}
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"cluster", open(one, cluster), "node 1: a *redis.ClusterClient is no"},
		{"ring", open(ring), "node 0: a *redis.Ring is no"},
		{"nil", open(one, nil), "node 1: a <nil> is no"},
		{"typed nil", open((*redis.Client)(nil)), "node 0: the *redis.Client is nil"},
		{"none", open(), "no nodes"},
		{"the same address twice", open(one, one), "nodes 0 and 1 are both 127.0.0.1:1"},
	} {
		if !strings.Contains(message(tt.err), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, tt.err, tt.want)
		}
	}
	for _, tt := range []struct{ url, want string }{
		{"http://user:secret@h:1", "node 1"},
		{"redis://user:secret@h:port", "node 1"},
		{"redis://user:sec%ret@h", "node 1"},
		{"redis://h:1/x", "node 1"},
		{"h:6379", "node 1"},
		{"redis://user:sec/ret@h", "node 1"},
		{"redis://user:sec#ret@h", "node 1"},
		{"redis://user:sec?ret@h", "node 1"},
		{"redis://user:12/sec@h", "node 1"},
		{"redis://user:12#sec@h", "node 1"},
		{"redis://user:12?sec@h", "node 1"},
		{"", "node 1"},
	} {
		_, err := Connect([]string{"redis://127.0.0.1:1", tt.url}, nil)
		if got := message(err); !strings.Contains(got, tt.want) || strings.Contains(got, "sec") {
			t.Errorf("%q: got %q, want %q and no password", tt.url, got, tt.want)
		}
	}
}

// TestEvenNumberIsUnwise: it works, and is warned of.
func TestEvenNumberIsUnwise(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var told warnings
		newModels(4).locker(t, &Options{Hooks: &Hooks{Warning: told.add}})
		if !strings.Contains(told.all(), "4 nodes: an even number") {
			t.Errorf("warned %q", told.all())
		}
	})
}

// TestOpeningWithAHungNode: one node that hangs costs a Locker that is opened and
// closed little, and not a NodeTimeout each.
func TestOpeningWithAHungNode(t *testing.T) {
	for hung, want := range []time.Duration{0, 50 * time.Millisecond, 50 * time.Millisecond, time.Second} {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			for _, m := range ms[:hung] {
				m.hang()
			}
			begin := time.Now()
			lk := ms.locker(t, nil)
			if took := time.Since(begin); took != want {
				t.Errorf("%d of 5 hung: opened after %v, want %v", hung, took, want)
			}
			lk.Close()
			if took := time.Since(begin); took != want {
				t.Errorf("%d of 5 hung: opened and closed after %v, want %v", hung, took, want)
			}
		})
	}
}
