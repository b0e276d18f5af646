package chaos

import (
	"sync"
)

// A resource is what locks are for: something that is read, and written some time
// later, by many.
//
// It knows fences: who comes with a lower one than somebody before him, to read or
// to write, may not write any more. That reading counts as well is what makes
// it enough: he who has read may rely on it that nobody before him writes after
// that.
type resource interface {
	read(name string, fence uint64) int

	// write puts an event's Value under its Name, unless its fence is too low, and
	// notes the event, with what was there before. What is noted has the order in
	// which it was written.
	write(Event)
}

// A memory is a resource in this process.
type memory struct {
	note func(Event)

	mu     sync.Mutex
	values map[string]int
	fences map[string]uint64
}

func newMemory(note func(Event)) *memory {
	return &memory{note: note, values: make(map[string]int), fences: make(map[string]uint64)}
}

func (m *memory) read(name string, fence uint64) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fences[name] = max(m.fences[name], fence)
	return m.values[name]
}

func (m *memory) write(e Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.Kind, e.Was = Refused, m.values[e.Name]
	if e.Fence >= m.fences[e.Name] {
		e.Kind, m.values[e.Name], m.fences[e.Name] = Wrote, e.Value, e.Fence
	}
	m.note(e)
}
