package integration_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
)

// queued waits until all of the nodes have this many waiters for a name.
func queued(t *testing.T, lk *redlock.Locker, name string, waiters, nodes int) {
	t.Helper()
	eventually(t, 10*time.Second, fmt.Sprintf("%d waiters on %d nodes", waiters, nodes), func() bool {
		s, err := lk.Inspect(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, w := range s.Waiting {
			if w.Nodes >= nodes {
				n++
			}
		}
		return n == waiters
	})
}

// subscribed waits until a server has this many subscribers.
func subscribed(t *testing.T, s *redisproc.Server, want int) {
	t.Helper()
	eventually(t, 10*time.Second, fmt.Sprint(want, " subscribers"), func() bool {
		return len(ask(t, s, "PUBSUB", "CHANNELS").([]any)) == want
	})
}

// A queue is a number of Lockers that wait for one name.
type queue struct {
	*testing.T
	name    string
	holder  *redlock.Lock
	lockers []*redlock.Locker
	served  chan int
	locks   []*redlock.Lock
	waiting sync.WaitGroup
}

// line makes the Lockers wait, one after another.
func lineUp(t *testing.T, servers []*redisproc.Server, opts *redlock.Options, waiters int) *queue {
	t.Helper()
	q := &queue{T: t, name: "a", served: make(chan int, waiters), locks: make([]*redlock.Lock, waiters)}
	holder := open(t, redistest.Clients(t, servers), opts)
	q.holder = acquired(t, holder, q.name)
	for i := range waiters {
		lk := open(t, redistest.Clients(t, servers), opts)
		q.lockers = append(q.lockers, lk)
		q.waiting.Go(func() {
			l, err := lk.Acquire(context.WithoutCancel(t.Context()), q.name)
			if err != nil {
				t.Errorf("waiter %d: %v", i, err)
			}
			q.locks[i] = l
			q.served <- i
		})
		queued(t, holder, q.name, i+1, len(servers))
	}
	for _, s := range servers {
		subscribed(t, s, waiters)
	}
	return q
}

// next gives the waiter that gets the lock next.
func (q *queue) next(within time.Duration) int {
	q.Helper()
	select {
	case i := <-q.served:
		return i
	case <-time.After(within):
		q.Fatalf("no waiter has the lock after %v", within)
	}
	return -1
}

// TestServedInOrder: waiters are served in order, over real servers.
func TestServedInOrder(t *testing.T) {
	leaks.Check(t)
	servers := redistest.Servers(t, 5)
	q := lineUp(t, servers, nil, 8)
	s, err := q.lockers[7].Inspect(t.Context(), "a")
	if err != nil || s.State != redlock.StateHeld || len(s.Waiting) != 8 {
		t.Errorf("%+v, %v", s, err)
	}
	for i, w := range s.Waiting {
		if w.Nodes != 5 || w.Owner == "" || w.For <= 0 || i > 0 && w.For > s.Waiting[i-1].For {
			t.Errorf("waiter %d: %+v", i, w)
		}
	}
	begin := time.Now()
	released(t, q.holder)
	var order []int
	for range 8 {
		i := q.next(5 * time.Second)
		order = append(order, i)
		released(t, q.locks[i])
	}
	if !slices.IsSorted(order) {
		t.Errorf("served in the order %v", order)
	}
	t.Logf("8 turns in %v", time.Since(begin))
	q.waiting.Wait()
	for _, s := range servers {
		if left := ask(t, s, "EXISTS", "a:queue"); left != int64(0) {
			t.Errorf("%s still has a queue", s.Addr)
		}
	}
	for _, lk := range q.lockers {
		lk.Close()
	}
	for _, s := range servers {
		subscribed(t, s, 0)
	}
}

// TestKilledSubscriptionsCostNoTurn: subscriptions are killed again and again, while locks change hands.
func TestKilledSubscriptionsCostNoTurn(t *testing.T) {
	leaks.Check(t)
	servers := redistest.Servers(t, 5)
	q := lineUp(t, servers, nil, 6)
	released(t, q.holder)
	for range 6 {
		for _, s := range servers {
			ask(t, s, "CLIENT", "KILL", "TYPE", "pubsub")
		}
		released(t, q.locks[q.next(3*time.Second)])
	}
}

// TestPublishForbidden: a user that may not publish or subscribe can wait all the same.
func TestPublishForbidden(t *testing.T) {
	t.Parallel()
	servers := redistest.Servers(t, 3)
	for _, s := range servers {
		ask(t, s, "ACL", "SETUSER", "default", "resetchannels")
	}
	const ttl = 2 * time.Second
	holder := open(t, redistest.Clients(t, servers), &redlock.Options{TTL: ttl})
	waiter := open(t, redistest.Clients(t, servers), &redlock.Options{TTL: ttl})
	for range 5 {
		l := acquired(t, holder, "a")
		got := make(chan *redlock.Lock, 1)
		go func() {
			l, err := waiter.Acquire(context.WithoutCancel(t.Context()), "a")
			if err != nil {
				t.Error(err)
			}
			got <- l
		}()
		queued(t, holder, "a", 1, 2) // the third node may not have the holder's key: it may have got the last release too late
		released(t, l)
		begin := time.Now()
		released(t, <-got)
		if took := time.Since(begin); took > ttl/10+slack {
			t.Errorf("noticed after %v, the heartbeat is %v", took, ttl/10)
		}
	}
}

// TestLostQueueIsJoinedAgainAtTheSamePlace: the servers lose the queue, by FLUSHALL or in a restart. A waiter is in it again
// with the next heartbeat, at the same place.
func TestLostQueueIsJoinedAgainAtTheSamePlace(t *testing.T) {
	t.Parallel()
	servers := redistest.Servers(t, 5)
	q := lineUp(t, servers, &redlock.Options{Quarantine: -1}, 4)
	for _, s := range servers {
		ask(t, s, "DEL", "a:queue")
	}
	restart(t, servers[0])
	queued(t, q.lockers[0], "a", 4, 4) // the restarted server has lost the lock, too: it grants it to all in turn
	released(t, q.holder)
	for want := range 4 {
		i := q.next(5 * time.Second)
		if i != want {
			t.Errorf("waiter %d is served, not %d", i, want)
		}
		released(t, q.locks[i])
	}
}

// TestStoppedHeadHoldsUpOthersForItsLease: the first waiter in the queue does not answer any more (here: its links are
// cut). The waiters behind it wait until its lease ends, and no longer.
func TestStoppedHeadHoldsUpOthersForItsLease(t *testing.T) {
	t.Parallel()
	servers := redistest.Servers(t, 5)
	opts := &redlock.Options{TTL: 5 * time.Second}
	holder := open(t, redistest.Clients(t, servers), opts)
	l := acquired(t, holder, "a")
	proxies := redistest.Proxies(t, servers)
	head := open(t, redistest.ProxyClients(t, proxies), opts)
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if l, err := head.Acquire(ctx, "a"); err == nil {
			t.Error("the waiter that was cut off has the lock")
			released(t, l)
		}
	})
	queued(t, holder, "a", 1, 5)
	second := open(t, redistest.Clients(t, servers), opts)
	got := make(chan time.Time, 1)
	waiting.Go(func() {
		l, err := second.Acquire(ctx, "a")
		if err != nil {
			t.Error(err)
			return
		}
		got <- time.Now()
		released(t, l)
	})
	queued(t, holder, "a", 2, 5)
	for _, p := range proxies {
		p.Cut()
	}
	begin := time.Now()
	released(t, l)
	lease := 3 * opts.TTL / 10
	if took := (<-got).Sub(begin); took > lease+slack {
		t.Errorf("the second waiter waited for %v, the lease is %v", took, lease)
	}
	cancel()
	waiting.Wait()
	for _, p := range proxies {
		p.Heal()
	}
}
