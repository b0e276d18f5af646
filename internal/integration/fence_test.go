package integration_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
	"github.com/quorumlock/redlock/internal/vote"
	"github.com/quorumlock/redlock/internal/wire"
)

// TestFencesRise: fences rise from lock to lock on a name, for any client, whatever its clock
// shows, and however long the messages take.
func TestFencesRise(t *testing.T) {
	const day = 24 * time.Hour
	for name, clocks := range map[string][]redlock.Clock{
		"right clocks":            {nil, nil, nil},
		"clocks off by days":      {nil, wrong{by: 3 * day}, wrong{by: -3 * day}, wrong{by: 20 * 365 * day}, wrong{by: -29 * 365 * day}},
		"clocks of before 1970":   {wrong{by: -40 * 365 * day}, nil},
		"by less than is noticed": {wrong{by: 300 * time.Millisecond}, nil, wrong{by: -300 * time.Millisecond}},
		"clocks that tremble":     {wrong{by: 0, upTo: time.Microsecond * 50}, nil},
	} {
		for at, jitter := range []time.Duration{0, 20 * time.Millisecond} {
			if !need.Sample(at+len(clocks), 2) {
				continue
			}
			t.Run(fmt.Sprint(name, ", ", jitter), func(t *testing.T) {
				fences(t, func(f *fenced) {
					var lockers []*redlock.Locker
					for _, clock := range clocks {
						lockers = append(lockers, f.locker(&redlock.Options{Clock: clock}))
					}
					for i := range f.Len() {
						f.Path(i).SetJitter(jitter)
					}
					last := make(map[string]int64)
					for n := range need.Sized(4, 30, 600) {
						name := fmt.Sprint("job", n%2)
						l, err := lockers[rand.N(len(lockers))].Acquire(f.Context(), name)
						if err != nil {
							f.Fatal(err)
						}
						if l.Fence() <= last[name] || l.Fence() >= wire.MaxFence {
							f.Fatalf("the fence %d comes after %d, in the lock number %d", l.Fence(), last[name], n)
						}
						last[name] = l.Fence()
						f.stored(l, 3)
						if rand.N(4) > 0 {
							if err := l.Release(f.Context()); err != nil {
								f.Fatal(err)
							}
						} else {
							pass(11 * time.Second) // it expires
						}
					}
				})
			})
		}
	}
}

// TestFenceStaysWhileTheLockIsHeld: neither extensions nor renewals change the fence of a lock; the next lock on the
// name has a larger one.
func TestFenceStaysWhileTheLockIsHeld(t *testing.T) {
	fences(t, func(f *fenced) {
		lk := f.locker(nil)
		l, err := lk.TryAcquire(f.Context(), "a", redlock.AutoRenew())
		if err != nil {
			f.Fatal(err)
		}
		first := l.Fence()
		for range 10 {
			pass(7 * time.Second) // a renewal or two
			if err := l.Extend(f.Context()); err != nil {
				f.Fatal(err)
			}
			if l.Fence() != first {
				f.Fatalf("the fence was %d, and is %d", first, l.Fence())
			}
			f.stored(l, 5)
		}
		f.release(l)
		next := f.took(lk, "a", 0)
		if next.Fence() <= first {
			f.Errorf("after %d comes %d", first, next.Fence())
		}
	})
}

// TestFenceInOneRoundTrip: without faults the nodes accept the proposed fence, and no second round
// is needed.
func TestFenceInOneRoundTrip(t *testing.T) {
	fences(t, func(f *fenced) {
		f.apart()
		lk := f.locker(nil)
		settle()
		for range need.Sized(3, 10, 10) {
			proposed, before := time.Now().UnixMicro(), f.Mini(4).CommandCount()
			l := f.took(lk, "a", quorumsAnswer)
			f.stored(l, 5)
			if ahead := l.Fence() - proposed; ahead < 0 || ahead > 1000 { // by what is not known of the clocks
				f.Errorf("the fence is %d, and the time was %d", l.Fence(), proposed)
			}
			// Four for the lock, four for the write, and a PING after a pause.
			if n := f.Mini(4).CommandCount() - before; n > 9 {
				f.Errorf("a node had %d commands for one lock", n)
			}
			f.release(l)
			f.free(0, 1, 2, 3, 4)
		}
	})
}

