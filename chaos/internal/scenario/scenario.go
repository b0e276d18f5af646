// Package scenario has the scenarios, and makes plans of them: which faults happen when, which
// clients there are, what they ask for, and what the judge may expect. A seed gives the same plan
// every time.
package scenario

import (
	"slices"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
)

// Verbs are how clients ask, each as often as it is named.
func (s *Scenario) Verbs() []string {
	if s.Once || s.Tries {
		return []string{"try"}
	}
	if s.Folder {
		return []string{"acquire"}
	}
	if s.Queue {
		return []string{"acquire", "acquire", "acquire", "acquire", "acquire", "acquire", "try", "do"}
	}
	return []string{"try", "acquire", "acquire", "do"}
}

// Steps are what clients and operators do that lasts for a while, as package coverage calls it.
func (s *Scenario) Steps() []string {
	steps := append(s.Verbs(), "hold", "release")
	if !s.Tries && !s.Queue && !s.Brief {
		steps = append(steps, "extend")
	}
	if s.Hands {
		steps = append(steps, "hand on")
	}
	if s.Plain || s.Others[1] > 0 {
		steps = append(steps, "plain")
	}
	if s.Break {
		steps = append(steps, "break")
	}
	if s.Settings {
		steps = append(steps, "max-ttl")
	}
	if s.Reserve > 0 {
		steps = append(steps, "add", "remove")
		if !s.Rivals && !s.Planned && s.Late == 0 {
			steps = append(steps, "quorum")
		}
	}
	return steps
}

// Faults are the kinds of faults that a schedule in an arena may have, also those that take the place of others.
func (s *Scenario) Faults(arena Limits) []history.FaultKind {
	kinds := arena.Able(s.Troubles)
	if s.Before != "" {
		kinds = append(kinds, s.Before)
	}
	if s.Lost {
		return append(kinds, history.Remake, history.Crash)
	}
	if slices.Contains(kinds, history.Flush) { // where a node must not lose its data
		kinds = append(kinds, history.Reset)
	}
	if slices.Contains(kinds, history.KillEmpty) {
		kinds = append(kinds, history.Kill)
	}
	return kinds
}

// A Scenario is a mixture of faults, with the clients that work under it. It is a distribution: a
// seed makes a [Plan] of it, the same one every time.
type Scenario struct {
	Name  string
	About string // one sentence, for readers

	Nodes   []int           // how many: one of these
	Clients [2]int          // how many: from and to
	TTL     []time.Duration // of the locks: one of these
	RTT     []time.Duration // of the network: one of these, where time is virtual
	Quorum  func(nodes int) int

	Troubles []history.FaultKind // the kinds of faults: each is drawn as often as it is listed
	Rate     float64             // how often, on average, in a TTL
	Limit    time.Duration       // the longest fault; 0: one and a half TTLs
	Weak     int                 // only at this many nodes, always the same ones; 0: at any
	Minority bool                // only at one minority of nodes, always the same: the others are well
	Harmless bool                // no client need notice: a quorum is well all the time, wherever the faults are
	Slight   bool                // each fault is over so soon that it does not count
	Fast     bool                // the nodes' clocks run fast, by nearly as much as the drift allows
	Wrong    bool                // the clients' clocks show anything
	Poison   bool                // only clocks of a minority are set, and set right again
	Near     bool                // clocks are set, and stay so near to each other that no node loses its vote for good
	Apart    bool                // the clients do not compare the nodes' clocks with each other
	Forgets  bool                // nodes lose their data, so that a quarantine is needed
	Default  bool                // the quarantine is the library's default, and not a shorter one
	Settings bool                // every other client has shorter locks; an operator makes the longest TTL of the set shorter and longer

	Reserve int               // how many more nodes there are, which may become members of the set; operators change it all the time
	Least   int               // operators leave at least this many members, and the quorum is a majority of them; 0: they leave two at least, mostly three, and set any quorum
	Rivals  bool              // there are three operators, and they begin at the same moments
	Planned bool              // an operator replaces the members one after another, many times, and does nothing else; some members are dead by then
	Moves   bool              // an operator moves the set from nodes to nodes, and there are sleepers, copies and outages (drawMoves)
	Lost    bool              // most members of a set that was changed may lose their data: an operator restores the set, now and then and in the end, and then programs are started with its nodes
	Most    bool              // a node that loses its data does so with most other nodes, at once
	Keep    bool              // some holders keep their locks for many TTLs, renewed
	Break   bool              // the first client breaks locks, and takes none but in the end
	Own     bool              // each client has settings of its own, which may disagree with those of the set
	Spread  int               // over how many names the clients spread; 0: one or two
	Kinds   bool              // locks of all kinds: shared, of several names, slots, paths
	Folder  bool              // of these, only locks below a folder, which are shared, and that of the folder, for which clients ask once, in turn (Plan.Beat)
	Extend  bool              // holders extend their locks again and again
	Plain   bool              // the first client is one of another library
	Others  [2]int            // how many of the clients, the first ones, are of other libraries, each with a dialect: from and to
	Write   bool              // holders write to a resource
	Unended bool              // holders may forget to release
	Days    int               // the clients work at up to this many times, each Span long, with one to sixty days in between; 0: they work all the time
	Ahead   bool              // the clocks of some nodes, a minority or more, are ahead on the first day, and right on the next (drawAhead)
	Fresh   bool              // some clients make a new Locker for each lock
	Late    float64           // the part of Span after which the clients begin; operators replace members before
	Idle    bool              // the clients work now and then, and the faults happen in between
	Away    bool              // one of the faults begins soon, and ends late; with Late: at once, and before the clients begin
	Stalls  bool              // requests to a node stall until clients have given up the connections, and are carried out then (drawStalls)
	Before  history.FaultKind // another node has this fault before, and is well again by then
	Names   bool              // each lock is on names that were not locked before
	Weigh   bool              // the memory of nodes and clients is bounded
	Slow    bool              // the clients' hooks sleep for TTLs, or do not return
	Find    bool              // a client that gets a lock looks for it on the nodes, which never forget
	Once    bool              // a client asks once, and opens another Locker before it asks again
	Tries   bool              // the clients ask once, all at the same moment, and each is near to another node
	Distant bool              // of these, all but one are as far away as a NodeTimeout allows
	Hands   bool              // locks are detached and attached again, as between processes
	Queue   bool              // clients wait for as long as it takes, and hold briefly
	Prompt  bool              // every waiter is called when its lock is free, and need not ask by itself
	Brief   bool              // they hold briefly, and ask again soon
	Long    bool              // its TTLs are so long that a key that is left behind shows, however long that takes
	Workers int               // up to how many goroutines share a client's Locker
	Span    float64           // for how many TTLs they work
	Weight  int               // the cost of a schedule, in those of other scenarios; 0: 1

	// Fails lists the rules that are broken here, and Because says why the library cannot prevent
	// that. A run that keeps them all is a failure then.
	Fails   []string
	Because string

	Only []string // arenas; nil: all
}
