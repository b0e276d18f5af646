package integration_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
	"github.com/redis/go-redis/v9"
)

// TestUserLacksACommand: whichever command of the scripts an ACL denies a user, no lock is left when
// the user's call has failed, or has released the lock. A script that is denied a command halfway
// leaves no lock behind, for which others would wait in vain.
func TestUserLacksACommand(t *testing.T) {
	leaks.Check(t)
	need.Servers(t, redisproc.Available)
	commands := calledBy(script.All(""))
	if len(commands) < 10 {
		t.Fatalf("the scripts use %q", commands)
	}
	var granted, waited atomic.Int64 // the commands without which a lock can be acquired, and waited for
	t.Run("without", func(t *testing.T) {
		for _, lacks := range append(commands, "evalsha", "publish subscribe") {
			t.Run(lacks, func(t *testing.T) {
				t.Parallel() // it mostly waits
				one, two := lacking(t, lacks)
				if one {
					granted.Add(1)
				}
				if two {
					waited.Add(1)
				}
			})
		}
	})
	// Otherwise no user in this test would have had a lock.
	if n := int(granted.Load()); n < len(commands)/2 {
		t.Errorf("only without %d commands was there a lock", n)
	}
	if n := int(waited.Load()); n < len(commands)/4 {
		t.Errorf("only without %d commands did a waiter get a lock", n)
	}
}

// calledBy lists the commands that some scripts call, in lower case, each once, in order.
func calledBy(scripts []script.Script) (commands []string) {
	for _, s := range scripts {
		for _, call := range regexp.MustCompile(`redis\.p?call\('([A-Z]+)'`).FindAllStringSubmatch(s.Source, -1) {
			commands = append(commands, strings.ToLower(call[1]))
		}
	}
	slices.Sort(commands)
	return slices.Compact(commands)
}

// lacking has a user try all kinds of locks without a command, or several, and reports whether one was
// acquired, and whether a waiter got one.
func lacking(t *testing.T, lacks string) (granted, waited bool) {
	server := redistest.Servers(t, 1)[0]
	user := []any{"ACL", "SETUSER", "locks", "reset", "on", ">p", "~*", "&*", "+@all"}
	for command := range strings.FieldsSeq(lacks) {
		user = append(user, "-"+command)
	}
	ask(t, server, user...)
	locker := func(separator string) *redlock.Locker {
		client := redis.NewClient(&redis.Options{Addr: server.Addr, Username: "locks", Password: "p"})
		t.Cleanup(func() { _ = client.Close() })
		lk, err := redlock.New([]*redis.Client{client}, &redlock.Options{TTL: time.Minute, NodeTimeout: time.Second, Quarantine: -1, Separator: separator})
		if err != nil {
			return nil // the error says so, and nothing is locked
		}
		t.Cleanup(func() { _ = lk.Close() })
		return lk
	}
	one, other, paths := locker(""), locker(""), locker("/")
	if one == nil || other == nil || paths == nil {
		return false, false
	}
	for _, try := range []struct {
		lk      *redlock.Locker
		name    string
		options []redlock.AcquireOption
	}{
		{one, "a", nil},
		{one, "a", []redlock.AcquireOption{redlock.Shared()}},
		{one, "a", []redlock.AcquireOption{redlock.Also("b")}},
		{one, "a", []redlock.AcquireOption{redlock.Slots(2)}},
		{paths, "a/b/c", nil},
		{paths, "a/b/c", []redlock.AcquireOption{redlock.Shared(), redlock.Also("d")}},
	} {
		// Another call like it, and one that waits for the lock and gives up.
		l, err := try.lk.TryAcquire(t.Context(), try.name, try.options...)
		if err == nil {
			granted = true
		}
		second, _ := try.lk.TryAcquire(t.Context(), try.name, try.options...)
		brief, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		third, _ := other.Acquire(brief, try.name, redlock.Slots(1))
		cancel()
		for _, l := range []*redlock.Lock{l, second, third} {
			if l != nil {
				_ = l.Release(t.Context())
			}
		}
	}
	// The lock goes from one waiter to the next, and a reader waits behind them.
	if before, err := one.TryAcquire(t.Context(), "a"); err == nil {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		got := make(chan *redlock.Lock)
		for _, options := range [][]redlock.AcquireOption{nil, {redlock.Shared()}} {
			go func() {
				l, _ := other.Acquire(ctx, "a", options...)
				got <- l
			}()
		}
		eventually(t, 5*time.Second, "a place in the queue, or none", func() bool {
			return ask(t, server, "ZCARD", "a:queue").(int64) == 2 || ctx.Err() != nil
		})
		_ = before.Release(t.Context())
		for range 2 {
			if l := <-got; l != nil {
				waited = true
				_ = l.Release(t.Context())
			}
		}
		cancel()
	}
	eventually(t, 5*time.Second, "no lock to be there", func() bool {
		keys := ask(t, server, "KEYS", "*").([]any)
		return !slices.ContainsFunc(keys, func(key any) bool { return !script.Lasting(key.(string)) })
	})
	for _, lk := range []*redlock.Locker{one, other, paths} {
		_ = lk.Close()
	}
	return granted, waited
}
