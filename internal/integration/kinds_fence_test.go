package integration_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// A numbered is an earlier lock with its fence.
type numbered struct {
	claims []claim
	shared bool
	fence  int64
}

func (n numbered) String() string { return fmt.Sprintf("%d for %v", n.fence, n.claims) }

// A record has all earlier locks, in their order, and checks the fence of the next one.
type record struct {
	*testing.T
	past     []numbered
	compared int
}

// add compares a lock with all earlier ones that it conflicts with. An exclusive lock has a larger
// fence than all of them. A reader has the largest fence that there was, so no smaller one. (It may
// be larger: that of a call that did not get the lock.)
func (r *record) add(l numbered) {
	r.Helper()
	for _, earlier := range r.past {
		if mayHave([][]claim{earlier.claims}, l.claims) {
			continue
		}
		r.compared++
		switch {
		case !l.shared && l.fence <= earlier.fence:
			r.Errorf("%v comes after %v", l, earlier)
		case l.shared && l.fence < earlier.fence:
			r.Errorf("shared: %v comes after %v", l, earlier)
		}
	}
	r.past = append(r.past, l)
}

// TestFencesOfKinds: for all kinds of locks and all relations of their names, the later one of two
// conflicting locks has the larger fence, although each time other nodes are up, or one has lost
// its data.
func TestFencesOfKinds(t *testing.T) {
	for i, tt := range []struct {
		what    string
		trouble func(b *redistest.Bubble, node int) // one node at a time
		end     func(t testing.TB, b *redistest.Bubble, node int, lk *redlock.Locker)
		opts    redlock.Options
	}{
		{what: "all are well", opts: redlock.Options{}},
		{what: "another node is down each time", opts: redlock.Options{Quarantine: -1},
			trouble: func(b *redistest.Bubble, node int) { b.Kill(node) },
			end: func(_ testing.TB, b *redistest.Bubble, node int, _ *redlock.Locker) {
				b.Restart(node, true)
				time.Sleep(2 * time.Second)
			}},
		{what: "another node is emptied each time",
			trouble: func(b *redistest.Bubble, node int) { b.Mini(node).FlushAll() },
			end:     func(t testing.TB, _ *redistest.Bubble, _ int, lk *redlock.Locker) { voteAgain(t, lk) }},
		{what: "clocks are wrong by a day", opts: redlock.Options{Clock: off(-24 * time.Hour)}},
	} {
		if !need.Sample(i+1, 3) {
			continue
		}
		t.Run(tt.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leaks.Check(t)
				b := redistest.NewBubble(t, 3)
				r := record{T: t}
				lots := rand.New(rand.NewPCG(0, 1))
				g := &throng{waitingRoom: &waitingRoom{T: t, Bubble: b}, names: []string{"p", "p/A", "p/A/x", "p/B", "p/B/y/z", "q"}}
				right, opts := redlock.Options{Separator: "/", Quarantine: tt.opts.Quarantine}, tt.opts
				opts.Separator = "/"
				lockers := []*redlock.Locker{open(t, b.Clients(), &right), open(t, b.Clients(), &opts)}
				var held []*redlock.Lock
				troubled := -1
				for range cycles(200) {
					if tt.trouble != nil && lots.IntN(3) == 0 {
						if troubled >= 0 {
							tt.end(t, b, troubled, lockers[0])
						}
						troubled = lots.IntN(3)
						tt.trouble(b, troubled)
					}
					name, options, claims := g.wish(lots)
					l, err := lockers[lots.IntN(2)].TryAcquire(t.Context(), name, options...)
					if err == nil {
						r.add(numbered{claims, claims[0].mode == "shared", l.Fence()})
						held = append(held, l)
					} else if !errors.Is(err, redlock.ErrHeld) {
						t.Fatal(err)
					}
					for len(held) > lots.IntN(3) {
						_ = held[0].Release(t.Context()) // it may have expired
						held = held[1:]
					}
					time.Sleep(time.Duration(lots.IntN(int(time.Millisecond))))
				}
				t.Logf("%d locks, %d pairs compared", len(r.past), r.compared)
				if len(r.past) < cycles(200)/4 || r.compared < len(r.past) {
					t.Error("there is not enough to compare")
				}
			})
		})
	}
}

// off is a wrong clock.
type off time.Duration

func (o off) Now() time.Time { return time.Now().Add(time.Duration(o)) }

