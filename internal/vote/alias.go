package vote

import (
	"sync/atomic"

	"github.com/quorumlock/redlock/internal/wire"
)

// A node may say that it is a member at another address than that by which the program reaches it: it has two, or
// is behind a port that is forwarded. But so does a copy of the member's data, such as a staging server that was
// made of a backup, and whose description has the addresses of production. So the node is believed only if the
// address does not answer as another server, which the client asks. Until then, and if it does, the node keeps nothing,
// as far as anything here counts: a description of which only copies are witnesses is not believed, and no
// address in it is dialled but those that the copies say are theirs.

// An Alias is what a node has said of its address.
type Alias struct {
	Self  string // the address
	runID string // of the process that has said so
	state atomic.Int32
}

const (
	asked         int32 = iota // the address has been asked, and has not answered yet
	noAnswer                   // it does not answer, or does not say what it is: the node is believed
	itself                     // it is the same server
	anotherServer              // the node has a copy of that server's data
)

// unproven reports whether the node says that it is at another address, and that is another server, or has not been
// asked yet.
func (a *Alias) unproven() bool {
	if a == nil {
		return false
	}
	is := a.state.Load()
	return is == asked || is == anotherServer
}

// Answered takes in the run_id of the process that answers at the address; "": none does, or it does not say. It reports
// whether that is news.
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

// SaysAlias takes in that the node says that it is at another address, and gives the address to be asked; nil: it is being
// asked, or has answered.
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

// SaysNoAlias takes in that the node does not say so. If it keeps nothing any more, it is no member by what it kept as long
// as it was not shown that it was that member.
func (m *Node) SaysNoAlias(keeps bool) {
	if a := m.alias.Swap(nil); !keeps && a.unproven() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.self = wire.Kept{}
	}
}

// CopyOf is the address of the server of whose data the node has a copy; "": it has none, as far as is known.
func (m *Node) CopyOf() string {
	if a := m.alias.Load(); a != nil && a.state.Load() == anotherServer {
		return a.Self
	}
	return ""
}
