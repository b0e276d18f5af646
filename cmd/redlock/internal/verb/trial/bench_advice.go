package trial

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock/cmd/redlock/internal/load"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
)

// advice returns what the figures mean for the settings, by the rules of doctor and of docs/operations.md; nothing
// where there are no figures.
func (r *benchReport) advice() (all []string) {
	if r.Embedded {
		return []string{"Nothing for your nodes: these are inside this process. Name yours with --node redis://HOST:PORT,..."}
	}
	all = []string{} // an empty list in JSON, and not null
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if failed := r.failed(); failed > 0 {
		say("%s above failed: what follows is about the others.", phrase.Counted(failed, "attempt"))
	}
	well, unwell := r.sorted()
	if len(unwell) > 0 {
		say("%s is not reliable: 1 in 100 steps has failed there, or more.", strings.Join(unwell, ", "))
	}
	if len(well) >= r.Quorum {
		r.adviseNodes(well, say)
		r.adviseTTL(well[len(well)-1], say)
	}
	if h := r.HandOver; h != nil && h.HandOver.Count > 0 {
		say("One name serves at most %s holders a second, if each of them holds it for no time at all. Add the time for which yours hold it to the %v of a hand-over; if that is too slow, use more names.", phrase.PerSecond(h.PerSecond), h.HandOver.P50)
	}
	return all
}

// failed returns how many locks and releases failed.
func (r *benchReport) failed() (sum int) {
	for _, c := range r.Callers {
		sum += c.Failed.Total()
	}
	if r.HandOver != nil {
		sum += r.HandOver.Failed.Total()
	}
	return sum
}

// sorted returns the nodes at which fewer than 1 in 100 steps failed, sorted by p99, which then is that of all steps;
// and the names of the other nodes.
func (r *benchReport) sorted() (well []nodeFigures, unwell []string) {
	for _, n := range r.Nodes {
		if failed := n.Failed.Total(); n.Count > 0 && 100*failed < int(n.Count)+failed {
			well = append(well, n)
		} else {
			unwell = append(unwell, n.Node)
		}
	}
	slices.SortStableFunc(well, func(a, b nodeFigures) int { return cmp.Compare(a.P99, b.P99) })
	return well, unwell
}

// adviseNodes says which node a lock waits for: the slowest of the fastest majority, now and after failures; and, by
// doctor's rule, whether NodeTimeout is long enough.
func (r *benchReport) adviseNodes(well []nodeFigures, say func(string, ...any)) {
	at, last, spare := well[r.Quorum-1], well[len(well)-1], len(well)-r.Quorum
	waits := fmt.Sprintf("A lock waits twice, to acquire and to release, for the slowest node of the fastest majority: %s, %v at p99.", at.Node, at.P99)
	switch spare {
	case 0:
		say("%s No other node may fail: the nodes that answer are just a majority.", waits)
	case 1:
		say("%s If the fastest node fails, that is %s, %v.", waits, last.Node, last.P99)
	default:
		say("%s If the fastest %d fail, that is %s, %v.", waits, spare, last.Node, last.P99)
	}
	if len(well) == len(r.Nodes) && len(well) > 3 { // of three nodes, the second completes the majority
		say("With the fastest 3 nodes alone it would be %s, %v, and one of them may fail.", well[1].Node, well[1].P99)
	}
	if reach.RoundTrips*last.P99 > r.NodeTimeout {
		say("NodeTimeout %v is too short for %s: it should be %d times %v.", time.Duration(r.NodeTimeout), last.Node, reach.RoundTrips, last.P99)
	} else {
		say("NodeTimeout %v leaves room: it is %s times the %v of %s.", time.Duration(r.NodeTimeout), phrase.Digits(int(r.NodeTimeout/max(last.P99, 1))), last.P99, last.Node)
	}
}

// adviseTTL says what the shortest TTL is by these figures. Its NodeTimeout must have room for the farthest node, which
// counts after failures. A lock is renewed after a third of its TTL, so the other two thirds must be longer than the
// slowest renewal. A cycle and a hand-over take two steps, and a renewal one: the longest of those bounds it.
func (r *benchReport) adviseTTL(farthest nodeFigures, say func(string, ...any)) {
	longest := load.Millis(0)
	for _, c := range r.Callers {
		longest = max(longest, c.Longest)
	}
	if longest == 0 {
		return
	}
	if r.HandOver != nil {
		longest = max(longest, r.HandOver.HandOver.Longest)
	}
	const step = reach.LeastTTL
	least := max(step, (time.Duration(longest)*3/2+step-1)/step*step)
	for reach.NodeTimeout(least) < reach.RoundTrips*time.Duration(farthest.P99) {
		if least += step; least > reach.DefaultTTL {
			say("No TTL has a NodeTimeout of %v: use a node that is nearer, or set Options.NodeTimeout.", reach.RoundTrips*farthest.P99)
			return
		}
	}
	verdict := fmt.Sprintf("%v is long enough", time.Duration(r.TTL))
	if time.Duration(r.TTL) < least {
		verdict = fmt.Sprintf("%v is too short", time.Duration(r.TTL))
	}
	say("By these figures a TTL of %v or more is enough: %s. Its NodeTimeout leaves room, and a renewal that takes as long as the longest cycle or hand-over above, %v, comes in time. They do not say for how long your processes may stand still, which is the better reason for a long one.", least, verdict, longest)
}
