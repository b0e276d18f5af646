package redlock_test

import (
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/redistest"
)

// TestAnsweredLate: a node's refusal comes when the waiter has been handed the lock by the
// others, and is about to extend it. It is handed over there, too, and may count for the
// extension; so he must not have himself taken out of the queue there, and the lock with it
// (OWN_LEAVE in docs/model). The extension does not get to another node.
func TestAnsweredLate(t *testing.T) {
	redistest.NoLeaks(t)
	servers := redistest.Servers(t, 3)
	proxies := redistest.Proxies(t, servers)
	opts := &redlock.Options{TTL: 3 * time.Second, NodeTimeout: 400 * time.Millisecond, Quarantine: -1}
	near, far := open(t, redistest.Clients(t, servers), opts), open(t, redistest.ProxyClients(t, proxies), opts)
	before, got := acquired(t, near, "a"), make(chan *redlock.Lock, 1)
	go func() {
		l, err := far.Acquire(t.Context(), "a")
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	queued(t, near, "a", 1, 3)
	for _, s := range servers {
		subscribed(t, s, 1)
	}
	place := func(i int) any { return ask(t, servers[i], "ZRANGE", "a:queue", "0", "0").([]any)[0] }
	first := place(2)
	proxies[2].CutReplies()
	eventually(t, 5*time.Second, "a heartbeat", func() bool { return place(2) != first })
	released(t, before)
	l := <-got
	if l == nil {
		return
	}
	proxies[0].Hang()
	eventually(t, 5*time.Second, "the lock on all nodes", func() bool { return heldOn(t, servers, "a", l.Token()) == 3 })
	eventually(t, 5*time.Second, "the extension", func() bool { return ask(t, servers[1], "PTTL", "a").(int64) > 2000 })
	proxies[2].Heal()
	for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if rival, err := near.TryAcquire(t.Context(), "a"); err == nil {
			if until := l.Until(); time.Now().Before(until) {
				t.Errorf("two have it: it is valid for %v, and the other one for %v", time.Until(until), time.Until(rival.Until()))
			}
			released(t, rival)
			break
		}
	}
	proxies[0].Resume()
	_ = l.Release(t.Context()) // it may have ended
}
