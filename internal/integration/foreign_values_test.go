package integration_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/redis/go-redis/v9"
)

// TestForeignSets: a sorted set of another program has the key of a lock, or of its queue: a leaderboard, with a TTL.
// No kind of lock changes it, on any node, whatever its scores are; and each says what is in the way.
func TestForeignSets(t *testing.T) {
	now := float64(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()) // when a bubble begins
	boards := map[string][]redis.Z{
		"points":   {{Score: 12, Member: "ann"}, {Score: 9000, Member: "bob"}},
		"debts":    {{Score: -12, Member: "ann"}, {Score: -1, Member: "bob"}},
		"visits":   {{Score: now - 1000, Member: "ann"}, {Score: now + 60_000, Member: "bob@example.org"}},
		"in range": {{Score: 2e13 + now + 60_000, Member: "ann"}, {Score: 3e13 + now + 60_000, Member: "bob"}},
	}
	calls := map[string][]redlock.AcquireOption{"exclusive": nil, "shared": {redlock.Shared()}, "slots": {redlock.Slots(3)}, "with another": {redlock.Also("other")}}
	for board, members := range boards {
		for _, key := range []string{"jobs", "jobs:queue"} {
			t.Run(board+" at "+key, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					leaks.Check(t)
					b := redistest.NewBubble(t, 3)
					clients := b.Clients()
					opts := trusting()
					opts.Separator = "/"
					lk := open(t, clients, opts)
					for _, c := range clients {
						c.ZAdd(t.Context(), key, members...)
						c.PExpire(t.Context(), key, 10*time.Hour)
					}
					want := clients[0].ZRangeWithScores(t.Context(), key, 0, -1).Val()
					try := func(what, name string, options ...redlock.AcquireOption) {
						ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
						defer cancel()
						for range 2 { // by plain commands first, and then by the script
							l, err := lk.TryAcquire(ctx, name, options...)
							refused := (*redlock.QuorumError)(nil)
							switch {
							case key == "jobs:queue" && err != nil:
								t.Errorf("%s: %v", what, err)
							case key == "jobs" && !errors.As(err, &refused):
								t.Errorf("%s: %v", what, err)
							case key == "jobs" && !strings.Contains(err.Error(), "not a lock"):
								t.Errorf("%s: %v", what, err)
							}
							if err == nil {
								if err := l.Extend(ctx); err != nil {
									t.Errorf("%s: %v", what, err)
								}
								waits, stop := context.WithTimeout(ctx, time.Second)
								if _, err := lk.Acquire(waits, name); err == nil {
									t.Errorf("%s: two have it", what)
								}
								stop()
								released(t, l)
							}
						}
					}
					for what, options := range calls {
						try(what, "jobs", options...)
						time.Sleep(10 * time.Second) // the next one is by plain commands again
					}
					try("something below", "jobs/a")
					try("something below, shared", "jobs/a", redlock.Shared())
					if s, err := lk.Inspect(t.Context(), "jobs"); err != nil || len(s.Holders)+len(s.Waiting) > 0 {
						t.Errorf("Inspect: %v, %v", s, err)
					}
					for i, c := range clients {
						if got := c.ZRangeWithScores(t.Context(), key, 0, -1).Val(); !reflect.DeepEqual(got, want) {
							t.Errorf("node %d has %v of %v", i, got, want)
						}
						if left := c.PTTL(t.Context(), key).Val(); left < 9*time.Hour {
							t.Errorf("node %d drops it in %v", i, left)
						}
					}
				})
			})
		}
	}
}

