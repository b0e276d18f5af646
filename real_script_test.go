package redlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/redistest"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/redis/go-redis/v9"
)

// eval has a server execute one of our scripts, and gives the reply as text.
func eval(t *testing.T, c *redis.Client, s script.Script, key string, args ...any) string {
	t.Helper()
	reply, err := c.Eval(context.WithoutCancel(t.Context()), s.Source, []string{key}, args...).Result()
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(reply)
}

// TestAcquireTwice: the same request may arrive twice, since a connection was
// made anew. The second copy finds its own key, which is a grant, and does not
// prolong it (A2).
func TestAcquireTwice(t *testing.T) {
	redistest.NoLeaks(t)
	c := redistest.Clients(t, redistest.Servers(t, 1))[0]
	if got := eval(t, c, script.Acquire, "a", "token", 5_000); got != "1" {
		t.Fatal(got)
	}
	if got := eval(t, c, script.Acquire, "a", "token", 60_000); got != "1" {
		t.Errorf("the duplicate is answered %s", got)
	}
	if ttl := c.PTTL(t.Context(), "a").Val(); ttl <= 0 || ttl > 5*time.Second {
		t.Errorf("the duplicate has made the TTL %v", ttl)
	}
}

// TestTokensAreCompared: as a whole, so a token that begins like another one is
// another one (B6).
func TestTokensAreCompared(t *testing.T) {
	redistest.NoLeaks(t)
	c := redistest.Clients(t, redistest.Servers(t, 1))[0]
	for _, tt := range []struct{ held, other string }{
		{"node-10", "node-1"},
		{"node-1", "node-10"},
		{"node-1", ""},
		{"", "node-1"},
		{"node-1", "NODE-1"},
		{"node.1", "node-1"},
		{"1", "1.0"},
		{"1", "01"},
		{"a\x00b", "a\x00c"},
		{"node-1", "node-*"},
	} {
		c.Del(t.Context(), "a")
		if got := eval(t, c, script.Acquire, "a", tt.held, 5_000); got != "1" {
			t.Fatal(got)
		}
		for step, reply := range map[string]string{
			"acquire": eval(t, c, script.Acquire, "a", tt.other, 60_000),
			"extend":  eval(t, c, script.Extend, "a", tt.other, 60_000),
			"release": eval(t, c, script.Release, "a", tt.other),
		} {
			var pttl int
			var holder string
			if n, _ := fmt.Sscanf(reply, "[%d", &pttl); n == 1 {
				holder = reply[len(fmt.Sprintf("[%d ", pttl)) : len(reply)-1]
			}
			if holder != tt.held || pttl <= 0 || pttl > 5_000 {
				t.Errorf("%q: %s by %q is answered %s", tt.held, step, tt.other, reply)
			}
		}
		if got := c.Get(t.Context(), "a").Val(); got != tt.held {
			t.Errorf("%q is now %q", tt.held, got)
		}
		if ttl := c.PTTL(t.Context(), "a").Val(); ttl <= 0 || ttl > 5*time.Second {
			t.Errorf("%q: the TTL is now %v", tt.held, ttl)
		}
		if got := eval(t, c, script.Release, "a", tt.held); got != "1" {
			t.Errorf("%q: its own release is answered %s", tt.held, got)
		}
	}
}

// TestLateSteps: an extension or a release that comes when the key has gone
// changes nothing. Above all it does not make the key again (B4).
func TestLateSteps(t *testing.T) {
	redistest.NoLeaks(t)
	c := redistest.Clients(t, redistest.Servers(t, 1))[0]
	if got := eval(t, c, script.Extend, "a", "token", 5_000); got != "0" {
		t.Errorf("extend is answered %s", got)
	}
	if got := eval(t, c, script.Release, "a", "token"); got != "0" {
		t.Errorf("release is answered %s", got)
	}
	if n := c.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys", n)
	}
}
