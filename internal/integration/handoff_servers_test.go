package integration_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/redistest"
	"github.com/quorumlock/redlock/internal/redistest/leaks"
	"github.com/quorumlock/redlock/internal/script"
	in "github.com/quorumlock/redlock/internal/wire"
	"github.com/redis/go-redis/v9"
)

// TestAnsweredLate: a node's refusal comes when the others have handed the waiter the lock, and the
// waiter is about to extend it. That node hands the lock over, too, and may count for the
// extension. So the waiter must not leave the queue there, which would take the lock back
// (OWN_LEAVE in docs/model). The extension does not reach another node.
func TestAnsweredLate(t *testing.T) {
	t.Parallel()
	servers := redistest.Servers(t, 3)
	proxies := redistest.Proxies(t, servers)
	opts := &redlock.Options{TTL: 3 * time.Second, NodeTimeout: 400 * time.Millisecond, Quarantine: -1}
	near, far := open(t, redistest.Clients(t, servers), opts), open(t, redistest.ProxyClients(t, proxies), opts)
	before, got := byScript(t, near, "a"), make(chan *redlock.Lock, 1)
	// Two votes are enough. If the waiter came to the third node first, it would have the lock there.
	eventually(t, 5*time.Second, "the lock on all nodes", func() bool { return heldOn(t, servers, "a", before.Token()) == 3 })
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

// TestPublisherGivesNoLock: a user that may publish, and do nothing else, cannot make a waiter
// believe that it has the lock, even if it guesses all that can be guessed; a release on the nodes
// does.
func TestPublisherGivesNoLock(t *testing.T) {
	leaks.Check(t)
	servers := redistest.Servers(t, 3)
	opts := &redlock.Options{TTL: time.Minute, NodeTimeout: 2 * time.Second, Quarantine: -1}
	near, far := open(t, redistest.Clients(t, servers), opts), open(t, redistest.Clients(t, servers), opts)
	before, got := byScript(t, near, "a"), make(chan *redlock.Lock, 1)
	go func() {
		l, err := far.Acquire(t.Context(), "a")
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	queued(t, near, "a", 1, 3)
	var forgers []*redis.Client
	for _, s := range servers {
		subscribed(t, s, 1)
		ask(t, s, "ACL", "SETUSER", "forger", "reset", "on", ">p", "&"+script.WakeChannel+"*", "+publish")
		c := redis.NewClient(&redis.Options{Addr: s.Addr, Username: "forger", Password: "p"})
		t.Cleanup(func() { _ = c.Close() })
		forgers = append(forgers, c)
		if err := c.Get(t.Context(), "a").Err(); err == nil || errors.Is(err, redis.Nil) {
			t.Fatalf("it may read: %v", err)
		}
	}
	member, _ := ask(t, servers[0], "ZRANGE", "a:queue", "0", "0").([]any)[0].(string)
	waiter, _, _ := strings.Cut(member, " ")
	process := waiter[:strings.LastIndexByte(waiter, '.')]
	for _, nonce := range []string{"", "." + before.Token()} {
		for try := range 30 { // it may make an attempt at any moment, also after a forged message
			for _, number := range []int64{1<<53 - 1, time.Now().UnixMicro()} {
				for i, c := range forgers {
					now := time.Now()
					message := fmt.Sprintf("%s %d%s %d %d %d ", waiter, try, nonce, number, now.Unix(), now.Nanosecond()/1000)
					if heard, err := c.Publish(t.Context(), script.WakeChannel+process, message).Result(); err != nil || heard != 1 {
						t.Fatalf("node %d: %d hear it, %v", i, heard, err)
					}
				}
			}
		}
	}
	released(t, before) // messages that were sent before have been received before
	l := <-got
	if l == nil {
		return
	}
	eventually(t, 5*time.Second, "the lock on the nodes", func() bool { return heldOn(t, servers, "a", l.Token()) >= 2 })
	if l.Fence() <= before.Fence() || l.Fence() > time.Now().Add(time.Second).UnixMicro() {
		t.Errorf("fence %d after %d", l.Fence(), before.Fence())
	}
	released(t, l)
	nothingLeft(t, servers)
}

// TestOlderClientsInTheQueue: a waiter of a version without nonces is called, and not handed a
// token that could be guessed; and the scripts of that version call waiters that have a nonce, too.
func TestOlderClientsInTheQueue(t *testing.T) {
	servers, lk := onServers(t, 1, trusting())
	s := servers[0]
	l := acquired(t, lk, "a")
	client := redis.NewClient(&redis.Options{Addr: s.Addr})
	defer client.Close()
	sub := client.Subscribe(t.Context(), script.WakeChannel+"older")
	defer sub.Close()
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(2 * time.Second).UnixMilli()
	ask(t, s, "ZADD", "a:queue", "1", fmt.Sprintf("older.1 %d x3 10.0.0.1:7 and more", deadline))
	released(t, l)
	if m, err := sub.ReceiveMessage(t.Context()); err != nil || m.Payload != "older.1" {
		t.Errorf("it hears %v, %v", m, err)
	}
	if token := ask(t, s, "GET", "a"); token != nil {
		t.Errorf("%v has the lock", token)
	}
	ask(t, s, "DEL", "a:queue")

	// How the scripts of that version read a member: release, and every script that goes through a queue.
	e := in.QueueEntry{Waiter: "p.1", Deadline: deadline, Mode: 'x', Try: 7, Nonce: "n", Owner: "me"}
	for pattern, want := range map[string]string{
		`^((%S+)%.%d+) (%d+) x(%d+) `: fmt.Sprint([]any{"p.1", "p", fmt.Sprint(deadline), "0"}), // attempt 0: the waiter is called
		`^(%S+) (%d+) (%l)%d+ `:       fmt.Sprint([]any{"p.1", fmt.Sprint(deadline), "x"}),
	} {
		if got := fmt.Sprint(ask(t, s, "EVAL", "return {string.match(ARGV[1], ARGV[2])}", "0", e.String(), pattern)); got != want {
			t.Errorf("%s reads %s, not %s", pattern, got, want)
		}
	}
}
