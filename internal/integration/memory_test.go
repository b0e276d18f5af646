package integration_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/redis/go-redis/v9"
)

// TestMemoryOfNames: however many names have been locked, a node keeps one table for them and no
// more: a counter for each name would take more than twice the memory that the test allows.
// REDLOCK_NAMES sets another number of names.
func TestMemoryOfNames(t *testing.T) {
	names := 20_000
	if n, err := strconv.Atoi(os.Getenv("REDLOCK_NAMES")); err == nil {
		names = n
	}
	leaks.Check(t)
	c := redistest.Clients(t, redistest.Servers(t, 1))[0]
	opts := patient()
	opts.Separator = "/"
	lk := open(t, []*redis.Client{c}, opts)
	const callers = 64
	every := func(prefix string, n int) {
		var all sync.WaitGroup
		for caller := range callers {
			all.Go(func() {
				for i := caller; i < n; i += callers {
					l, err := lk.TryAcquire(t.Context(), fmt.Sprint(prefix, i))
					if err == nil {
						err = l.Release(t.Context())
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
	}
	used := func() (bytes int) {
		info := c.Info(t.Context(), "memory").Val()
		_, rest, _ := strings.Cut(info, "used_memory:")
		line, _, _ := strings.Cut(rest, "\r\n")
		bytes, err := strconv.Atoi(line)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		return bytes
	}
	c.Del(t.Context(), script.Fences, script.Belows)
	before := used()
	every("some/name", callers)
	begin := used()
	every("folder/of/name", names)
	after := used()
	t.Logf("%d bytes, then %d, and %d after %d names: %d more", before, begin, after, names, after-before)
	if after-before > 1<<20 {
		t.Errorf("%d names have cost %d bytes", names, after-before)
	}
	wantKeys(t, c, "all names", script.Belows, script.Fences, script.Marker, script.Told)
}
