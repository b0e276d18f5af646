package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// outputWait is how long redlock waits for its messages to be written before what has to come after them:
// a result on stdout, or what a command writes.
const outputWait = 100 * time.Millisecond

// exitWait is how long redlock waits at its end for its messages to be written.
const exitWait = time.Second

// mostQueued is how many bytes of messages wait for a reader.
const mostQueued = 64 << 10

// messages are lines on their way to stderr, in their order. A goroutine writes them, which is there as long
// as there are some: stderr may be a pipe that nobody reads, or a terminal that was stopped with Ctrl-S, and
// neither a renewal nor a signal may wait for that. What does not fit into mostQueued is dropped, and a line
// says how much.
type messages struct {
	mu      sync.Mutex
	queue   []queued
	size    int           // of the queue, in bytes
	written chan struct{} // closed when the queue is empty and all is written; nil: it is
	stuck   bool          // flush has waited in vain, and nothing was written since
	dropped int           // since the last line about it
	to      io.Writer     // of the last one that was dropped
}

type queued struct {
	to   io.Writer
	text string
}

// add queues a message, or drops it.
func (m *messages) add(to io.Writer, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.size+len(text) > mostQueued && len(m.queue) > 0 {
		m.dropped, m.to = m.dropped+1, to
		return
	}
	m.tellDropped()
	m.put(to, text)
	if m.written == nil {
		m.written = make(chan struct{})
		go m.write()
	}
}

// put queues a message. The caller holds m.mu.
func (m *messages) put(to io.Writer, text string) {
	m.queue, m.size = append(m.queue, queued{to, text}), m.size+len(text)
}

// tellDropped queues a line about messages that were dropped, after those that came before them. The caller
// holds m.mu.
func (m *messages) tellDropped() {
	if m.dropped == 0 {
		return
	}
	what := "1 message of redlock was"
	if m.dropped > 1 {
		what = fmt.Sprintf("%d messages of redlock were", m.dropped)
	}
	m.put(m.to, "redlock: "+what+" dropped here, because stderr was not read\n")
	m.dropped = 0
}

// write writes until nothing is queued.
func (m *messages) write() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		if len(m.queue) == 0 {
			m.tellDropped()
		}
		if len(m.queue) == 0 {
			close(m.written)
			m.written = nil
			return
		}
		next := m.queue[0]
		m.queue = m.queue[1:]
		m.mu.Unlock()
		_, _ = io.WriteString(next.to, next.text)
		m.mu.Lock()
		m.size, m.stuck = m.size-len(next.text), false
	}
}

// flush waits until all is written, for limit at most, and not once more for the same reader.
func (m *messages) flush(limit time.Duration) {
	m.mu.Lock()
	written, stuck := m.written, m.stuck
	m.mu.Unlock()
	if written == nil || stuck {
		return
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-written:
	case <-timer.C:
		m.mu.Lock()
		m.stuck = m.written == written
		m.mu.Unlock()
	}
}
