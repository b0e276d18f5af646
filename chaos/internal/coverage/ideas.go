package coverage

const exercised = "exercised"

// ideas are those of the table in docs/design.md. What shows that a schedule has exercised one is in shownBy.
var ideas = &Table{
	Name: "ideas", About: "those of the design",
	Rows: func() (all []string) {
		for _, i := range shows {
			all = append(all, i.idea)
		}
		return all
	}(),
	Columns: []string{exercised},
}

var shownBy = func() map[string]Situation {
	by := make(map[string]Situation)
	for _, i := range shows {
		by[i.idea] = i.by
	}
	return by
}()

// shows has, for each idea, the situation in which the library would be wrong without it.
var shows = []struct {
	idea string
	by   Situation
}{
	{"One token for each attempt, `SET NX PX` at every node, delete only if it is still there", Situation{"nodes", "held", "release"}},
	{"A majority grants", Situation{"answers", "timeout", "acquire"}},
	{"Validity counts from before the first byte, less the drift, by the later of two clocks", Situation{"faults", "suspend", "acquire"}},
	{"One queue for each node, in order, which leaves in batches", Situation{"nodes", "in a batch", "acquire"}},
	{"Writes leave while replies to earlier ones are owed", Situation{"nodes", "before the next message", "release"}},
	{"A node that owes an answer is not waited for", Situation{"lanes", "silent", "silent"}},
	{"A release is owed until the node confirms it", Situation{"kinds", "released: no quorum", "exclusive"}},
	{"An acquire carries a deadline in the node's time", Situation{"answers", "late", "acquire, later"}},
	{"The marker: each grant proves that the node still has what it granted", Situation{"nodes", "another marker", "acquire"}},
	{"A process that does not know the script is another one", Situation{"nodes", "no scripts", "acquire"}},
	{"Quarantine: after a loss a node has no vote until all that it forgot is over", Situation{"answers", "quarantined", "acquire"}},
	{"A node whose clock steps loses its vote with the client that notices", Situation{"votes", "votes", "clock forward"}},
	{"A clock far from the middle of all has no vote", Situation{"votes", "votes", "clock apart"}},
	{"One longest TTL for the set", Situation{"kinds", "denied: refused", "exclusive"}},
	{"The description: members, quorum, separator, longest TTL, by epoch, with its past", Situation{"sets", "given", "described"}},
	{"A client believes a majority of the members it knows, step by step", Situation{"sets", "changed", "several changes"}},
	{"A vote is one by a description", Situation{"nodes", "later description", "acquire"}},
	{"The members choose the next description by ballots", Situation{"nodes", "earlier description", "choose"}},
	{"One node comes or goes, after the locks of the description before are over", Situation{"nodes", "well", "merge"}},
	{"A member that lost the description is told by a client that is sure which is the last; where most have lost it after a change, an operator decides", Situation{"nodes", "no description", "join"}},
	{"A node with another's data has no vote", Situation{"nodes", "another's data", "acquire"}},
	{"The fence: one number, stored at a quorum, above all before it", Situation{"answers", "granted", "raise"}},
	{"4,096 counters for all names", Situation{"kinds", "got", "several names"}},
	{"A number of the future is no vote, until a majority has one", Situation{"votes", "no vote: fence ahead", "votes"}},
	{"Plain commands first, where nobody waits", Situation{"answers", "void", "acquire"}},
	{"Commands that compare, where a server has them", Situation{"nodes", "held", "native release"}},
	{"An extension moves the end when a quorum confirms it, also late", Situation{"answers", "granted", "extend, later"}},
	{"A node that lost the lock is filled up, and counts two extensions later", Situation{"answers", "refilled", "extend"}},
	{"A lock is renewed at a third of its TTL, all by one goroutine", Situation{"locks", "failed again", "extended"}},
	{"A handle goes to another process", Situation{"kinds", "handed on", "exclusive"}},
	{"A queue at each node, by ticket, with a lease; a release calls the first", Situation{"nodes", "queue", "release"}},
	{"Of those that try at once, the first in the queues goes on", Situation{"nodes", "queue", "yield"}},
	{"Callers of a process for one name stand in one line, and a hundred waiters are looked at", Situation{"waiters", "behind others of its process", "got"}},
	{"Modes of keys, as in databases: shared, slots, intention", Situation{"kinds", "denied: held", "in a folder, shared"}},
	{"A short acquire and release for one key that is held exclusively, in front of the general ones", Situation{"answers", "held", "acquire"}},
	{"Break has a quorum note that a token is broken: it is not extended there", Situation{"nodes", "token broken", "extend"}},
}
