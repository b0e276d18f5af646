package client

import (
	"sync"

	"github.com/quorumlock/redlock/chaos/history"
)

// A Resource is what locks are for: something that is read, and written some time
// later, by many.
//
// It knows fences: a client that comes with a lower one than a client before it, to
// read or to write, may not write any more. That reading counts as well is what makes
// it enough: a client that has read may rely on it that no earlier one writes after
// that.
type Resource interface {
	Read(name string, fence uint64) int

	// Write puts an event's Value under its Name, unless its fence is too low, and
	// notes the event, with what was there before. What is noted has the order in
	// which it was written.
	Write(history.Event)
}

// A memory is a resource in this process.
type memory struct {
	note func(history.Event)

	mu     sync.Mutex
	values map[string]int
	fences map[string]uint64
}

// NewMemory notes each write by the function that it is given.
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