// TestFenceIsRaised: where the counters are not alike, a quorum of nodes is brought to
// the largest number of the quorum that has granted.
func TestFenceIsRaised(t *testing.T) {
	const hour = int64(time.Hour / time.Microsecond)
	for row, tt := range []struct {
		name   string
		ahead  [5]int64 // how far the nodes' counters are ahead of the time; 0: there is none
		clock  redlock.Clock
		twice  bool // it takes a second round trip
		want   int64
		shared int // how many nodes have the fence in the end
	}{
		{name: "no counters", want: 0, shared: 5},
		{name: "one has lost it, and the others are ahead", ahead: [5]int64{0, hour, hour, hour, hour}, twice: true, want: hour + 1, shared: 5},
		{name: "one is ahead", ahead: [5]int64{0, hour, 0, 0, 0}, twice: true, want: hour + 1, shared: 5},
		{name: "all are ahead, each by another amount", ahead: [5]int64{hour, hour + 2, hour + 1, hour - 1, 1}, twice: true, want: hour + 3, shared: 5},
		{name: "one that is not asked in time is ahead", ahead: [5]int64{0, 0, 0, 0, hour}, want: 0, shared: 4},
		{name: "two that are not asked in time are ahead, and say no", ahead: [5]int64{0, 5, 0, hour, hour}, clock: wrong{by: -time.Hour}, twice: true, want: 6, shared: 3},
		{name: "all are ahead, by the same", ahead: [5]int64{hour, hour, hour, hour, hour}, want: hour + 1, shared: 5},
	} {
		if !need.Sample(row+1, 4) {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			fences(t, func(f *fenced) {
				f.apart()
				lk := f.locker(&redlock.Options{Clock: tt.clock, MaxNodeSkew: -1}) // numbers of the future are none else
				settle()
				now := time.Now().UnixMicro()
				for i, ahead := range tt.ahead {
					if ahead > 0 {
						f.count(i, "a", now+ahead)
					}
				}
				round := quorumsAnswer
				if tt.twice {
					round *= 2
				}
				l := f.took(lk, "a", round)
				if got := l.Fence() - now; got != tt.want {
					f.Errorf("the fence is %d ahead, want %d", got, tt.want)
				}
				f.stored(l, tt.shared)
				f.release(l)

				// And the next one is above it, whichever nodes are asked.
				next := f.locker(&redlock.Options{MaxNodeSkew: -1})
				for i := range f.Len() {
					f.Path(i).SetDelay(time.Duration(18-2*i) * time.Millisecond)
				}
				after, err := next.TryAcquire(f.Context(), "a")
				if err != nil {
					f.Fatal(err)
				}
				if after.Fence() <= l.Fence() {
					f.Errorf("after %d comes %d: %v", l.Fence(), after.Fence(), f.counters("a"))
				}
			})
		})
	}
}

// unfenced is what an error says of an attempt that had a quorum of grants, and whose fence was not stored.
const unfenced = "the fence could not be stored on a quorum of nodes"

