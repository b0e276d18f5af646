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
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
	"github.com/quorumlock/redlock/internal/vote"
	"github.com/quorumlock/redlock/internal/wire"
	"github.com/redis/go-redis/v9"
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

func (f *fenced) locker(opts *Options) *Locker {
	f.Helper()
	lk, err := New(f.Clients(), opts)
	if err == nil {
		err = lk.ready(f.Context())
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
func (f *fenced) stored(l *Lock, least int) {
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
func (f *fenced) took(lk *Locker, name string, want time.Duration) *Lock {
	f.Helper()
	begin := time.Now()
	l, err := lk.TryAcquire(f.Context(), name)
	if err != nil {
		f.Fatal(err)
	}
	if d := time.Since(begin); d != want {
		f.Errorf("the lock took %v, want %v: %v", d, want, f.counters(name))
	}
	pass(time.Second) // everything has arrived
	return l
}

func (f *fenced) release(l *Lock) {
	f.Helper()
	if err := l.Release(f.Context()); err != nil {
		f.Error(err)
	}
	pass(time.Second)
}

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

// TestFencesRise: fences rise from lock to lock on a name, for any client, whatever its clock
// shows, and however long the messages take.
func TestFencesRise(t *testing.T) {
	const day = 24 * time.Hour
	for name, clocks := range map[string][]Clock{
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
					var lockers []*Locker
					for _, clock := range clocks {
						lockers = append(lockers, f.locker(&Options{Clock: clock}))
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

// TestFenceStays: as long as the lock is held.
func TestFenceStays(t *testing.T) {
	fences(t, func(f *fenced) {
		lk := f.locker(nil)
		l, err := lk.TryAcquire(f.Context(), "a", AutoRenew())
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
		pass(time.Second)
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
		clock  Clock
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
				lk := f.locker(&Options{Clock: tt.clock, MaxNodeSkew: -1}) // numbers of the future are none else
				pass(time.Second)
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
				next := f.locker(&Options{MaxNodeSkew: -1})
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

// TestFenceCannotBeStored: an attempt whose grants were enough, and whose number could
// not be stored, is none. It says so, and leaves nothing.
func TestFenceCannotBeStored(t *testing.T) {
	for row, tt := range []struct {
		name    string
		trouble func(f *fenced, cancel func())
		end     func(f *fenced)
		takes   time.Duration // until node 3 says so, in half of its 16 ms, or in all of them; or the time is up
		cause   error
		nodes   Outcome // of 1, 2 and 3
	}{
		{"nodes die", func(f *fenced, _ func()) {
			for i := 1; i <= 3; i++ {
				f.Kill(i)
			}
		}, func(f *fenced) {
			for i := 1; i <= 3; i++ {
				f.Restart(i, true)
			}
		}, 23 * time.Millisecond, errUnfenced, OutcomeUnreachable},
		{"nodes hang", func(f *fenced, _ func()) {
			for i := 1; i <= 3; i++ {
				f.Hang(i)
			}
		}, func(f *fenced) {
			for i := 1; i <= 3; i++ {
				f.Resume(i)
			}
		}, 500 * time.Millisecond, errUnfenced, OutcomeTimeout},
		{"nodes have lost the lock", func(f *fenced, _ func()) {
			for i := 1; i <= 3; i++ {
				f.Mini(i).Del("a")
			}
		}, func(*fenced) {}, 30 * time.Millisecond, errUnfenced, OutcomeGone},
		{"nodes were emptied", func(f *fenced, _ func()) {
			for i := 1; i <= 3; i++ {
				f.Mini(i).FlushAll()
			}
		}, func(*fenced) {}, 30 * time.Millisecond, errUnfenced, OutcomeGone},
		{"counters are past it", func(f *fenced, _ func()) {
			for i := 1; i <= 3; i++ {
				f.count(i, "a", 1<<52)
			}
		}, func(*fenced) {}, 30 * time.Millisecond, errUnfenced, OutcomeGone},
		{"the caller goes away", func(_ *fenced, cancel func()) { cancel() }, func(*fenced) {}, 15 * time.Millisecond, context.Canceled, OutcomeTimeout},
	} {
		if !need.Sample(row+4, 6) {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			fences(t, func(f *fenced) {
				f.apart()
				lk := f.locker(&Options{MaxNodeSkew: -1})
				pass(time.Second)
				f.count(0, "a", time.Now().Add(time.Hour).UnixMicro())
				ctx, cancel := context.WithCancel(f.Context())
				defer cancel()
				time.AfterFunc(quorumsAnswer+time.Millisecond, func() { tt.trouble(f, cancel) }) // the raise has left
				begin := time.Now()
				l, err := lk.TryAcquire(ctx, "a")
				q := wantQuorumError(f.T, err, ErrNoQuorum)
				if took := time.Since(begin); l != nil || took != tt.takes {
					f.Errorf("after %v, want %v: lock %v, %v", took, tt.takes, l, err)
				}
				if !errors.Is(err, tt.cause) {
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
				if l.Token() == q.token {
					f.Errorf("a second attempt has the same token")
				}
				synctest.Wait()
				f.stored(l, 3)
			})
		})
	}
}

// TestFencesEnd: numbers that Lua cannot distinguish any more are no fences. No node reaches them by
// itself, for a fence is near its time; but an operator may have set a counter.
func TestFencesEnd(t *testing.T) {
	fences(t, func(f *fenced) {
		lk := f.locker(&Options{MaxNodeSkew: -1})
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
				wantQuorumError(f.T, err, ErrNoQuorum)
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

// TestLargestNumber: which number of a round is the fence, and whether that is stored
// yet. Only the grants of nodes with a vote count.
func TestLargestNumber(t *testing.T) {
	type answer struct {
		outcome wire.Status
		number  int64
	}
	const silent = wire.Unasked
	for _, tt := range []struct {
		answers []answer
		number  int64
		stored  bool
	}{
		{[]answer{{wire.Granted, 7}, {wire.Granted, 7}, {wire.Granted, 7}, {silent, 0}, {silent, 0}}, 7, true},
		{[]answer{{wire.Granted, 7}, {wire.Granted, 7}, {wire.Granted, 8}, {silent, 0}, {silent, 0}}, 8, false},
		{[]answer{{wire.Granted, 8}, {wire.Granted, 7}, {wire.Granted, 7}, {wire.Granted, 7}, {silent, 0}}, 8, false},
		{[]answer{{wire.Granted, 7}, {wire.Granted, 8}, {wire.Granted, 8}, {wire.Granted, 8}, {wire.Granted, 7}}, 8, true},
		{[]answer{{wire.Granted, 7}, {wire.Granted, 7}, {wire.Granted, 7}, {wire.Quarantined, 9}, {wire.Unfit, 9}}, 7, true},
		{[]answer{{wire.Granted, 7}, {wire.Granted, 7}, {wire.Quarantined, 7}, {wire.Granted, 6}, {wire.Held, 0}}, 7, false},
		{[]answer{{wire.Granted, 7}, {wire.Granted, 7}, {wire.Granted, 7}, {silent, 9}, {silent, 9}}, 7, true},
	} {
		r := &round{reqs: make([]lane.Request, 5), told: make([]bool, 5), ballot: ballot{n: 5, need: 3}}
		for i, a := range tt.answers {
			r.reqs[i].Reply = wire.Reply{Status: a.outcome, Fence: a.number}
			if r.told[i] = a.outcome != silent; !r.told[i] {
				r.reqs[i].Reply.Status = wire.Granted // what is written there is not finished
			}
		}
		if number, stored := r.fence(); number != tt.number || stored != tt.stored {
			t.Errorf("%v: %d, stored %v; want %d, %v", tt.answers, number, stored, tt.number, tt.stored)
		}
	}
}

const day = 24 * time.Hour

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
	synctest.Wait() // the node that was not needed for a quorum is heard, too
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

// TestMajorityAheadOfOneThatIsDown: an attempt that cannot succeed any more, since one node is known to be
// down and another one is ahead, hears the third one all the same: it may be ahead, too.
func TestMajorityAheadOfOneThatIsDown(t *testing.T) {
	threeNodes(t, func(f *fenced) {
		f.must("a", Options{})
		for i := range 2 {
			f.count(i, "a", time.Now().Add(time.Duration(2-i)*time.Hour).UnixMicro())
		}
		lk := f.locker(&Options{})
		f.whileDown(2, func() {
			for range 3 {
				_ = acquired(f.T, lk, "a").Release(f.Context())
				pass(3 * time.Second)
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
		if !need.Sample(len(name), 2) {
			continue
		}
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
