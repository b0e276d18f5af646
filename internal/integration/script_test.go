package integration_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/redis/go-redis/v9"
)

// acquire is the script for nodes without markers.
var acquire, release = script.Acquire(""), script.Release

// eval runs one of the scripts on a server, and gives the reply as text: only its first part, if it
// is a grant or an extension.
func eval(t *testing.T, c *redis.Client, s script.Script, key string, args ...any) string {
	t.Helper()
	if s == acquire {
		args = append(args, 1, 0) // a fence, and no deadline
	}
	reply, err := run(t, c, s, key, args...)
	if err != nil {
		return err.Error()
	}
	switch list, ok := reply.([]any); {
	case ok && len(list) == 3: // the last element is the time
		return fmt.Sprint(list[:2])
	case s == acquire:
		return "granted"
	}
	return fmt.Sprint(reply)
}

// TestAcquireTwice: the same request may arrive twice, since a connection was made anew. The second
// copy finds its own key, which is a grant, and does not prolong it (A2).
func TestAcquireTwice(t *testing.T) {
	leaks.Check(t)
	c := redistest.Clients(t, redistest.Servers(t, 1))[0]
	if got := eval(t, c, acquire, "a", "token", 5_000); got != "granted" {
		t.Fatal(got)
	}
	if got := eval(t, c, acquire, "a", "token", 60_000); got != "granted" {
		t.Errorf("the duplicate is answered %s", got)
	}
	if ttl := c.PTTL(t.Context(), "a").Val(); ttl <= 0 || ttl > 5*time.Second {
		t.Errorf("the duplicate has made the TTL %v", ttl)
	}
}

// TestTokensAreCompared: tokens are compared as a whole, so a token that begins like another one is
// a different one (B6).
func TestTokensAreCompared(t *testing.T) {
	leaks.Check(t)
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
		if got := eval(t, c, acquire, "a", tt.held, 5_000); got != "granted" {
			t.Fatal(got)
		}
		for step, reply := range map[string]string{
			"acquire": eval(t, c, acquire, "a", tt.other, 60_000),
			"extend":  eval(t, c, script.Extend, "a", tt.other, 60_000),
			"release": eval(t, c, release, "a", tt.other),
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
		if got := eval(t, c, release, "a", tt.held); got != "1" {
			t.Errorf("%q: its own release is answered %s", tt.held, got)
		}
	}
}

// TestLateSteps: an extension or a release that comes when the key is gone changes nothing. Above
// all it does not make the key again (B4).
func TestLateSteps(t *testing.T) {
	leaks.Check(t)
	c := redistest.Clients(t, redistest.Servers(t, 1))[0]
	if got := eval(t, c, script.Extend, "a", "token", 5_000); got != "0" {
		t.Errorf("extend is answered %s", got)
	}
	if got := eval(t, c, release, "a", "token"); got != "0" {
		t.Errorf("release is answered %s", got)
	}
	if n := c.Exists(t.Context(), "a").Val(); n != 0 {
		t.Error("there is a lock")
	}
}

// run runs one of the scripts on a server, for a lock without waiters, and gives the reply as it is.
func run(t *testing.T, c *redis.Client, s script.Script, key string, args ...any) (any, error) {
	t.Helper()
	switch s { // exclusive, no slot
	case acquire:
		args = append(args, "", 0, "", 0, "x", 0, script.Bucket(key))
	case release:
		args = append(args, "x", 0)
	case script.Raise:
		args = append(args, "x", script.Bucket(key))
	default:
		args = append(args, "x")
	}
	return c.Eval(context.WithoutCancel(t.Context()), s.Source, []string{key}, args...).Result()
}

// number acquires a lock for a token, and gives the grant's fence.
func number(t *testing.T, c *redis.Client, key, token string, proposed int64) int64 {
	t.Helper()
	reply, err := run(t, c, acquire, key, token, 60_000, proposed, 0)
	if list, ok := reply.([]any); ok && len(list) == 2 {
		return list[0].(int64)
	}
	if _, ok := reply.(int64); !ok {
		t.Fatalf("acquire is answered %v, %v", reply, err)
	}
	return proposed
}

