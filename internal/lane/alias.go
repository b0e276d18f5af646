package lane

import "sync/atomic"

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

// isCopy reports whether the address that the node says is its own answers as another server. Nil: it has said none.
func (a *alias) isCopy() bool { return a != nil && a.state.Load() == anotherS }

// unproven reports whether the node says that it is at another address, and that is another server, or has not been
// asked yet.
func (a *alias) unproven() bool {
	if a == nil {
		return false
	}
	is := a.state.Load()
	return is == asked || is == anotherS
}
