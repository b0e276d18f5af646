package coverage

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/vote"
	"github.com/quorumlock/redlock/redlocktrace"
)

var answers = &Table{
	Name: "answers", About: "a node's answer, the step, in time or later",
	Rows: []string{
		"granted", "held", "reserved", "gone", "stolen", "refilled", "not a lock", "timeout", "unreachable", "loading", "read-only", "out of memory",
		"denied", "busy", "quarantined", "late", "ineligible", "failed", "void",
	},
	Columns: []string{"acquire", "acquire, later", "raise", "raise, later", "extend", "extend, later", "release", "release, later"},
}

// The tables of transitions: of the state in the row follows that in the column. Each Locker has its own states.
var (
	lanes = &Table{
		Name: "lanes", About: "transitions",
		Rows:    []string{"new", "answers", "refuses", "silent", "broken", "down", "up"},
		Columns: []string{"answers", "refuses", "silent", "broken", "down", "up"},
	}
	votes = &Table{
		Name: "votes", About: "transitions",
		Rows: []string{"unknown", "votes", "no vote: quarantine", "no vote: clock apart", "no vote: fence ahead"},
		Columns: []string{
			"votes", "empty", "another process", "long ago", "marker of the future", "clock forward", "longer TTL", "clock back", "clock apart", "fence ahead",
		},
	}
	waiters = &Table{
		Name: "waiters", About: "transitions",
		Rows:    []string{"tries", "asks", "behind others of its process", "held", "no quorum"},
		Columns: []string{"behind others of its process", "held", "no quorum", "got", "ends: held", "ends: no quorum", "ends: cancelled", "ends: closed", "ends: other"},
	}
	locks = &Table{
		Name: "locks", About: "transitions",
		Rows:    []string{"new", "attached", "extended", "failed once", "failed again"},
		Columns: []string{"extended", "failed", "lost", "released", "not released"},
	}
	sets = &Table{
		Name: "sets", About: "transitions",
		Rows:    []string{"given", "described", "changed"},
		Columns: []string{"described", "a member more", "a member less", "another quorum", "another longest TTL", "the same again", "several changes", "another set"},
	}
)

// A locker has the states of one Locker. Its callbacks run one after another, but for Trace.Start and those of other Lockers.
type locker struct {
	*Sheet
	lanes, votes map[string]string // by node
	locks        map[redlocktrace.Lock]string
	set          redlock.Members
	described    string // the row of sets
}

// An attempt is the state of an acquisition: a row of waiters.
type attempt struct{ state string }

type attemptKey struct{}

// Hooks returns hooks for one Locker, which count what it does.
func (s *Sheet) Hooks() *redlock.Hooks {
	l := &locker{Sheet: s, lanes: make(map[string]string), votes: make(map[string]string), locks: make(map[redlocktrace.Lock]string)}
	return &redlock.Hooks{
		Warning:     l.warning,
		NodeDown:    func(e *redlock.NodeError) { l.lane(e.Node, "down") },
		NodeUp:      func(node string, _ time.Duration) { l.lane(node, "up") },
		Quarantined: func(node string, _ time.Duration, why error) { l.vote(node, reason(why), "no vote: quarantine") },
		Votes:       func(node string) { l.vote(node, "votes", "votes") },
		ClockStep: func(node string, by time.Duration) {
			if by < 0 { // forward is a reason for a quarantine
				l.vote(node, "clock back", l.votes[node])
			}
		},
		Joined:  l.changed,
		Members: l.changed,
		Lost:    func(lock *redlock.Lock, _ error) { l.ended(lock, "lost") },
		Trace:   &redlocktrace.Trace{Start: l.start, Wait: l.wait, Node: l.node, End: l.end},
	}
}

// follows marks that a state follows another one, and returns the new one. first is the row where there was none before.
func (l *locker) follows(t *Table, was, first, is string) string {
	if was == "" {
		was = first
	}
	l.mark(t, was, is)
	return is
}

func (l *locker) lane(node, is string) { l.lanes[node] = l.follows(lanes, l.lanes[node], "new", is) }

// vote notes the column of an event of a node's vote, and the row of the state that the node is in then.
func (l *locker) vote(node, event, state string) {
	l.follows(votes, l.votes[node], "unknown", event)
	l.votes[node] = state
}

// reasons has a part of the text of each reason for a quarantine.
var reasons = []struct{ text, column string }{
	{"the set allows longer locks", "longer TTL"}, {"it is new, or has lost its data", "empty"}, {"another server now", "another process"},
	{"its marker was born later", "marker of the future"}, {"clock", "clock forward"}, {"ago", "long ago"},
}

// reason returns the column of the reason for a quarantine.
func reason(why error) string {
	for _, r := range reasons {
		if strings.Contains(why.Error(), r.text) {
			return r.column
		}
	}
	return ""
}

