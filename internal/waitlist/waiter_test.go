package waitlist

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/set"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/internal/vote"
	"github.com/quorumlock/redlock/internal/wire"
)

func TestMain(m *testing.M) { os.Exit(leaks.Main(m)) }

// A node has been running for a long time, and does what it is asked.
type node struct {
	session lane.Session
	mark    string
	asked   func(*lane.Request)
}

func (n *node) Connect(context.Context) error {
	n.session.Joined(wire.Mark{Value: n.mark, Before: n.mark, Now: n.session.Now().UnixMicro()}, n.session.Now())
	return nil
}

func (n *node) Encode([]*lane.Request) {}
func (n *node) Send() error            { return nil }

func (n *node) Receive(batch []*lane.Request, _ time.Duration) ([]*lane.Request, error) {
	for _, q := range batch {
		n.asked(q)
		q.Reply = wire.Reply{Status: wire.Granted}
	}
	return nil, nil
}

func (n *node) Subscribe(ctx context.Context, _ string, ready func(), _ func(string)) error {
	ready()
	<-ctx.Done()
	return ctx.Err()
}

func (n *node) Join() error                   { return nil }
func (n *node) Refresh(context.Context) error { return nil }
func (n *node) Outdated() bool                { return false }
func (n *node) Interrupt()                    {}

type clock struct{}

func (clock) Now() time.Time { return time.Now() }

type events struct{}

func (events) Down(string, *lane.Failure)               {}
func (events) Up(string, time.Duration)                 {}
func (events) Quarantined(string, time.Duration, error) {}
func (events) Votes(string)                             {}
func (events) ClockStep(string, time.Duration)          {}
func (events) Joined(*wire.Description)                 {}
func (events) Members(*wire.Description)                {}
func (events) Warning(error)                            {}

// waiting returns a List over n nodes that vote.
func waiting(t *testing.T, n int) *List { return waitingAt(t, n, func(string, *lane.Request) {}) }

// waitingAt is waiting, with nodes that call asked with their names for each request.
func waitingAt(t *testing.T, n int, asked func(string, *lane.Request)) *List {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprint("node", i))
	}
	const ttl = 10 * time.Second
	cfg := set.Config{
		Config: vote.Config{
			Config: lane.Config{NodeTimeout: time.Second, Clock: clock{}, Host: sim.Chance{}},
			TTL:    ttl, MaxTTL: ttl, DriftOf: func(ttl time.Duration) time.Duration { return ttl / 100 },
			Quarantine: ttl + ttl/100, MaxNodeSkew: time.Second,
		},
		Quorum: n/2 + 1, Events: events{},
	}
	tried := make(chan int, n)
	lanes := set.Open(cfg, names, func(_ int, name string, s lane.Session) lane.Server {
		return &node{s, script.Settled(name, time.Now()), func(q *lane.Request) { asked(name, q) }}
	}, tried)
	for range n {
		<-tried
	}
	l := New(Config{Lanes: lanes, NodeTimeout: cfg.NodeTimeout, Clock: cfg.Clock, Host: cfg.Host})
	t.Cleanup(func() {
		l.Close()
		lanes.Close(time.Second)
	})
	return l
}

// TestEarlierAttempt: a late answer to an earlier attempt says nothing about the last one; nor does one
// of a node that was no member when the last one began.
func TestEarlierAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := waiting(t, 3)
		w := l.Enter(&Want{Queue: "a", Key: "a", Keys: []string{"a"}, Modes: "x", TTL: 10 * time.Second})
		defer l.Leave(w)
		first, second := new(lane.Claim), new(lane.Claim)
		w.Begin(first)
		w.Begin(second)
		if first.Waiter != w.Name() || first.Ticket != second.Ticket || first.Ticket == 0 || second.Lease != 3000 {
			t.Errorf("%+v, %+v", first, second)
		}
		for i := range 3 {
			w.OnReply(l.cfg.Lanes.Lane(i), first, wire.Granted)
		}
		if enough, _ := w.tally(); enough || w.nodes[0].granted {
			t.Errorf("answers to an earlier attempt count: %+v", w.nodes)
		}
		for i := range 3 {
			w.OnReply(l.cfg.Lanes.Lane(i), second, wire.Held)
		}
		if enough, all := w.tally(); enough || all {
			t.Errorf("all have refused: %+v", w.nodes)
		}
		w.onFree(l.cfg.Lanes.Lane(0), 0)
		if enough, _ := w.tally(); enough || len(w.wake) > 0 {
			t.Error("one call is enough")
		}
		w.onFree(l.cfg.Lanes.Lane(2), 0)
		if enough, all := w.tally(); !enough || all || len(w.wake) != 1 {
			t.Errorf("a quorum has called: %v, %v, %d", enough, all, len(w.wake))
		}
		w.Begin(new(lane.Claim))
		if enough, _ := w.tally(); enough || len(w.wake) > 0 {
			t.Error("calls from before an attempt count for it")
		}
	})
}

// TestEarlierGrant: nodes grant a reader's attempt late, when its next one is under way, or has the lock. They give that
// grant back for a place in the queue, so the waiter leaves the queues of these nodes, and no others.
func TestEarlierGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var left []string
		l := waitingAt(t, 3, func(node string, q *lane.Request) {
			if q.Op == wire.Leave {
				left = append(left, node)
			}
		})
		w := l.Enter(&Want{Queue: "a", Key: "a", Keys: []string{"a"}, Modes: "s", TTL: 10 * time.Second})
		defer l.Leave(w)
		first, second := new(lane.Claim), new(lane.Claim)
		w.Begin(first)
		w.Begin(second)
		w.OnReply(l.cfg.Lanes.Lane(0), first, wire.Granted)
		for i := range 3 {
			w.OnReply(l.cfg.Lanes.Lane(i), second, wire.Granted)
		}
		w.Withdraw(true)
		synctest.Wait()
		if got := fmt.Sprint(left); got != "[node0]" {
			t.Errorf("the waiter has left the queues of %s, not that of node0", got)
		}
		w.OnReply(l.cfg.Lanes.Lane(2), first, wire.Granted)
		synctest.Wait()
		if got := fmt.Sprint(left); got != "[node0 node2]" {
			t.Errorf("the waiter has left the queues of %s, not those of node0 and node2", got)
		}
	})
}

// FuzzParseCall: whatever is published, what is read is bounded.
func FuzzParseCall(f *testing.F) {
	for _, message := range []string{"p.1", "p.1 3", "", " ", "p.1 -2", "p.1 99999999999999999999", "\x00 1 \n", strings.Repeat(" ", 2000)} {
		f.Add(message)
	}
	f.Fuzz(func(t *testing.T, message string) {
		if name, slot := parseCall(message); len(name) > maxMessage || slot < 0 || !strings.HasPrefix(message, name) {
			t.Errorf("%q calls %q for %d", message, name, slot)
		}
	})
}
