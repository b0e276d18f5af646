package integration_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/internal/wire"
	"github.com/redis/go-redis/v9"
)

// TestMarkerIsAsked: a node whose marker is not the one that the client knows grants nothing, and
// writes nothing; but a lock that the token holds already is granted without it.
func TestMarkerIsAsked(t *testing.T) {
	leaks.Check(t)
	c := redistest.Clients(t, redistest.Servers(t, 1))[0]
	marked := script.Acquire("me")
	ask := func(token, mark string) (any, error) {
		t.Helper()
		return c.Eval(t.Context(), marked.Source, []string{"a"}, token, 60_000, nodeTime(t, c), 0, mark, 0, "", 0, "x", 0, script.Bucket("a")).Result()
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
	for _, known := range []string{"me:1", "me:2"} { // the second request is a duplicate
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

// TestTableStays: the table has no TTL after any step, and it is all that a lock leaves.
func TestTableStays(t *testing.T) {
	leaks.Check(t)
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

// TestNoCounterIsNoGrant: every grant leaves a counter. If the counter is gone, it may have been
// anything: no fence is stored there, and no earlier grant counts.
func TestNoCounterIsNoGrant(t *testing.T) {
	leaks.Check(t)
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

// joinKeys are those of join.lua.
var joinKeys = []string{script.Marker, script.Told, script.Choice}

// join joins a server as a client with this run_id and time.
func join(t testing.TB, c *redis.Client, runID string, clock int64, db string) (mark, before wire.Marker, found string) {
	t.Helper()
	reply, err := c.Eval(context.WithoutCancel(t.Context()), script.Join, joinKeys, runID, clock, db, "", "", "").Slice()
	if err != nil || len(reply) != 4 || reply[3] != "" {
		t.Errorf("join is answered %v, %v", reply, err)
		return mark, before, ""
	}
	mark, ok := wire.ParseMarker(reply[0].(string))
	if found = reply[1].(string); !ok || mark.String() != reply[0] {
		t.Errorf("the marker %q is read as %+v", reply[0], mark)
	}
	before, _ = wire.ParseMarker(found)
	return mark, before, found
}

// TestJoin: the marker is this server's, and as old as the first client's join.
func TestJoin(t *testing.T) {
	leaks.Check(t)
	server := redistest.Servers(t, 1)
	c, other := redistest.Clients(t, server)[0], redistest.Clients(t, server)[0]
	for _, runID := range []string{"0123456789abcdef0123456789abcdef01234567", ""} { // "": the server does not say
		c.FlushAll(t.Context())
		born := nodeTime(t, c) / 1000
		mark, _, found := join(t, c, runID, 777, "0")
		want := wire.Marker{RunID: runID, Born: mark.Born, Writer: 777, DB: "0"}
		if mark != want || found != "" || mark.Born < born || mark.Born > nodeTime(t, c)/1000 {
			t.Errorf("joined at %d, and the marker is %v after %q", born, mark, found)
		}
		time.Sleep(2 * time.Millisecond) // so that a new marker would differ
		if again, before, _ := join(t, other, runID, 9999, "0"); again != mark || before != mark {
			t.Errorf("the marker was %v; to the next one it is %v, and was %v", mark, again, before)
		}
	}

	// The marker that is there, what the joining client says, and whether the marker is a new one then.
	now := nodeTime(t, c) / 1000
	const hour = 3_600_000
	text := func(born, writer int64, db string) string {
		return fmt.Sprintf("1:me:%d:%d:%s:0", born, writer, db)
	}
	for _, tt := range []struct {
		name, there  string
		clock        int64
		db           string
		born, writer int64 // born 0: now
	}{
		{"another server's", "1:you:1:1::0", now, "", 0, now},
		{"one whose name begins the same", "1:mee:1:1::0", now, "", 0, now},
		{"one whose name is shorter", "1:m:1:1::0", now, "", 0, now},
		{"a marker of no server", "1::1:1::0", now, "", 0, now},
		{"what is no marker", "no marker at all", now, "", 0, now},
		{"one of long ago", text(1, 1, ""), now, "", 1, 1},
		{"one of the future", text(now+hour, now, ""), now, "", 0, now},
		{"one of a moment later", text(now+800, now, ""), now, "", now + 800, now},
		{"a writer of the future", text(1, now+hour, ""), now, "", 1, now},
		{"a client of the past", text(1, now, ""), -hour, "", 1, -hour},
		{"a client of the future", text(1, now, ""), now + hour, "", 1, now},
		{"another database's", text(1, 1, "1"), now, "0", 0, now},
		{"a client that does not know its database", text(1, 1, "1"), now, "", 1, 1},
		{"a writer that did not", text(1, 1, ""), now, "1", 1, 1},
		{"one with a description that somebody has deleted", "1:me:1:1::3", now, "", 0, now},
	} {
		c.FlushAll(t.Context())
		c.Set(t.Context(), script.Marker, tt.there, 0)
		mark, _, found := join(t, c, "me", tt.clock, tt.db)
		if tt.born == 0 {
			if tt.born = mark.Born; mark.Born < now || mark.Born > nodeTime(t, c)/1000 {
				t.Errorf("%s: the marker is %v", tt.name, mark)
			}
		}
		want := wire.Marker{RunID: "me", Born: tt.born, Writer: tt.writer, DB: mark.DB}
		if ttl := c.TTL(t.Context(), script.Marker).Val(); ttl != -1 || c.Get(t.Context(), script.Marker).Val() != mark.String() {
			t.Errorf("%s: the server has %q for %v, and says %v", tt.name, c.Get(t.Context(), script.Marker).Val(), ttl, mark)
		}
		if was := found; mark != want || was != tt.there && was != "" || (was == "") != strings.HasSuffix(tt.there, ":3") {
			t.Errorf("%s: the marker is %v after %q, want %v", tt.name, mark, found, want)
		}
	}

	// What another version has written stays as it is.
	for _, there := range []string{"2:me:1:1::0", "20:x", "0:me"} {
		c.FlushAll(t.Context())
		c.Set(t.Context(), script.Marker, there, 0)
		reply, err := c.Eval(t.Context(), script.Join, joinKeys, "me", now, "0", set("s", 1).Text(), "a:1", there, "").Slice()
		if err != nil || len(reply) != 4 || reply[0] != there || c.Get(t.Context(), script.Marker).Val() != there || c.Exists(t.Context(), script.Told).Val() != 0 {
			t.Errorf("the marker %s: %v, %v", there, reply, err)
		}
	}

	// If no marker is asked for, none is made.
	c.FlushAll(t.Context())
	if reply, err := c.Eval(t.Context(), script.Join, nil, "me").Slice(); err != nil || len(reply) != 4 || reply[0] != "" || reply[1] != "" || reply[3] != "" {
		t.Errorf("without a key: %v, %v", reply, err)
	}
	wantKeys(t, c, "a join without a key")

	// Any number of clients that join at once agree.
	for range 50 {
		c.FlushAll(t.Context())
		var all sync.WaitGroup
		var marks [8]wire.Marker
		for i, c := range []*redis.Client{c, other, c, other, c, other, c, other} {
			all.Go(func() { marks[i], _, _ = join(t, c, "me", int64(i), "") })
		}
		all.Wait()
		if slices.ContainsFunc(marks[:], func(mark wire.Marker) bool { return !mark.Same(marks[0]) }) {
			t.Fatalf("joined at once, and told %v", marks)
		}
	}
}