// TestFenceCannotBeStored: an attempt whose grants were enough, and whose number could
// not be stored, is none. It says so, and leaves nothing.
func TestFenceCannotBeStored(t *testing.T) {
	for row, tt := range []struct {
		name    string
		trouble func(f *fenced, cancel func())
		end     func(f *fenced)
		takes   time.Duration // until node 3 says so, in half of its 16 ms, or in all of them; or the time is up
		cause   string
		nodes   redlock.Outcome // of 1, 2 and 3
	}{
		{"nodes die", func(f *fenced, _ func()) {
			for i := 1; i <= 3; i++ {
				f.Kill(i)
			}
		}, func(f *fenced) {
			for i := 1; i <= 3; i++ {
				f.Restart(i, true)
			}
		}, 23 * time.Millisecond, unfenced, redlock.OutcomeUnreachable},
		{"nodes hang", func(f *fenced, _ func()) {
			for i := 1; i <= 3; i++ {
				f.Hang(i)
			}
		}, func(f *fenced) {
			for i := 1; i <= 3; i++ {
				f.Resume(i)
			}
		}, 500 * time.Millisecond, unfenced, redlock.OutcomeTimeout},
		{"nodes have lost the lock", func(f *fenced, _ func()) {
			for i := 1; i <= 3; i++ {
				f.Mini(i).Del("a")
			}
		}, func(*fenced) {}, 30 * time.Millisecond, unfenced, redlock.OutcomeGone},
		{"nodes were emptied", func(f *fenced, _ func()) {
			for i := 1; i <= 3; i++ {
				f.Mini(i).FlushAll()
			}
		}, func(*fenced) {}, 30 * time.Millisecond, unfenced, redlock.OutcomeGone},
		{"counters are past it", func(f *fenced, _ func()) {
			for i := 1; i <= 3; i++ {
				f.count(i, "a", 1<<52)
			}
		}, func(*fenced) {}, 30 * time.Millisecond, unfenced, redlock.OutcomeGone},
		{"the caller goes away", func(_ *fenced, cancel func()) { cancel() }, func(*fenced) {}, 15 * time.Millisecond, context.Canceled.Error(), redlock.OutcomeTimeout},
	} {
		if !need.Sample(row+4, 6) {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			fences(t, func(f *fenced) {
				f.apart()
				lk := f.locker(&redlock.Options{MaxNodeSkew: -1})
				settle()
				f.count(0, "a", time.Now().Add(time.Hour).UnixMicro())
				ctx, cancel := context.WithCancel(f.Context())
				defer cancel()
				token := ""
				time.AfterFunc(quorumsAnswer+time.Millisecond, func() { // the raise has left
					token, _ = f.Mini(0).Get("a")
					tt.trouble(f, cancel)
				})
				begin := time.Now()
				l, err := lk.TryAcquire(ctx, "a")
				q := wantKind(f.T, err, redlock.ErrNoQuorum)
				if took := time.Since(begin); l != nil || took != tt.takes {
					f.Errorf("after %v, want %v: lock %v, %v", took, tt.takes, l, err)
				}
				if !strings.Contains(err.Error(), tt.cause) {
					f.Errorf("%v does not say that it was %q", err, tt.cause)
				}
				if q.Op != "acquire" || q.Name != "a" {
					f.Errorf("it is said to be %s %q: %v", q.Op, q.Name, err)
				}
				for _, n := range q.Nodes() {
					if i := slices.IndexFunc([]int{1, 2, 3}, func(i int) bool { return f.Addr(i) == n.Node }); i >= 0 && n.Outcome != tt.nodes {
						f.Errorf("%v; want %v", n, tt.nodes)
					}
				}
				pass(100 * time.Millisecond)
				f.free(0, 4)
				tt.end(f)
				pass(3 * time.Second)
				f.free(0, 1, 2, 3, 4)

				l, err = lk.Acquire(f.Context(), "a") // after the quarantine, where there is one
				if err != nil {
					f.Fatal(err)
				}
				if token == "" || l.Token() == token {
					f.Errorf("a second attempt has the same token")
				}
				synctest.Wait()
				f.stored(l, 3)
			})
		})
	}
}