// warning takes a warning that a node has no vote.
func (l *locker) warning(err error) {
	said, _ := strings.CutPrefix(err.Error(), "redlock: node ")
	node := said[:max(strings.IndexAny(said, " :"), 0)]
	var skew vote.SkewError
	var poison vote.PoisonError
	switch {
	case errors.As(err, &skew):
		l.vote(node, "clock apart", "no vote: clock apart")
	case errors.As(err, &poison):
		l.vote(node, "fence ahead", "no vote: fence ahead")
	}
}

// changed takes what the Locker takes for its set from now on.
func (l *locker) changed(m redlock.Members) {
	was := l.set
	l.set = m
	switch {
	case m.Epoch == 0:
		return
	case was.Epoch == 0:
		l.described = l.follows(sets, "", "given", "described")
		return
	case m.Set != was.Set:
		l.mark(sets, l.described, "another set")
	case m.Epoch != was.Epoch+1:
		l.mark(sets, l.described, "several changes")
	case len(m.Nodes) > len(was.Nodes):
		l.mark(sets, l.described, "a member more")
	case len(m.Nodes) < len(was.Nodes):
		l.mark(sets, l.described, "a member less")
	case m.MaxTTL != was.MaxTTL || m.LongerTTL != was.LongerTTL:
		l.mark(sets, l.described, "another longest TTL")
	case m.Quorum != was.Quorum:
		l.mark(sets, l.described, "another quorum")
	default:
		l.mark(sets, l.described, "the same again")
	}
	l.described = "changed"
}

func (l *locker) start(ctx context.Context, op redlocktrace.Operation) context.Context {
	switch op.Op {
	case "acquire":
		return context.WithValue(ctx, attemptKey{}, &attempt{"asks"})
	case "try-acquire":
		return context.WithValue(ctx, attemptKey{}, &attempt{"tries"})
	}
	return ctx
}

func (l *locker) wait(ctx context.Context, op redlocktrace.Operation) {
	is := "behind others of its process"
	switch {
	case errors.Is(op.Err, redlock.ErrHeld):
		is = "held"
	case op.Err != nil:
		is = "no quorum"
	}
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	a.state = l.follows(waiters, a.state, "", is)
}

func (l *locker) node(_ context.Context, r redlocktrace.Reply) {
	step := r.Step
	if r.Late {
		step += ", later"
	}
	l.mark(answers, r.Outcome, step)
	if r.Outcome == "granted" && l.votes[r.Node] == "" {
		l.vote(r.Node, "votes", "votes") // no hook says so at first
	}
	switch r.Outcome {
	case "timeout":
		l.lane(r.Node, "silent")
	case "unreachable":
		l.lane(r.Node, "broken")
	case "loading", "read-only", "out of memory", "denied", "busy", "failed":
		l.lane(r.Node, "refuses")
	default:
		l.lane(r.Node, "answers")
	}
}

func (l *locker) end(ctx context.Context, op redlocktrace.Operation) {
	switch op.Op {
	case "acquire", "try-acquire":
		is := "got"
		switch {
		case op.Err == nil:
			l.locks[op.Lock] = "new"
			l.concedes(op.Lock)
		case errors.Is(op.Err, redlock.ErrClosed):
			is = "ends: closed"
		case errors.Is(op.Err, context.Canceled), errors.Is(op.Err, context.DeadlineExceeded):
			is = "ends: cancelled"
		case errors.Is(op.Err, redlock.ErrHeld):
			is = "ends: held"
		case errors.Is(op.Err, redlock.ErrNoQuorum):
			is = "ends: no quorum"
		default:
			is = "ends: other"
		}
		a, _ := ctx.Value(attemptKey{}).(*attempt)
		l.follows(waiters, a.state, "", is)
	case "attach":
		if op.Err == nil {
			l.locks[op.Lock] = "attached"
		}
	case "extend", "renew":
		l.extended(op.Lock, op.Err)
	case "release":
		if op.Err == nil {
			l.ended(op.Lock, "released")
		} else {
			l.ended(op.Lock, "not released")
		}
	}
}

// concedes takes a lock that was acquired. If its fence is ahead of the time, nodes vote again whose numbers were no votes.
func (l *locker) concedes(lock redlocktrace.Lock) {
	if time.Until(time.UnixMicro(lock.Fence())) < time.Minute {
		return
	}
	for node, is := range l.votes {
		if is == "no vote: fence ahead" {
			l.vote(node, "votes", "votes")
		}
	}
}

// extended takes the end of an extension of a lock.
func (l *locker) extended(lock redlocktrace.Lock, err error) {
	was, held := l.locks[lock]
	switch {
	case !held: // it has ended meanwhile
	case err == nil:
		l.locks[lock] = l.follows(locks, was, "", "extended")
	default:
		l.mark(locks, was, "failed")
		if l.locks[lock] = "failed once"; slices.Contains([]string{"failed once", "failed again"}, was) {
			l.locks[lock] = "failed again"
		}
	}
}

// ended takes the end of a lock.
func (l *locker) ended(lock redlocktrace.Lock, how string) {
	if was, held := l.locks[lock]; held {
		l.mark(locks, was, how)
		delete(l.locks, lock)
	}
}
