package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/memredis"
)

// A story is told as it happens: every figure in it is read from the locks or
// from the nodes, and the first one that is not as promised ends it.
type story struct {
	nodes   *memredis.Cluster
	readers []*redis.Client // one for each node, apart from the lockers
	start   time.Time

	mu  sync.Mutex
	out io.Writer
}

// tell writes a line with the time since the start, and who it is about.
func (s *story) tell(who, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "%6.3fs  %-2s %s\n", time.Since(s.start).Seconds(), who, fmt.Sprintf(format, args...))
}

// holding counts the nodes that have a lock's token, by asking them.
func (s *story) holding(l *redlock.Lock) int {
	n := 0
	for _, ttl := range s.remaining(l) {
		if ttl > 0 {
			n++
		}
	}
	return n
}

// remaining is how long each node will keep a lock's token; zero: it does not
// have it, or is down.
func (s *story) remaining(l *redlock.Lock) []time.Duration {
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	ttls := make([]time.Duration, len(s.readers))
	for i, r := range s.readers {
		if r.Get(ctx, l.Name()).Val() == l.Token() {
			ttls[i] = max(0, r.PTTL(ctx, l.Name()).Val())
		}
	}
	return ttls
}

// within polls a condition that becomes true by itself.
func within(d time.Duration, cond func() bool) bool {
	for deadline := time.Now().Add(d); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// short is as much of a token as tells it from the others on a screen.
func short(token string) string { return token[:min(8, len(token))] }

// figure is a duration as one would say it.
func figure(d time.Duration) string {
	if d < 10*time.Millisecond {
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(time.Millisecond).String()
}