// TestNumbersThatLuaCannotCountAreNoFences: numbers that Lua cannot distinguish any more are no fences. No node reaches them by
// itself, for a fence is near its time; but an operator may have set a counter.
func TestNumbersThatLuaCannotCountAreNoFences(t *testing.T) {
	fences(t, func(f *fenced) {
		lk := f.locker(&redlock.Options{MaxNodeSkew: -1})
		for i := range f.Len() {
			f.count(i, "a", wire.MaxFence-3)
		}
		last := int64(0)
		for range 5 {
			l, err := lk.TryAcquire(f.Context(), "a")
			if err != nil {
				if last != wire.MaxFence-1 {
					f.Errorf("after %d: %v", last, err)
				}
				wantKind(f.T, err, redlock.ErrNoQuorum)
				pass(time.Second)
				f.free(0, 1, 2, 3, 4)
				continue
			}
			if l.Fence() <= last || l.Fence() >= wire.MaxFence {
				f.Errorf("after %d comes %d", last, l.Fence())
			}
			last = l.Fence()
			f.release(l)
		}
	})
}

// TestCounterOutlastsItsKey: a lock's counter must not end with its key, nor with a clock that is
// ahead for a moment, or a node would have nothing but the time to go by; and that of the
// slow client, in the next lock, is earlier than that of the fast one in the first. A counter
// for all names in the place of one for each does not help: it would be ahead of every lock
// on another name, too.
func TestCounterOutlastsItsKey(t *testing.T) {
	threeNodes(t, func(f *fenced) {
		fast := redlock.Options{TTL: 2 * time.Second, Clock: wrong{by: 500 * time.Millisecond}, Quarantine: -1}
		slow := redlock.Options{TTL: 2 * time.Second, Clock: wrong{by: -500 * time.Millisecond}, Quarantine: -1}
		f.Kill(2)
		first := f.must("a", fast)
		f.Restart(2, true)
		f.Step(1, 13*time.Second)
		f.Mini(1).Keys() // what has expired is gone
		f.Step(1, -13*time.Second)
		pass(200 * time.Millisecond)
		f.Kill(0)
		if second := f.must("a", slow); second <= first {
			f.Errorf("after %d comes %d", first, second)
		}
	})
}

// TestNumberOfAFastClockIsNoFence: one node of three is a month ahead for a second. A client that comes then does not
// accept its number as a fence, nor store it on another node. When its clock is right again its
// counter is not, and no client accepts that either. The others go on without it.
func TestNumberOfAFastClockIsNoFence(t *testing.T) {
	threeNodes(t, func(f *fenced) {
		var warned []string
		opts := redlock.Options{Hooks: &redlock.Hooks{Warning: func(err error) { warned = append(warned, err.Error()) }}}
		tell := func(want string) {
			t.Helper()
			if len(warned) != 1 || !strings.Contains(warned[0], f.Addr(0)) || !strings.Contains(warned[0], want) {
				f.Errorf("the warnings are %q, want one of %s: %s", warned, f.Addr(0), want)
			}
			warned = nil
		}
		before := f.must("a", opts)
		f.Step(0, 30*day)
		pass(time.Second)
		f.whileDown(2, func() {
			if fence, err := f.once("a", opts); err == nil {
				f.Errorf("with a node a month ahead, and another one down, the lock is had with %d", fence)
			}
		})
		warned = nil
		if ahead := f.must("a", opts); ahead <= before || time.UnixMicro(ahead).After(time.Now().Add(time.Second)) {
			f.Errorf("after %d comes %d", before, ahead)
		}
		tell("its clock is 720h")
		if stored, err := f.Mini(0).ZScore(script.Fences, *script.Bucket("a")); err == nil && time.UnixMicro(int64(stored)).After(time.Now().Add(time.Second)) {
			f.Errorf("a node that is known to be a month ahead has counted %.0f", stored)
		}
		f.count(0, "a", time.Now().Add(30*day).UnixMicro()) // as for a client that did not know
		f.Step(0, -30*day)
		last := int64(0)
		for _, idle := range []time.Duration{0, 25 * time.Hour, 3 * day} {
			pass(idle)
			warned = nil
			next := f.must("a", opts)
			if next <= last || time.UnixMicro(next).After(time.Now().Add(time.Second)) {
				f.Errorf("%v later: after %d comes %d", idle, last, next)
			}
			tell("redlock prepare --reset-fences")
			last = next
			f.whileDown(2, func() {
				_, err := f.once("a", opts)
				q := wantKind(f.T, err, redlock.ErrNoQuorum)
				if i := slices.IndexFunc(q.Nodes(), func(n *redlock.NodeError) bool { return n.Node == f.Addr(0) && n.Outcome == redlock.OutcomeIneligible }); i < 0 {
					f.Errorf("the error does not name %s: %v", f.Addr(0), err)
				}
			})
			for i := range 3 {
				if keys := f.Keys(i); len(keys) > 0 {
					f.Errorf("node %d has %q", i, keys)
				}
			}
		}
		// And when time has caught up, it has a vote again.
		pass(30 * day)
		f.whileDown(2, func() {
			if next := f.must("a", opts); next <= last {
				f.Errorf("after %d comes %d", last, next)
			}
		})
	})
}

