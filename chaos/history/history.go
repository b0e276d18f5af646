// Package history is the record of one run of the chaos harness: its events, the faults
// among them, and how both are written and read. [Decode] reads what redlock chaos keeps.
package history

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// A History is the record of one run: what every client did and was told, which faults nodes and
// clients had, and what was left at the end, in order. The judge sees nothing else.
type History struct {
	Run    Head
	Events []Event
}

// A Head is the first line of a history: where it comes from, and what the judge must know about it.
type Head struct {
	Scenario string `json:"scenario"`
	Arena    string `json:"arena"`
	Seed     uint64 `json:"seed"`
	Nodes    int    `json:"nodes"`
	Quorum   int    `json:"quorum"`
	Clients  int    `json:"clients"`

	// Of a history that was made of a record of locks: when it began, and what the clients and the nodes
	// are called.
	Start  time.Time `json:"start,omitzero"`
	Owners []string  `json:"owners,omitempty"`
	Addrs  []string  `json:"addrs,omitempty"`

	// Members is how many of the nodes are members of the set at first, where members change; 0: all of
	// them, all the time.
	Members int `json:"members,omitempty"`

	// Separator separates the parts of names that are paths; "": names are no paths.
	Separator string `json:"separator,omitempty"`

	// Lag is by how much a client that is not held up may notice something late, because of the scheduler.
	// Virtual time has hardly any.
	Lag time.Duration `json:"lag"`

	// Look is how much later than Lag a client whose machine was suspended in the meantime may
	// notice something: its timers go on with what was left of their time.
	Look time.Duration `json:"look,omitempty"`

	// Overlap is how close together two locks may be acquired without an order between them, because both were
	// being acquired at once, and nodes may drop one for the other.
	Overlap time.Duration `json:"overlap,omitempty"`

	// Bound is how long a client may wait for a lock once all faults are over.
	Bound time.Duration `json:"bound"`

	// Settle is how long a client must have waited to come before all that ask then. Idle is how
	// long a lock may be free while a client waits. A node that is slower by Slight, or stops for
	// so long, still counts as well; a worse fault may have effects for another Grace. TTL is how
	// long a node keeps a lock that is not released. Without Settle the order is not checked, and
	// without Idle idle locks are not.
	Settle time.Duration `json:"settle,omitempty"`
	Idle   time.Duration `json:"idle,omitempty"`
	Slight time.Duration `json:"slight,omitempty"`
	Grace  time.Duration `json:"grace,omitempty"`
	TTL    time.Duration `json:"ttl,omitempty"`

	// MostKeys and MostBytes bound what may be on a node at the end of the run, and MostRequests
	// bounds the requests that a Locker may keep for a node at any time. 0: no bound.
	MostKeys     int `json:"most_keys,omitempty"`
	MostBytes    int `json:"most_bytes,omitempty"`
	MostRequests int `json:"most_requests,omitempty"`

	// Found says that no node loses data, and that a client that gets a lock looks for it on all nodes.
	Found bool `json:"found,omitempty"`

	// Exact says that time is virtual: a client records each event at its very instant, and no
	// scheduler delays it.
	Exact bool `json:"exact,omitempty"`

	// Settled says that a client that asks once is denied a lock only if another client has it then, or gets it:
	// of several that ask at the same moment, one gets it.
	Settled bool `json:"settled,omitempty"`

	// Forgetful says that nodes lose their data, and that there are clients of other libraries, which count the grants of such
	// nodes: they may get a lock that another client has. All that is promised then is that no client of this library gets a
	// lock that another client had before it asked.
	Forgetful bool `json:"forgetful,omitempty"`

	// Planned says that members are replaced one after another, as an operator should, and that a quorum of them is
	// well all the time: a death or a change excuses the loss of a renewed lock only within a TTL after it was acquired.
	Planned bool `json:"planned,omitempty"`

	// Always says that a quorum of nodes is well all the time, so that Bound holds from the beginning.
	Always bool `json:"always,omitempty"`
}

// Client is what a client is called.
func (h *Head) Client(number int) string {
	if number >= 1 && number <= len(h.Owners) {
		return h.Owners[number-1]
	}
	return fmt.Sprintf("client %d", number)
}

// Node is what a node is called.
func (h *Head) Node(number int) string {
	if number >= 0 && number < len(h.Addrs) {
		return h.Addrs[number]
	}
	return fmt.Sprintf("node %d", number)
}

// A Kind is what an Event is about.
type Kind string

