package realarena

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/realtest"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
)

// TestRealDeafness: mute and deafen on real servers.
func TestRealDeafness(t *testing.T) {
	t.Parallel()
	n, c := startRealNode(t)
	ctx := t.Context()
	publish := func() error {
		return c.Eval(ctx, "local e = redis.pcall('PUBLISH', 'c', 'hello'); if type(e) == 'table' and e.err then return e.err end return 'OK'", nil).Err()
	}
	hears := func(sub *redis.PubSub) (string, error) {
		m, err := sub.ReceiveTimeout(ctx, 300*time.Millisecond)
		if m, ok := m.(*redis.Message); ok {
			return m.Payload, nil
		}
		return "", err
	}
	subscribe := func() *redis.PubSub {
		sub := c.Subscribe(ctx, "c")
		if _, err := sub.Receive(ctx); err != nil {
			t.Fatal(err)
		}
		return sub
	}
	sub := subscribe()
	defer sub.Close()
	for _, begin := range []bool{true, false} {
		n.must(t, history.Fault{Kind: history.Mute}, begin)
		if err := publish(); err != nil {
			t.Error(err)
		}
		if got, err := hears(sub); (got == "hello") == begin {
			t.Errorf("mute is %v, and the waiter hears %q, %v", begin, got, err)
		}
	}
	n.must(t, history.Fault{Kind: history.Deafen}, true)
	if subs, err := n.admin.PubSubNumSub(ctx, "c").Result(); err != nil || subs["c"] != 0 {
		t.Errorf("subscriptions after deafen: %v, %v", subs, err)
	}
}

func startRealNode(t *testing.T) (*node, *redis.Client) {
	t.Helper()
	realtest.NeedServer(t)
	n, err := newNode([]string{"lock", "free"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.close)
	c := redis.NewClient(&redis.Options{
		Addr: n.proxy.Addr(), Protocol: 2, DisableIdentity: true, MaxRetries: -1, DialerRetries: 1, ReadTimeout: 300 * time.Millisecond,
	})
	t.Cleanup(func() { _ = c.Close() })
	return n, c
}

// lock sets a key as the library's scripts do, and returns the result as text.
func lock(c *redis.Client, key string) string {
	err := c.Eval(context.Background(), "return redis.call('SET', KEYS[1], 'mine', 'PX', 60000)", []string{key}).Err()
	if err != nil {
		return err.Error()
	}
	return "OK"
}

func (n *node) must(t *testing.T, f history.Fault, begin bool) {
	t.Helper()
	if err := n.inject(f, begin); err != nil {
		t.Fatalf("%v, %v: %v", f, begin, err)
	}
}

// TestRealRefusals: the errors that a client gets while a node has such a fault, over its old
// connection and over a new one; and after the fault there are none.
func TestRealRefusals(t *testing.T) {
	t.Parallel()
	n, c := startRealNode(t)
	for kind, says := range map[history.FaultKind]string{
		history.Full:     "OOM ",
		history.ReadOnly: "MISCONF ",
		history.Locked:   "NOAUTH ",
		history.Crowded:  "", // go-redis rarely reads why the server closes the connection
		history.Busy:     "BUSY ",
		history.Kill:     "connection reset",
		history.Hang:     "i/o timeout",
		history.Cut:      "i/o timeout",
		history.Part:     "i/o timeout",
	} {
		if got := lock(c, "a"); got != "OK" {
			t.Fatalf("before %s: %s", kind, got)
		}
		n.must(t, history.Fault{Kind: kind}, true)
		if kind == history.Busy {
			time.Sleep(100 * time.Millisecond) // a script counts as long after half of it
		}
		got := lock(c, "b")
		for range 10 {
			if got != "OK" && strings.Contains(got, says) {
				break
			}
			got = lock(c, "b") // the first call has noticed the closed connection
		}
		if got == "OK" || !strings.Contains(got, says) {
			t.Errorf("%s: %s, want %s", kind, got, says)
		}
		n.must(t, history.Fault{Kind: kind}, false)
		_ = lock(c, "a") // may make the connection anew
		if got := lock(c, "a"); got != "OK" {
			t.Errorf("after %s: %s", kind, got)
		}
	}
}

// TestRealNodeForgets: the keys that are left after a fault.
func TestRealNodeForgets(t *testing.T) {
	t.Parallel()
	n, c := startRealNode(t)
	for kind, keeps := range map[history.FaultKind]bool{
		history.Kill: true, history.KillEmpty: false, history.Flush: false, history.Evict: false, history.FlushScripts: true, history.ReadOnly: true, history.Hang: true, history.Reset: true,
	} {
		_ = lock(c, "a")
		if got := lock(c, "a"); got != "OK" {
			t.Fatalf("before %s: %s", kind, got)
		}
		for _, begin := range []bool{true, false} {
			n.must(t, history.Fault{Kind: kind, Times: 1}, begin)
		}
		keys, err := n.keys()
		if kept := keys["a"] == "mine"; kept != keeps || err != nil {
			t.Errorf("%s: %v, %v", kind, keys, err)
		}
	}
}

// TestRealForeign: hashes are put only where no locks are, and only they are removed.
func TestRealForeign(t *testing.T) {
	t.Parallel()
	n, c := startRealNode(t)
	if got := lock(c, "lock"); got != "OK" {
		t.Fatal(got)
	}
	n.must(t, history.Fault{Kind: history.Foreign}, true)
	keys, err := n.keys()
	if keys["lock"] != "mine" || !strings.HasPrefix(keys["free"], "WRONGTYPE") || err != nil {
		t.Errorf("it has %v, %v", keys, err)
	}
	n.must(t, history.Fault{Kind: history.Foreign}, false)
	if keys, err := n.keys(); len(keys) != 1 || keys["lock"] != "mine" || err != nil {
		t.Errorf("it still has %v, %v", keys, err)
	}
}

// TestRealFaultsMeet: a fault begins or ends while another prevents commands to the server.
func TestRealFaultsMeet(t *testing.T) {
	t.Parallel()
	n, c := startRealNode(t)
	for _, other := range []history.FaultKind{history.Hang, history.Kill, history.KillEmpty, history.Busy, history.Full, history.ReadOnly} {
		// The setting begins during the other fault, and lasts longer.
		n.must(t, history.Fault{Kind: other}, true)
		n.must(t, history.Fault{Kind: history.Foreign}, true)
		n.must(t, history.Fault{Kind: other}, false)
		if keys, err := n.keys(); !strings.HasPrefix(keys["free"], "WRONGTYPE") || err != nil {
			t.Errorf("begun under %s: %v, %v", other, keys, err)
		}
		// It ends during the other fault.
		n.must(t, history.Fault{Kind: other}, true)
		n.must(t, history.Fault{Kind: history.Foreign}, false)
		n.must(t, history.Fault{Kind: other}, false)
		if keys, err := n.keys(); len(keys) != 0 || err != nil {
			t.Errorf("ended under %s: %v, %v", other, keys, err)
		}
	}
	// It begins, but cannot be finished.
	n.locks = append(n.locks, "other")
	n.must(t, history.Fault{Kind: history.Kill}, true)
	n.must(t, history.Fault{Kind: history.Busy}, true)
	n.must(t, history.Fault{Kind: history.Foreign}, true)
	n.must(t, history.Fault{Kind: history.Kill}, false)
	n.must(t, history.Fault{Kind: history.Foreign}, false)
	n.must(t, history.Fault{Kind: history.Busy}, false)
	if keys, err := n.keys(); len(keys) != 0 || err != nil {
		t.Errorf("half of it is left: %v, %v", keys, err)
	}
	// A setting that a restart has reset is set again.
	n.must(t, history.Fault{Kind: history.Full}, true)
	n.must(t, history.Fault{Kind: history.Kill}, true)
	n.must(t, history.Fault{Kind: history.Kill}, false)
	_ = lock(c, "a")
	if got := lock(c, "a"); !strings.HasPrefix(got, "OOM") {
		t.Errorf("full, and started again: %s", got)
	}
	n.must(t, history.Fault{Kind: history.Full}, false)
	if got := lock(c, "a"); got != "OK" {
		t.Errorf("not full any more: %s", got)
	}
	// A running script dies with the server.
	n.must(t, history.Fault{Kind: history.Busy}, true)
	n.must(t, history.Fault{Kind: history.Kill}, true)
	n.must(t, history.Fault{Kind: history.Busy}, false)
	n.must(t, history.Fault{Kind: history.Kill}, false)
	_ = lock(c, "a")
	if got := lock(c, "a"); got != "OK" {
		t.Errorf("busy, and started again: %s", got)
	}
}

// TestRealOneWay: over a link that is cut one way requests arrive, or none do.
func TestRealOneWay(t *testing.T) {
	t.Parallel()
	n, c := startRealNode(t)
	for kind, arrives := range map[history.FaultKind]bool{history.CutReplies: true, history.CutRequests: false} {
		if got := lock(c, "a"); got != "OK" {
			t.Fatal(got)
		}
		n.must(t, history.Fault{Kind: kind}, true)
		key := string(kind)
		if got := lock(c, key); !strings.Contains(got, "i/o timeout") {
			t.Errorf("%s: %s", kind, got)
		}
		keys, err := n.keys()
		if _, there := keys[key]; there != arrives || err != nil {
			t.Errorf("%s: %v, %v", kind, keys, err)
		}
		n.must(t, history.Fault{Kind: kind}, false)
		for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
			if keys, err = n.keys(); keys[key] == "mine" {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s is over: %v, %v", kind, keys, err)
			}
		}
	}
}

