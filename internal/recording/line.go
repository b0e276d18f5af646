// Package recording follows the locks of a set and writes down what changes, for redlock record; and reads
// what was written, for redlock explain. It writes nothing to a node.
package recording

import (
	"time"
	"unicode/utf8"

	"github.com/quorumlock/redlock"
)

// A Line is one line of a record, as JSON. It is about a set, about a node, or about a lock on a node; or it only
// says that nothing else has changed until then.
type Line struct {
	Time time.Time `json:"time"` // by the clock of the computer that records

	// Of a set: what is recorded from here on. Each file begins with such a line.
	Set *Set `json:"set,omitempty"`

	// Of a node: what it does, StateAnswers and so on.
	Node  string    `json:"node,omitempty"`
	State string    `json:"state,omitempty"`
	Since time.Time `json:"since,omitzero"` // StateSilent: its last answer
	Error string    `json:"error,omitempty"`
	Tells bool      `json:"tells,omitempty"` // StateAnswers: it tells of each change at once (notify-keyspace-events)

	// Of a lock: all that the node has now.
	Name    string    `json:"name,omitempty"`
	Odd     []byte    `json:"name_base64,omitempty"` // the name, if it is not UTF-8, which JSON cannot carry
	Token   string    `json:"token,omitempty"`       // held exclusively
	TTL     int64     `json:"ttl_ms,omitempty"`
	Fence   int64     `json:"fence,omitempty"` // the counter, as in redlock.NodeStatus
	Holders []Holder  `json:"holders,omitempty"`
	Waiting []Waiter  `json:"waiting,omitempty"`
	By      []string  `json:"by,omitempty"`    // the node's events that led here, as it calls them
	First   time.Time `json:"first,omitzero"`  // the first of these events, if it was earlier: what was there before ended then
	Ended   []Ended   `json:"ended,omitempty"` // what was there before, and is no more
	Told    bool      `json:"told,omitempty"`  // the node has told of every change since the lock was read before: By has them

	End bool `json:"end,omitempty"` // nothing is recorded from here on, until the next line of a set
}

// call sets the name of the line's lock: in Name, or in Odd if it is not UTF-8.
func (l *Line) call(name string) {
	if l.Name = name; !utf8.ValidString(name) {
		l.Name, l.Odd = "", []byte(name)
	}
}

// What a node does.
const (
	StateAnswers = "answers"
	StateSilent  = "silent" // it does not answer, or refuses: Line.Error
	StateForgot  = "forgot" // it was emptied, or started without its data
	StateWalked  = "walked" // all that it had when the record began is written
)

// A Set is what is recorded.
type Set struct {
	Name   string   `json:"name,omitempty"`
	Epoch  int64    `json:"epoch,omitempty"`
	Prefix string   `json:"prefix,omitempty"` // of the keys; in no Line.Name
	Nodes  []string `json:"nodes"`
	Quorum int      `json:"quorum"`
	Again  bool     `json:"again,omitempty"` // the record goes on: what follows first repeats what there was
}

// A Holder holds a lock in another mode than exclusive.
type Holder struct {
	Token string       `json:"token"`
	Mode  redlock.Mode `json:"mode"`
	TTL   int64        `json:"ttl_ms,omitempty"`
}

// A Waiter is a process that waits.
type Waiter struct {
	Waiter string    `json:"waiter"` // its name at the nodes
	Owner  string    `json:"owner,omitempty"`
	Since  time.Time `json:"since"` // by the node's clock
}

// An Ended is a token that a node had.
type Ended struct {
	Token string `json:"token"`
	Left  int64  `json:"left_ms"` // of its TTL, as far as that is known; not above 0: it ran out
}
