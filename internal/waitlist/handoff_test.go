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
	"github.com/quorumlock/redlock/internal/redistest/leaks"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/wire"
)

func TestMain(m *testing.M) { os.Exit(leaks.Main(m)) }

// A node has been running for a long time, and does what it is asked.
type node struct {
	session lane.Session
	mark    string
}

func (n *node) Connect(context.Context) (time.Duration, error) {
	n.session.Joined(wire.Mark{Value: n.mark, Before: n.mark, Now: n.session.Now().UnixMicro()}, n.session.Now())
	return 0, nil
}

func (n *node) Exec(batch []*lane.Request) error {
	for _, q := range batch {
		q.Reply = wire.Reply{Status: wire.Granted}
	}
	return nil
}

func (n *node) Subscribe(ctx context.Context, _ string, ready func(), _ func(string)) error {
	ready()
	<-ctx.Done()
	return ctx.Err()
}

func (n *node) Join() error       { return nil }
func (n *node) Interrupt()        {}
func (n *node) Fork() lane.Server { return n }

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

// waiting returns a List over n nodes that vote, and their markers.
func waiting(t *testing.T, n int) (l *List, marks []string) {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprint("node", i))
		marks = append(marks, script.Settled(names[i], time.Now()))
	}
	const ttl = 10 * time.Second
	cfg := lane.Config{
		TTL: ttl, MaxTTL: ttl, DriftOf: func(ttl time.Duration) time.Duration { return ttl / 100 }, NodeTimeout: time.Second,
		Quorum: n/2 + 1, Quarantine: ttl + ttl/100, MaxNodeSkew: time.Second, Clock: clock{}, Host: sim.Chance{}, Events: events{},
	}
	tried := make(chan int, n)
	lanes := lane.Open(cfg, names, func(i int, _ string, s lane.Session) lane.Server { return &node{s, marks[i]} }, tried)
	for range n {
		<-tried
	}
	l = New(Config{Lanes: lanes, NodeTimeout: cfg.NodeTimeout, Clock: cfg.Clock, Host: cfg.Host})
	t.Cleanup(func() {
		l.Close()
		lanes.Close(time.Second)
	})
	return l, marks
}

// attempt begins an attempt, and returns its number.
func attempt(w *Waiter, sent time.Time, token string) int64 {
	c := lane.Claim{Token: token}
	w.Begin(sent, &c)
	return c.Try
}

// TestEarlierAttempt: the late results of an earlier attempt do not count for a waiter that a node
// hands the lock for a later one. A refusal, which would prove that the node had a vote, does not
// count; nor does a hand-over, for its token is another. And the waiter that leaves takes back no
// more than that attempt's hand-over.
func TestEarlierAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, marks := waiting(t, 3)
		w, now := l.Enter(&Want{Queue: "a", Key: "a", Keys: []string{"a"}, Modes: "x", TTL: 10 * time.Second}), time.Now()
		defer l.Leave(w)
		hand := func(try int64) {
			w.onHandoff(l.cfg.Lanes.Lane(0), handoff{w.name, try, fmt.Sprint("nonce", try), 17, now.UnixMicro(), marks[0]}, now)
		}
		first, second := attempt(w, now, "nonce1"), attempt(w, now, "nonce2")
		if first != 1 || second != 2 {
			t.Fatal(first, second)
		}
		w.OnReply(l.cfg.Lanes.Lane(0), first, wire.Held)
		hand(first)
		if _, _, mine := w.tally(); mine != 0 || w.nodes[0].refused || w.nodes[0].handed > 0 {
			t.Errorf("%d nodes count as handed over: %+v", mine, w.nodes[0])
		}
		hand(second)
		if _, _, mine := w.tally(); mine != 0 {
			t.Error("it counts before the node has refused")
		}
		w.OnReply(l.cfg.Lanes.Lane(0), second, wire.Held)
		if _, _, mine := w.tally(); mine != 1 {
			t.Errorf("%d nodes are its own", mine)
		}
		for i := range marks {
			w.OnReply(l.cfg.Lanes.Lane(i), second, wire.Held)
			w.onHandoff(l.cfg.Lanes.Lane(i), handoff{w.name, second, "nonce2", 17, now.UnixMicro(), marks[i]}, now)
		}
		w.Withdraw(false)
		if g, ok := w.Grant(); ok {
			t.Errorf("%+v counts after the nodes were asked to take it back", g)
		}
	})
}

