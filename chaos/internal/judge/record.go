package judge

import (
	"fmt"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
)

// violated records a violation of the rule that is being checked.
func (r *record) violated(at time.Duration, events []int, format string, args ...any) {
	r.verdict.Violations = append(r.verdict.Violations, Violation{
		Rule: r.rule, At: at, Text: fmt.Sprintf(format, args...), Events: events,
	})
}

// request gives the request of an op.
func (r *record) request(o *op) history.Request { return r.requests[o.request] }

// A record is a history prepared for the rules, once for all of them. An event is given by its
// index in the history; -1: none.
type record struct {
	run    history.Head
	events []history.Event
	last   time.Duration // when the history ends
	calm   time.Duration // from when on all faults are over
	struck time.Duration // when the first fault came, or an operator

	ops      []op
	index    index
	requests []history.Request
	number   map[history.Request]int // the index of each request
	holds    []int                   // the ops that got the lock, in order of time
	steps    []step
	writes   []write
	changes  []alteration        // of the set, and locks that operators break
	broken   map[string]fracture // by token: the locks that were broken
	change   map[[2]int]int      // the index of each, by client and number
	left     []int
	amiss    []oddity

	crashes []crash   // by client and time
	stops   []span    // see mergeSpans
	stalls  []ailment // of servers that the computer did not run
	blinks  []span    // in which a node's clock was wrong, before it was set right again

	against [][]int           // by request: the conflicting ones
	behind  [][]int           // by request: those that go first if they were there before
	lines   []history.Request // by request: its canonical form

	waiting [][]standing // by request; see waits
	ailing  []ailment    // see ailments
	still   []stretch    // see standstills

	rule    string
	verdict Verdict
}

// An op is an acquisition, with its hold if it succeeded.
type op struct {
	client, number int
	request        int // see record.requests

	ask, end int           // the beginning and the end of the acquisition
	got      int           // from here on it is a hold; -1: it never was
	dead     int           // its client's crash; what the history says of it later does not count
	died     time.Duration // when

	renews        bool          // by itself: the validity may end later than recorded
	until         time.Duration // the latest end of validity so far
	told, release int
	released      int           // the end of that release
	last          int           // its last event
	extends       bool          // it was extended, or an extension failed
	failed        bool          // an extension failed
	untilRelease  time.Duration // the latest end of validity, as of the release
	read          int           // its last read

	extending, releasing int // indexes of steps that have not ended
}

// A step is an extension or a release.
type step struct {
	op, begin, end int
	until          time.Duration // for an extension that ended: the end of validity before it
	unsure         bool          // and it may be later: an extension before this one had failed
}

// An alteration is a change of the set, or the breaking of a lock, from beginning to end; -1: it has none.
type alteration struct{ client, begin, end int }

// A write is an accepted write, with the writer's last read before it; -1: none.
type write struct{ event, read int }

type oddity struct {
	event int
	text  string
}

type crash struct{ client, event int }

// begin is when a hold began.
func (r *record) begin(op int) time.Duration { return r.events[r.ops[op].got].At }

// odd records that an event is impossible.
func (r *record) odd(event int, format string, args ...any) {
	r.amiss = append(r.amiss, oddity{event, fmt.Sprintf(format, args...)})
}

// valid returns the interval in which the holder may rely on the lock: from its acquisition to the
// end of validity, or to when the holder stops relying on it, or an operator
// begins to break it.
func (r *record) valid(o *op) (from, to time.Duration) {
	to = min(o.until, o.died)
	if o.release >= 0 {
		to = min(to, r.events[o.release].At)
	}
	if o.told >= 0 {
		to = min(to, r.events[o.told].At)
	}
	if r.broken != nil {
		to = min(to, r.brokenFrom(o))
	}
	return r.events[o.got].At, to
}

// lock describes a hold.
func (r *record) lock(o *op) string {
	return fmt.Sprintf("%v (%s)", r.request(o), r.events[o.got].Token)
}

// A standing is an op in a local queue: the calls of one client that wait for the same lock. The
// nodes know only the first of them.
type standing struct {
	op       int
	ask      time.Duration
	front    time.Duration // from when on it was the first of its queue; never: it never was
	end      time.Duration // when it waited no more; never: that is not known
	forsaken bool          // it ended without a lock
}