// TestReadersHaveOneNumber: readers have the fence of the last exclusive holder, although other
// nodes answer each time.
func TestReadersHaveOneNumber(t *testing.T) {
	need.Full(t)
	synctest.Test(t, func(t *testing.T) {
		leaks.Check(t)
		b := redistest.NewBubble(t, 3)
		lk := open(t, b.Clients(), &redlock.Options{Quarantine: -1, Separator: "/"})
		for _, name := range []string{"a", "p/A", "p"} { // the folder after the names in it
			first := acquired(t, lk, name, redlock.Shared())
			released(t, first)
			var numbers []int64
			for down := range b.Len() {
				b.Kill(down)
				writer := acquired(t, lk, name)
				released(t, writer)
				b.Restart(down, true)
				time.Sleep(2 * time.Second)
				for absent := range b.Len() {
					b.Kill(absent)
					var readers []*redlock.Lock
					for range 3 {
						readers = append(readers, acquired(t, lk, name, redlock.Shared()))
					}
					for _, l := range readers {
						if l.Fence() != writer.Fence() {
							t.Errorf("%s was held exclusively with %d without node %d, and is read with %d without node %d", name, writer.Fence(), down, l.Fence(), absent)
						}
						released(t, l)
					}
					b.Restart(absent, true)
					time.Sleep(2 * time.Second)
				}
				numbers = append(numbers, writer.Fence())
			}
			if !slices.IsSorted(numbers) || name != "p" && first.Fence() >= numbers[0] {
				t.Errorf("%s: before any exclusive holder %d, then %d", name, first.Fence(), numbers)
			}
		}
	})
}

// TestReadersAfterALoss: a reader has a fence that is no smaller than those of all earlier writers,
// and smaller than those of all later ones, although of the nodes that had the writer's fence one
// is down and the other has lost it. All readers in between have the same fence. A node in
// quarantine numbers what it grants, and that may be less than what it has lost: so it is not
// enough that there is a number.
func TestReadersAfterALoss(t *testing.T) {
	need.Full(t)
	synctest.Test(t, func(t *testing.T) {
		leaks.Check(t)
		b := redistest.NewBubble(t, 3)
		lk := open(t, b.Clients(), &redlock.Options{Separator: "/"})
		fast := open(t, b.Clients(), &redlock.Options{Separator: "/", Clock: off(400 * time.Millisecond)})
		prepared := func() {
			t.Helper()
			voteAgain(t, lk)
			voteAgain(t, fast)
		}
		for _, numbered := range []bool{false, true} {
			for _, name := range []string{"a", "p/A", "p"} {
				b.Kill(2)
				writer := acquired(t, fast, name)
				released(t, writer)
				b.Restart(2, true)
				prepared()
				b.Kill(2)
				writer = acquired(t, fast, name)
				released(t, writer)
				b.Mini(1).FlushAll()
				if numbered {
					if l, err := lk.TryAcquire(t.Context(), name); err == nil {
						t.Errorf("two nodes of three have no vote, and the lock is acquired with %d", l.Fence())
					}
				}
				b.Restart(2, true)
				prepared()
				b.Kill(0)
				first, second := acquired(t, lk, name, redlock.Shared()), acquired(t, lk, name, redlock.Shared())
				if first.Fence() < writer.Fence() || second.Fence() != first.Fence() {
					t.Errorf("%s, %v: was held exclusively with %d, and is read with %d and %d", name, numbered, writer.Fence(), first.Fence(), second.Fence())
				}
				released(t, first)
				released(t, second)
				b.Restart(0, true)
				prepared()
				b.Kill(1)
				last := acquired(t, lk, name)
				if last.Fence() <= first.Fence() {
					t.Errorf("%s is held exclusively with %d after it was read with %d", name, last.Fence(), first.Fence())
				}
				released(t, last)
				b.Restart(1, true)
				prepared()
			}
		}
	})
}

// TestSlotsAreNumbered: holders of the same slot, one after another, have rising fences. These are
// larger than those of earlier conflicting holders of the name, and smaller than those of later
// ones.
func TestSlotsAreNumbered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leaks.Check(t)
		lk := open(t, redistest.NewBubble(t, 3).Clients(), &redlock.Options{Separator: "/"})
		last := int64(0)
		for range 5 {
			for _, next := range []struct {
				name    string
				options []redlock.AcquireOption
			}{
				{"p/a", []redlock.AcquireOption{redlock.Slots(1)}}, {"p/a", []redlock.AcquireOption{redlock.Slots(1)}},
				{"p/a", nil}, {"p", nil}, {"p/a", []redlock.AcquireOption{redlock.Slots(1)}}, {"p", nil},
				{"b", []redlock.AcquireOption{redlock.Also("p/a")}}, {"p/a/c", []redlock.AcquireOption{redlock.Slots(3)}}, {"p/a", nil},
			} {
				l := acquired(t, lk, next.name, next.options...)
				if l.Fence() <= last {
					t.Errorf("%s: after %d comes %d", next.name, last, l.Fence())
				}
				last = l.Fence()
				released(t, l)
			}
		}
	})
}

// voteAgain waits in a bubble until all nodes can vote. It asks seldom: each question costs real time.
func voteAgain(t testing.TB, lk *redlock.Locker) {
	for slices.ContainsFunc(inspected(t, lk, "any"), func(n redlock.NodeStatus) bool { return n.Err != nil }) {
		time.Sleep(time.Second)
	}
}
