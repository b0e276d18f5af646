package lane

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/internal/wire"
)

// A node may say that it is a member at another address than that by which the program reaches it: it has two, or
// is behind a port that is forwarded. But so does a copy of the member's data, such as a staging server that was
// made of a backup, and whose description has the addresses of production. So the node is believed only if the
// address does not answer as another server, which the client asks. Until then, and if it does, the node keeps nothing,
// as far as anything here counts: a description of which only copies are witnesses is not believed, and no
// address in it is dialled but those that the copies say are theirs.

// An alias is what a node has said of its address.
type alias struct {
	self  string // the address
	runID string // of the process that has said so
	state atomic.Int32
}

const (
	asked    int32 = iota // the address has been asked, and has not answered yet
	silent                // it does not answer, or does not say what it is: the node is believed
	itself                // it is the same server
	anotherS              // it is another server: the node has a copy of its data
)

// identify asks the address that a node says is its own what it is. Under the set's mutex.
func (s *Set) identify(m *incarnation, t wire.Told, runID string) {
	if t.Description == nil || t.Self == m.name || strings.HasPrefix(t.Self, wire.AnyAddress) || runID == "" || s.cfg.Identify == nil || s.closed {
		m.alias.Store(nil)
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

// isCopy reports whether the address that the node says is its own answers as another server.
func (m *incarnation) isCopy() bool {
	a := m.alias.Load()
	return a != nil && a.state.Load() == anotherS
}

// unproven reports whether the node says that it is at another address, and that is another server, or has not been
// asked yet.
func (m *incarnation) unproven() bool {
	a := m.alias.Load()
	if a == nil {
		return false
	}
	is := a.state.Load()
	return is == asked || is == anotherS
}

// copies is why the program cannot use the nodes that it was given: so many of them have a copy of another server's data
// that the others are no majority. Under the mutex.
func (s *Set) copies() error {
	var those []string
	of := ""
	for _, n := range (*s.lanes.Load())[:len(s.given)] {
		if a := n.node.alias.Load(); n.node.isCopy() {
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