// TestOnlyTheNodesWord: a message hands the lock over if it has the nonce of the last attempt, and
// comes over a subscription that stood when the attempt was sent. Messages that were meant for
// others, or are repeated, or guessed, do not count.
func TestOnlyTheNodesWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, marks := waiting(t, 3)
		w := l.Enter(&Want{Queue: "a", Key: "a", Keys: []string{"a"}, Modes: "x", TTL: 10 * time.Second})
		defer l.Leave(w)
		time.Sleep(time.Second)
		before := time.Now()
		time.Sleep(time.Second)
		sent := time.Now()
		attempt(w, sent, "first")
		attempt(w, sent, "second")
		for i := range marks {
			w.OnReply(l.cfg.Lanes.Lane(i), 2, wire.Held)
		}
		hand := func(try int64, nonce string, began time.Time) {
			w.onHandoff(l.cfg.Lanes.Lane(0), handoff{w.name, try, nonce, 17, time.Now().UnixMicro(), marks[0]}, began)
		}
		mine := func(want int) {
			t.Helper()
			if _, _, mine := w.tally(); mine != want {
				t.Errorf("%d nodes are its own", mine)
			}
		}
		for _, nonce := range []string{"", "first", "second ", "2", w.name} {
			hand(2, nonce, before)
		}
		hand(1, "first", before)  // once more
		hand(1, "second", before) // for another attempt
		hand(3, "second", before)
		mine(0)
		if len(w.wake) > 0 {
			t.Error("it is woken")
		}
		hand(2, "second", sent.Add(1)) // a copy of this process receives it, and only makes an attempt
		mine(0)
		if !w.nodes[0].free {
			t.Error("it makes no attempt")
		}
		hand(2, "second", before)
		mine(1)
		attempt(w, time.Now(), "third")
		w.OnReply(l.cfg.Lanes.Lane(0), 3, wire.Held)
		hand(2, "second", before)
		hand(3, "second", before)
		mine(0)
		hand(3, "third", sent.Add(1))
		mine(0)
		time.Sleep(time.Second)
		attempt(w, time.Now(), "fourth")
		w.OnReply(l.cfg.Lanes.Lane(0), 4, wire.Held)
		hand(4, "fourth", sent.Add(1))
		mine(1)
	})
}

func TestParseHandoff(t *testing.T) {
	const seconds, micros = "1795302682 513500", int64(1795302682513500)
	true1 := handoff{"p.1", 2, "n.1", micros, micros, "id:5"}
	numbered := func(number int64) (string, handoff) {
		h := true1
		h.number = number
		return fmt.Sprintf("p.1 2.n.1 %d %s id:5", number, seconds), h
	}
	all := map[string]handoff{
		"p.1 2.n.1 1795302682513500 1795302682 513500 id:5": true1,
		"p.1 2.n.1 1795302682513500 1795302682 513500 ":     {"p.1", 2, "n.1", micros, micros, ""},
		"p.1": {}, "p.1 3": {}, "": {}, " ": {}, "      ": {}, "p.1 2.n 17 1795302682 513500": {}, "p.1 2.n.1 1795302682513500 1795302682 513500 id:5 more": {},
		"p.1 2 1795302682513500 1795302682 513500 id:5":                                   {}, // of an older version
		"p.1 2. 1795302682513500 1795302682 513500 id:5":                                  {},
		"p.1 x.n 1795302682513500 1795302682 513500 id:5":                                 {},
		"p.1 -1.n 1795302682513500 1795302682 513500 id:5":                                {},
		"p.1 2.n.1 0 0 1 id:5":                                                            {},
		"p.1 2.n.1 -1 0 1 id:5":                                                           {},
		"p.1 2.n.1 1 9223372036854775807 1 id:5":                                          {},
		"p.1 2.n.1 1795302682513500 1795302681 1513500 id:5":                              {},
		"p.1 2.n.1 1795302682513500 -1795302682 513500 id:5":                              {},
		"p.1 2.n.1 1795302682513500 1795302682 513500 " + strings.Repeat("i", maxMessage): {},
	}
	for off, ok := range map[int64]bool{0: true, -500_000: true, -500_001: false, 3_600_000_000: true, 3_600_000_001: false, wire.MaxFence - micros - 1: false, 1 - micros: false} {
		message, h := numbered(micros + off)
		if !ok {
			h = handoff{}
		}
		all[message] = h
	}
	for message, want := range all {
		if h, ok := parseHandoff(message); ok != (want != handoff{}) || ok && h != want {
			t.Errorf("%q: %+v, %v", message, h, ok)
		}
	}
}

// FuzzParseHandoff: whatever is published, a message that is accepted is one that the script can
// have sent, and stays the same when it is written again.
func FuzzParseHandoff(f *testing.F) {
	for _, message := range []string{
		"p.1 2.n.1 1795302682513500 1795302682 513500 id:5", "p.1", "p.1 3", "", " ", "p.1 2 17 1 1 ", "p.1 +2.n 01 0 1 ",
		"p.1 2.n 9007199254740991 9007199254 740991 id", "p.1 9223372036854775808.n 1 0 1 id", "\x00 1.\xff 1 0 1 \n", strings.Repeat(" ", 2000),
	} {
		f.Add(message)
	}
	f.Fuzz(func(t *testing.T, message string) {
		if name, slot := parseCall(message); len(name) > maxMessage || slot < 0 {
			t.Errorf("%q calls %q for %d", message, name, slot)
		}
		h, ok := parseHandoff(message)
		if !ok {
			return
		}
		if len(message) > maxMessage || h.nonce == "" || h.try < 0 || h.number <= 0 || h.number >= wire.MaxFence || h.time < 0 || h.number < h.time-500_000 || h.number-h.time > 3_600_000_000 {
			t.Errorf("%q is accepted: %+v", message, h)
		}
		again := fmt.Sprintf("%s %d.%s %d %d %d %s", h.waiter, h.try, h.nonce, h.number, h.time/1e6, h.time%1e6, h.mark)
		if other, ok := parseHandoff(again); !ok || other != h {
			t.Errorf("%q is read as %+v, %v", again, other, ok)
		}
	})
}
