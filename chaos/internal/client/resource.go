package client

import (
	"sync"

	"github.com/quorumlock/redlock/chaos/history"
)

// A Resource is what locks protect: many clients read it, and write it some time later.
//
// It checks fences: after a read or write with a fence, it accepts no write with a smaller one.
// Reads must count as well: so a client that has read can rely on it that no earlier holder writes
// after that.
type Resource interface {
	Read(name string, fence uint64) int

	// Write stores an event's Value under its Name, unless its fence is too low, and records the
	// event with the old value. The records have the order of the writes.
	Write(history.Event)
}

// A memory is a resource in this process.
type memory struct {
	note func(history.Event)

	mu     sync.Mutex
	values map[string]int
	fences map[string]uint64
}

// NewMemory returns a memory that records each write with this function.
func NewMemory(note func(history.Event)) *memory {
	return &memory{note: note, values: make(map[string]int), fences: make(map[string]uint64)}
}

func (m *memory) Read(name string, fence uint64) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fences[name] = max(m.fences[name], fence)
	return m.values[name]
}

func (m *memory) Write(e history.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.Kind, e.Was = history.Refused, m.values[e.Name]
	if e.Fence >= m.fences[e.Name] {
		e.Kind, m.values[e.Name], m.fences[e.Name] = history.Wrote, e.Value, e.Fence
	}
	m.note(e)
}