// counter is the counter of a lock's bucket, as text; "": there is none.
func counter(t *testing.T, c *redis.Client, key string) string {
	t.Helper()
	number, err := c.ZScore(t.Context(), script.Fences, *script.Bucket(key)).Result()
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%.0f", number)
}

// count sets the counter.
func count(t *testing.T, c *redis.Client, key string, number int64) {
	t.Helper()
	if err := c.ZAdd(t.Context(), script.Fences, redis.Z{Score: float64(number), Member: *script.Bucket(key)}).Err(); err != nil {
		t.Fatal(err)
	}
}

// wantKeys checks the keys on the server after a step that must leave nothing else.
func wantKeys(t *testing.T, c *redis.Client, after string, want ...string) {
	t.Helper()
	keys := c.Keys(t.Context(), "*").Val()
	slices.Sort(keys)
	if !slices.Equal(keys, want) {
		t.Errorf("after %s there is %q, want %q", after, keys, want)
	}
}

// nodeTime is the server's time, in microseconds.
func nodeTime(t *testing.T, c *redis.Client) int64 {
	t.Helper()
	now, err := c.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return now.UnixMicro()
}

// TestTableOfAnotherKind: if the table's key has another type, there is no fence, and so no lock: a
// script that fails half way does not undo its writes.
func TestTableOfAnotherKind(t *testing.T) {
	leaks.Check(t)
	c := redistest.Clients(t, redistest.Servers(t, 1))[0]
	ctx := t.Context()
	for kind, put := range map[string]func(key string) error{
		"a word":        func(key string) error { return c.Set(ctx, key, "many", 0).Err() },
		"a list":        func(key string) error { return c.RPush(ctx, key, 12).Err() },
		"a hash":        func(key string) error { return c.HSet(ctx, key, "n", 12).Err() },
		"another's set": func(key string) error { return c.SAdd(ctx, key, 12).Err() },
	} {
		for _, table := range []string{script.Fences, script.Belows} {
			c.FlushAll(ctx)
			if err := put(table); err != nil {
				t.Fatal(err)
			}
			before := c.Dump(ctx, table).Val()
			reply, err := run(t, c, acquire, "a", "token", 60_000, nodeTime(t, c), 0)
			if !redis.HasErrorPrefix(err, "WRONGTYPE") {
				t.Errorf("%s: acquire is answered %v, %v", kind, reply, err)
			}
			wantKeys(t, c, kind, table)
			if c.Dump(ctx, table).Val() != before {
				t.Errorf("%s: the key is another", kind)
			}
		}
	}
}

// TestNumbersAreWhole: by default Lua formats large numbers with few digits: 2^53-1 becomes 9.007e+15.
func TestNumbersAreWhole(t *testing.T) {
	leaks.Check(t)
	c := redistest.Clients(t, redistest.Servers(t, 1))[0]
	for _, last := range []int64{1 << 51, 1<<52 - 1, 1 << 52, 9_000_000_000_000_000, 9_007_199_254_740_000, 1<<53 - 3, 1<<53 - 2, 1<<53 - 1} {
		c.FlushAll(t.Context())
		count(t, c, "a", last)
		if got := number(t, c, "a", "token", 0); got != last+1 {
			t.Errorf("after %d comes %d", last, got)
		}
		if got, want := counter(t, c, "a"), fmt.Sprint(last+1); got != want {
			t.Errorf("after %d the counter says %q", last, got)
		}
		if got, err := run(t, c, script.Raise, "a", "token", last+1); got != int64(1) || counter(t, c, "a") != fmt.Sprint(last+1) {
			t.Errorf("a raise to %d is answered %v, %v, and the counter says %q", last+1, got, err, counter(t, c, "a"))
		}
	}
	c.FlushAll(t.Context())
	now := nodeTime(t, c)
	if got := number(t, c, "a", "token", now); got != now || counter(t, c, "a") != fmt.Sprint(now) {
		t.Errorf("proposed %d, numbered %d, and the counter says %q", now, got, counter(t, c, "a"))
	}
}

