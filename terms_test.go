package redlock

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	arena "github.com/quorumlock/redlock/internal/model"
	"github.com/quorumlock/redlock/internal/sim"
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

// client is a process of its own, whose clock is ahead.
func (f *fleet) client(opts *Options, ahead time.Duration) *Locker {
	f.Helper()
	f.hosts++
	h := arena.NewHost(sim.Seed(1), fmt.Sprint("c", f.hosts))
	h.Skew(ahead)
	o := *opts
	o.Clock = h
	clients := make([]lane.Client, len(f.nodes))
	for i, n := range f.nodes {
		clients[i] = n.Client(h)
	}
	lk, err := New(clients, &o)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { lk.Close() })
	return lk
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
// seconds that knows of no others. Two of three nodes lose what they have.
func TestDifferentTTLs(t *testing.T) {
	long, short := &Options{TTL: time.Minute}, &Options{TTL: 2 * time.Second}
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
			second := f.client(short, 0)
			f.nodes[2].Step(2 * time.Hour)
			_, _ = second.TryAcquire(f.Context(), "b") // finds out
			l := held(f, f.client(long, 0))
			f.nodes[0].Flush()
			f.nodes[1].Flush()
			f.alone(l, same(second))
		},
		"one node after another, and the short one has heard of it": func(f *fleet) {
			second := f.client(short, 0)
			first := f.client(long, 0)
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
		"all of them within the lock's life, and somebody passes on what was announced": func(f *fleet) {
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
			second := f.client(short, 0)
			first := f.client(long, 0)
			if l, err := second.TryAcquire(f.Context(), "b"); err != nil || l.Release(f.Context()) != nil {
				f.Fatal(err)
			}
			l := held(f, first)
			f.reboot(0, 0, 1, 2)
			f.alone(l, same(second))
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) { run(newFleet(t, 3)) })
		})
	}
}

// TestDifferentTTLsAreToldOf: both programs get one warning, with both values; and a longer TTL is
// no loss, for any client.
func TestDifferentTTLsAreToldOf(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t, 3)
		var told [3]warnings
		var quarantined []string
		opts := func(i int, ttl time.Duration) *Options {
			return &Options{TTL: ttl, Hooks: &Hooks{Warning: told[i].add, Quarantined: func(node string, d time.Duration, why error) {
				quarantined = append(quarantined, fmt.Sprint(node, " ", d, " ", why))
			}}}
		}
		use := func(lk *Locker) {
			t.Helper()
			for range 3 {
				l, err := lk.TryAcquire(t.Context(), "a")
				if err != nil {
					t.Fatal(err)
				}
				if err := l.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
				pass(10 * time.Millisecond)
			}
		}
		short := f.client(opts(0, 2*time.Second), 0)
		use(short)
		long := f.client(opts(1, time.Minute), 0)
		use(long)
		use(short)
		use(f.client(opts(2, time.Minute), 0))
		for i, want := range []string{"has announced a MaxTTL of 1m0s, and ours (Options.MaxTTL) is 2s", "has announced a MaxTTL of 2s, and ours (Options.MaxTTL) is 1m0s", ""} {
			if got := told[i].all(); !strings.Contains(got, want) || strings.Count(got, "redlock:") != min(1, len(want)) {
				t.Errorf("program %d is told %q, want %q", i, got, want)
			}
		}
		if len(quarantined) > 0 {
			t.Errorf("quarantined: %v", quarantined)
		}

		// What is over for the one is not over for the other.
		f.nodes[0].Flush()
		use(short)
		pass(3 * time.Second)
		use(short)
		rest := func() time.Duration {
			s, err := short.Inspect(t.Context(), "a")
			if err != nil || s.Nodes[0].Err == nil {
				t.Fatal(err, s.Nodes[0].Err)
			}
			return s.Nodes[0].Err.TTL
		}
		if got := rest(); got < 57*time.Second || got > 58*time.Second {
			t.Errorf("three seconds after it was emptied a node has no vote for another %v", got)
		}
	})
}

// TestQuarantineGrows: a longer TTL that becomes known makes quarantines longer that have
// begun, and those that are over.
func TestQuarantineGrows(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t, 3)
		var told []string
		short := f.client(&Options{TTL: 2 * time.Second, Hooks: &Hooks{Quarantined: func(node string, d time.Duration, _ error) {
			told = append(told, fmt.Sprint(node, " ", d.Round(time.Second)))
		}}}, 0)
		for i := range f.nodes {
			f.reboot(0, i)
		}
		f.reconnect(short)
		if l, err := short.TryAcquire(t.Context(), "a"); err != nil || l.Release(t.Context()) != nil {
			t.Fatal("all nodes vote again:", err)
		}
		told = nil
		f.client(&Options{TTL: time.Minute}, 0)
		_, err := short.TryAcquire(t.Context(), "a")
		if !errors.Is(err, ErrNoQuorum) || !strings.Contains(err.Error(), "quarantined for 5") {
			t.Errorf("nodes were emptied less than a minute ago: %v", err)
		}
		if len(told) != 3 {
			t.Errorf("told of %v", told)
		}
		if err := short.WaitReady(t.Context()); err != nil {
			t.Error(err)
		}
		if l, err := short.TryAcquire(t.Context(), "a"); err != nil || l.Release(t.Context()) != nil {
			t.Error(err)
		}
	})
}

// TestLongerThanAnnounced: a program that announces nothing, as one of an earlier version, or
// with its quarantine off, has locks that are longer than our MaxTTL. A refusal shows it.
func TestLongerThanAnnounced(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t, 3)
		mute := f.client(&Options{TTL: time.Minute, Quarantine: -1}, 0)
		var told warnings
		short := f.client(&Options{TTL: 2 * time.Second, Hooks: &Hooks{Warning: told.add}}, 0)
		l, err := mute.TryAcquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := short.TryAcquire(t.Context(), "a"); !errors.Is(err, ErrHeld) {
				t.Error(err)
			}
			pass(time.Second)
		}
		if got := told.all(); strings.Count(got, "redlock:") != 1 || !strings.Contains(got, "node node") || !strings.Contains(got, "lives for another ") || !strings.Contains(got, "is 2s") {
			t.Errorf("told %q", got)
		}
		f.reboot(0, 0, 1)
		f.alone(l, same(short))
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

// TestOffIsHeardOf: a node whose clock is far off has no vote, but it answers, and shows its
// marker: a node that has lost its data votes after a quarantine, and not only after a minute.
func TestOffIsHeardOf(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t, 3)
		lk := f.client(&Options{TTL: 5 * time.Second}, 0)
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

// TestRefusedAndHeardOf: a node that refuses shows no marker with that. It is asked for it where
// another one's vote depends on it, so what is held is said to be held, and not that there is
// no quorum.
func TestRefusedAndHeardOf(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t, 3)
		opts := &Options{TTL: 5 * time.Second}
		idle, busy := f.client(opts, 0), f.client(opts, 0)
		pass(time.Second)
		f.nodes[1].Flush()
		_, _ = busy.TryAcquire(t.Context(), "other") // finds out, and marks it anew
		pass(6 * time.Second)
		f.nodes[1].Refuse(errLoading)
		if _, err := busy.TryAcquire(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		pass(time.Millisecond)
		f.nodes[1].Refuse(nil)
		f.nodes[2].Flush()
		f.nodes[0].Delay(10*time.Millisecond, 0) // it answers when the attempt is lost already
		if _, err := idle.TryAcquire(t.Context(), "a"); !errors.Is(err, ErrHeld) {
			t.Error(err)
		}
	})
}