// TestMajorityAheadOfOneThatIsDown: an attempt that cannot succeed any more, since one node is known to be
// down and another one is ahead, hears the third one all the same: it may be ahead, too.
func TestMajorityAheadOfOneThatIsDown(t *testing.T) {
	threeNodes(t, func(f *fenced) {
		f.must("a", redlock.Options{})
		for i := range 2 {
			f.count(i, "a", time.Now().Add(time.Duration(2-i)*time.Hour).UnixMicro())
		}
		lk := f.locker(&redlock.Options{})
		f.whileDown(2, func() {
			for range 3 {
				_ = atRest(f.T, lk, "a").Release(f.Context())
				pass(3 * time.Second)
			}
		})
	})
}

// TestLocksGoOnWhereAMajorityIsAhead: if all clocks were wrong together, and are right now, locks can be acquired,
// with fences above the earlier ones; of the nodes that are ahead, only as many count as a quorum
// needs. A minority that is ahead has no effect, also if others are down.
func TestLocksGoOnWhereAMajorityIsAhead(t *testing.T) {
	for name, tt := range map[string]struct {
		ahead [3]time.Duration
		down  bool          // the last node is
		want  time.Duration // how far the lock's number is ahead; negative: there is no lock
	}{
		"all":                          {[3]time.Duration{time.Hour, time.Hour, time.Hour}, false, time.Hour},
		"all, and one a month":         {[3]time.Duration{30 * day, time.Hour, time.Hour}, false, time.Hour},
		"two":                          {[3]time.Duration{2 * time.Hour, time.Hour, 0}, false, time.Hour},
		"two, and one of them a month": {[3]time.Duration{30 * day, time.Hour, 0}, false, time.Hour},
		"two, and the third is down":   {[3]time.Duration{2 * time.Hour, time.Hour, 0}, true, 2 * time.Hour},
		"one":                          {[3]time.Duration{time.Hour, 0, 0}, false, 0},
		"one, and another one is down": {[3]time.Duration{time.Hour, 0, 0}, true, -1},
	} {
		if !need.Sample(len(name), 2) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			threeNodes(t, func(f *fenced) {
				f.must("a", redlock.Options{})
				now := time.Now()
				for i, ahead := range tt.ahead {
					if ahead > 0 {
						f.count(i, "a", now.Add(ahead).UnixMicro())
					}
				}
				ask := func() {
					fence, err := f.once("a", redlock.Options{})
					if tt.want < 0 {
						wantKind(f.T, err, redlock.ErrNoQuorum)
					} else if ahead := time.UnixMicro(fence).Sub(now); err != nil || ahead < tt.want || ahead > tt.want+time.Minute {
						f.Errorf("the lock's number is %v ahead, want %v: %v", ahead, tt.want, err)
					}
				}
				if tt.down {
					f.whileDown(2, ask)
				} else {
					ask()
				}
			})
		})
	}
}