const (
	// Events of clients. Op pairs an end with its beginning; a hold has the Op of its acquisition.
	Ask      Kind = "ask"      // begins to acquire Name, by Verb, for up to Limit; Also, Shared, Slots: a lock of another kind
	Got      Kind = "got"      // has acquired it: Token, Fence, valid to Until
	Denied   Kind = "denied"   // has not acquired it: Error
	Extend   Kind = "extend"   // begins to extend
	Extended Kind = "extended" // valid to Until now
	Failed   Kind = "failed"   // has not extended it: Error
	Renewed  Kind = "renewed"  // finds that it is valid to Until now
	Release  Kind = "release"  // begins to release: from here on it no longer relies on the lock; it was valid to Until
	Released Kind = "released" // Error: that of the release, if any
	Told     Kind = "told"     // the hold's context has ended: Error is the cause; was valid to Until
	Read     Kind = "read"     // has read Value at the resource Name
	Wrote    Kind = "wrote"    // the resource accepted Value in the place of Was
	Refused  Kind = "refused"  // the resource rejected Value in the place of Was
	Found    Kind = "found"    // has looked for its token: Value nodes have it, and Was did not answer
	Changing Kind = "changing" // begins to change the set, as Name says, for up to Limit
	Changed  Kind = "changed"  // has: the set has description Value now, with the members Also; or Error
	Break    Kind = "break"    // an operator begins to break the lock on Name with Token, for up to Limit
	Broke    Kind = "broke"    // a quorum has confirmed it: until Until its holder may believe in it; or Error
	Crashed  Kind = "crashed"  // the client is gone, with all that it held
	Held     Kind = "held up"  // the client is stopped until Until; Why says "suspended" if its machine is, timers and all

	// Events of the nodes, and of the run.
	Struck   Kind = "struck"   // Fault begins
	Healed   Kind = "healed"   // Fault is over
	Calm     Kind = "calm"     // all faults are over
	Left     Kind = "left"     // Error: something is left that should not be
	Stalled  Kind = "stalled"  // until Until the computer ran neither the server of node Value nor a bystander
	Lost     Kind = "lost"     // until Until most members of a set that was changed keep no description of it; then an operator restores it
	Measured Kind = "measured" // Error: what the kernel, or a server, reports about a delay
	Weighed  Kind = "weighed"  // Weight: the memory in use on a node, or, with a Client, in its lane
)

// An Event is one line of a history. Times count from the start of the run, by
// a clock that no fault touches.
type Event struct {
	At     time.Duration `json:"at"`
	Kind   Kind          `json:"kind"`
	Client int           `json:"client,omitempty"` // from 1; 0: no client
	Op     int           `json:"op,omitempty"`     // from 1, for each client
	Name   string        `json:"name,omitempty"`
	Also   string        `json:"also,omitempty"`   // other names of the lock, with a space between them
	Shared bool          `json:"shared,omitempty"` // the lock is shared
	Slots  int           `json:"slots,omitempty"`  // the lock is one of this many slots
	Verb   string        `json:"verb,omitempty"`   // "try", "acquire", "do", "plain"; of an Extend: "hand on", it is detached and attached
	Limit  time.Duration `json:"limit,omitempty"`
	Token  string        `json:"token,omitempty"`
	Fence  uint64        `json:"fence,omitempty"`
	Until  time.Duration `json:"until,omitempty"`
	Value  int           `json:"value,omitempty"`
	Was    int           `json:"was,omitempty"`
	Why    string        `json:"why,omitempty"` // a word for Error: "held", "no quorum", "lost", "max hold", "cancelled", "closed", "released"
	Error  string        `json:"error,omitempty"`
	Fault  *Fault        `json:"fault,omitempty"`
	Weight *Weight       `json:"weight,omitempty"`
}

const (
	// VerbHandOn is the Verb of an extension that is a Detach and an Attach.
	VerbHandOn = "hand on"

	// WhySuspended is the Why of a client that is held up because its machine is suspended.
	WhySuspended = "suspended"
)

// Write writes the history as JSON lines, the Head first.
func (h *History) Write(w io.Writer) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	if err := out.Encode(h.Run); err != nil {
		return err
	}
	for i := range h.Events {
		if err := out.Encode(&h.Events[i]); err != nil {
			return err
		}
	}
	return nil
}

// Decode reads a history that Write has written.
func Decode(r io.Reader) (*History, error) {
	in := json.NewDecoder(bufio.NewReader(r))
	in.DisallowUnknownFields()
	h := new(History)
	if err := in.Decode(&h.Run); err != nil {
		return nil, fmt.Errorf("chaos: history: line 1: %w", err)
	}
	for {
		var e Event
		switch err := in.Decode(&e); {
		case err == io.EOF:
			return h, nil
		case err != nil:
			return nil, fmt.Errorf("chaos: history: line %d: %w", len(h.Events)+2, err)
		}
		h.Events = append(h.Events, e)
	}
}

// Digest is a short hash of the whole history: the digests of two runs can be compared by eye.
func (h *History) Digest() string {
	sum := sha256.New()
	if err := h.Write(sum); err != nil {
		return err.Error() // a value has no JSON
	}
	return fmt.Sprintf("%x", sum.Sum(nil)[:8])
}
