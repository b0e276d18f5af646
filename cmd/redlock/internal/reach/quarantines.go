package reach

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/explain"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
)

// LongWait is the longest quarantine that redlock does not comment on.
const LongWait = 10 * time.Minute

// Quarantines are the nodes that have no vote because they are new or may have forgotten a lock, and until when. They
// are reported to the operator.
//
// Those that are found while the nodes are asked for the first time are reported in one line, by Tell: in a new
// cluster all nodes have the same reason. Later ones concern one node, and are reported as they happen.
type Quarantines struct {
	say func(format string, args ...any)
	set func() redlock.Members

	mu   sync.Mutex
	told bool // Tell has reported those that were found first
	all  []quarantine
	as   redlock.Members // the set at the time of Tell
}

type quarantine struct {
	node     string
	until    time.Time
	why      string
	together bool // Tell has reported it in one line with others
}

// found is the callback Hooks.Quarantined.
func (q *Quarantines) found(node string, d time.Duration, why error) {
	q.mu.Lock()
	q.all = slices.DeleteFunc(q.all, func(other quarantine) bool { return other.node == node })
	q.all = append(q.all, quarantine{node, time.Now().Add(d), why.Error(), false})
	told := q.told
	q.mu.Unlock()
	if told {
		q.say("node %s has no vote for %v: %v", node, phrase.Tenths(d), why)
	}
}

// votes is the callback Hooks.Votes. It does not report nodes that Tell has reported in one line with others: the lock,
// or the end of redlock prepare, shows that they vote.
func (q *Quarantines) votes(node string) {
	q.mu.Lock()
	together := !q.told || slices.ContainsFunc(q.all, func(one quarantine) bool { return one.node == node && one.together })
	q.all = slices.DeleteFunc(q.all, func(one quarantine) bool { return one.node == node })
	q.mu.Unlock()
	if !together {
		q.say("node %s votes again", node)
	}
}

// follows reports whether m is a change of the set that came after Tell. What the program learns before that, from
// nodes that are behind and then from others, is no change.
func (q *Quarantines) follows(m redlock.Members) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.told && (m.Set != q.as.Set || m.Epoch > q.as.Epoch)
}

// Heard waits until the hooks have reported all quarantines that an error names, for console.OutputWait at most:
// hooks run a moment after the event. It returns q.
func (q *Quarantines) Heard(why *redlock.QuorumError) *Quarantines {
	for limit := time.Now().Add(console.OutputWait); time.Now().Before(limit); time.Sleep(time.Millisecond) {
		q.mu.Lock()
		missing := slices.ContainsFunc(why.Nodes(), func(n *redlock.NodeError) bool {
			return n.Outcome == redlock.OutcomeQuarantined && !slices.ContainsFunc(q.all, func(one quarantine) bool { return one.node == n.Node })
		})
		q.mu.Unlock()
		if !missing {
			break
		}
	}
	return q
}

// Wait returns the time until a quorum of members can vote, if those that are not in quarantine do now; 0: it can now.
func (q *Quarantines) Wait() time.Duration {
	set, now := q.set(), time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	under := q.under(now)
	missing := set.Quorum - (len(set.Nodes) - len(under))
	if missing <= 0 {
		return 0
	}
	return under[min(missing, len(under))-1].until.Sub(now)
}

// under returns the quarantines that have not ended at now, the shortest first. Caller holds q.mu.
func (q *Quarantines) under(now time.Time) (under []quarantine) {
	for _, one := range q.all {
		if one.until.After(now) {
			under = append(under, one)
		}
	}
	slices.SortStableFunc(under, func(a, b quarantine) int { return a.until.Compare(b.until) })
	return under
}

// Tell reports the quarantines that were found first, in one line, with what follows from them (so) and how to avoid
// that (wayOut). Only its first call reports something.
func (q *Quarantines) Tell(so, wayOut string) {
	as := q.set()
	q.mu.Lock()
	now := time.Now()
	under, told := q.under(now), q.told
	if !told {
		q.told, q.as = true, as
	}
	if len(under) > 1 && !told {
		for i := range q.all {
			q.all[i].together = true
		}
	}
	q.mu.Unlock()
	if told || len(under) == 0 {
		return
	}
	var names, whys []string
	for _, one := range under {
		names, whys = append(names, one.node), append(whys, one.why)
	}
	rest := func(one quarantine) string { return phrase.Tenths(one.until.Sub(now)).String() }
	longest := rest(under[len(under)-1])
	if under[len(under)-1].until.Sub(under[0].until) > time.Second {
		longest = "up to " + longest
	}
	var which string
	nodes := len(as.Nodes)
	switch len(under) {
	case 1:
		which = "node " + names[0]
	case nodes:
		which = phrase.Count(nodes, "node")
	default:
		slices.Sort(names)
		which = fmt.Sprintf("%d of %s (%s)", len(under), phrase.Count(nodes, "node"), strings.Join(names, ", "))
	}
	q.say("%s %s for %s%s: %s%s", which, explain.NoVote(len(under)), longest, so, reasonFor(whys), wayOut)
}

// reasonFor returns one reason why several nodes cannot vote, from whys, the reason of each.
func reasonFor(whys []string) string {
	if len(whys) == 1 {
		return whys[0]
	}
	whys = slices.Clone(whys)
	for i, why := range whys { // the ages differ by milliseconds
		if last := strings.LastIndex(why, ", "); strings.HasSuffix(why, " ago") && last > 0 {
			whys[i] = why[:last] + ", not long ago"
		}
	}
	if rest, ok := strings.CutPrefix(whys[0], "it "); ok && len(slices.Compact(whys)) == 1 {
		return "each " + rest
	}
	return "each is new, was restarted, or has lost its data"
}
