package listing_test

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
	"github.com/quorumlock/redlock/internal/listing"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
	"github.com/quorumlock/redlock/internal/wire"
)

// TestListAgreesWithInspect: the list says of each name what Inspect says, whatever the owners and the nodes have done.
func TestListAgreesWithInspect(t *testing.T) {
	for seed := range need.Sized(uint64(1), 5, 100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 0))
				nodes := redistest.NewBubble(t, 5)
				s := on(t, nodes.Clients())
				names, locks := s.populate(10+random.IntN(31), random)
				if len(locks) < 5 {
					t.Fatalf("only %d locks", len(locks))
				}
				time.Sleep(100 * time.Millisecond) // the waiters have asked
				s.agrees(names)

				// A lock is half released, a node is emptied, and another one is killed, or two are.
				at := random.Perm(5)
				half := locks[random.IntN(len(locks))]
				for _, i := range at[:1+random.IntN(4)] {
					nodes.Mini(i).Del(half.Name())
				}
				nodes.Mini(at[0]).FlushAll()
				for _, i := range at[3 : 4+random.IntN(2)] {
					nodes.Kill(i)
				}
				s.agrees(names)
			})
		})
	}
}

// TestEachKindIsListedWithItsWaiters: each kind of lock, and who waits, in a scene that can be read.
func TestEachKindIsListedWithItsWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := on(t, redistest.NewBubble(t, 3).Clients())
		s.lock("one", "x", redlock.Also("y"))
		s.lock("two", "r", redlock.Shared())
		s.lock("three", "r", redlock.Shared())
		s.lock("four", "n", redlock.Slots(2))
		s.lock("five", "p/q")
		s.wait("six", "x")
		time.Sleep(time.Second)
		_, got := s.find(listing.Query{})
		want := map[string]string{"x": "one", "y": "one", "r": "three two", "n": "four", "p": "five", "p/q": "five"}
		for name, owners := range want {
			l := got[name]
			if l == nil {
				t.Errorf("%s is not listed", name)
				continue
			}
			var by []string
			if l.Token != "" {
				by = append(by, l.By.Owner)
			}
			for _, h := range l.Holders {
				by = append(by, h.By.Owner)
			}
			slices.Sort(by)
			if is := strings.Join(by, " "); l.State != redlock.StateHeld || is != owners || l.TTL <= 50*time.Second {
				t.Errorf("%s: %v by %s for %v, want %s", name, l.State, is, l.TTL, owners)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d are listed, want %d", len(got), len(want))
		}
		if w := got["x"].Waiting; len(w) != 1 || w[0].Owner != "six" || w[0].Nodes < 2 || w[0].For < 900*time.Millisecond || w[0].For > 1100*time.Millisecond {
			t.Errorf("who waits for x: %+v", w)
		}
		if m := got["n"].Holders[0].Mode; m != redlock.ModeSlot {
			t.Errorf("a slot is held in the mode %s", m)
		}
	})
}

// TestTokenOfAMinorityIsNoHolder: a token on a minority is listed, and is no holder.
func TestTokenOfAMinorityIsNoHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := redistest.NewBubble(t, 5)
		s := on(t, nodes.Clients())
		s.lock("one", "whole")
		for i, name := range []string{"one", "two", "two"} {
			plant(t, nodes, i, name, "tok")
		}
		_, got := s.find(listing.Query{})
		for name, want := range map[string]redlock.State{"whole": redlock.StateHeld, "one": redlock.StateFree, "two": redlock.StateFree} {
			if got[name] == nil || got[name].State != want || name != "whole" && got[name].Token != "" {
				t.Errorf("%s: %+v, want %v", name, got[name], want)
			}
		}
		nodes.Kill(3)
		nodes.Kill(4)
		_, got = s.find(listing.Query{})
		if got["two"].State != redlock.StateSplit || got["whole"].State != redlock.StateHeld {
			t.Errorf("without two nodes: %v and %v", got["two"].State, got["whole"].State)
		}
		nodes.Kill(2)
		if l, got := s.find(listing.Query{}); got["whole"].State != redlock.StateUnknown || l.Nodes()[4].Walked() {
			t.Errorf("without three nodes: %+v", got["whole"])
		}
	})
}

