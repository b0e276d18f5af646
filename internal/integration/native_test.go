package integration_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
	"github.com/redis/go-redis/v9"
)

// has tells which commands a server has that compare a token themselves, by names: "ifeq" and the one
// that deletes.
func has(t *testing.T, s *redisproc.Server) (all []string) {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.Addr})
	defer c.Close()
	for name, command := range map[string][]any{
		"ifeq": {"SET", "k", "v", "IFEQ", "none"}, "delex": {"DELEX", "k", "IFEQ", "none"}, "delifeq": {"DELIFEQ", "k", "none"},
	} {
		if err := c.Do(t.Context(), command...).Err(); err == nil || errors.Is(err, redis.Nil) {
			all = append(all, name)
		}
	}
	return all
}

// carriedOut gives the numbers of the commands that a server has carried out since it was last asked.
func carriedOut(t *testing.T, s *redisproc.Server) func(name string) string {
	t.Helper()
	stats := ask(t, s, "INFO", "commandstats").(string)
	ask(t, s, "CONFIG", "RESETSTAT")
	return func(name string) string {
		if m := regexp.MustCompile(`(?m)^cmdstat_` + name + `:calls=(\d+)`).FindStringSubmatch(stats); m != nil {
			return m[1]
		}
		return "0"
	}
}

// TestNativeCommands: where the server has commands that compare the token themselves, an extension and
// a release need no script; where it has none, or denies them, they do. Whatever it has, a lock is
// extended and released, and one that is gone, or another's, is neither.
func TestNativeCommands(t *testing.T) {
	leaks.Check(t)
	server := redistest.Servers(t, 1)[0]
	all := has(t, server)
	t.Logf("the server has %q", all)
	for _, lacks := range []string{"", "delex", "delifeq", "script|exists"} {
		t.Run("without "+lacks, func(t *testing.T) {
			user := []any{"ACL", "SETUSER", "locks", "reset", "on", ">p", "~*", "&*", "+@all"}
			if (lacks == "delex" || lacks == "delifeq") && !slices.Contains(all, lacks) {
				need.Skip(t, "of DELEX and DELIFEQ", "the server does not have them")
			}
			if lacks != "" {
				user = append(user, "-"+lacks)
			}
			ask(t, server, user...)
			client := redis.NewClient(&redis.Options{Addr: server.Addr, Username: "locks", Password: "p"})
			t.Cleanup(func() { _ = client.Close() })
			lk := open(t, []*redis.Client{client}, patient())
			name := "without " + lacks
			plain := lacks != "script|exists"
			extends := slices.Contains(all, "ifeq") && lacks != "script|exists"
			remove := slices.DeleteFunc(slices.Clone(all), func(c string) bool { return c == "ifeq" || c == lacks })
			removes := len(remove) > 0 && plain
			count := func(step string, native bool, command string) {
				t.Helper()
				n, want := carriedOut(t, server), map[bool]string{true: "0", false: "1"}[native]
				if got := n("evalsha"); got != want {
					t.Errorf("%s was %s scripts, want %s", step, got, want)
				}
				if got := n(command); native && got != "1" {
					t.Errorf("%s was %s times %s", step, got, command)
				}
			}
			carriedOut(t, server)
			l := acquired(t, lk, name)
			if plain {
				count("the acquire", true, "set")
			}
			carriedOut(t, server)
			ask(t, server, "PEXPIRE", name, 10_000)
			if err := l.Extend(t.Context()); err != nil {
				t.Fatal(err)
			}
			count("the extension", extends, "set")
			if rest := ask(t, server, "PTTL", name).(int64); rest < 50_000 {
				t.Errorf("it lives for %d ms", rest)
			}
			released(t, l)
			count("the release", removes, strings.Join(remove, ""))
			if n := ask(t, server, "EXISTS", name); n != int64(0) {
				t.Error("the key is there")
			}
			for _, value := range []string{"", "another's"} {
				for _, extend := range []bool{true, false} {
					l := acquired(t, lk, fmt.Sprint(name, value, extend))
					if value == "" {
						ask(t, server, "DEL", l.Name())
					} else {
						ask(t, server, "SET", l.Name(), value, "PX", 60_000)
					}
					var err error
					if extend {
						err = l.Extend(t.Context())
					} else {
						err = l.Release(t.Context())
					}
					if !errors.Is(err, redlock.ErrLost) || value != "" && !strings.Contains(err.Error(), "another") {
						t.Errorf("the lock is %q, extended (%v) or released: %v", value, extend, err)
					}
					// An extension acquires the lock anew where it was gone, and gives that back.
					eventually(t, 5*time.Second, fmt.Sprintf("the key %s to be %q", l.Name(), value), func() bool {
						got, _ := ask(t, server, "GET", l.Name()).(string)
						return got == value
					})
				}
			}
			l = acquired(t, lk, name+" full")
			ask(t, server, "CONFIG", "SET", "maxmemory", "1")
			defer ask(t, server, "CONFIG", "SET", "maxmemory", "0")
			if err := l.Extend(t.Context()); err != nil {
				t.Errorf("at a full server: %v", err)
			}
			released(t, l)
		})
	}
}

