package vote

import (
	"sync/atomic"

	"github.com/quorumlock/redlock/internal/wire"
)

// A node may say that it is the member at another address than that by which the program reaches it: it has two addresses,
// or is behind a forwarded port. But a copy of the member's data says the same, such as a staging server that was made of a
// backup, and whose description of the set has the addresses of production. So the client asks that address what answers
// there, and believes the node unless it is another server. Until the address has answered, and if it is another server, the
// node counts as one that keeps no description. So no description is believed on the word of copies alone, and the client
// dials no address in it but those that the copies say are theirs.

// An Alias is another address that a node says is its own, and what asking the address has shown.
type Alias struct {
	Self  string       // the address
	runID string       // of the node's process, which says so
	state atomic.Int32 // what asking has shown: asked …
}

const (
	asked         int32 = iota // the address has not answered yet
	noAnswer                   // nothing answers there, or it does not say what it is: the node is believed
	itself                     // the same process answers there
	anotherServer              // another process answers there: the node has a copy of its data
)

// unproven reports whether the node must count as a copy of another server's data: another server answers at the address, or
// asking has no result yet. It is false if asking has shown no other server, and for nil: the node claims no other address.
func (a *Alias) unproven() bool {
	if a == nil {
		return false
	}
	is := a.state.Load()
	return is == asked || is == anotherServer
}

// Answered records the run_id of the process that answers at the address; "": none does, or it does not say. It reports
// whether that changes a.state: then the caller must consider anew which description of the set counts.
func (a *Alias) Answered(runID string) bool {
	state := noAnswer
	switch runID {
	case "":
	case a.runID:
		state = itself
	default:
		state = anotherServer
	}
	return a.state.Swap(state) != state
}

// SaysAlias records that the node, whose process has this run_id, says that its address is self. It returns an Alias if the
// caller is to ask that address, and then call Answered; nil: the address is being asked, or a server has answered there.
func (m *Node) SaysAlias(self, runID string) *Alias {
	a := m.alias.Load()
	switch {
	case a == nil || a.Self != self || a.runID != runID:
		a = &Alias{Self: self, runID: runID}
		m.alias.Store(a)
	case a.state.Load() != noAnswer:
		return nil
	}
	return a
}

// SaysNoAlias records that the node claims no address but that by which it is reached. If it keeps no description of a set
// either (keeps is false), and its earlier claim to an address is unproven, the client forgets which member the node said it
// was (Member). Else that stays as it is: Keep has stored what the node says now.
func (m *Node) SaysNoAlias(keeps bool) {
	if a := m.alias.Swap(nil); !keeps && a.unproven() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.self = wire.Kept{}
	}
}

// CopyOf returns the address of the server whose data the node has a copy of; "": it has none, as far as is known.
func (m *Node) CopyOf() string {
	if a := m.alias.Load(); a != nil && a.state.Load() == anotherServer {
		return a.Self
	}
	return ""
}
