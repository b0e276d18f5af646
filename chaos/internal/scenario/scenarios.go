package scenario

import (
	"slices"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
)

// The values that most scenarios are drawn from. A value that is listed several times is drawn more
// often. A round trip of a millisecond or more makes a lane use several connections.
var (
	ttls  = []time.Duration{50 * ms, 200 * ms, 200 * ms, 500 * ms, time.Second, time.Second, 5 * time.Second}
	rtts  = []time.Duration{200 * us, 400 * us, 700 * us, 700 * us, 3 * ms}
	some  = [2]int{2, 3}
	sizes = []int{3, 3, 3, 4, 5, 5, 7}
)

const (
	us = time.Microsecond
	ms = time.Millisecond
)

// Groups of kinds of fault. A lock survives all of these, at any number of nodes at once: while
// they last perhaps no client gets the lock, but never two do.
var (
	network  = []history.FaultKind{history.Cut, history.CutRequests, history.CutReplies, history.Part, history.Reset, history.LoseReplies, history.TearReplies, history.Repeat}
	refusals = []history.FaultKind{history.Full, history.ReadOnly, history.Loading, history.Locked, history.Crowded, history.Busy, history.FlushScripts}
	survived = slices.Concat([]history.FaultKind{history.Kill, history.Kill, history.Hang, history.Slow, history.Jitter, history.Foreign}, network, refusals)
)

