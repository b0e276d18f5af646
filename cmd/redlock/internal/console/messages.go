package console

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/internal/aside"
)

const (
	// OutputWait is how long redlock waits for its messages to be written before what has to come after
	// them: a result on stdout, or what a command writes.
	OutputWait = 100 * time.Millisecond

	// exitWait is how long redlock waits at its end for its messages to be written.
	exitWait = time.Second

	// mostQueued is how many bytes of messages wait for a reader.
	mostQueued = 64 << 10
)

// messages are lines on their way to stderr. It may be a pipe that nobody reads, or a terminal that was stopped
// with Ctrl-S, and neither a renewal nor a signal may wait for that.
type messages struct {
	*aside.Writer
	stuck atomic.Bool // flush has waited in vain, and nothing was written since
}

// newMessages returns the messages of a command.
func newMessages(c *Console) *messages {
	m := new(messages)
	m.Writer = aside.NewWriter(writer(func(p []byte) (int, error) {
		c.mu.Lock()
		to := c.Stderr
		c.mu.Unlock()
		n, err := to.Write(p)
		m.stuck.Store(false)
		return n, err
	}), mostQueued, func(dropped int) string {
		return "redlock: " + phrase.Count(dropped, "message") + " dropped here, because stderr was not read\n"
	})
	return m
}

// writer makes a function an io.Writer.
type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// flush waits until all is written, for limit at most, and not once more for the same reader.
func (m *messages) flush(limit time.Duration) {
	if m.stuck.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if m.Flush(ctx) == context.DeadlineExceeded {
		m.stuck.Store(true)
	}
}
