// Package scenario has the scenarios, and makes plans of them: which faults come when, which
// clients there are, what they ask for, and what the judge may expect. A seed gives the same
// plan every time.
package scenario

import (
	"time"

	"github.com/quorumlock/redlock/chaos/history"
)

// Verbs are how clients ask, each as often as it is named.
func (s *Scenario) Verbs() []string {
	if s.Once {
		return []string{"try"}
	}
	if s.Queue {
		return []string{"acquire", "acquire", "acquire", "acquire", "acquire", "acquire", "try", "do"}
	}
	return []string{"try", "acquire", "acquire", "do"}
}

// A Scenario is a mixture of faults, and the clients that live with it. It is a
// distribution: a seed makes a [Plan] of it, the same one every time.
type Scenario struct {
	Name  string
	About string // one sentence, for people

	Nodes   []int           // how many: one of these
	Clients [2]int          // how many: from and to
	TTL     []time.Duration // of the locks: one of these
	RTT     []time.Duration // of the network: one of these, where time is virtual
	Quorum  func(nodes int) int

	Troubles []history.FaultKind // what goes wrong: each as often as it is named
	Rate     float64             // how often, on average, in a TTL
	Limit    time.Duration       // for how long at the most; 0: one and a half TTLs
	Weak     int                 // only ever at so many nodes, the same ones; 0: at any
	Minority bool                // only ever at the same minority of nodes: the others are well
	Harmless bool                // no client need notice: a quorum is well all the time, wherever it happens
	Slight   bool                // and is over so soon that it does not count
	Fast     bool                // the nodes' clocks run fast, by nearly as much as the drift allows
	Wrong    bool                // the clients' clocks show anything
	Poison   bool                // clocks that are set are a minority's, and are set right again
	Apart    bool                // the clients do not compare the nodes' clocks with each other
	Forgets  bool                // nodes lose what they have been told, so that a quarantine is needed
	Default  bool                // and not a shorter one than the library has by itself
	Settings bool                // every other client has shorter locks, and takes them for the longest there are

	Spread  int               // over how many names the clients spread; 0: one or two
	Kinds   bool              // of all kinds: shared, of several names, slots, paths
	Plain   bool              // the last client is no redlock
	Write   bool              // holders write to a resource
	Unended bool              // holders may forget to release
	Days    int               // there are up to so many times at which clients work, Span long, and a day to sixty between two; 0: they work all the time
	Fresh   bool              // some clients make a new Locker for each lock
	Away    bool              // one of the faults begins soon, and ends late
	Before  history.FaultKind // and another node has had this before, and is well again
	Names   bool              // each lock is on names that were not locked before
	Weigh   bool              // nodes and clients remember little
	Find    bool              // a client that gets a lock looks for it on the nodes, which never forget
	Once    bool              // a client asks once, and opens another Locker before it asks again
	Hands   bool              // locks are detached and attached again, as they are between processes
	Queue   bool              // clients wait for as long as it takes, and hold briefly
	Brief   bool              // they hold briefly, and ask again soon
	Long    bool              // its TTLs are long enough for what is left to be seen, whatever time they take
	Workers int               // how many goroutines share a client's Locker: up to
	Span    float64           // for how many TTLs they work
	Weight  int               // what one schedule costs, in those of other scenarios; 0: 1

	// Fails are the rules that are broken here, and Because says why nothing is
	// done about it. A run that keeps them all is a failure then.
	Fails   []string
	Because string

	Only []string // arenas; nil: all
}
