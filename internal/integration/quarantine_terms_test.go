package integration_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// TestDifferentTTLs: two programs, one with locks of a minute, and one with locks of two
// seconds. Two of three nodes lose what they have.
func TestDifferentTTLs(t *testing.T) {
	long, short := &redlock.Options{TTL: time.Minute}, &redlock.Options{TTL: 2 * time.Second}
	first := &redlock.Options{TTL: 2 * time.Second, MaxTTL: time.Minute} // of a program that may be the first
	held := func(f *fleet, lk *redlock.Locker) *redlock.Lock {
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
			f.alone(l, func() *redlock.Locker { return f.client(short, 0) })
		},
		"the third node is slow": func(f *fleet) {
			l := held(f, f.client(long, 0))
			f.reboot(0, 0, 1)
			f.nodes[2].Delay(600*time.Millisecond, 0)
			f.alone(l, func() *redlock.Locker { return f.client(short, 0) })
		},
		"the third node cannot be reached, but somebody who knows has been there since": func(f *fleet) {
			second, first := f.client(short, 0), f.client(long, 0)
			l := held(f, first)
			f.nodes[2].Kill()
			f.reboot(0, 0, 1)
			f.reconnect(first)
			f.alone(l, same(second), func() *redlock.Locker { return f.client(short, 0) })
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
			f.alone(l, same(second), func() *redlock.Locker { return f.client(short, 0) })
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
			f.alone(l, func() *redlock.Locker { return f.client(short, 0) })
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
		first, next redlock.Options
		want        time.Duration
	}{
		{redlock.Options{}, redlock.Options{TTL: time.Second}, 10 * time.Second},
		{redlock.Options{TTL: time.Second}, redlock.Options{TTL: 5 * time.Second, Quarantine: 6 * time.Second}, 10 * time.Second},
		{redlock.Options{TTL: time.Minute}, redlock.Options{TTL: time.Second, MaxTTL: 2 * time.Second}, time.Minute},
		{redlock.Options{TTL: time.Second, MaxTTL: 3 * time.Second}, redlock.Options{TTL: 3 * time.Second, MaxTTL: 3 * time.Second}, 3 * time.Second},
	} {
		bubble(t, func(t *testing.T) {
			f := newFleet(t, 3)
			if l, err := f.client(&tt.first, 0).TryAcquire(t.Context(), "a"); err != nil || l.Release(t.Context()) != nil {
				t.Fatal(err)
			}
			next := f.client(&tt.next, 0)
			l, err := next.TryAcquire(t.Context(), "a", redlock.TTL(tt.want))
			if err != nil {
				t.Fatal(err)
			}
			_ = l.Release(t.Context())
			for _, acquire := range []func() error{
				func() error {
					_, err := next.TryAcquire(t.Context(), "a", redlock.TTL(tt.want+time.Millisecond))
					return err
				},
				func() error { _, err := next.Acquire(t.Context(), "a", redlock.TTL(24*time.Hour)); return err },
				func() error {
					_, err := f.client(&redlock.Options{TTL: tt.want + time.Second}, 0).TryAcquire(t.Context(), "a")
					return err
				},
				func() error {
					_, err := f.client(&redlock.Options{TTL: time.Second, MaxTTL: time.Hour}, 0).TryAcquire(t.Context(), "a", redlock.TTL(time.Hour))
					return err
				},
			} {
				begin := time.Now()
				err := acquire()
				for _, want := range []string{"and the set allows " + tt.want.String(), "a node has no vote for so long", "redlock members set max-ttl"} {
					if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, redlock.ErrNoQuorum) || time.Since(begin) > time.Second {
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

// TestOwnMaxTTLIsForOwnQuarantinesAlone: a program with a longer MaxTTL than the set's waits for longer itself when nodes
// have forgotten. The set's MaxTTL, and how long other programs wait, stay as they are.
func TestOwnMaxTTLIsForOwnQuarantinesAlone(t *testing.T) {
	onNodes(t, 3, func(f *fleet) {
		other := f.locker(redlock.Options{}, f.nodes...)
		f.locks(other, true)
		own := f.locker(redlock.Options{MaxTTL: 30 * time.Second}, f.nodes...)
		f.locks(own, true)
		for _, n := range f.nodes[:2] {
			n.Flush()
		}
		f.locks(own, false)
		f.locks(other, false)
		pass(12 * time.Second)
		f.locks(own, false)
		f.locks(other, true)
		pass(17 * time.Second)
		f.locks(own, false)
		pass(3 * time.Second)
		f.locks(own, true)
		if d := f.Agrees(f.nodes...); d.MaxTTL != 10_000 {
			t.Errorf("the set allows locks of %d ms", d.MaxTTL)
		}
	})
}

// TestForgottenLongAgo: a node lost its data five seconds ago, and another client has found that out. It votes when its
// quarantine is over, also if others hang by then, and have not been heard of since.
func TestForgottenLongAgo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t, 5)
		opts := &redlock.Options{TTL: 3 * time.Second, MaxTTL: 3 * time.Second}
		idle, busy := f.client(opts, 0), f.client(opts, 0)
		for i, lk := range []*redlock.Locker{idle, busy, busy} {
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
		lk := f.client(&redlock.Options{TTL: 2 * time.Second, MaxTTL: 2 * time.Second}, 0)
		mute := f.client(&redlock.Options{TTL: time.Hour, Quarantine: -1}, 0)
		if _, err := mute.TryAcquire(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := lk.TryAcquire(t.Context(), "a"); !errors.Is(err, redlock.ErrHeld) {
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

// TestMarkerOfAWrongClockGivesNoEarlyVote: hosts boot with a wrong clock, which is set right later. A marker that was written in
// between makes no client take the node for one that has been running for a long time, nor for one
// that never will have been.
func TestMarkerOfAWrongClockGivesNoEarlyVote(t *testing.T) {
	opts := &redlock.Options{TTL: 10 * time.Second, MaxTTL: 10 * time.Second}
	full := opts.MaxTTL + opts.MaxTTL/100 + 2*time.Millisecond
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

// TestNewNodesVoteAfterOneQuarantine: new nodes vote after a quarantine and no later, and at the first request.
func TestNewNodesVoteAfterOneQuarantine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t, 5)
		for _, n := range f.nodes {
			n.SetMarker("")
		}
		lk := f.client(&redlock.Options{TTL: 10 * time.Second}, 0)
		pass(10*time.Second + 103*time.Millisecond)
		if _, err := lk.TryAcquire(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		if _, err := f.client(&redlock.Options{TTL: 10 * time.Second}, 0).TryAcquire(t.Context(), "b"); err != nil {
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
		if _, err := f.client(&redlock.Options{TTL: 10 * time.Second}, 0).TryAcquire(t.Context(), "d"); err != nil {
			t.Error(err)
		}
	})
}

// TestOffIsHeardOf: a node whose clock is far off has no vote, but it answers, and shows what it keeps: a node that
// has lost its data is told that again, and votes after a quarantine.
func TestOffIsHeardOf(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t, 3)
		lk := f.client(&redlock.Options{TTL: 5 * time.Second, MaxTTL: 5 * time.Second}, 0)
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

// TestMaxTTLEndsItsQuarantine: nodes are new, and the first program has locks of a day. The operator knows that none is held.
func TestMaxTTLEndsItsQuarantine(t *testing.T) {
	onNodes(t, 3, func(f *fleet) {
		for _, n := range f.nodes {
			n.Flush()
		}
		ctx, cancel := context.WithTimeout(f.Context(), 5*time.Second)
		defer cancel()
		if _, err := f.locker(redlock.Options{TTL: 24 * time.Hour}, f.nodes...).Acquire(ctx, "a"); !errors.Is(err, redlock.ErrNoQuorum) {
			t.Fatal(err)
		}
		lk, most := f.locker(redlock.Options{TTL: 2 * time.Second, MaxTTL: 2 * time.Second}, f.nodes...), 2*time.Second
		for i, over := range []bool{false, true} {
			if m, err := lk.Change(f.Context(), redlock.Change{MaxTTL: &most, LongerOver: over}, nil); err != nil || m.MaxTTL != most || (m.LongerTTL == 0) != over {
				t.Errorf("%d: %+v, %v", i, m, err)
			}
		}
		f.locks(lk, true)
	})
}

// TestOwnClock: the clock of this program's computer runs fast for a while, as a time service slews it, is always
// 300 ppm off, or stands. All nodes seem to step, and the program is told that it is its own clock. Where the nodes
// seem to go back, they keep their votes. If only its wall clock is set, it knows by the other one, and is told nothing.
func TestOwnClock(t *testing.T) {
	for _, tt := range []struct {
		name        string
		each, gains time.Duration
		told, waits bool
		wall        bool // only the wall clock
	}{
		{"1% fast", 5 * time.Second, 50 * time.Millisecond, false, false, false},
		{"5% fast", 5 * time.Second, 250 * time.Millisecond, true, false, false},
		{"8.3% fast, and often", 500 * time.Millisecond, 41500 * time.Microsecond, true, false, false},
		{"8.3% fast", 12 * time.Second, time.Second, true, false, false},
		{"300 ppm fast", time.Hour, 1080 * time.Millisecond, false, false, false},
		{"300 ppm slow", time.Hour, -1080 * time.Millisecond, false, false, false},
		{"set forward by a day", 5 * time.Second, 24 * time.Hour, false, false, true},
		{"stands for a minute", 65 * time.Second, -time.Minute, true, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFleet(t, 3)
				var told warnings
				quarantined := 0
				lk := f.client(&redlock.Options{Hooks: &redlock.Hooks{Warning: told.add, Quarantined: func(string, time.Duration, error) { quarantined++ }}}, 0)
				if err := lk.WaitReady(t.Context()); err != nil {
					t.Fatal(err)
				}
				pass(time.Minute)
				before := quarantined
				try := func() error {
					l, err := lk.TryAcquire(t.Context(), "a")
					if err != nil {
						return err
					}
					return l.Release(t.Context())
				}
				if err := try(); err != nil {
					t.Fatal(err)
				}
				for n := range 6 {
					pass(tt.each)
					if tt.wall {
						f.host[lk].Skew(tt.gains)
					} else {
						f.host[lk].Gain(tt.gains)
					}
					err := try()
					if (err != nil) != tt.waits {
						t.Fatalf("%d: %v", n, err)
					}
					if tt.waits {
						pass(12 * time.Second)
						if err := try(); err != nil {
							t.Fatal(err)
						}
					}
				}
				pass(time.Second)
				if (quarantined > before) != tt.waits {
					t.Errorf("%d quarantines", quarantined-before)
				}
				if got := told.all(); strings.Contains(got, "this computer's own clock") != tt.told {
					t.Errorf("told %q", got)
				}
			})
		})
	}
}

// TestFastClocksAfterAStep: the nodes' clocks are as fast as the drift allows, and are set. They have no
// vote for longer than a TTL, and for no longer than that.
func TestFastClocksAfterAStep(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t, 3)
		for _, n := range f.nodes {
			n.Rate(0.0085)
		}
		lk := f.client(&redlock.Options{TTL: 200 * time.Millisecond, MaxTTL: 600 * time.Millisecond, Quarantine: 700 * time.Millisecond}, 0)
		for range 20 {
			atRest(t, lk, "a").Release(t.Context())
			pass(20 * time.Millisecond)
		}
		for _, n := range f.nodes {
			n.Step(100 * time.Millisecond)
		}
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		l, err := lk.Acquire(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took < 700*time.Millisecond || took > time.Second {
			t.Errorf("it took %v", took)
		}
		l.Release(t.Context())
	})
}

// TestMaxHoldEndsByTheClockThatIsAhead: when the wall clock is set forward while a lock is held, its next extension does not
// go past MaxHold by that clock, either.
func TestMaxHoldEndsByTheClockThatIsAhead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t, 3)
		lk := f.client(&redlock.Options{}, 0)
		if err := lk.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		l, err := lk.TryAcquire(t.Context(), "a", redlock.MaxHold(12*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		f.host[lk].Skew(6 * time.Second)
		if err := l.Extend(t.Context()); err != nil {
			t.Fatal(err)
		}
		if rest := time.Until(f.host[lk].Real(l.Until())); rest > 5*time.Second {
			t.Errorf("it is valid for %v more, held for a second, and by the wall clock for seven", rest)
		}
	})
}

// TestSuspendedWhileAcquiringWithMaxHold: MaxHold begins when the lock has been acquired, and its validity when it was asked
// for. The machine was suspended in between, so by the monotonic clock MaxHold is over first, and by the wall clock
// validity: that is what counts.
func TestSuspendedWhileAcquiringWithMaxHold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t, 3)
		lk := f.client(&redlock.Options{}, 0)
		if err := lk.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, n := range f.nodes {
			n.Delay(100*time.Millisecond, 0)
		}
		asked := time.Now()
		time.AfterFunc(50*time.Millisecond, func() { f.host[lk].Suspend(9 * time.Second) })
		l, err := lk.TryAcquire(t.Context(), "a", redlock.MaxHold(8*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(asked); took < 9*time.Second {
			t.Fatalf("it took %v: the test does not test what it means to", took)
		}
		if end := f.host[lk].Real(l.Until()); end.After(asked.Add(10 * time.Second)) {
			t.Errorf("it is valid until %v after it was asked for, and its keys live for 10s", end.Sub(asked))
		}
	})
}
