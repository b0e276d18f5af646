package lane

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/wire"
)

// identify asks the address that a node says is its own what it is. Under the set's mutex.
func (s *Set) identify(m *incarnation, t wire.Told, runID string) {
	if t.Description == nil || t.Self == m.name || strings.HasPrefix(t.Self, wire.AnyAddress) || runID == "" || s.cfg.Identify == nil || s.closed {
		if a := m.alias.Swap(nil); t.Description == nil && a.unproven() {
			m.disown()
		}
		return
	}
	a := m.alias.Load()
	switch {
	case a == nil || a.self != t.Self || a.runID != runID:
		a = &alias{self: t.Self, runID: runID}
		m.alias.Store(a)
	case a.state.Load() != silent:
		return // it is being asked, or has answered
	}
	s.tasks.Add(1)
	go func() {
		defer s.tasks.Done()
		ctx, cancel := context.WithTimeout(s.ctx, max(s.cfg.NodeTimeout, time.Second))
		defer cancel()
		state := silent
		switch id, err := s.cfg.Identify(ctx, a.self); {
		case err != nil || id == "":
		case id == runID:
			state = itself
		default:
			state = anotherS
		}
		if a.state.Swap(state) == state {
			return
		}
		s.mu.Lock()
		s.consider()
	}()
}

// copies is why the program cannot use the nodes that it was given: so many of them have a copy of another server's data
// that the others are no majority. Under the mutex.
func (s *Set) copies() error {
	var those []string
	of := ""
	for _, n := range (*s.lanes.Load())[:len(s.given)] {
		if a := n.node.alias.Load(); a.isCopy() {
			those = append(those, n.Name)
			if of != "" {
				of += ", "
			}
			of += fmt.Sprintf("%s has that of %s", n.Name, a.self)
		}
	}
	if len(those) == 0 || 2*(len(s.given)-len(those)) > len(s.given) {
		return nil
	}
	return fmt.Errorf("redlock: nodes have the data of other servers, which answer at their own addresses (%s), and with that the description of their set: make these forget it, with redlock members forget %s", of, strings.Join(those, " "))
}
