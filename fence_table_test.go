package redlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/redistest"
	"github.com/quorumlock/redlock/internal/redistest/need"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/redis/go-redis/v9"
)

const day = 24 * time.Hour

// threeNodes are three nodes with the real client and scripts, in virtual time.
func threeNodes(t *testing.T, f func(*fenced)) {
	bubble(t, func(t *testing.T) {
		redistest.NoLeaks(t)
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
func (f *fenced) once(name string, opts Options, options ...AcquireOption) (fence int64, err error) {
	f.Helper()
	clients := make([]*redis.Client, f.Len()) // they tick as long as they are open
	for i := range clients {
		clients[i] = redis.NewClient(f.Options(i))
		defer clients[i].Close()
	}
	lk, err := New(clients, &opts)
	if err != nil {
		f.Fatal(err)
	}
	defer lk.Close()
	l, err := lk.TryAcquire(f.Context(), name, options...)
	if err != nil {
		return 0, err
	}
	if err := l.Release(f.Context()); err != nil {
		f.Error(err)
	}
	return l.Fence(), nil
}

// must is once where the lock is to be had.
func (f *fenced) must(name string, opts Options, options ...AcquireOption) int64 {
	f.Helper()
	fence, err := f.once(name, opts, options...)
	if err != nil {
		f.Fatal(err)
	}
	return fence
}

// TestFenceAfterABlip: a lock's counter must not end with its key, nor with a clock that is
// ahead for a moment, or a node would have nothing but the time to go by; and that of the
// slow client, in the next lock, is earlier than that of the fast one in the first. A counter
// for all names in the place of one for each does not help: it would be ahead of every lock
// on another name, too.
func TestFenceAfterABlip(t *testing.T) {
	threeNodes(t, func(f *fenced) {
		fast := Options{TTL: 2 * time.Second, Clock: wrong{by: 500 * time.Millisecond}, Quarantine: -1}
		slow := Options{TTL: 2 * time.Second, Clock: wrong{by: -500 * time.Millisecond}, Quarantine: -1}
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

// TestPoison: one node of three is a month ahead for a second. A client that comes then does not
// accept its number as a fence, nor store it on another node. When its clock is right again its
// counter is not, and no client accepts that either. The others go on without it.
func TestPoison(t *testing.T) {
	threeNodes(t, func(f *fenced) {
		var warned []string
		opts := Options{Hooks: &Hooks{Warning: func(err error) { warned = append(warned, err.Error()) }}}
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
				q := wantQuorumError(f.T, err, ErrNoQuorum)
				if i := slices.IndexFunc(q.Nodes(), func(n *NodeError) bool { return n.Node == f.Addr(0) && n.Outcome == OutcomeIneligible }); i < 0 {
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

// TestMajorityAhead: if all clocks were wrong together, and are right now, locks can be acquired,
// with fences above the earlier ones; of the nodes that are ahead, only as many count as a quorum
// needs. A minority that is ahead has no effect, also if others are down.
func TestMajorityAhead(t *testing.T) {
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
		t.Run(name, func(t *testing.T) {
			threeNodes(t, func(f *fenced) {
				f.must("a", Options{})
				now := time.Now()
				for i, ahead := range tt.ahead {
					if ahead > 0 {
						f.count(i, "a", now.Add(ahead).UnixMicro())
					}
				}
				ask := func() {
					fence, err := f.once("a", Options{})
					if tt.want < 0 {
						wantQuorumError(f.T, err, ErrNoQuorum)
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

// TestPoisonIsKept: a client that accepts all clocks takes the number of the node that is ahead for
// a fence, and stores it on another node. Then no later fence is smaller, even if the clock is set
// right and the lock is not used for longer than a counter for each name could be kept.
func TestPoisonIsKept(t *testing.T) {
	threeNodes(t, func(f *fenced) {
		careless := Options{MaxNodeSkew: -1, Quarantine: -1}
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

// A settable clock is ahead by so much, which its monotonic reading knows nothing of. In a
// bubble times have none, so it goes on from one that was taken outside.
type settable struct {
	began time.Time    // in the bubble
	ahead atomic.Int64 // time.Duration; the lanes look at the clock beside the test
}

var outside = time.Now()

func (c *settable) Now() time.Time {
	now := time.Now()
	t := outside.Add(now.Sub(c.began))
	set := now.Add(time.Duration(c.ahead.Load())).Sub(t.Round(0))
	return asleep(t.Add(set), set)
}

// TestPoisonBeforeAMajority: the node that is ahead answers before the others have been heard
// of, since our clock was set and what we knew of theirs counts for little. Then its number
// alone is not enough to judge by; but it is judged when there is a majority.
func TestPoisonBeforeAMajority(t *testing.T) {
	threeNodes(t, func(f *fenced) {
		clock := &settable{began: time.Now()}
		lk := f.locker(&Options{Clock: clock})
		f.count(0, "a", time.Now().Add(30*day).UnixMicro())
		clock.ahead.Store(int64(60 * day))
		f.Path(1).SetDelay(10 * time.Millisecond)
		f.Path(2).SetDelay(20 * time.Millisecond)
		l, err := lk.TryAcquire(f.Context(), "a")
		if err == nil {
			f.Fatalf("the lock is had with %d", l.Fence())
		}
		wantQuorumError(f.T, err, ErrNoQuorum)
		var why lane.PoisonError
		if !errors.As(err, &why) {
			f.Errorf("it does not say why: %v", err)
		}
		pass(time.Second)
		if next, err := lk.TryAcquire(f.Context(), "a"); err != nil || time.UnixMicro(next.Fence()).After(time.Now().Add(time.Second)) {
			f.Errorf("the next one: %v, %v", next, err)
		}
	})
}

// TestFencesForMonths: a day to two months go by between locks, clients come anew and have
// clocks that are wrong, and of the five nodes two have clocks that are off by as much, are
// down, lose their data. Each lock's number is larger than all before it, whatever its name:
// some of the names share a bucket.
func TestFencesForMonths(t *testing.T) {
	const weak = 2
	same := func(name string) bool { return script.Bucket(name) == script.Bucket("a") }
	names := []string{"a", "b"}
	for i := 0; len(names) < 4; i++ {
		if name := fmt.Sprint("twin", i); same(name) {
			names = append(names, name)
		}
	}
	for seed := range need.Sized[uint64](2, 8, 100) {
		fences(t, func(f *fenced) {
			rng := rand.New(rand.NewPCG(seed, 0))
			last := make(map[string]int64)
			var off [weak]time.Duration
			for range 40 {
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
				opts := Options{Clock: []Clock{nil, wrong{by: 40 * day}, wrong{by: -400 * time.Millisecond}}[rng.IntN(3)]}
				var options []AcquireOption
				name := names[rng.IntN(len(names))]
				if rng.IntN(4) == 0 {
					options = append(options, Also(names...))
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

// TestNamesLeaveNothing: a million names are as dear as a few thousand (TestMemoryOfNames has
// it in bytes). What is left is the table.
func TestNamesLeaveNothing(t *testing.T) {
	threeNodes(t, func(f *fenced) {
		lk := f.locker(&Options{Separator: "/"})
		for i := range need.Sized(100, 500, 5000) {
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
			if keys, want := f.Mini(i).Keys(), []string{script.Belows, script.Fences, script.Marker}; !slices.Equal(keys, want) {
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
