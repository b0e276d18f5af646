package vote

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/wire"
)

// errUnusable is why no node has a vote under a description of the set that this program cannot use.
var errUnusable = errors.New("this program's options are not those of the set")

// A tooLongError says that a node is not asked for a lock that lives longer than the set's description allows. A shorter
// bound takes effect with the first round under that description: no lock counts under one that does not allow it.
type tooLongError struct{ ttl, most time.Duration }

func (e tooLongError) Error() string {
	return fmt.Sprintf("the lock's TTL is %v, and the set allows %v (its MaxTTL)", e.ttl, e.most)
}

// An UntoldError says that a node has no vote because it does not keep the set's description by which the client counts. If
// the node has lost its data, it gets the description again as soon as enough others have answered (mayTell in package set).
type UntoldError struct {
	node  *Node
	by    *wire.Description // nil: the client has none either
	later int64             // the epoch of a later description of the set that the node keeps; 0: it keeps none
}

func (e UntoldError) Error() string {
	switch {
	case e.by == nil:
		return "no majority of the nodes keeps a description of their set yet"
	case e.later > 0:
		return fmt.Sprintf("it keeps a later description of the set (epoch %d) than this program goes by (%d): if no change is under way, redlock members restore", e.later, e.by.Epoch)
	}
	return "it does not keep the description of the set by which the others vote"
}

// Votes reports whether the node may vote by now, so that another attempt may succeed: it keeps the description that it did
// not keep when e was made, and is not in quarantine. False if the client itself had no description.
func (e UntoldError) Votes() bool { return e.by != nil && e.node.Keeps(e.by) && e.node.votes() }

// Outdated reports whether known, the description of the set by which the client goes now, is another one than when the
// error was made.
func (e UntoldError) Outdated(known *wire.Description) bool { return e.by != known }

// A ForeignError says that a node keeps the description of another set.
type ForeignError struct{ Kept wire.Kept }

func (e ForeignError) Error() string {
	return fmt.Sprintf("it is a node of another set, with the members %s: give the nodes of one set, or make it forget, with redlock members forget", strings.Join(e.Kept.Members, ", "))
}

// A CopyError says that a node has the data of a member at another address.
type CopyError struct{ Of string }

func (e CopyError) Error() string {
	return fmt.Sprintf("it says that it is the member %s: it has a copy of its data, or is that server: make it forget, with redlock members forget, or give each member a server", e.Of)
}

// Taken returns the address of the member of the set that the client takes the node to be; "": none.
func (m *Node) Taken() string {
	if as := m.as.Load(); as != nil {
		return *as
	}
	return ""
}

// TakeFor sets which member of the set, by its address, the client takes the node to be; nil: none. A node that itself says
// it is another member has no vote then (CopyError).
func (m *Node) TakeFor(member *string) { m.as.Store(member) }

// unlike returns why a node that keeps kept has no vote under d, a description of the set: the program cannot use d, or the
// node does not keep it (differs); nil: neither. d is nil if the client knows no description.
func (m *Node) unlike(kept wire.Kept, d *wire.Description) error {
	if !m.group.usable(d) {
		return errUnusable
	}
	return m.differs(kept, d)
}

// differs returns why a node that keeps kept does not count as one that keeps d, a description of the set; nil: it counts.
// If d is nil, the client goes by none, and the result is nil only if votes need none (Config.Described is false).
func (m *Node) differs(kept wire.Kept, d *wire.Description) error {
	switch {
	case d == nil && !m.cfg.Described:
		return nil
	case m.alias.Load().unproven():
		return CopyError{kept.Self}
	case d != nil && kept.Same(d):
		if as := m.Taken(); as != "" && kept.Self != as {
			return CopyError{kept.Self}
		}
		return nil
	case d != nil && kept.Description != nil && kept.Set != d.Set:
		return ForeignError{kept}
	case d != nil && kept.At() > d.Epoch:
		return UntoldError{m, d, kept.Epoch}
	}
	return UntoldError{m, d, 0}
}

// Kept returns what the node keeps: the set's description, and its own address in it. Its Description is nil if the node
// keeps none, has not said so yet, or may be a copy of another server's data (alias.go).
func (m *Node) Kept() wire.Kept {
	if m.alias.Load().unproven() {
		return wire.Kept{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kept
}

// Keep records that the node keeps t (the set's description, and its own address in it), and mark, its marker then, a key
// that shows that it has not lost data. The set calls it each time the node has been joined.
func (m *Node) Keep(t wire.Kept, mark wire.Marker) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if same := m.joined && mark.Same(m.keptBy); !same || t.At() != m.kept.At() {
		m.since = m.Now()
	}
	if m.kept, m.keptBy, m.joined = t, mark, true; t.Description != nil {
		m.self = t
	}
}

// KeptSince returns when the client first heard that the node keeps what it keeps now, a description or none; zero: not yet.
func (m *Node) KeptSince() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.since
}

// Keeps reports whether the node keeps d, a description of the set, and is no copy of the member that it says it is. If d is
// nil, it reports whether votes need none (Config.Described is false).
func (m *Node) Keeps(d *wire.Description) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.differs(m.kept, d) == nil
}

// LostAt returns when the node last may have lost all its data, and its marker since then (a key that shows that it has lost
// none). Zero and "" mean that the node has shown no marker.
func (m *Node) LostAt() (time.Time, string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.emptied, m.mark
}

// HasMet reports whether the node has said which description it keeps, if any; false if its data may be another's (Alias).
func (m *Node) HasMet() bool {
	if m.alias.Load().unproven() {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.joined
}

// Member returns the address that the node last said it has in the set of this name; "": none, or it may be a copy.
func (m *Node) Member(set string) string {
	if m.alias.Load().unproven() {
		return ""
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.self.Description == nil || m.self.Set != set {
		return ""
	}
	return m.self.Self
}
