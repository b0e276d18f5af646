package integration_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// churn makes callers in several processes acquire a few locks over and over for a while: some
// wait, some only try, some give up while they wait.
func churn(t *testing.T, servers []*redisproc.Server, names int, d time.Duration) (had int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var mu sync.Mutex
	var calls sync.WaitGroup
	var lockers []*redlock.Locker
	for range 4 {
		lockers = append(lockers, open(t, redistest.Clients(t, servers), patient()))
	}
	for p, lk := range lockers {
		for c := range 8 {
			calls.Go(func() {
				for i := c; ctx.Err() == nil; i++ {
					acquire, limit := lk.Acquire, time.Second
					switch (p + i) % 4 {
					case 0:
						acquire = lk.TryAcquire
					case 1:
						limit = 5 * time.Millisecond
					}
					asking, stop := context.WithTimeout(ctx, limit)
					l, err := acquire(asking, fmt.Sprint("name", i%names))
					stop()
					if err != nil {
						continue
					}
					_ = l.Release(ctx)
					mu.Lock()
					had++
					mu.Unlock()
				}
			})
		}
	}
	calls.Wait()
	return had
}

// noTokens waits until no server has a lock. Only keys of locks count: a dead waiter may leave a
// place in a queue.
func noTokens(t *testing.T, servers []*redisproc.Server) {
	t.Helper()
	var left []string
	for deadline := time.Now().Add(settleWithin); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		left = nil
		for addr, keys := range redistest.Keys(t, servers) {
			keys = slices.DeleteFunc(keys, func(key string) bool { return strings.HasSuffix(key, ":queue") })
			for _, key := range keys {
				left = append(left, addr+": "+key)
			}
		}
		if len(left) == 0 {
			return
		}
	}
	t.Errorf("left on the nodes, with a minute to live: %q", left)
}

// TestScriptFlushLeavesNothing: the servers lose their scripts all the time. A request that is sent
// again may then be granted where it was refused the first time. At the higher rate a busy computer may need longer
// than from one flush to the next to load a script and call it, and then no call gets a lock.
func TestScriptFlushLeavesNothing(t *testing.T) {
	leaks.Check(t)
	for _, every := range []time.Duration{20 * time.Millisecond, 1500 * time.Microsecond} {
		t.Run(every.String(), func(t *testing.T) {
			t.Parallel()
			servers := redistest.Servers(t, 3)
			ctx, cancel := context.WithCancel(t.Context())
			var flushing sync.WaitGroup
			for _, c := range redistest.Clients(t, servers) {
				flushing.Go(func() {
					for tick := time.NewTicker(every); ctx.Err() == nil; <-tick.C {
						if err := c.ScriptFlush(ctx).Err(); err != nil && ctx.Err() == nil {
							t.Error(err)
						}
					}
				})
			}
			must := every > 10*time.Millisecond
			had := churn(t, servers, 4, need.Sized(2*time.Second, 2*time.Second, 20*time.Second))
			for most := time.Now().Add(30 * time.Second); must && had == 0 && time.Now().Before(most); {
				had = churn(t, servers, 4, 2*time.Second) // on a busy computer there are 0 to 15 in that time
			}
			cancel()
			flushing.Wait()
			t.Logf("%d locks", had)
			if must && had == 0 {
				t.Error("no call got a lock")
			}
			noTokens(t, servers)
		})
	}
}

// TestScriptThatMayNotGoOn: a script that an ACL denies a command may have set the key before. Then
// an error is no refusal, and the token is released.
func TestScriptThatMayNotGoOn(t *testing.T) {
	leaks.Check(t)
	for _, command := range []string{"zrem", "zadd", "pexpire", "publish"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			servers := redistest.Servers(t, 3)
			on(t, servers, "ACL", "SETUSER", "default", "-"+command)
			// A client of another library calls no waiter: a waiter finds the lock free by itself, and
			// is in the queue.
			on(t, servers, "SET", "name0", "another's", "PX", 300)
			t.Logf("%d locks", churn(t, servers, 2, 2*time.Second))
			noTokens(t, servers)
		})
	}
}
