package redlocktest

import (
	"strings"
	"testing"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
)

// TestFresh: real servers that were just started vote at once; those that have been used are refused.
func TestFresh(t *testing.T) {
	var urls []string
	for _, s := range redistest.NewServers(t, 3) {
		urls = append(urls, "redis://"+s.Addr)
	}
	Fresh(t, urls...)
	lk, err := redlock.Connect(urls, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer lk.Close()
	l, err := lk.TryAcquire(t.Context(), "name")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
	fake := &fakeTB{TB: t}
	if said := fake.fails(func() { Fresh(fake, urls...) }); !strings.HasSuffix(said, " is not empty: a client may hold a lock there") {
		t.Errorf("it says %q", said)
	}
	if said := fake.fails(func() { Fresh(fake, "127.0.0.1:6379") }); !strings.HasPrefix(said, "redlocktest: node 0 is no URL of a Redis server: ") {
		t.Errorf("it says %q", said)
	}
}