// TestDuplicateCountsOnce: one grant has one fence, however often the request arrives.
func TestDuplicateCountsOnce(t *testing.T) {
	leaks.Check(t)
	c := redistest.Clients(t, redistest.Servers(t, 1))[0]
	first := number(t, c, "a", "token", nodeTime(t, c))
	for range 3 {
		if got := number(t, c, "a", "token", first+100_000); got != first {
			t.Errorf("the duplicate is numbered %d, the first was %d", got, first)
		}
	}
	if got := counter(t, c, "a"); got != fmt.Sprint(first) {
		t.Errorf("the counter says %s after the number %d", got, first)
	}
	if got := eval(t, c, release, "a", "token"); got != "1" {
		t.Fatal(got)
	}
	if got := number(t, c, "a", "another", first-100_000); got != first+1 {
		t.Errorf("the next one is numbered %d, the first was %d", got, first)
	}
}

// TestRaise: a fence is stored only while its token holds the lock, and never over a larger one.
func TestRaise(t *testing.T) {
	leaks.Check(t)
	c := redistest.Clients(t, redistest.Servers(t, 1))[0]
	n := number(t, c, "a", "token", nodeTime(t, c))
	raise := func(token string, to int64, want int64, says int64) {
		t.Helper()
		reply, err := run(t, c, script.Raise, "a", token, to)
		if reply != want || err != nil {
			t.Errorf("by %s to n%+d: answered %v, %v; want %d", token, to-n, reply, err, want)
		}
		if got := counter(t, c, "a"); got != fmt.Sprint(says) {
			t.Errorf("by %s to n%+d: the counter says %s, n is %d", token, to-n, got, n)
		}
	}
	raise("token", n, 1, n)     // the counter has it already
	raise("token", n-1, 0, n)   // the counter is larger
	raise("another", n+1, 0, n) // another token
	raise("token", n+1, 1, n+1)
	raise("token", n+1_000, 1, n+1_000)
	raise("token", n+1, 0, n+1_000) // a late copy

	raise("token", n+1_000, 1, n+1_000)

	eval(t, c, release, "a", "token")
	raise("token", n+2_000, 0, n+1_000) // gone
	if next := number(t, c, "a", "another", n); next != n+1_001 {
		t.Errorf("numbered n%+d after a raise to n+1000", next-n)
	}
	raise("token", n+2_000, 0, n+1_001) // another's

	c.Del(t.Context(), "a")
	c.HSet(t.Context(), "a", "no", "lock")
	if reply, err := run(t, c, script.Raise, "a", "token", n+2_000); !redis.HasErrorPrefix(err, "WRONGTYPE") {
		t.Errorf("where there is no lock: %v, %v", reply, err)
	}
	if got := counter(t, c, "a"); got != fmt.Sprint(n+1_001) {
		t.Errorf("where there is no lock: the counter says %s, n is %d", got, n)
	}
}

// TestLateAcquire: a request that a node reads after its deadline leaves nothing, not even a fence.
func TestLateAcquire(t *testing.T) {
	leaks.Check(t)
	c := redistest.Clients(t, redistest.Servers(t, 1))[0]
	c.Del(t.Context(), script.Marker)
	ask := func(token string, latest int64) any {
		t.Helper()
		reply, err := run(t, c, acquire, "a", token, 60_000, nodeTime(t, c), latest)
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	before := nodeTime(t, c)
	if got, ok := ask("token", before-1).([]any); !ok || len(got) != 2 || got[1] != "" || got[0].(int64) < before || got[0].(int64) > nodeTime(t, c) {
		t.Errorf("answered %v at %d", got, before)
	}
	wantKeys(t, c, "a late request")
	if got, ok := ask("token", before+time.Minute.Microseconds()).(int64); !ok {
		t.Errorf("in time, and answered %v", got)
	}
	// A late request is late whichever token holds the lock, and changes nothing.
	says := counter(t, c, "a")
	for _, token := range []string{"token", "another"} {
		if got, ok := ask(token, before).([]any); !ok || len(got) != 2 || got[1] != "" {
			t.Errorf("a late request by %s is answered %v", token, got)
		}
	}
	if now := counter(t, c, "a"); now != says {
		t.Errorf("late requests have moved the counter from %s to %s", says, now)
	}
	if ttl := c.PTTL(t.Context(), "a").Val(); ttl <= 0 || ttl > time.Minute {
		t.Errorf("the lock has %v to live", ttl)
	}
}
