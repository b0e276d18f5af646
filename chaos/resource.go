package chaos

import (
	"sync"
)

// A resource is what locks are for: something that is read, and written some time
// later, by many.
type resource interface {
	read(name string) int

	// write puts an event's Value under its Name, and notes the event, with what was
	// there before. What is noted has the order in which it was written.
	write(Event)
}

// A memory is a resource in this process.
type memory struct {
	note func(Event)

	mu     sync.Mutex
	values map[string]int
}

func (m *memory) read(name string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[name]
}

func (m *memory) write(e Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.Kind, e.Was = Wrote, m.values[e.Name]
	m.note(e)
	m.values[e.Name] = e.Value
}