func plant(t *testing.T, nodes *redistest.Bubble, i int, key, value string) {
	t.Helper()
	if err := nodes.Client(i).Set(t.Context(), key, value, time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
}

// TestWhatIsNoLockIsNotListed: what is no lock is not listed, and a lock is that has one on a node in its way.
func TestWhatIsNoLockIsNotListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := redistest.NewBubble(t, 3)
		s := on(t, nodes.Clients())
		s.lock("one", "lock")
		s.lock("two", "slots", redlock.Slots(3))
		c := nodes.Client(0)
		do := func(args ...any) {
			if err := c.Do(t.Context(), args...).Err(); err != nil {
				t.Fatal(err)
			}
		}
		do("SET", "lasts", "x")
		do("HSET", "hash", "x", "y")
		do("PEXPIRE", "hash", 60000)
		do("RPUSH", "list", "x")
		do("ZADD", "set", 1, "x")
		do("ZADD", "dead:queue", 1, "p.1 1 x0 +1.n o")
		do("PEXPIRE", "dead:queue", 60000)
		do("SET", "odd", "tok", "PX", 60000)
		do("SET", "odd:queue", "no set", "PX", 60000)
		do("SET", "long"+strings.Repeat("g", redlock.MaxName), "x", "PX", 60000)
		_, got := s.find(listing.Query{})
		for name := range got {
			if name != "lock" && name != "slots" {
				t.Errorf("listed: %s", said(got[name]))
			}
		}
		if len(got) != 2 {
			t.Errorf("%d are listed, want 2", len(got))
		}
		for _, put := range [][]any{{"HSET", "lock:queue", "x", "y"}, {"ZADD", "slots:queue", 1, "x"}} { // a lock works beside them
			for i := range 3 {
				if err := nodes.Client(i).Do(t.Context(), put...).Err(); err != nil {
					t.Fatal(err)
				}
			}
		}
		do("ZADD", "board:queue", 1, "x")
		do("SET", "board", "tok", "PX", 60000)
		_, got = s.find(listing.Query{})
		if len(got) != 2 || got["lock"] == nil || got["lock"].State != redlock.StateHeld || got["slots"] == nil || len(got["slots"].Holders) != 1 {
			t.Errorf("beside queues of other programs: %v", got)
		}
		do("DEL", "lock")
		do("SET", "lock", "foreign")
		_, got = s.find(listing.Query{})
		if e := got["lock"].Nodes[0].Err; got["lock"].State != redlock.StateHeld || e == nil || e.Outcome != redlock.OutcomeNotALock {
			t.Errorf("beside a key that is no lock: %s", said(got["lock"]))
		}
	})
}

// TestPrefixIsText: the prefix is text, whatever bytes it has, and the names are those without it.
func TestPrefixIsText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := redistest.NewBubble(t, 1)
		s := on(t, nodes.Clients())
		const prefix = `a*[b]?\-^:`
		for _, key := range []string{prefix + "jobs/1", prefix + "jobs/2", prefix + "x", prefix, "aab?\\-^:jobs/3", "jobs/4", `axb?\-^:jobs/5`} {
			plant(t, nodes, 0, key, "tok")
		}
		for pattern, want := range map[string]string{
			"": "jobs/1 jobs/2 x", "*": "jobs/1 jobs/2 x", "jobs/*": "jobs/1 jobs/2", "jobs/[2-3]": "jobs/2", "jobs/1": "jobs/1", `\x`: "x", "j*2": "jobs/2",
			"?": "x", "jobs": "", "*jobs": "",
		} {
			_, got := s.find(listing.Query{Prefix: prefix, Pattern: pattern})
			var names []string
			for name := range got {
				names = append(names, name)
			}
			slices.Sort(names)
			if is := strings.Join(names, " "); is != want {
				t.Errorf("%q: %q, want %q", pattern, is, want)
			}
		}
	})
}

