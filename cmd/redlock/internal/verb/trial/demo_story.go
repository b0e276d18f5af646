package trial

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/load"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
)

// A story is one run of the demo. It prints each line as it happens, with figures from the locks and the nodes. The
// first figure that is not as promised ends the demo.
type story struct {
	*console.Console
	nodes   *memredis.Cluster
	readers []*redis.Client // one for each node, besides the Lockers
	start   time.Time

	json  bool
	lines sync.Mutex // protects over, and separates lines
	over  bool       // the last line was printed; what the workers find out later is not
}

// A told is a line of the demo as JSON.
type told struct {
	At     load.Millis `json:"at_ms"`            // since the start
	Worker string      `json:"worker,omitempty"` // "": the line is about the nodes
	Text   string      `json:"text"`
}

// tell prints a line: the time since the start, the worker that it is about, and the text.
func (s *story) tell(worker, format string, args ...any) {
	s.lines.Lock()
	defer s.lines.Unlock()
	s.print(worker, format, args...)
}

// conclude prints the last line.
func (s *story) conclude(format string, args ...any) {
	s.lines.Lock()
	defer s.lines.Unlock()
	s.print("", format, args...)
	s.over = true
}

// print prints a line. The caller holds s.lines.
func (s *story) print(worker, format string, args ...any) {
	if s.over {
		return
	}
	at, text := time.Since(s.start), fmt.Sprintf(format, args...)
	if s.json {
		_ = s.PrintLine(told{load.Millis(at), worker, text})
		return
	}
	fmt.Fprintf(s.Stdout, "%6.3fs  %-2s %s\n", at.Seconds(), worker, text)
}

// holding asks the nodes, and returns how many have the token of a lock.
func (s *story) holding(l *redlock.Lock) int {
	n := 0
	for _, ttl := range s.remaining(l) {
		if ttl > 0 {
			n++
		}
	}
	return n
}

// remaining returns for how long each node keeps the token of a lock; zero: it does not have it, or is down.
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

// within waits for a condition, and returns false if it is not true within d.
func within(d time.Duration, cond func() bool) bool {
	for deadline := time.Now().Add(d); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// short returns the beginning of a token, enough to distinguish it.
func short(token string) string { return token[:min(8, len(token))] }

// figure rounds a duration for a line of the demo.
func figure(d time.Duration) string {
	if d < 10*time.Millisecond {
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(time.Millisecond).String()
}