// TestFencesRiseAboveAnAcceptedFastClock: a client that accepts all clocks takes the number of the node that is ahead for
// a fence, and stores it on another node. Then no later fence is smaller, even if the clock is set
// right and the lock is not used for longer than a counter for each name could be kept.
func TestFencesRiseAboveAnAcceptedFastClock(t *testing.T) {
	threeNodes(t, func(f *fenced) {
		careless := redlock.Options{MaxNodeSkew: -1, Quarantine: -1}
		f.Step(0, 30*day)
		pass(time.Second)
		var last int64
		f.whileDown(2, func() { last = f.must("a", careless) })
		f.Step(0, -30*day)
		for _, idle := range []time.Duration{time.Second, 26 * time.Hour, 20 * day} {
			pass(idle)
			f.whileDown(0, func() {
				if next := f.must("a", careless); next <= last {
					f.Errorf("%v later: after %d comes %d", idle, last, next)
				} else {
					last = next
				}
			})
			pass(10 * time.Second)
		}
	})
}

// TestNumberIsNotJudgedByOneNode: the node that is ahead answers before the others have been heard
// of, since our clock was set and what we knew of theirs counts for little. Then its number
// alone is not enough to judge by; but it is judged when there is a majority.
func TestNumberIsNotJudgedByOneNode(t *testing.T) {
	threeNodes(t, func(f *fenced) {
		clock := new(settable)
		lk := f.locker(&redlock.Options{Clock: clock})
		f.count(0, "a", time.Now().Add(30*day).UnixMicro())
		clock.ahead.Store(int64(60 * day))
		f.Path(1).SetDelay(10 * time.Millisecond)
		f.Path(2).SetDelay(20 * time.Millisecond)
		l, err := lk.TryAcquire(f.Context(), "a")
		if err == nil {
			f.Fatalf("the lock is had with %d", l.Fence())
		}
		wantKind(f.T, err, redlock.ErrNoQuorum)
		var why vote.PoisonError
		if !errors.As(err, &why) {
			f.Errorf("it does not say why: %v", err)
		}
		pass(time.Second)
		if next, err := lk.TryAcquire(f.Context(), "a"); err != nil || time.UnixMicro(next.Fence()).After(time.Now().Add(time.Second)) {
			f.Errorf("the next one: %v, %v", next, err)
		}
	})
}

// TestFencesRiseOverMonthsOfWrongClocks: a day to two months go by between locks, clients come anew and have
// clocks that are wrong, and of the five nodes two have clocks that are off by as much, are
// down, lose their data. Each lock's number is larger than all before it, whatever its name:
// some of the names share a bucket.
func TestFencesRiseOverMonthsOfWrongClocks(t *testing.T) {
	const weak = 2
	same := func(name string) bool { return script.Bucket(name) == script.Bucket("a") }
	names := []string{"a", "b"}
	for i := 0; len(names) < 4; i++ {
		if name := fmt.Sprint("twin", i); same(name) {
			names = append(names, name)
		}
	}
	for seed := range need.Sized[uint64](1, 4, 100) {
		fences(t, func(f *fenced) {
			rng := rand.New(rand.NewPCG(seed, 0))
			last := make(map[string]int64)
			var off [weak]time.Duration
			for range need.Sized(10, 40, 40) {
				if rng.IntN(2) == 0 {
					pass(time.Duration(rng.Int64N(int64(60 * day))))
				} else {
					pass(time.Duration(rng.Int64N(int64(time.Second))))
				}
				var down []int
				for i := range weak {
					switch rng.IntN(5) {
					case 0:
						by := time.Duration(rng.Int64N(int64(120*day))) - 60*day
						f.Step(i, by)
						off[i] += by
					case 1:
						f.Step(i, -off[i])
						off[i] = 0
					case 2:
						f.Mini(i).FlushAll()
					case 3:
						f.Kill(i)
						down = append(down, i)
					}
				}
				opts := redlock.Options{Clock: []redlock.Clock{nil, wrong{by: 40 * day}, wrong{by: -400 * time.Millisecond}}[rng.IntN(3)]}
				var options []redlock.AcquireOption
				name := names[rng.IntN(len(names))]
				if rng.IntN(4) == 0 {
					options = append(options, redlock.Also(names...))
				}
				next := f.must(name, opts, options...)
				for _, n := range names {
					if n != name && options == nil {
						continue
					}
					if next <= last[n] {
						f.Fatalf("seed %d: on %q comes %d after %d", seed, n, next, last[n])
					}
					last[n] = next
				}
				for _, i := range down {
					f.Restart(i, true)
				}
			}
		})
	}
}