// TestNativeReleaseCalls: a waiter that has come since the lock was acquired gets it long before its
// heartbeat when the lock is released without a script, and so do all that come after it.
func TestNativeReleaseCalls(t *testing.T) {
	opts := &redlock.Options{TTL: 30 * time.Second, NodeTimeout: 2 * time.Second}
	servers, far := onServers(t, 3, opts)
	near := open(t, redistest.Clients(t, servers), opts)
	for i := range 5 {
		name := fmt.Sprint("lock ", i) // a name on which no attempt has come to nothing
		before := acquired(t, near, name)
		got := make(chan time.Time, 3)
		for n := range 3 {
			go func() {
				l, err := far.Acquire(context.WithoutCancel(t.Context()), name)
				if err != nil {
					t.Error(err)
					return
				}
				got <- time.Now()
				_ = l.Release(t.Context())
			}()
			queued(t, near, name, min(n+1, 1), 3)
		}
		begin := time.Now()
		released(t, before)
		for range 3 {
			if d := (<-got).Sub(begin); d > 300*time.Millisecond {
				t.Errorf("a waiter has got it after %v", d)
			}
		}
	}
}

// TestReleasedWithoutScript: a lock that was acquired when nobody waited is released, with waiters
// there, on nodes of which some delete it without a script and call the first waiter then, and the
// others in the same step. The first waiter has it in a few round trips, and after it the next one.
func TestReleasedWithoutScript(t *testing.T) {
	for newer := range 4 {
		if !need.Sample(newer+1, 4) {
			continue // a quick run has the newer nodes
		}
		inWaitingRoom(t, func(h *waitingRoom) {
			for i := range newer {
				h.HaveDelex(i)
			}
			before := acquired(h.T, h.locker(), "a")
			got, behind := h.waits(h.Context(), redlock.Options{}), h.waits(h.Context(), redlock.Options{})
			begin := time.Now()
			released(h.T, before)
			next := <-got
			if next.err != nil {
				t.Fatal(next.err)
			}
			most := 2500 * time.Microsecond
			if newer > 1 {
				most += time.Millisecond // DELEX and EXISTS, the call, an attempt
			}
			if took := next.at.Sub(begin); took > most || next.tries != 3 {
				t.Errorf("%d nodes are newer: the waiter has it after %v, and %d attempts", newer, took, next.tries)
			}
			begin = time.Now()
			released(h.T, next.lock)
			last := <-behind
			if last.err != nil {
				t.Fatal(last.err)
			}
			if took := last.at.Sub(begin); took > called || last.lock.Fence() <= next.lock.Fence() {
				t.Errorf("%d nodes are newer: the next waiter has it after %v, fence %d after %d", newer, took, last.lock.Fence(), next.lock.Fence())
			}
			released(h.T, last.lock)
		})
	}
}
