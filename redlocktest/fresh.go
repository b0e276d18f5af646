package redlocktest

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/facts"
	"github.com/quorumlock/redlock/internal/fresh"
	"github.com/quorumlock/redlock/internal/nodeurl"
)

// Fresh makes real Redis servers, which the test has just started (in containers, say), vote at once and not after a
// quarantine, as redlock prepare --fresh does. A server that is not empty ends the test: a client may hold a lock
// there.
func Fresh(t testing.TB, urls ...string) {
	t.Helper()
	for i, url := range urls {
		opts, err := nodeurl.Parse(url)
		if err != nil {
			t.Fatalf("redlocktest: node %d is no URL of a Redis server: %v", i, err)
		}
		client := redis.NewClient(opts)
		unused, err := fresh.SettleUnused(t.Context(), client)
		_ = client.Close()
		switch {
		case err != nil:
			t.Fatalf("redlocktest: %s: %v", opts.Addr, facts.Discreet(err))
		case !unused:
			t.Fatalf("redlocktest: %s is not empty: a client may hold a lock there", opts.Addr)
		}
	}
}