// All lists all scenarios. A new one needs an entry here, and nothing else.
var All = []*Scenario{
	{
		Name: "calm", About: "nothing goes wrong: locks that change hands, renewals, timeouts, cancellations in every mixture",
		Nodes: sizes, Clients: [2]int{1, 4}, TTL: ttls, RTT: rtts, Span: 1.5, Write: true, Unended: true, Workers: 3, Fast: true,
	},
	{
		Name: "crashing nodes", About: "any number of nodes die and come back with their data",
		Nodes: sizes, Clients: some, TTL: ttls, RTT: rtts, Span: 1.5, Write: true, Workers: 2, Fast: true,
		Troubles: []history.FaultKind{history.Kill}, Rate: 4,
	},
	{
		Name: "hanging nodes", About: "any number of nodes stop for a while, and then carry out all requests",
		Nodes: sizes, Clients: some, TTL: ttls, RTT: rtts, Span: 1.5, Write: true, Fast: true,
		Troubles: []history.FaultKind{history.Hang, history.Hang, history.Slow}, Rate: 4,
	},
	{
		Name: "slow links", About: "messages take long, each by another time, and overtake those of other connections",
		Nodes: sizes, Clients: some, TTL: ttls, RTT: append([]time.Duration{20 * ms}, rtts...), Span: 1.5, Write: true, Workers: 3, Fast: true,
		Troubles: []history.FaultKind{history.Slow, history.Jitter, history.Jitter}, Rate: 4,
	},
	{
		Name: "partitions", About: "links are cut both ways or one way, replies are lost or torn, requests carried out twice",
		Nodes: sizes, Clients: some, TTL: ttls, RTT: rtts, Span: 1.5, Write: true, Workers: 2, Fast: true,
		Troubles: network, Rate: 5,
	},
	{
		Name: "refusals", About: "nodes are full, read-only, loading, locked, crowded, busy, or drop their scripts",
		Nodes: sizes, Clients: some, TTL: ttls, RTT: rtts, Span: 1.5, Write: true, Workers: 2, Fast: true,
		Troubles: refusals, Rate: 5,
	},
	{
		Name: "foreign keys", About: "keys of another type are where the locks should be",
		Nodes: sizes, Clients: some, TTL: ttls, RTT: rtts, Span: 1.5, Write: true,
		Troubles: []history.FaultKind{history.Foreign, history.Foreign, history.Kill}, Rate: 3,
	},
	{
		Name: "clients", About: "clients are stopped for longer than their lock lives, or die while they hold it or wait for it",
		Nodes: sizes, Clients: some, TTL: ttls, RTT: rtts, Span: 1.5, Unended: true, Workers: 2, Fast: true,
		Troubles: []history.FaultKind{history.Pause, history.Pause, history.Crash, history.Skew}, Rate: 4,
	},
	{
		Name: "handed on", About: "locks go from one process to another, while nodes are slow, hang and die",
		Nodes: sizes, Clients: some, TTL: ttls, RTT: rtts, Span: 2, Write: true, Workers: 2, Fast: true, Spread: 1, Hands: true,
		Troubles: []history.FaultKind{history.Slow, history.Slow, history.Jitter, history.Hang, history.Kill, history.Pause, history.Part, history.LoseReplies}, Rate: 8,
	},
	{
		Name: "sluggish clients", About: "clients are stopped again and again for a moment, also in the middle of what they do",
		Nodes: sizes, Clients: some, TTL: []time.Duration{50 * ms, 50 * ms, 100 * ms}, RTT: []time.Duration{3 * ms, 20 * ms}, Span: 4, Fast: true, Spread: 1,
		Troubles: []history.FaultKind{history.Pause}, Rate: 6, Limit: 120 * ms,
	},
	{
		Name: "everything", About: "every fault that a lock survives, anywhere, at any time",
		Nodes: sizes, Clients: some, TTL: ttls, RTT: rtts, Span: 1.5, Unended: true, Workers: 2, Fast: true,
		Troubles: append([]history.FaultKind{history.Pause, history.Pause, history.Crash, history.Crash, history.Skew}, survived...), Rate: 6,
	},
	{
		Name: "minority", About: "any fault, but only at a minority of nodes: every client is served all the time",
		Nodes: sizes, Clients: [2]int{1, 3}, TTL: ttls, RTT: rtts, Span: 1.5, Write: true, Fast: true,
		Troubles: survived, Rate: 6, Minority: true,
	},
	{
		Name: "alone", About: "one client without rivals: it gets what it asks for, whatever happens to a minority of nodes",
		Nodes: sizes, Clients: [2]int{1, 1}, TTL: ttls, RTT: rtts, Span: 3, Write: true,
		Troubles: survived, Rate: 6, Minority: true,
	},
	{
		Name: "repeats", About: "nodes carry requests out twice and drop their scripts, and no client notices",
		Nodes: sizes, Clients: [2]int{1, 2}, TTL: ttls, RTT: rtts, Span: 1.5, Write: true, Fast: true,
		Troubles: []history.FaultKind{history.Repeat, history.Repeat, history.FlushScripts}, Rate: 24, Harmless: true,
	},
	{
		Name: "crowd", About: "up to 64 clients want the same few names while nodes die",
		Nodes: []int{3, 5}, Clients: [2]int{16, 64}, TTL: []time.Duration{50 * ms, 200 * ms}, RTT: rtts[:4], Span: 1, Write: true, Fast: true,
		Troubles: []history.FaultKind{history.Kill, history.LoseReplies}, Rate: 3, Spread: 4, Weight: 20,
	},
	{
		Name: "waiting", About: "many clients wait for one or two locks that are held briefly, and nodes and clients stop for a moment",
		Nodes: sizes, Clients: [2]int{3, 8}, TTL: []time.Duration{5 * time.Second, 5 * time.Second, 10 * time.Second}, RTT: rtts, Span: 2, Workers: 4, Queue: true, Weight: 6,
		Troubles: []history.FaultKind{history.Slow, history.Jitter, history.Hang, history.Pause}, Rate: 6, Harmless: true, Slight: true,
	},
	{
		Name: "calls", About: "many clients wait for locks of all kinds, and nothing goes wrong: each lock that is released goes to the next waiter long before that would ask by itself",
		Nodes: sizes, Clients: [2]int{3, 8}, TTL: []time.Duration{10 * time.Second}, RTT: rtts, Span: 1, Workers: 4, Queue: true, Kinds: true, Prompt: true, Weight: 6, Only: []string{"model", "miniredis"},
	},
	{
		Name: "deaf waiters", About: "no waiter is called: subscriptions break, messages get lost, and clients that are first in a queue die, like those that hold the lock",
		Nodes: sizes, Clients: [2]int{3, 6}, TTL: []time.Duration{time.Second, 2 * time.Second, 5 * time.Second}, RTT: rtts, Span: 4, Workers: 2, Queue: true, Unended: true, Weight: 4,
		Troubles: []history.FaultKind{history.Mute, history.Mute, history.Mute, history.Deafen, history.Deafen, history.Crash, history.Crash, history.Kill}, Rate: 3,
	},
	{
		Name: "called waiters", About: "each release calls the next waiter, while every fault happens that a lock survives, also to the calls",
		Nodes: sizes, Clients: [2]int{3, 6}, TTL: []time.Duration{300 * ms, 500 * ms, time.Second, 5 * time.Second}, RTT: append([]time.Duration{20 * ms, 20 * ms}, rtts...), Span: 3, Write: true, Workers: 2, Fast: true, Spread: 1, Weight: 4,
		Troubles: append([]history.FaultKind{history.Pause, history.Pause, history.Pause, history.Jitter, history.Jitter, history.Jitter, history.Slow, history.Slow, history.Mute, history.Deafen, history.Deafen, history.Repeat, history.Repeat}, survived...), Rate: 6,
	},
	{
		Name: "kinds", About: "locks are shared, of several names, of paths and of slots, and conflict with each other; every fault happens that a lock survives",
		Nodes: sizes, Clients: [2]int{2, 4}, TTL: ttls, RTT: rtts, Span: 2, Write: true, Unended: true, Workers: 2, Fast: true, Kinds: true, Weight: 3,
		Troubles: append([]history.FaultKind{history.Pause, history.Pause, history.Crash}, survived...), Rate: 4,
	},
	{
		Name: "kinds waiting", About: "many clients wait for conflicting locks of all kinds, and nodes and clients stop for a moment",
		Nodes: sizes, Clients: [2]int{3, 8}, TTL: []time.Duration{5 * time.Second, 5 * time.Second, 10 * time.Second}, RTT: rtts, Span: 2, Workers: 4, Queue: true, Kinds: true, Weight: 8,
		Troubles: []history.FaultKind{history.Slow, history.Jitter, history.Hang, history.Pause}, Rate: 6, Harmless: true, Slight: true,
	},
	{
		Name: "long", About: "locks of minutes, where a key that is left behind blocks others for minutes",
		Nodes: sizes, Clients: some, TTL: []time.Duration{time.Minute, 5 * time.Minute}, RTT: rtts, Span: 0.25, Write: true,
		Troubles: survived, Rate: 30, Spread: 3, Weight: 6,
	},
	{
		Name: "neighbours", About: "a client of another library locks the same names",
		Nodes: sizes, Clients: some, TTL: ttls, RTT: rtts, Span: 1.5,
		Troubles: []history.FaultKind{history.Kill, history.Hang, history.Slow, history.Cut, history.LoseReplies}, Rate: 3, Plain: true,
	},
	{
		Name: "foreign clients", About: "clients of other libraries, in several dialects, lock the same names, under every fault that a lock survives: all exclude each other",
		Nodes: sizes, Clients: [2]int{4, 6}, Others: [2]int{2, 3}, TTL: ttls, RTT: rtts, Span: 2, Write: true, Unended: true, Workers: 2, Fast: true, Kinds: true, Weight: 3,
		Troubles: append([]history.FaultKind{history.Pause, history.Pause, history.Crash}, survived...), Rate: 4,
	},
	{
		Name: "waiting among foreign clients", About: "the same, and nothing goes wrong: our waiters soon get a lock that is free, in their order",
		Nodes: sizes, Clients: [2]int{4, 8}, Others: [2]int{1, 3}, TTL: []time.Duration{10 * time.Second}, RTT: rtts, Span: 2, Workers: 2, Queue: true, Kinds: true, Prompt: true, Weight: 6, Only: []string{"model", "miniredis"},
	},
	{
		Name: "foreign clients and forgetful nodes", About: "the same, and nodes lose their data: ours exclude each other, and get no lock that a foreign client had before they asked",
		Nodes: sizes, Clients: [2]int{4, 6}, Others: [2]int{2, 3}, TTL: ttls, RTT: rtts, Span: 3, Write: true, Workers: 2, Fast: true, Spread: 1, Forgets: true, Weight: 3,
		Troubles: append([]history.FaultKind{history.Pause, history.Crash, history.KillEmpty, history.KillEmpty, history.KillEmpty, history.Flush, history.Flush, history.Flush, history.Flush}, survived...), Rate: 4,
	},
	{
		Name: "forgetful minority", About: "a quorum larger than a majority survives nodes that lose their data",
		Nodes: []int{5, 7}, Clients: some, TTL: ttls, RTT: rtts, Span: 1.5, Write: true,
		Quorum: func(n int) int { return n - 1 }, Troubles: []history.FaultKind{history.KillEmpty, history.Flush, history.Evict}, Rate: 4, Weak: 2,
	},

	{
		Name: "forgetful nodes", About: "any number of nodes come back without their data, or are emptied",
		Nodes: sizes, Clients: some, TTL: ttls, RTT: rtts, Span: 3, Write: true, Spread: 1, Forgets: true,
		Troubles: []history.FaultKind{history.KillEmpty, history.Flush, history.Kill}, Rate: 4,
	},
	{
		Name: "wrong clocks", About: "the clients' clocks show any day of the year, are set, clients die, and nodes lose their data",
		Nodes: sizes, Clients: some, TTL: []time.Duration{time.Second, time.Second, 5 * time.Second}, RTT: rtts, Span: 10, Write: true, Spread: 1, Forgets: true, Default: true, Wrong: true, Weight: 6,
		Troubles: []history.FaultKind{history.KillEmpty, history.Flush, history.Skew, history.Crash, history.Crash}, Rate: 2, Only: []string{"model"},
	},
	{
		Name: "stepping clocks", About: "any number of nodes' clocks are set forward or back by more than the drift, and no client compares them with each other",
		Nodes: sizes, Clients: some, TTL: ttls, RTT: rtts, Span: 3, Write: true, Forgets: true, Apart: true,
		Troubles: []history.FaultKind{history.Step}, Rate: 4,
	},
	{
		Name: "clocks apart", About: "the clocks of a minority of nodes are set further and further away, and they lose their data: they have no vote, and every client is served",
		Nodes: sizes, Clients: some, TTL: ttls, RTT: rtts, Span: 3, Write: true, Forgets: true, Minority: true,
		Troubles: []history.FaultKind{history.Step, history.Step, history.Step, history.Flush}, Rate: 4,
	},
	{
		Name: "poisoned nodes", About: "the clocks of a minority of nodes are days ahead for a moment, and all nodes lose their data",
		Nodes: []int{3, 5}, Clients: [2]int{3, 5}, TTL: []time.Duration{200 * ms, 500 * ms, time.Second}, RTT: rtts, Span: 12, Write: true, Spread: 1, Forgets: true, Default: true, Poison: true, Weight: 4,
		Troubles: []history.FaultKind{history.Step, history.Step, history.Step, history.Flush, history.Flush}, Rate: 4, Only: []string{"model"},
	},
	{
		Name: "ghosts", About: "nodes hang for so long that connections are given up, and then do what they were asked to",
		Nodes: sizes, Clients: some, TTL: []time.Duration{5 * time.Second, 10 * time.Second}, RTT: rtts, Span: 2, Write: true,
		Troubles: []history.FaultKind{history.Hang, history.Cut, history.CutRequests, history.RepeatLate}, Rate: 4, Limit: 4 * time.Second, Weight: 3,
	},
	{
		Name: "paused writers", About: "clients are stopped between the look at the lock and the write",
		Nodes: []int{3, 5}, Clients: some, TTL: ttls, RTT: rtts, Span: 2, Write: true, Spread: 1,
		Troubles: []history.FaultKind{history.Pause}, Rate: 16,
	},
	{
		Name: "suspended hosts", About: "clients' machines are suspended, timers and all",
		Nodes: []int{3, 5}, Clients: some, TTL: ttls, RTT: rtts, Span: 1.5, Write: true,
		Troubles: []history.FaultKind{history.Suspend}, Rate: 6,
	},
	{
		Name: "settings that disagree", About: "an operator makes the longest TTL of the set shorter and longer, some clients have locks that are longer than the shorter one, and nodes lose their data",
		Nodes: []int{3, 3, 5}, Clients: [2]int{3, 5}, TTL: []time.Duration{2 * time.Second, 5 * time.Second}, RTT: rtts, Span: 4, Write: true, Spread: 1, Forgets: true, Settings: true, Weight: 3,
		Troubles: []history.FaultKind{history.KillEmpty, history.Flush, history.Flush}, Rate: 3, Limit: 500 * ms, Weak: 2, Only: []string{"model", "miniredis"},
	},
	{
		Name: "boot", About: "nodes come up empty and with wrong clocks, which are set right a little later; no client has been there for long",
		Nodes: sizes, Clients: [2]int{2, 4}, TTL: []time.Duration{500 * ms, time.Second, 5 * time.Second}, RTT: rtts, Span: 4, Write: true, Spread: 1, Forgets: true, Once: true, Weight: 6,
		Troubles: []history.FaultKind{history.Boot}, Rate: 3, Only: []string{"model"},
	},

	{
		Name: "calendar", About: "days and months go by between locks, clients come in anew for each, and a minority of nodes has clocks that are off by as much, now and then, or loses its data",
		Nodes: sizes, Clients: [2]int{1, 3}, TTL: []time.Duration{time.Second, 5 * time.Second}, RTT: rtts, Span: 2, Write: true, Spread: 1, Minority: true, Forgets: true, Default: true, Wrong: true, Weight: 8,
		Troubles: []history.FaultKind{history.Clock, history.Clock, history.Clock, history.Flush, history.KillEmpty, history.Kill}, Days: 5, Fresh: true, Only: []string{"model", "miniredis"},
	},
	{
		Name: "calendar of kinds", About: "the same, with conflicting locks of all kinds",
		Nodes: sizes, Clients: [2]int{1, 3}, TTL: []time.Duration{time.Second, 5 * time.Second}, RTT: rtts, Span: 2, Write: true, Kinds: true, Minority: true, Forgets: true, Default: true, Wrong: true, Weight: 8,
		Troubles: []history.FaultKind{history.Clock, history.Clock, history.Clock, history.Flush, history.KillEmpty, history.Kill}, Days: 5, Fresh: true, Only: []string{"model", "miniredis"},
	},
	{
		Name: "a node away", About: "a node is dead, hangs or is cut off for a long time, and many clients hand the lock to each other: what they keep for the node does not grow",
		Nodes: []int{3, 3, 5}, Clients: [2]int{2, 4}, TTL: []time.Duration{time.Second}, RTT: rtts[:4], Span: 40, Workers: 2, Queue: true, Spread: 1, Weight: 20,
		Troubles: []history.FaultKind{history.Kill, history.Hang, history.Cut}, Minority: true, Away: true, Weigh: true, Only: []string{"model", "miniredis"},
	},
	{
		Name: "a node without answers", About: "a node takes connections for a long time, carries out what it is asked to, and answers nothing: what the clients keep for it does not grow",
		Nodes: []int{3}, Clients: [2]int{2, 3}, TTL: []time.Duration{time.Second}, RTT: []time.Duration{20 * ms}, Span: 24, Workers: 2, Spread: 1, Names: true, Weigh: true, Weight: 20,
		Troubles: []history.FaultKind{history.LoseReplies}, Minority: true, Away: true, Only: []string{"model"},
	},
	{
		Name: "a clock that was wrong", About: "the clock of a node is ahead for a moment, and set right; then another node dies for a long time, and the nodes that are left serve every client",
		Nodes: []int{3}, Clients: [2]int{2, 3}, TTL: []time.Duration{500 * ms, time.Second}, RTT: rtts[:4], Span: 60, Write: true, Spread: 1, Forgets: true, Default: true, Weight: 20,
		Troubles: []history.FaultKind{history.Kill, history.Hang, history.Cut}, Minority: true, Away: true, Before: history.Clock, Only: []string{"model"},
	},
	{
		Name: "new names", About: "each lock is on a new name, and the nodes are as empty afterwards as they were before",
		Nodes: sizes, Clients: some, TTL: ttls, RTT: rtts, Span: 8, Workers: 2, Spread: 1, Names: true, Weigh: true, Weight: 3,
		Troubles: []history.FaultKind{history.LoseReplies, history.Reset, history.Hang}, Rate: 1, Only: []string{"model", "miniredis"},
	},
	{
		Name: "standstill", About: "the computer that all servers are on does not run them for a moment, again and again, and in that time no lock can be acquired",
		Nodes: []int{3, 5}, Clients: [2]int{3, 6}, TTL: []time.Duration{200 * ms, 500 * ms, time.Second}, RTT: rtts, Span: 12, Workers: 2, Queue: true, Spread: 1, Weight: 6,
		Troubles: []history.FaultKind{history.Still}, Rate: 1, Limit: 600 * ms, Only: []string{"model"},
	},
	{
		Name: "churn", About: "scripts are flushed again and again, subscriptions and connections break: a client that gets a lock has it on a quorum of nodes, and no key is left without an owner",
		Nodes: sizes, Clients: [2]int{6, 10}, TTL: []time.Duration{5 * time.Second}, Long: true, RTT: rtts, Span: 0.7, Workers: 3, Spread: 2, Find: true, Brief: true, Weight: 20,
		Troubles: []history.FaultKind{history.Churn, history.Churn, history.Churn, history.Churn, history.FlushScripts, history.Deafen, history.Reset}, Rate: 8, Only: []string{"model", "real"},
	},

	{
		Name: "a set that changes", About: "nodes come and go, one at a time, and operators are stopped and die in the middle of it; nodes are well, and every client is served",
		Nodes: []int{3, 3, 4}, Reserve: 2, Clients: [2]int{4, 6}, TTL: []time.Duration{200 * ms, 500 * ms, time.Second, 2 * time.Second}, RTT: rtts, Span: 16, Write: true, Workers: 2, Forgets: true, Harmless: true, Weight: 8,
		Troubles: []history.FaultKind{history.Crash, history.Crash, history.Pause}, Rate: 0.6,
	},
	{
		Name: "members", About: "the same, under every fault that a lock survives; nodes lose their data, but never most members of a changed set",
		Nodes: []int{3, 3, 4}, Reserve: 2, Clients: [2]int{3, 5}, TTL: []time.Duration{200 * ms, 200 * ms, 500 * ms, time.Second}, RTT: rtts, Span: 24, Write: true, Workers: 2, Forgets: true, Apart: true, Weight: 8,
		Troubles: append([]history.FaultKind{history.Pause, history.Pause, history.Pause, history.Crash, history.Crash, history.KillEmpty, history.Flush, history.Flush, history.Step, history.Kill, history.Kill, history.Hang, history.Hang}, survived...), Rate: 2,
	},
	{
		Name: "a set that is restored", About: "the same, and most members of a changed set may lose their data at once: every client refuses it until an operator restores it",
		Nodes: []int{3, 3, 4}, Reserve: 2, Clients: [2]int{3, 5}, TTL: []time.Duration{200 * ms, 200 * ms, 500 * ms}, RTT: rtts, Span: 24, Write: true, Workers: 2, Forgets: true, Apart: true, Lost: true, Weight: 8,
		Troubles: []history.FaultKind{history.Pause, history.Pause, history.Pause, history.KillEmpty, history.KillEmpty, history.Flush, history.Flush, history.Flush, history.Flush, history.Kill, history.Hang, history.Remake, history.Remake, history.Remake}, Rate: 2, Only: []string{"model"},
	},

	{
		Name: "rival operators", About: "three operators add and remove nodes at the same moments, are stopped and die; the set moves on so fast that locks outlive it, links are slow, and clients' clocks are set",
		Nodes: []int{3, 4, 4}, Reserve: 2, Clients: [2]int{6, 7}, TTL: []time.Duration{50 * ms, 100 * ms, 200 * ms}, RTT: rtts, Span: 40, Write: true, Spread: 1, Forgets: true, Rivals: true, Keep: true, Weight: 8,
		Troubles: []history.FaultKind{history.Pause, history.Pause, history.Pause, history.Crash, history.Slow, history.Jitter, history.Jitter, history.Skew, history.Kill}, Rate: 0.7, Limit: time.Second,
	},
	{
		Name: "broken by hand", About: "an operator breaks locks of all kinds, and reaches some nodes late or not at all: the holder is told in time, and what it writes behind the next holder is refused",
		Nodes: sizes, Clients: [2]int{3, 5}, TTL: ttls, RTT: append([]time.Duration{20 * ms}, rtts...), Span: 4, Write: true, Kinds: true, Break: true, Fast: true, Weight: 3,
		Troubles: []history.FaultKind{history.Kill, history.Hang, history.Slow, history.Jitter, history.Jitter, history.Cut, history.CutRequests, history.CutReplies, history.Part, history.Reset, history.LoseReplies, history.TearReplies, history.Pause}, Rate: 3,
	},
	{
		Name: "settings", About: "each client has its own TTL, and gives MaxTTL, quorum and separator or leaves them to the set, and nodes lose their data: a lock with too long a TTL is refused, and a client with another quorum or separator",
		Nodes: []int{3, 3, 3, 4, 5}, Clients: [2]int{2, 3}, TTL: []time.Duration{10 * time.Second, 20 * time.Second, time.Minute}, RTT: rtts, Span: 3, Write: true, Spread: 1, Own: true, Forgets: true, Default: true,
		Troubles: []history.FaultKind{history.KillEmpty, history.Flush, history.Flush, history.Flush, history.Kill, history.Hang, history.Part}, Rate: 4, Limit: time.Second, Weak: 2,
	},
	{
		Name: "sets made anew", About: "the same, for longer and with short TTLs, and all nodes may lose their data: the next client makes the set anew, with settings of its own",
		Nodes: sizes, Clients: [2]int{2, 5}, TTL: []time.Duration{500 * ms, time.Second, 2 * time.Second}, RTT: rtts, Span: 16, Write: true, Own: true, Forgets: true, Default: true, Weight: 4,
		Troubles: []history.FaultKind{history.KillEmpty, history.Flush, history.Flush, history.Flush, history.Kill, history.Hang, history.Part}, Rate: 1.5,
	},
	{
		Name: "a minority keeps a later description", About: "a minority of nodes keeps a description that nobody has chosen, or another set's or node's, or a damaged or earlier one, and some clients begin anew for each lock: no node decides alone, and every client is served",
		Nodes: sizes, Clients: [2]int{2, 4}, TTL: ttls, RTT: rtts, Span: 6, Write: true, Spread: 1, Forgets: true, Minority: true, Fresh: true, Weight: 3,
		Troubles: []history.FaultKind{history.Mislead, history.Mislead, history.Mislead, history.Restore, history.Reset, history.FlushScripts, history.Kill}, Rate: 4, Only: []string{"model"},
	},
	{
		Name: "a snapshot of an earlier set", About: "operators change the set while one node has a description that nobody has chosen, or one from an old snapshot. The node has no vote until a quarantine is over, and every client is served",
		Nodes: []int{3, 3, 4}, Reserve: 2, Least: 3, Clients: [2]int{4, 6}, TTL: []time.Duration{200 * ms, 500 * ms, time.Second}, RTT: rtts, Span: 24, Write: true, Workers: 2, Forgets: true, Harmless: true, Weak: 1, Weight: 8,
		Troubles: []history.FaultKind{history.Mislead, history.Restore, history.Restore, history.Restore, history.Kill, history.Crash, history.Pause}, Rate: 1, Only: []string{"model"},
	},
	{
		Name: "rooms of lanes", About: "an operator replaces members more than ten times, some of them dead, while clients hold renewed locks all the time and others wait for them: none of these locks is lost",
		Nodes: []int{3, 3, 4, 5}, Reserve: 5, Clients: [2]int{3, 4}, TTL: []time.Duration{200 * ms, 200 * ms, 500 * ms}, RTT: rtts, Span: 9, Write: true, Workers: 2, Spread: 2, Forgets: true, Harmless: true, Planned: true, Weight: 40,
		Troubles: []history.FaultKind{history.Kill, history.KillEmpty}, Only: []string{"model"},
	},
	{
		Name: "sets that move", About: "an operator makes the set larger and smaller and moves it to other nodes, clients sleep through changes, a node has another's data, and one node, most or all lose theirs: the set heals, is restored or made anew",
		Nodes: []int{3, 3, 4}, Reserve: 4, Least: 3, Clients: [2]int{4, 5}, TTL: []time.Duration{200 * ms, 200 * ms, 500 * ms}, RTT: rtts, Span: 8, Write: true, Keep: true, Spread: 1, Forgets: true, Moves: true, Weight: 40,
		Troubles: []history.FaultKind{history.Kill, history.Hang, history.Slow, history.Jitter, history.Cut, history.Reset}, Rate: 0.2, Only: []string{"model"},
	},
	{
		Name: "tries at once", About: "clients ask once for a free lock at the same moment, each near to another node: one of them gets it, and the others are denied it, within a NodeTimeout",
		Nodes: sizes, Clients: [2]int{2, 8}, TTL: []time.Duration{5 * time.Second, 10 * time.Second}, RTT: rtts, Span: 24, Spread: 1, Tries: true, Weight: 2, Only: []string{"model"},
	},
	{
		Name: "slow hooks", About: "the clients' hooks sleep for longer than their locks live, or write to a pipe that nobody reads: renewals, releases and waiters do not wait for them",
		Nodes: sizes, Clients: [2]int{1, 4}, TTL: ttls, RTT: rtts, Span: 4, Write: true, Unended: true, Workers: 3, Fast: true, Slow: true, Weight: 2, Only: []string{"model", "miniredis"},
	},

	// Situations that the scenarios above seldom make.
	{
		Name: "newcomers", About: "programs start and wait while all servers stand still for a moment: they are served in order",
		Nodes: []int{3, 5}, Clients: [2]int{4, 6}, TTL: []time.Duration{200 * ms, 500 * ms, time.Second}, RTT: rtts, Span: 12, Workers: 3, Queue: true, Spread: 1, Weight: 6,
		Troubles: []history.FaultKind{history.Still, history.Crash, history.Crash}, Rate: 3, Limit: 600 * ms, Only: []string{"model"},
	},
	{
		Name: "readers below a folder", About: "clients share locks below a folder, and others try once for it meanwhile: no reader waits for those",
		Nodes: []int{4, 5, 7}, Clients: [2]int{5, 8}, TTL: []time.Duration{10 * time.Second}, RTT: rtts, Span: 1, Workers: 2, Queue: true, Kinds: true, Folder: true, Prompt: true, Weight: 6, Only: []string{"model"},
	},
	{
		Name: "broken while extended", About: "holders extend their locks again and again while an operator breaks them",
		Nodes: sizes, Clients: [2]int{3, 4}, TTL: []time.Duration{200 * ms, 500 * ms, time.Second}, RTT: append([]time.Duration{20 * ms}, rtts...), Span: 4, Spread: 1, Break: true, Extend: true, Weight: 3,
		Troubles: []history.FaultKind{history.Slow, history.Jitter, history.Cut, history.CutRequests, history.LoseReplies, history.Hang}, Rate: 3, Only: []string{"model"},
	},
	{
		Name: "tries on new nodes", About: "clients ask once on new nodes, which are as far away as a NodeTimeout allows: one gets the lock",
		Nodes: sizes, Clients: [2]int{4, 8}, TTL: []time.Duration{5 * time.Second}, RTT: rtts, Span: 1.5, Spread: 1, Tries: true, Distant: true, Only: []string{"model"},
	},
	{
		Name: "started before the set", About: "a program starts before its set is made, while a node is dead, and first locks when other members have been replaced",
		Nodes: []int{4}, Reserve: 4, Least: 4, Clients: [2]int{2, 2}, TTL: []time.Duration{5 * time.Second}, RTT: rtts, Span: 24, Late: 0.8, Spread: 1, Tries: true, Distant: true, Forgets: true, Harmless: true, Weight: 4,
		Troubles: []history.FaultKind{history.Kill}, Away: true, Only: []string{"model"},
	},
	{
		Name: "late over old connections", About: "requests over a node's connections stall until clients have given these up, and are carried out long afterwards",
		Nodes: []int{3}, Clients: [2]int{2, 3}, TTL: []time.Duration{10 * time.Second}, RTT: rtts, Span: 4, Write: true, Spread: 2, Queue: true, Forgets: true, Stalls: true, Weight: 4,
		Troubles: []history.FaultKind{history.CutRequests, history.Kill, history.Flush}, Only: []string{"model"},
	},
	{
		Name: "clocks set a little", About: "any nodes' clocks are set by more than the drift, and stay near to each other",
		Nodes: sizes, Clients: some, TTL: []time.Duration{50 * ms, 50 * ms, 200 * ms}, RTT: rtts, Span: 3, Write: true, Spread: 1, Forgets: true, Near: true,
		Troubles: []history.FaultKind{history.Step}, Rate: 4, Only: []string{"model"},
	},

	{
		Name: "numbers of the future", About: "clocks of nodes are ahead for a day, and then set right: fences go on from that day's numbers if most nodes have them; if few have, these have no vote",
		Nodes: sizes, Clients: some, TTL: []time.Duration{200 * ms, 500 * ms, time.Second}, RTT: rtts, Span: 2, Write: true, Spread: 1, Forgets: true, Default: true, Wrong: true, Weight: 3,
		Troubles: []history.FaultKind{history.Clock, history.Kill, history.Cut}, Days: 2, Ahead: true, Fresh: true, Only: []string{"model"},
	},

	{
		Name: "idle cuts", About: "connections that have been unused for a while are cut, some without a word: the first call afterwards succeeds like any other",
		Nodes: sizes, Clients: [2]int{1, 1}, TTL: []time.Duration{200 * ms, 500 * ms, time.Second}, RTT: rtts[:4], Span: 2, Write: true, Harmless: true, Idle: true,
		Troubles: []history.FaultKind{history.Reset, history.Forget}, Only: []string{"miniredis"},
	},
	{
		Name: "big foreign values", About: "a minority of nodes has other programs' values where locks and queues should be, some of megabytes: every client is served, the values stay, and no client is sent a whole one",
		Nodes: sizes, Clients: some, TTL: ttls, RTT: rtts, Span: 3, Write: true, Kinds: true, Minority: true, Weight: 3,
		Troubles: []history.FaultKind{history.Values}, Rate: 4, Only: []string{"miniredis"},
	},

	// Faults of disks and clocks of real servers.
	{
		Name: "damaged files", About: "append-only files of a minority of nodes are cut, have bits flipped, are old or those of another node, or disks are full: every client is served",
		Nodes: sizes, Clients: [2]int{3, 5}, TTL: []time.Duration{200 * ms, 500 * ms, time.Second}, RTT: rtts, Span: 8, Write: true, Spread: 1, Minority: true, Forgets: true, Fresh: true, Weight: 4,
		Troubles: []history.FaultKind{history.CutFile, history.FlipFile, history.OldFile, history.OtherFile, history.DiskFull, history.Kill}, Rate: 2, Only: []string{"real"},
	},
	{
		Name: "power cuts", About: "all servers die at once and lose up to a second, as with `appendfsync everysec`; files of any number of nodes are cut or old, or disks are full",
		Nodes: sizes, Clients: [2]int{3, 5}, TTL: []time.Duration{200 * ms, 500 * ms, time.Second}, RTT: rtts, Span: 8, Write: true, Spread: 1, Forgets: true, Fresh: true, Weight: 4,
		Troubles: []history.FaultKind{history.PowerCut, history.PowerCut, history.CutFile, history.OldFile, history.DiskFull, history.DiskFull}, Rate: 1.5, Limit: 500 * ms, Only: []string{"real"},
	},
	{
		Name: "an old file of a set that changes", About: "operators change the set while one node comes up with an old file or that of another node",
		Nodes: []int{3, 3, 4}, Reserve: 2, Least: 3, Clients: [2]int{4, 6}, TTL: []time.Duration{200 * ms, 500 * ms}, RTT: rtts, Span: 16, Write: true, Workers: 2, Forgets: true, Harmless: true, Weak: 1, Weight: 8,
		Troubles: []history.FaultKind{history.OldFile, history.OldFile, history.OtherFile, history.Crash}, Rate: 1, Only: []string{"real"},
	},
	{
		Name: "lost files of a set that changes", About: "operators change the set, and most nodes lose their files at once: every client refuses the set until an operator restores it",
		Nodes: []int{3, 3, 4}, Reserve: 2, Least: 3, Clients: [2]int{3, 5}, TTL: []time.Duration{200 * ms, 500 * ms}, RTT: rtts, Span: 24, Write: true, Workers: 2, Forgets: true, Apart: true, Lost: true, Most: true, Weight: 8,
		Troubles: []history.FaultKind{history.KillEmpty, history.KillEmpty, history.Remake, history.Remake, history.Remake, history.Pause, history.Pause, history.Pause, history.Kill, history.Hang}, Rate: 1, Only: []string{"real"},
	},
	{
		Name: "slewed clocks", About: "nodes' clocks gain or lose up to 1 %, for a while, and nodes die",
		Nodes: sizes, Clients: [2]int{3, 5}, TTL: []time.Duration{200 * ms, 500 * ms, time.Second}, RTT: rtts, Span: 4, Write: true, Spread: 1, Forgets: true, Fresh: true, Weight: 2,
		Troubles: []history.FaultKind{history.Slew, history.Slew, history.Slew, history.Slew, history.Kill}, Rate: 6, Only: []string{"real"},
	},

	// Pairs of a fault and a step, or of an event and a kind of lock, that no scenario above makes (package coverage).
	{
		Name: "kinds of clients", About: "clients with locks of all kinds are stopped and suspended, die, and have their clocks set",
		Nodes: []int{3, 4, 5}, Clients: [2]int{2, 4}, TTL: ttls, RTT: rtts, Span: 2, Write: true, Unended: true, Workers: 2, Kinds: true, Weight: 3,
		Troubles: []history.FaultKind{history.Pause, history.Suspend, history.Suspend, history.Crash, history.Skew}, Rate: 5,
	},
	{
		Name: "kinds handed on", About: "locks of all kinds are handed on under every fault that a lock survives; nodes lose data, and clocks are set",
		Nodes: sizes, Clients: [2]int{2, 4}, TTL: ttls, RTT: rtts, Span: 3, Write: true, Workers: 2, Kinds: true, Hands: true, Forgets: true, Apart: true, Weight: 4,
		Troubles: append([]history.FaultKind{history.Step, history.Churn, history.Pause, history.Suspend, history.Crash, history.Skew, history.Mute, history.Deafen, history.KillEmpty, history.Flush}, survived...), Rate: 5, Only: []string{"model"},
	},
	{
		Name: "extended and handed on in trouble", About: "locks of all kinds are extended and handed on again and again over slow links, under the same faults",
		Nodes: []int{3, 4, 5}, Clients: [2]int{2, 4}, TTL: []time.Duration{500 * ms, time.Second, 2 * time.Second}, RTT: []time.Duration{3 * ms, 20 * ms}, Span: 4, Write: true, Workers: 2, Kinds: true, Extend: true, Hands: true, Forgets: true, Apart: true, Weight: 3,
		Troubles: append([]history.FaultKind{history.Step, history.Churn, history.Pause, history.Suspend, history.Crash, history.Skew, history.Mute, history.Deafen, history.KillEmpty, history.Flush}, survived...), Rate: 5, Only: []string{"model"},
	},
	{
		Name: "broken in trouble", About: "an operator breaks locks of all kinds under the same faults, and dies",
		Nodes: sizes, Clients: [2]int{3, 5}, TTL: ttls, RTT: rtts, Span: 4, Write: true, Kinds: true, Break: true, Forgets: true, Apart: true, Weight: 4,
		Troubles: append([]history.FaultKind{history.Step, history.Churn, history.Pause, history.Suspend, history.Crash, history.Skew, history.Mute, history.Deafen, history.KillEmpty, history.Flush, history.Repeat}, survived...), Rate: 4, Only: []string{"model"},
	},
	{
		Name: "max-ttl in trouble", About: "an operator changes the longest TTL of the set under the same faults",
		Nodes: []int{3, 3, 4, 5}, Clients: [2]int{3, 5}, TTL: []time.Duration{time.Second, 2 * time.Second, 5 * time.Second}, RTT: rtts, Span: 4, Write: true, Kinds: true, Forgets: true, Settings: true, Weight: 4,
		Troubles: append([]history.FaultKind{history.Pause, history.Suspend, history.Crash, history.Skew, history.Mute, history.Deafen, history.KillEmpty, history.Flush}, survived...), Rate: 4, Limit: 500 * ms, Only: []string{"model"},
	},
	{
		Name: "kinds in a set that changes", About: "nodes come and go while locks of all kinds are handed on and waited for, calls are lost, and hosts are suspended",
		Nodes: []int{3, 3, 4}, Reserve: 2, Clients: [2]int{3, 5}, TTL: []time.Duration{200 * ms, 500 * ms, time.Second}, RTT: rtts, Span: 12, Write: true, Workers: 2, Kinds: true, Hands: true, Forgets: true, Apart: true, Weight: 8,
		Troubles: []history.FaultKind{history.Suspend, history.Skew, history.Mute, history.Deafen, history.Repeat, history.FlushScripts, history.LoseReplies, history.Crash}, Rate: 1.5, Only: []string{"model"},
	},

	// Faults against which the library cannot defend: these scenarios must fail.
	{
		Name: "vanishing locks", About: "locks vanish from nodes at any moment, requests come late and twice, clocks are wrong: only the fences are right",
		Nodes: sizes, Clients: some, TTL: ttls[1:], RTT: append([]time.Duration{20 * ms}, rtts...), Span: 2, Write: true, Spread: 1, Workers: 2, Wrong: true,
		Troubles: []history.FaultKind{history.Evict, history.Evict, history.Evict, history.RepeatLate, history.Repeat, history.LoseReplies, history.Slow, history.Jitter, history.Hang, history.Pause, history.Skew}, Rate: 16,
		Fails: []string{"exclusion", "continuity", "nothing left", "kept"}, Because: "a node that drops a single key still has its marker: nodes that may evict are rejected when they are joined, and fences protect against the rest",
		Only: []string{"model"},
	},
}