// TestNamesLeaveNoKeys: a million names are as dear as a few thousand (TestMemoryOfNames has
// it in bytes). What is left is the table.
func TestNamesLeaveNoKeys(t *testing.T) {
	threeNodes(t, func(f *fenced) {
		lk := f.locker(&redlock.Options{Separator: "/"})
		for i := range need.Sized(50, 500, 5000) {
			l, err := lk.TryAcquire(context.Background(), fmt.Sprint("folder", i%7, "/name", i))
			if err != nil {
				f.Fatal(err)
			}
			if err := l.Release(context.Background()); err != nil {
				f.Fatal(err)
			}
		}
		pass(time.Minute)
		for i := range 3 {
			if keys, want := f.Mini(i).Keys(), []string{script.Belows, script.Fences, script.Marker, script.Told}; !slices.Equal(keys, want) {
				f.Errorf("node %d has %d keys, %q..., want %q", i, len(keys), keys[:min(len(keys), 5)], want)
			}
			for _, table := range []string{script.Fences, script.Belows} {
				if set, err := f.Mini(i).SortedSet(table); err != nil || len(set) > script.Buckets || f.Mini(i).TTL(table) != 0 {
					f.Errorf("node %d has %d buckets in %s, which lives for %v: %v", i, len(set), table, f.Mini(i).TTL(table), err)
				}
			}
		}
	})
}

func inspect(t *testing.T, lk *redlock.Locker, name string) *redlock.Status {
	t.Helper()
	s, err := lk.Inspect(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestInspectFence: the fence is the holder's, though a node was emptied and has another number
// since; and no less, though its counter has been raised by another name, or nodes have lost
// theirs.
func TestInspectFence(t *testing.T) {
	threeNodes(t, func(f *fenced) {
		lk := f.locker(nil)
		l, err := lk.Acquire(f.Context(), "a", redlock.AutoRenew())
		if err != nil {
			f.Fatal(err)
		}
		says := func(what string, least, most int64) {
			f.Helper()
			if s := inspect(f.T, lk, "a"); s.Fence < least || s.Fence > most {
				f.Errorf("%s: the fence is %d, want %d to %d; the holder's is %d", what, s.Fence, least, most, l.Fence())
			}
		}
		says("held", l.Fence(), l.Fence())
		pass(5 * time.Second)
		f.Mini(0).FlushAll()
		says("a node was emptied", l.Fence(), l.Fence())
		pass(20 * time.Second) // it is filled up, and its quarantine is over
		if s := inspect(f.T, lk, "a"); s.Nodes[0].Token != l.Token() || s.Nodes[0].Err != nil || s.Nodes[0].Fence <= l.Fence() {
			f.Errorf("the node was not filled up with another number: %+v", s.Nodes[0])
		}
		says("it was filled up", l.Fence(), l.Fence())
		f.count(1, "a", 0)
		f.count(2, "a", 0)
		says("two have lost their counters", 0, 0)
		later := l.Fence() + 1000
		for i := range 3 {
			f.count(i, "a", later)
		}
		says("another name has raised the counters", later, later)
		f.release(l)
	})
}
