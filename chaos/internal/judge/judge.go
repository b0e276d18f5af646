// Package judge finds the promises that were not kept in a history. It knows only the history, and neither the
// library, nor the arena, nor the scenario.
package judge

import (
	"cmp"
	"slices"

	"github.com/quorumlock/redlock/chaos/history"
)

// A Rule must be true of every history. A new one takes a function, a line in the table, and a
// counterpart in the twin with which the tests compare the judge.
type Rule struct {
	Name  string
	Says  string
	check func(*record)
}

// Rules lists all rules, in the order of the documents.
var Rules = []Rule{
	{"exclusion", "No two conflicting locks are valid at the same moment, and no more slots of a name than there are. Excused: a node whose clock was set and set back in the meantime.", exclusion},
	{"tokens", "Every lock has a token, and no other has the same.", tokens},
	{"told", "A holder that keeps a lock until its validity is over is told so in time.", told},
	{"late success", "An operation on a lock succeeds only while the lock is valid.", lateSuccess},
	{"continuity", "No client extends a lock that another has had since.", continuity},
	{"broken", "Once a lock was broken by hand, no extension of it that begins later succeeds, and its holder believes in it for the rest of a TTL at most. From when an operator began to break it, other clients may have it, and a holder that learns of it later is behind them.", broken},
	{"kept", "While nothing has gone wrong, and the set is not changed, a lock that is renewed is not lost. Where members are replaced as planned, one after another, a lock that is renewed is not lost, unless it was new when a member died or was replaced.", kept},
	{"lost updates", "No write undoes another one that came after its read.", lostUpdates},
	{"fences", "Each fence is larger than all earlier ones of conflicting locks, or as large for a reader, and the resource accepts none that is smaller than an earlier one.", fences},
	{"progress", "Where enough nodes are well, a client that waits for a lock gets it within the bound. Of clients that ask once, at the same moment, for a lock that nobody has, one gets it.", progress},
	{"order", "Where nothing goes wrong, a waiter gets the lock before requests that come later and conflict with its own.", inOrder},
	{"idle", "A lock that no client holds does not stay free for long while a client waits and it is that client's turn.", idle},
	{"in time", "An operation with a time limit ends by then.", inTime},
	{"restored", "While most members of a set that was changed have lost their data, no client gets a lock that it asks for, until an operator restores the set.", restored},
	{"on a quorum", "A client that gets a lock has it on a quorum of nodes.", onQuorum},
	{"bounded", "What nodes and clients keep does not grow over time.", bounded},
	{"nothing left", "In the end no key is left on the nodes, and no goroutine at work.", nothingLeft},
	{"well-formed", "The history is possible: each end has a beginning, and time does not go back.", wellFormed},
}

// Judge checks a history by every rule. It is a pure function, and accepts any history, even an impossible one.
func Judge(h *history.History) Verdict {
	r := newRecord(h)
	for _, rule := range Rules {
		r.rule = rule.Name
		rule.check(r)
	}
	v := &r.verdict
	slices.SortFunc(v.Violations, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Text, b.Text), slices.Compare(a.Events, b.Events))
	})
	return *v
}
