package chaos

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func startRealNode(t *testing.T) (*realNode, *redis.Client) {
	t.Helper()
	needReal(t)
	n, err := newRealNode([]string{"lock", "free"})
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

// lock sets a key as the library's scripts do, and says how that went.
func lock(c *redis.Client, key string) string {
	err := c.Eval(context.Background(), "return redis.call('SET', KEYS[1], 'mine', 'PX', 60000)", []string{key}).Err()
	if err != nil {
		return err.Error()
	}
	return "OK"
}

func (n *realNode) must(t *testing.T, f Fault, begin bool) {
	t.Helper()
	if err := n.strike(f, begin); err != nil {
		t.Fatalf("%v, %v: %v", f, begin, err)
	}
}

// TestRealRefusals: what a client is told while a node has such a trouble, over the
// connection that it had and over a new one; and that it is over when it is over.
func TestRealRefusals(t *testing.T) {
	t.Parallel()
	n, c := startRealNode(t)
	for trouble, says := range map[Trouble]string{
		Full:     "OOM ",
		ReadOnly: "MISCONF ",
		Locked:   "NOAUTH ",
		Crowded:  "", // go-redis seldom hears why it is hung up on
		Busy:     "BUSY ",
		Kill:     "connection reset",
		Hang:     "i/o timeout",
		Cut:      "i/o timeout",
		Part:     "i/o timeout",
	} {
		if got := lock(c, "a"); got != "OK" {
			t.Fatalf("before %s: %s", trouble, got)
		}
		n.must(t, Fault{Trouble: trouble}, true)
		if trouble == Busy {
			time.Sleep(100 * time.Millisecond) // a script is long after half of it
		}
		got := lock(c, "b")
		for range 10 {
			if got != "OK" && strings.Contains(got, says) {
				break
			}
			got = lock(c, "b") // it heard that its connection was gone
		}
		if got == "OK" || !strings.Contains(got, says) {
			t.Errorf("%s: %s, want %s", trouble, got, says)
		}
		n.must(t, Fault{Trouble: trouble}, false)
		_ = lock(c, "a") // the connection may have to be made anew
		if got := lock(c, "a"); got != "OK" {
			t.Errorf("after %s: %s", trouble, got)
		}
	}
}

// TestRealNodeForgets: what is there after a trouble, and what is not.
func TestRealNodeForgets(t *testing.T) {
	t.Parallel()
	n, c := startRealNode(t)
	for trouble, keeps := range map[Trouble]bool{
		Kill: true, KillEmpty: false, Flush: false, Evict: false, FlushScripts: true, ReadOnly: true, Hang: true, Reset: true,
	} {
		_ = lock(c, "a")
		if got := lock(c, "a"); got != "OK" {
			t.Fatalf("before %s: %s", trouble, got)
		}
		for _, begin := range []bool{true, false} {
			n.must(t, Fault{Trouble: trouble, Times: 1}, begin)
		}
		keys, err := n.keys()
		if kept := keys["a"] == "mine"; kept != keeps || err != nil {
			t.Errorf("%s: %v, %v", trouble, keys, err)
		}
	}
}

// TestRealForeign: hashes come where no locks are, and only they go.
func TestRealForeign(t *testing.T) {
	t.Parallel()
	n, c := startRealNode(t)
	if got := lock(c, "lock"); got != "OK" {
		t.Fatal(got)
	}
	n.must(t, Fault{Trouble: Foreign}, true)
	keys, err := n.keys()
	if keys["lock"] != "mine" || !strings.HasPrefix(keys["free"], "WRONGTYPE") || err != nil {
		t.Errorf("it has %v, %v", keys, err)
	}
	n.must(t, Fault{Trouble: Foreign}, false)
	if keys, err := n.keys(); len(keys) != 1 || keys["lock"] != "mine" || err != nil {
		t.Errorf("it still has %v, %v", keys, err)
	}
}

// TestRealTroublesMeet: one begins or ends while another keeps the server from being
// told.
func TestRealTroublesMeet(t *testing.T) {
	t.Parallel()
	n, c := startRealNode(t)
	for _, other := range []Trouble{Hang, Kill, KillEmpty, Busy, Full, ReadOnly} {
		// The setting begins under the other, and lasts longer.
		n.must(t, Fault{Trouble: other}, true)
		n.must(t, Fault{Trouble: Foreign}, true)
		n.must(t, Fault{Trouble: other}, false)
		if keys, err := n.keys(); !strings.HasPrefix(keys["free"], "WRONGTYPE") || err != nil {
			t.Errorf("begun under %s: %v, %v", other, keys, err)
		}
		// It ends under the other.
		n.must(t, Fault{Trouble: other}, true)
		n.must(t, Fault{Trouble: Foreign}, false)
		n.must(t, Fault{Trouble: other}, false)
		if keys, err := n.keys(); len(keys) != 0 || err != nil {
			t.Errorf("ended under %s: %v, %v", other, keys, err)
		}
	}
	// It begins, but cannot be finished.
	n.locks = append(n.locks, "other")
	n.must(t, Fault{Trouble: Kill}, true)
	n.must(t, Fault{Trouble: Busy}, true)
	n.must(t, Fault{Trouble: Foreign}, true)
	n.must(t, Fault{Trouble: Kill}, false)
	n.must(t, Fault{Trouble: Foreign}, false)
	n.must(t, Fault{Trouble: Busy}, false)
	if keys, err := n.keys(); len(keys) != 0 || err != nil {
		t.Errorf("half of it is left: %v, %v", keys, err)
	}
	// What a restart forgets is told again.
	n.must(t, Fault{Trouble: Full}, true)
	n.must(t, Fault{Trouble: Kill}, true)
	n.must(t, Fault{Trouble: Kill}, false)
	_ = lock(c, "a")
	if got := lock(c, "a"); !strings.HasPrefix(got, "OOM") {
		t.Errorf("full, and started again: %s", got)
	}
	n.must(t, Fault{Trouble: Full}, false)
	if got := lock(c, "a"); got != "OK" {
		t.Errorf("not full any more: %s", got)
	}
	// Somebody's script dies with the server.
	n.must(t, Fault{Trouble: Busy}, true)
	n.must(t, Fault{Trouble: Kill}, true)
	n.must(t, Fault{Trouble: Busy}, false)
	n.must(t, Fault{Trouble: Kill}, false)
	_ = lock(c, "a")
	if got := lock(c, "a"); got != "OK" {
		t.Errorf("busy, and started again: %s", got)
	}
}

// TestRealOneWay: over a link that is cut one way requests arrive, or none do.
func TestRealOneWay(t *testing.T) {
	t.Parallel()
	n, c := startRealNode(t)
	for trouble, arrives := range map[Trouble]bool{CutReplies: true, CutRequests: false} {
		if got := lock(c, "a"); got != "OK" {
			t.Fatal(got)
		}
		n.must(t, Fault{Trouble: trouble}, true)
		key := string(trouble)
		if got := lock(c, key); !strings.Contains(got, "i/o timeout") {
			t.Errorf("%s: %s", trouble, got)
		}
		keys, err := n.keys()
		if _, there := keys[key]; there != arrives || err != nil {
			t.Errorf("%s: %v, %v", trouble, keys, err)
		}
		n.must(t, Fault{Trouble: trouble}, false)
		for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
			if keys, err = n.keys(); keys[key] == "mine" {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s is over: %v, %v", trouble, keys, err)
			}
		}
	}
}
