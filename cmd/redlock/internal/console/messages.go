package console

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/internal/aside"
)

const (
	// OutputWait bounds the wait for messages that must precede something else: a result on stdout, or the output of
	// a command.
	OutputWait = 100 * time.Millisecond

	// exitWait bounds the wait for messages at the end of redlock.
	exitWait = time.Second

	// mostQueued is how many bytes of messages are kept for a slow reader.
	mostQueued = 64 << 10
)

// messages are lines on their way to stderr. stderr may be a pipe that nobody reads, or a terminal stopped with
// Ctrl-S: neither a renewal nor a signal may wait for it.
type messages struct {
	*aside.Writer
	stuck atomic.Bool // the last flush timed out, and nothing was written since
}

// newMessages returns the messages of a Console.
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

// flush waits until all messages are written, for limit at most. It does not wait again for a reader that let the
// last flush time out.
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
