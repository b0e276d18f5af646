package judge

import (
	"fmt"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
)

// violated notes that the rule in question was not kept.
func (r *record) violated(at time.Duration, events []int, format string, args ...any) {
	r.verdict.Violations = append(r.verdict.Violations, Violation{
		Rule: r.rule, At: at, Text: fmt.Sprintf(format, args...), Events: events,
	})
}

// request is what an op asks for.
func (r *record) request(o *op) history.Request { return r.requests[o.request] }

// A record is a history put in order for the rules, once for all of them. Events
// are known by their index in the history; -1 is none.
type record struct {
	run    history.Head
	events []history.Event
	last   time.Duration // when the history ends
	calm   time.Duration // when all is well, from then on
	struck time.Duration // when the first fault came

	ops      []op
	index    index
	requests []history.Request
	number   map[history.Request]int // of those
	holds    []int                   // the ops that came to hold, in order of time
	steps    []step
	writes   []write
	left     []int
	amiss    []oddity

	crashes []crash   // by client and time
	stops   []span    // see mergeSpans
	stalls  []ailment // of servers that the computer did not run
	blinks  []span    // in which a node's clock was wrong that is right again

	against [][]int           // by request: those that exclude it
	behind  [][]int           // by request: those that have to be let go first if they were there before
	lines   []history.Request // by request: what is the same for those that are

	waiting [][]standing // by request; see waits
	ailing  []ailment    // see ailments
	still   []stretch    // see standstills

	rule    string
	verdict Verdict
}

// An op is an acquisition, and the hold that came of it.
type op struct {
	client, number int
	request        int // see record.requests

	ask, end int           // end: the first of the two there are
	got      int           // from here on it is a hold
	dead     int           // its client's crash; what the history says of it later does not count
	died     time.Duration // when

	renews        bool          // by itself: the validity may end later than anybody has noted
	until         time.Duration // the latest end of validity that there was
	told, release int
	released      int           // the end of that release
	last          int           // what is known of it last
	extends       bool          // or has tried to
	untilRelease  time.Duration // the latest that there was at the release
	read          int           // the last that there was

	extending, releasing int // indexes of steps that have not ended
}

// A step is an extension or a release.
type step struct {
	op, begin, end int
	until          time.Duration // of an extension that ended: the end of validity before it
}

// A write is what the resource took, and what its writer had read before; -1: nothing.
type write struct{ event, read int }

type oddity struct {
	event int
	text  string
}

type crash struct{ client, event int }

// begin is when a hold began.
func (r *record) begin(op int) time.Duration { return r.events[r.ops[op].got].At }

// odd notes that an event cannot have happened.
func (r *record) odd(event int, format string, args ...any) {
	r.amiss = append(r.amiss, oddity{event, fmt.Sprintf(format, args...)})
}

// valid gives the interval in which the holder may rely on the lock: from when it
// got it to the end of validity, or until it believes in it no more.
func (r *record) valid(o *op) (from, to time.Duration) {
	to = min(o.until, o.died)
	if o.release >= 0 {
		to = min(to, r.events[o.release].At)
	}
	if o.told >= 0 {
		to = min(to, r.events[o.told].At)
	}
	return r.events[o.got].At, to
}

// lock puts a hold in words.
func (r *record) lock(o *op) string {
	return fmt.Sprintf("%v (%s)", r.request(o), r.events[o.got].Token)
}

// A standing is an op in a line: the calls of one client for the same that wait. The nodes
// know of the first of it.
type standing struct {
	op       int
	ask      time.Duration
	front    time.Duration // from when it was the first of its line; never: it never was
	end      time.Duration // when it waited no more; never: that is not known
	forsaken bool          // it ended without a lock
}
