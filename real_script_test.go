package redlock_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/redistest"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/redis/go-redis/v9"
)

// acquire is the script for nodes that nobody asks for their marker.
var acquire, release = script.Acquire(""), script.Release("")

// eval has a server execute one of our scripts, and gives the reply as text: its
// first part, if that is what a grant or an extension begins with.
func eval(t *testing.T, c *redis.Client, s script.Script, key string, args ...any) string {
	t.Helper()
	if s == acquire {
		args = append(args, 1, 0) // a number, and no time after which it is too late
	}
	reply, err := run(t, c, s, key, args...)
	if err != nil {
		return err.Error()
	}
	switch list, ok := reply.([]any); {
	case ok && len(list) == 3: // the last one is the time
		return fmt.Sprint(list[:2])
	case s == acquire:
		return "granted"
	}
	return fmt.Sprint(reply)
}

// TestAcquireTwice: the same request may arrive twice, since a connection was
// made anew. The second copy finds its own key, which is a grant, and does not
// prolong it (A2).
func TestAcquireTwice(t *testing.T) {
	redistest.NoLeaks(t)
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

// TestLateSteps: an extension or a release that comes when the key has gone
// changes nothing. Above all it does not make the key again (B4).
func TestLateSteps(t *testing.T) {
	redistest.NoLeaks(t)
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

// run has a server execute one of our scripts for a lock, for which nobody waits, and
// gives the reply as it is.
func run(t *testing.T, c *redis.Client, s script.Script, key string, args ...any) (any, error) {
	t.Helper()
	switch s { // alone, and no slot; nobody is handed it
	case acquire:
		args = append(args, "", 0, "", 0, "", "x", 0, 0, script.Bucket(key))
	case release:
		args = append(args, "x", 0, 0, script.Bucket(key))
	case script.Raise:
		args = append(args, "x", script.Bucket(key))
	default:
		args = append(args, "x")
	}
	return c.Eval(context.WithoutCancel(t.Context()), s.Source, []string{key}, args...).Result()
}

// number acquires a lock for a token, and gives the number of the grant.
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

// counter is what the counter of a lock's bucket says, as text; "": there is none.
func counter(t *testing.T, c *redis.Client, key string) string {
	t.Helper()
	number, err := c.ZScore(t.Context(), script.Fences, *script.Bucket(key)).Result()
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%.0f", number)
}

// count sets it.
func count(t *testing.T, c *redis.Client, key string, number int64) {
	t.Helper()
	if err := c.ZAdd(t.Context(), script.Fences, redis.Z{Score: float64(number), Member: *script.Bucket(key)}).Err(); err != nil {
		t.Fatal(err)
	}
}

// wantKeys checks what there is on the server, after something that has left no trace.
func wantKeys(t *testing.T, c *redis.Client, after string, want ...string) {
	t.Helper()
	keys := c.Keys(t.Context(), "*").Val()
	slices.Sort(keys)
	if !slices.Equal(keys, want) {
		t.Errorf("after %s there is %q, want %q", after, keys, want)
	}
}

// nodeTime is the server's, in microseconds.
func nodeTime(t *testing.T, c *redis.Client) int64 {
	t.Helper()
	now, err := c.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return now.UnixMicro()
}

// TestTableOfAnotherKind: a table that is none gives no number, and so there is no
// lock: a script that fails half way does not undo what it has done.
func TestTableOfAnotherKind(t *testing.T) {
	redistest.NoLeaks(t)
	c := redistest.Clients(t, redistest.Servers(t, 1))[0]
	ctx := t.Context()
	for kind, put := range map[string]func(key string) error{
		"a word":         func(key string) error { return c.Set(ctx, key, "many", 0).Err() },
		"a list":         func(key string) error { return c.RPush(ctx, key, 12).Err() },
		"a hash":         func(key string) error { return c.HSet(ctx, key, "n", 12).Err() },
		"somebody's set": func(key string) error { return c.SAdd(ctx, key, 12).Err() },
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

// TestNumbersAreWhole: as Lua writes large numbers by itself, 2^53-1 is 9.007e+15.
func TestNumbersAreWhole(t *testing.T) {
	redistest.NoLeaks(t)
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

// TestDuplicateCountsOnce: one grant has one number, however often it is asked for.
func TestDuplicateCountsOnce(t *testing.T) {
	redistest.NoLeaks(t)
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

// TestRaise: a number is stored only in the time of its grant, and never a smaller
// one than there is.
func TestRaise(t *testing.T) {
	redistest.NoLeaks(t)
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
	raise("token", n, 1, n)     // it says so already
	raise("token", n-1, 0, n)   // it is past it
	raise("another", n+1, 0, n) // not his
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

// TestLateAcquire: a request that a node gets to when nobody waits for it any more
// leaves nothing, not even a number.
func TestLateAcquire(t *testing.T) {
	redistest.NoLeaks(t)
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
	// Late is late, whoever has the lock, and changes nothing.
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

// TestMarkerIsAsked: a node whose marker is not the one that the client knows
// grants nothing, and writes nothing; but what is mine is mine without it.
func TestMarkerIsAsked(t *testing.T) {
	redistest.NoLeaks(t)
	c := redistest.Clients(t, redistest.Servers(t, 1))[0]
	marked := script.Acquire("me")
	ask := func(token, mark string) (any, error) {
		t.Helper()
		return c.Eval(t.Context(), marked.Source, []string{"a"}, token, 60_000, nodeTime(t, c), 0, mark, 0, "", 0, "", "x", 0, 0, script.Bucket("a")).Result()
	}
	for _, tt := range []struct{ there, known string }{
		{"", "me:1"}, {"me:2", "me:1"}, {"you:1", "me:1"}, {"me:1", "me:"}, {"me:1", "me:12"}, {"me:1", "ME:1"}, {"me:1", "?"}, {"", "?"},
	} {
		c.FlushAll(t.Context())
		var want []string
		if tt.there != "" {
			c.Set(t.Context(), script.Marker, tt.there, 0)
			want = []string{script.Marker}
		}
		reply, err := ask("token", tt.known)
		if list, ok := reply.([]any); !ok || len(list) != 2 || list[0] != tt.there {
			t.Errorf("the marker is %q, and known as %q: %v, %v", tt.there, tt.known, reply, err)
		}
		wantKeys(t, c, fmt.Sprintf("the marker was %q", tt.there), want...)
	}
	c.FlushAll(t.Context())
	c.Set(t.Context(), script.Marker, "me:1", 0)
	for _, known := range []string{"me:1", "me:2"} { // the second one is a duplicate
		reply, err := ask("token", known)
		if list, ok := reply.([]any); err != nil || ok && (len(list) != 2 || list[0] == "me:1") {
			t.Errorf("known as %q: %v, %v", known, reply, err)
		}
	}
	if reply, err := ask("another", "me:2"); err != nil || len(reply.([]any)) != 3 {
		t.Errorf("held by another: %v, %v", reply, err)
	}
	c.ScriptLoad(t.Context(), marked.Source)
	if err := c.EvalSha(t.Context(), script.Acquire("you").Hash, nil).Err(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
		t.Errorf("the script for another server: %v", err)
	}
}

// TestTableStays: it has no TTL, whatever is done, and it is all that a lock leaves.
func TestTableStays(t *testing.T) {
	redistest.NoLeaks(t)
	c := redistest.Clients(t, redistest.Servers(t, 1))[0]
	n := number(t, c, "a", "token", nodeTime(t, c))
	if got := eval(t, c, script.Extend, "a", "token", 60_000); got == "0" || got[0] == '[' {
		t.Errorf("extend is answered %s", got)
	}
	if reply, err := run(t, c, script.Raise, "a", "token", n+1_000); reply != int64(1) || err != nil {
		t.Errorf("raise is answered %v, %v", reply, err)
	}
	eval(t, c, release, "a", "token")
	wantKeys(t, c, "a release", script.Fences, script.Marker)
	if ttl := c.PTTL(t.Context(), script.Fences).Val(); ttl != -1 {
		t.Errorf("the table has %v to live", ttl)
	}
	if got := counter(t, c, "a"); got != fmt.Sprint(n+1_000) {
		t.Errorf("the counter says %s after the number %d", got, n+1_000)
	}
}

// TestNoCounterIsNoGrant: whoever was granted the lock has a counter. Where it is gone, it may
// have been anything: nothing is stored there, and nothing that was granted counts.
func TestNoCounterIsNoGrant(t *testing.T) {
	redistest.NoLeaks(t)
	c := redistest.Clients(t, redistest.Servers(t, 1))[0]
	n := number(t, c, "a", "token", nodeTime(t, c))
	c.Del(t.Context(), script.Fences)
	if reply, err := run(t, c, script.Raise, "a", "token", n+1_000); reply != int64(0) || err != nil {
		t.Errorf("raise is answered %v, %v", reply, err)
	}
	wantKeys(t, c, "a raise without a counter", "a", script.Marker)
	reply, err := run(t, c, acquire, "a", "token", 60_000, n, 0)
	if list, ok := reply.([]any); !ok || len(list) != 2 || list[0] != "" || err != nil {
		t.Errorf("a copy is answered %v, %v", reply, err)
	}
	wantKeys(t, c, "a copy without a counter", "a", script.Marker)
}

// join has a server joined by a client that says this of itself.
func join(t testing.TB, c *redis.Client, runID string, longest, clock int64, db string) (mark, before script.Mark, found string) {
	t.Helper()
	keys := []string{script.Marker, script.OldMarker}
	reply, err := c.Eval(context.WithoutCancel(t.Context()), script.Join, keys, runID, longest, clock, db).Slice()
	if err != nil || len(reply) != 3 {
		t.Errorf("join is answered %v, %v", reply, err)
		return mark, before, ""
	}
	mark, ok := script.ParseMark(reply[0].(string))
	if found = reply[1].(string); !ok || mark.String() != reply[0] {
		t.Errorf("the marker %q is read as %+v", reply[0], mark)
	}
	before, _ = script.ParseMark(found)
	return mark, before, found
}

// TestJoin: the marker is this server's, and as old as the first who joined it.
func TestJoin(t *testing.T) {
	redistest.NoLeaks(t)
	server := redistest.Servers(t, 1)
	c, other := redistest.Clients(t, server)[0], redistest.Clients(t, server)[0]
	for _, runID := range []string{"0123456789abcdef0123456789abcdef01234567", ""} { // "": it does not say
		c.FlushAll(t.Context())
		born := nodeTime(t, c) / 1000
		mark, _, found := join(t, c, runID, 2000, 777, "0")
		want := script.Mark{RunID: runID, Born: mark.Born, Writer: 777, Longest: 2 * time.Second, DB: "0"}
		if mark != want || found != "" || mark.Born < born || mark.Born > nodeTime(t, c)/1000 {
			t.Errorf("joined at %d, and the marker is %v after %q", born, mark, found)
		}
		time.Sleep(2 * time.Millisecond) // so that a marker which is made anew is another
		if again, before, _ := join(t, other, runID, 2000, 9999, "0"); again != mark || before != mark {
			t.Errorf("the marker was %v; to the next one it is %v, and was %v", mark, again, before)
		}
	}

	// What is there, and what one says who joins; and whether the marker is of now then.
	now := nodeTime(t, c) / 1000
	const hour = 3_600_000
	text := func(born, writer, longest int64, db string) string {
		return fmt.Sprintf("me:%d:%d:%d:%s", born, writer, longest, db)
	}
	for _, tt := range []struct {
		name, there, older string
		longest, clock     int64
		db                 string
		born, writer       int64 // born 0: now
		max                time.Duration
	}{
		{"another server's", "you:1:1:5000:", "", 2000, now, "", 0, now, 5 * time.Second}, // it may be its data, and who announced that is there still
		{"one whose name begins the same", "mee:1:1:0:", "", 2000, now, "", 0, now, 2 * time.Second},
		{"one whose name is shorter", "m:1:1:0:", "", 2000, now, "", 0, now, 2 * time.Second},
		{"nobody's", ":1:1:0:", "", 2000, now, "", 0, now, 2 * time.Second},
		{"what is no marker", "no marker at all", "", 2000, now, "", 0, now, 2 * time.Second},
		{"one of an earlier version, in the wrong place", "me:1", "", 2000, now, "", 0, now, 2 * time.Second},
		{"one of long ago", text(1, 1, 0, ""), "", 2000, now, "", 1, 1, 2 * time.Second},
		{"somebody with longer locks", text(1, 1, 60_000, ""), "", 2000, now, "", 1, 1, time.Minute},
		{"somebody with shorter locks", text(1, 1, 2000, ""), "", 60_000, now, "", 1, 1, time.Minute},
		{"one of the future", text(now+hour, now, 5000, ""), "", 2000, now, "", 0, now, 5 * time.Second},
		{"one of a moment later", text(now+800, now, 0, ""), "", 0, now, "", now + 800, now, 0},
		{"a writer of the future", text(1, now+hour, 0, ""), "", 0, now, "", 1, now, 0},
		{"a client of the past", text(1, now, 0, ""), "", 0, -hour, "", 1, -hour, 0},
		{"a client of the future", text(1, now, 0, ""), "", 0, now + hour, "", 1, now, 0},
		{"another database's", text(1, 1, 60_000, "1"), "", 2000, now, "0", 0, now, time.Minute},
		{"a client that does not know its database", text(1, 1, 0, "1"), "", 0, now, "", 1, 1, 0},
		{"a writer that did not", text(1, 1, 0, ""), "", 0, now, "1", 1, 1, 0},
		{"one of an earlier version", "", fmt.Sprint("me:", now-hour), 2000, now + 5, "0", now - hour, 0, 2 * time.Second},
		{"one of an earlier version, of the future", "", fmt.Sprint("me:", now+hour), 0, now, "", 0, now, 0},
		{"another server's, of an earlier version", "", "you:1", 0, now, "", 0, now, 0},
		{"a newer one beside it", text(now-5, 1, 0, ""), "me:1", 0, now, "", now - 5, 1, 0},
		{"another server's beside it", "you:1:1:0:", "me:1", 0, now, "", 0, now, 0},
	} {
		c.FlushAll(t.Context())
		for key, value := range map[string]string{script.Marker: tt.there, script.OldMarker: tt.older} {
			if value != "" {
				c.Set(t.Context(), key, value, 0)
			}
		}
		mark, before, found := join(t, c, "me", tt.longest, tt.clock, tt.db)
		adopted := tt.there == "" && tt.born != 0
		if adopted { // by the client's clock it is as old as by the node's
			if age := nodeTime(t, c)/1000 - mark.Born; mark.Writer > tt.clock-hour || mark.Writer < tt.clock-age {
				t.Errorf("%s: written at %d", tt.name, mark.Writer)
			}
			tt.writer = mark.Writer
		}
		if tt.born == 0 {
			if tt.born = mark.Born; mark.Born < now || mark.Born > nodeTime(t, c)/1000 {
				t.Errorf("%s: the marker is %v", tt.name, mark)
			}
		}
		want := script.Mark{RunID: "me", Born: tt.born, Writer: tt.writer, Longest: tt.max, DB: mark.DB}
		if ttl := c.TTL(t.Context(), script.Marker).Val(); ttl != -1 || c.Get(t.Context(), script.Marker).Val() != mark.String() {
			t.Errorf("%s: the server has %q for %v, and says %v", tt.name, c.Get(t.Context(), script.Marker).Val(), ttl, mark)
		}
		if mark != want || !adopted && found != tt.there || adopted && before != mark {
			t.Errorf("%s: the marker is %v after %q, want %v", tt.name, mark, found, want)
		}
		if got := c.Get(t.Context(), script.OldMarker).Val(); got != tt.older {
			t.Errorf("%s: what earlier versions look at is %q, and was %q", tt.name, got, tt.older)
		}
	}

	// Where it is not asked for, none is made.
	c.FlushAll(t.Context())
	if reply, err := c.Eval(t.Context(), script.Join, nil, "me").Slice(); err != nil || len(reply) != 3 || reply[0] != "" || reply[1] != "" {
		t.Errorf("without a key: %v, %v", reply, err)
	}
	wantKeys(t, c, "a join without a key")

	// Any number who join at once agree.
	for range 50 {
		c.FlushAll(t.Context())
		var all sync.WaitGroup
		var marks [8]script.Mark
		for i, c := range []*redis.Client{c, other, c, other, c, other, c, other} {
			all.Go(func() { marks[i], _, _ = join(t, c, "me", int64(1000*i), 1, "") })
		}
		all.Wait()
		if slices.ContainsFunc(marks[:], func(mark script.Mark) bool { return !mark.Same(marks[0]) }) {
			t.Fatalf("joined at once, and told %v", marks)
		}
		if mark, _, _ := join(t, c, "me", 0, 1, ""); mark.Longest != 7*time.Second {
			t.Fatalf("of the TTLs that were announced at once, %v is left", mark.Longest)
		}
	}
}