// TestLargeQueuesAndSetsAreReadToTheEnd: a queue and a set that are larger than what one step reads are read to the end.
func TestLargeQueuesAndSetsAreReadToTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := redistest.NewBubble(t, 1)
		s := on(t, nodes.Clients())
		ctx, c := t.Context(), nodes.Client(0)
		now := time.Now()
		names := []string{}
		for _, n := range []int{1, 7, 8, 9, 40, 41, 300} {
			name := fmt.Sprint("crowd", n)
			names = append(names, name)
			for i := range n {
				e := wire.QueueEntry{Waiter: fmt.Sprintf("p.%d", i), Deadline: now.UnixMilli() + 2900, Mode: wire.ModeX, Identity: ".@a@@o"}
				c.Do(ctx, "ZADD", name+script.QueueSuffix, now.UnixMicro()-int64(i), e.String())
				c.Do(ctx, "ZADD", name, wire.Score(wire.ModeS, now.UnixMilli()+30000), fmt.Sprintf("tok%d.@a@@", i))
			}
			c.PExpire(ctx, name, 30*time.Second)
		}
		_, got := s.find(listing.Query{})
		for _, name := range names {
			want, err := s.eye.Inspect(ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			if n := name[5:]; fmt.Sprint(len(want.Waiting)) != n || fmt.Sprint(len(want.Holders)) != n {
				t.Fatalf("%s has %d waiters and %d holders", name, len(want.Waiting), len(want.Holders))
			}
			if said(got[name]) != said(want) {
				t.Errorf("%s: %d waiters and %d holders are listed", name, len(got[name].Waiting), len(got[name].Holders))
			}
		}
	})
}

// TestWaiterIsAliveAsOfWhenItsNodeWasRead: a waiter who lives when the node is read is listed, also if the rest of another large queue is
// read before that is judged.
func TestWaiterIsAliveAsOfWhenItsNodeWasRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := redistest.NewBubble(t, 1)
		s := on(t, nodes.Clients())
		plant(t, nodes, 0, "crowd", "tok")
		plant(t, nodes, 0, "z", "tok")
		at, quorum := s.nodes()
		now := time.Now()
		wait := func(name string, i int, lives time.Duration) {
			e := wire.QueueEntry{Waiter: fmt.Sprintf("p.%d", i), Deadline: now.Add(lives).UnixMilli(), Mode: wire.ModeX, Identity: ".@a@@o"}
			nodes.Client(0).Do(t.Context(), "ZADD", name+script.QueueSuffix, now.UnixMicro(), e.String())
		}
		for i := range 300 { // ten steps, with a pause of a millisecond after each
			wait("crowd", i, time.Second)
		}
		wait("z", 0, 6*time.Millisecond)
		l, err := listing.Find(t.Context(), at, listing.Query{Quorum: quorum})
		if err != nil {
			t.Fatal(err)
		}
		got := byName(t, l)
		if len(got["crowd"].Waiting) != 300 || len(got["z"].Waiting) != 1 {
			t.Errorf("%d and %d wait", len(got["crowd"].Waiting), len(got["z"].Waiting))
		}
	})
}

// TestLockReleasedMeanwhileIsNoLeftover: a lock that is released while the nodes are walked one after another leaves no leftover in
// the list, and one that changes hands no second holder.
func TestLockReleasedMeanwhileIsNoLeftover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := redistest.NewBubble(t, 5)
		s := on(t, nodes.Clients())
		for i := range 5 {
			plant(t, nodes, i, "gone", "tok")
			plant(t, nodes, i, "handed", "tok")
		}
		at, quorum := s.nodes()
		for i := 2; i < 5; i++ {
			nodes.Hang(i)
		}
		s.waiting.Go(func() {
			time.Sleep(time.Second) // the first two have been walked
			for i := range 5 {
				nodes.Mini(i).Del("gone")
				_ = nodes.Mini(i).Set("handed", fmt.Sprintf("tok%d", max(i, 2)))
				nodes.Mini(i).SetTTL("handed", time.Minute)
				nodes.Resume(i)
			}
		})
		l, err := listing.Find(t.Context(), at, listing.Query{Quorum: quorum})
		if err != nil {
			t.Fatal(err)
		}
		got := byName(t, l)
		if got["gone"] != nil {
			t.Errorf("it was released: %s", said(got["gone"]))
		}
		if h := got["handed"]; h == nil || h.State != redlock.StateHeld || h.Token != "tok2" {
			t.Errorf("three nodes have another one: %+v", h)
		}
		s.waiting.Wait()
	})
}