// TestRealRestore: an operator makes real servers members of a new set, but for one that keeps something else by then, or
// does not run.
func TestRealRestore(t *testing.T) {
	t.Parallel()
	n, c := startRealNode(t)
	told := func(epoch int64) wire.Kept {
		return wire.Kept{Self: n.proxy.Addr(), Description: &wire.Description{Set: "s", Epoch: epoch, Members: []string{n.proxy.Addr()}, MaxTTL: 1000}}
	}
	if text, err := n.keeps(); text != "" || err != nil {
		t.Fatalf("a new node keeps %q, %v", text, err)
	}
	for _, step := range []struct {
		epoch  int64
		before string
		want   bool
	}{{1, "", true}, {2, "", false}, {2, told(1).String(), true}} {
		if is := n.remake(told(step.epoch), step.before); is != step.want {
			t.Errorf("epoch %d in the place of %q: %v", step.epoch, step.before, is)
		}
	}
	if text, err := n.keeps(); text != told(2).String() || err != nil {
		t.Errorf("it keeps %q, %v", text, err)
	}
	if marked := c.Exists(t.Context(), script.Marker).Val(); marked != 0 {
		t.Error("it has the marker that it had before")
	}
	for _, kind := range []history.FaultKind{history.Hang, history.Kill} {
		n.must(t, history.Fault{Kind: kind}, true)
		if text, err := n.keeps(); err == nil || n.remake(told(3), text) {
			t.Errorf("%s: it keeps %q, or is a member of a new set", kind, text)
		}
		n.must(t, history.Fault{Kind: kind}, false)
		if text, err := n.keeps(); text != told(2).String() || err != nil {
			t.Errorf("after %s it keeps %q, %v", kind, text, err)
		}
	}
}