// TestForeignQueues: another program has a hash, a list, a set or a text at the key of a lock's queue. The lock is
// granted, extended, waited for, inspected and released as if there were no queue, and the value stays as it is.
func TestForeignQueues(t *testing.T) {
	const key = "jobs:queue"
	values := map[string]struct {
		put  func(context.Context, *redis.Client) error
		read func(context.Context, *redis.Client) any
	}{
		"hash": {func(ctx context.Context, c *redis.Client) error { return c.HSet(ctx, key, "a", "1", "b", "2").Err() }, func(ctx context.Context, c *redis.Client) any { return c.HGetAll(ctx, key).Val() }},
		"list": {func(ctx context.Context, c *redis.Client) error { return c.RPush(ctx, key, "a", "b").Err() }, func(ctx context.Context, c *redis.Client) any { return c.LRange(ctx, key, 0, -1).Val() }},
		"set":  {func(ctx context.Context, c *redis.Client) error { return c.SAdd(ctx, key, "a").Err() }, func(ctx context.Context, c *redis.Client) any { return c.SMembers(ctx, key).Val() }},
		"text": {func(ctx context.Context, c *redis.Client) error { return c.Set(ctx, key, "some text", 0).Err() }, func(ctx context.Context, c *redis.Client) any { return c.Get(ctx, key).Val() }},
	}
	calls := map[string][]redlock.AcquireOption{"exclusive": nil, "shared": {redlock.Shared()}, "slots": {redlock.Slots(3)}, "with another": {redlock.Also("other")}}
	for kind, value := range values {
		for _, left := range []time.Duration{-1, 10 * time.Hour} {
			t.Run(fmt.Sprint(kind, " for ", left), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					leaks.Check(t)
					b := redistest.NewBubble(t, 3)
					clients := b.Clients()
					lk, other := open(t, clients, trusting()), open(t, clients, trusting())
					for _, c := range clients {
						if err := value.put(t.Context(), c); err != nil {
							t.Fatal(err)
						}
						if left > 0 {
							c.PExpire(t.Context(), key, left)
						}
					}
					want := value.read(t.Context(), clients[0])
					for what, options := range calls {
						for range 2 { // by plain commands first, and then by the script
							l := acquired(t, lk, "jobs", options...)
							if err := l.Extend(t.Context()); err != nil {
								t.Errorf("%s: %v", what, err)
							}
							released := make(chan error)
							go func() {
								time.Sleep(time.Second)
								released <- l.Release(t.Context())
							}()
							waits, stop := context.WithTimeout(t.Context(), 5*time.Second)
							next, err := other.Acquire(waits, "jobs") // it asks with its heartbeat
							stop()
							if err := errors.Join(err, <-released); err != nil {
								t.Fatalf("%s: %v", what, err)
							}
							if s, err := lk.Inspect(t.Context(), "jobs"); err != nil || s.Token == "" || len(s.Waiting) > 0 {
								t.Errorf("%s: Inspect: %v, %v", what, s, err)
							}
							if err := next.Release(t.Context()); err != nil {
								t.Errorf("%s: %v", what, err)
							}
						}
						time.Sleep(10 * time.Second) // the next one is by plain commands again
					}
					for i, c := range clients {
						if got := value.read(t.Context(), c); !reflect.DeepEqual(got, want) {
							t.Errorf("node %d has %v of %v", i, got, want)
						}
						if rest := c.PTTL(t.Context(), key).Val(); left < 0 && rest >= 0 || left > 0 && rest < 9*time.Hour {
							t.Errorf("node %d drops it in %v", i, rest)
						}
					}
				})
			})
		}
	}
}

// TestBigForeignValue: what a node says of a value that is no lock is bounded, and so is the error.
func TestBigForeignValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leaks.Check(t)
		b := redistest.NewBubble(t, 3)
		clients := b.Clients()
		lk := open(t, clients, trusting())
		for _, c := range clients {
			c.Set(t.Context(), "page", strings.Repeat("x", 1<<20), time.Hour)
		}
		before := make([]int64, b.Len())
		for i := range before {
			before[i] = int64(b.Path(i).Stats().ReplyBytes)
		}
		for n := range 5 {
			_, err := lk.TryAcquire(t.Context(), "page")
			if !errors.Is(err, redlock.ErrHeld) || len(err.Error()) > 1000 {
				t.Errorf("%d: %.2000v", n, err)
			}
			waits, stop := context.WithTimeout(t.Context(), time.Second)
			if _, err := lk.Acquire(waits, "page"); err == nil {
				t.Error("it was granted")
			}
			stop()
			if s, err := lk.Inspect(t.Context(), "page"); err != nil || len(fmt.Sprint(s.Token)) > 4096 {
				t.Errorf("Inspect: %.200v, %v", s, err)
			}
		}
		for i := range before {
			if n := int64(b.Path(i).Stats().ReplyBytes) - before[i]; n > 500_000 {
				t.Errorf("node %d has sent %d bytes", i, n)
			}
		}
	})
}