// TestNodeThatFailsIsNamed: a node that does not answer is named, costs a bounded time, and does not count.
func TestNodeThatFailsIsNamed(t *testing.T) {
	for row, c := range []struct {
		name string
		want redlock.Outcome
		fail func(nodes *redistest.Bubble)
	}{
		{"hung", redlock.OutcomeTimeout, func(n *redistest.Bubble) { n.Hang(4) }},
		{"killed", redlock.OutcomeUnreachable, func(n *redistest.Bubble) { n.Kill(4) }},
	} {
		for column, after := range []time.Duration{0, 10 * time.Millisecond} {
			if !need.Sample(row+column+3, 4) {
				continue
			}
			t.Run(fmt.Sprint(c.name, " after ", after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					nodes := redistest.NewBubble(t, 5)
					s := on(t, nodes.Clients())
					for i := range 5 {
						for n := range 1000 { // 125 steps
							_ = nodes.Mini(i).Set(fmt.Sprint("lock", n), "tok")
							nodes.Mini(i).SetTTL(fmt.Sprint("lock", n), time.Minute)
						}
					}
					at, quorum := s.nodes()
					s.waiting.Go(func() {
						time.Sleep(after)
						c.fail(nodes)
					})
					if after == 0 {
						s.waiting.Wait()
					}
					began := time.Now()
					l, err := listing.Find(t.Context(), at, listing.Query{Quorum: quorum, Patience: time.Second})
					if err != nil {
						t.Fatal(err)
					}
					if took := time.Since(began); took > 1200*time.Millisecond {
						t.Errorf("it took %v", took)
					}
					if e := l.Nodes()[4].Err; e == nil || e.Outcome != c.want || e.Node != nodes.Addr(4) || l.Nodes()[4].Walked() {
						t.Errorf("the node's error is %v, want %v", e, c.want)
					}
					got := byName(t, l)
					if len(got) != 1000 || got["lock7"].State != redlock.StateHeld || got["lock7"].Nodes[4].Token != "" {
						t.Errorf("%d are listed; %s", len(got), said(got["lock7"]))
					}
				})
			})
		}
	}
}

// TestRefusedScanIsTheNodesError: the server's refusal of SCAN is the error of the node.
func TestRefusedScanIsTheNodesError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := memredis.NewNode(0)
		defer node.Close()
		node.Engine.Refuse(&memredis.Refusal{Error: "NOPERM User locks has no permissions to run the 'scan' command", Only: []string{"SCAN"}})
		l, err := listing.Find(t.Context(), []listing.Node{{Name: "n", Options: node.Options()}}, listing.Query{Quorum: 1})
		if err != nil {
			t.Fatal(err)
		}
		if e := l.Nodes()[0].Err; e == nil || e.Outcome != redlock.OutcomeDenied || !strings.Contains(e.Error(), "n: denied: NOPERM User locks has no permissions to run the 'scan' command") {
			t.Errorf("the error is %v", e)
		}
	})
}

// TestFindEndsWithItsContext: Find ends with its context, also while a node hangs, and leaves nothing behind.
func TestFindEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := redistest.NewBubble(t, 3)
		s := on(t, nodes.Clients())
		at, quorum := s.nodes()
		nodes.Hang(1)
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		began := time.Now()
		time.AfterFunc(100*time.Millisecond, func() { cancel(why) })
		_, err := listing.Find(ctx, at, listing.Query{Quorum: quorum})
		if took := time.Since(began); !errors.Is(err, why) || took > 110*time.Millisecond {
			t.Errorf("%v after %v", err, took)
		}
	})
}
