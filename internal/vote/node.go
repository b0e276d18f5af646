// Package vote decides whether a node may vote now, and what its answers are worth: whether it may have forgotten what it
// granted (node.go), how far its clock is off (clocks.go), and by which description of the set its answers count
// (keeps.go). It sends nothing.
package vote

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/printable"
	"github.com/quorumlock/redlock/internal/wire"
)

// A node that was restarted without its data grants again what it had granted, and a client
// notices nothing: the connection is made anew, and the next SET NX succeeds. So a node must
// prove with every grant that it has not forgotten.
//
// It has a marker, a key without a TTL, which names the server's process (run_id)
// and the moment at which the marker was written (join.lua). The acquire script grants
// only if the marker is the one that the client knows:
//
//   - Restarted without data, flushed, or made a copy of an empty server: there is
//     no marker.
//   - Restarted with data (of which the last second may be missing), a replica that was
//     promoted, or a copy of another server: the marker is of another process. A client
//     that connects compares it with INFO and writes a new one. For a client whose
//     connection a proxy has kept, the script has the run_id in its text, so that the new
//     process does not know the script (NOSCRIPT).
//
// A node has no vote until its marker is as old as a quarantine, which is longer than the longest
// TTL that the set allows (Group.Bound): whatever the node has forgotten has ended by then. It
// grants as before, so that the lock is there too, but its grants are no votes.
//
// Two clocks measure the age of the marker: the node's, and that of its writer against the
// client's own. The smaller age counts. A host that boots with a wrong clock, and is then set
// right, makes a marker look old, or as if it were of the future, but not by the other clock.
// From the moment at which it has seen the marker, a client goes by its own clock alone.
//
// A node whose clock was found to have been set forward loses its vote in the same way, as it may have
// dropped keys early; but only for this client, since it may as well be the client's own clock
// that is wrong.

// A Node is what a Locker knows about the present life of a node, and so whether the node may have forgotten.
type Node struct {
	name  string
	cfg   *Config
	group *Group
	clock nodeClock // of the node; the group's mutex guards it

	began   time.Time    // when it was made
	shownAt atomic.Int64 // the time since began, and 1, at which the request left that the node last answered with its marker; 0: never

	as    atomic.Pointer[string] // the member for which it is taken; nil: none
	alias atomic.Pointer[Alias]  // it says that it is at another address; nil: it does not

	scriptOnly atomic.Bool // acquires of plain commands are void here; see wire.PlainAnswer

	mu      sync.Mutex  // protects what follows
	joined  bool        // it has said what it keeps
	kept    wire.Kept   // that
	self    wire.Kept   // the last description that it has kept
	keptBy  wire.Marker // the marker that it had then
	since   time.Time   // when it was heard to keep that, or nothing
	met     bool        // its marker is known
	mark    string      // the marker's text
	known   wire.Marker // the same, parsed
	lost    time.Time   // when it last may have forgotten something, by the client's clock; zero: never
	why     error
	emptied time.Time     // when it last may have lost its data, and its marker: lost, or before
	skew    time.Duration // how far its clock is from the others', if that is too far
	ahead   bool          // it has given a fence that was ahead of the time, and a warning was given

	// What the operator is told.
	away     bool        // Down was told, and Up was not
	voteless bool        // it was told that the node has no vote, and not that it votes again
	held     error       // why it has no vote, to be told when the node is up
	watch    *time.Timer // for the end of the quarantine, if WatchVotes
	closed   bool        // and no timer any more
}

// NewNode makes what is known of a node of which nothing is known yet.
func NewNode(name string, cfg *Config, g *Group) *Node {
	return &Node{name: name, cfg: cfg, group: g, began: cfg.Clock.Now()}
}

// Vouched records that the node has shown its marker, whose content is known, in answer to a request
// that left at sent.
func (m *Node) Vouched(sent time.Time) {
	now := int64(sent.Sub(m.began)) + 1
	for before := m.shownAt.Load(); now > before && !m.shownAt.CompareAndSwap(before, now); {
		before = m.shownAt.Load()
	}
}

// ShownSince reports whether the node has shown its marker since a time; zero: ever.
func (m *Node) ShownSince(since time.Time) bool {
	at := m.shownAt.Load()
	return at != 0 && (since.IsZero() || at > int64(since.Sub(m.began)))
}

// Now is the time, by the client's clock.
func (m *Node) Now() time.Time { return m.cfg.Clock.Now() }

// Marked reports whether the client wants the node to have a marker.
func (m *Node) Marked() bool { return m.cfg.Quarantine > 0 }

// Joined takes in the node's answer to the join script, which was sent at sent. A new marker begins the node's quarantine. If
// markers are in use, it calls heard before it stores the marker: the marker may belong to a later epoch, and the set must
// know of that before a grant under it is judged.
func (m *Node) Joined(mark wire.Mark, sent time.Time, heard func(mark wire.Marker)) {
	now := m.Now()
	m.scriptOnly.Store(mark.ScriptOnly)
	m.observeClock(mark.Now, sent, now)
	before, had := wire.ParseMarker(mark.Before)
	says, ok := wire.ParseMarker(mark.Value)
	if m.Marked() {
		heard(says)
	}
	age := time.Duration(0) // of a marker that cannot be read, the age is not known
	if ok {
		byNode, byWriter := time.UnixMicro(mark.Now).Sub(time.UnixMilli(says.Born)), now.Round(0).Sub(time.UnixMilli(says.Writer))
		age = max(0, min(byNode, byWriter))
	}
	var why error = pastError(age)
	switch {
	case mark.Before == "":
		why = ErrNew
	case !had || before.RunID != says.RunID:
		why = errors.New("it was restarted, or is another server now")
	case before.DB != says.DB:
		why = fmt.Errorf("its data is that of database %s (SWAPDB)", before.DB)
	case before.Born != says.Born:
		why = errors.New("its clock has been set back: its marker was born later than now")
	}
	m.lose(now.Add(-age), true, why, func() bool {
		// The same data as before: the client's own clock has measured the age since, and not the node's.
		as := m.met && (mark.Value == m.mark || ok && says.Same(m.known))
		m.mark, m.known, m.met = mark.Value, says, true
		if as {
			return false
		}
		m.ahead = false
		return m.Marked()
	})
}

// lose takes the node's vote away for a quarantine that began at some time, if so decides that.
// It decides under the mutex: the new marker must not be there without its quarantine.
func (m *Node) lose(at time.Time, data bool, why error, so func() bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	lost := so()
	later := lost && at.After(m.lost)
	if later {
		m.lost, m.why = at, why
	}
	if data && lost && at.After(m.emptied) {
		m.emptied = at
	}
	if rest := at.Add(m.group.Quarantine()).Sub(m.Now()); later && rest > 0 {
		m.quarantined(rest, why)
	}
}

// quarantined has it told that the node has no vote. If the node is down, that waits until it was
// told that the node is up again: what a node said when it was connected to comes before that. Under
// the mutex.
func (m *Node) quarantined(rest time.Duration, why error) {
	if m.away {
		m.held = why
		return
	}
	m.voteless = true
	m.cfg.Events.Quarantined(m.name, rest, why)
	m.await(rest)
}

// await looks again at the node's vote after some time. Under the mutex.
func (m *Node) await(d time.Duration) {
	switch {
	case !m.cfg.WatchVotes || m.closed:
	case m.watch == nil:
		m.watch = time.AfterFunc(d, m.lookAtVote)
	default:
		m.watch.Reset(d)
	}
}

// lookAtVote has it told that the node votes again, if it does.
func (m *Node) lookAtVote() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		m.votesAgain()
	}
}

// votesAgain has it told that the node votes again, if it does and was said not to. Under the mutex.
func (m *Node) votesAgain() {
	if !m.voteless || m.away || m.skew != 0 {
		return
	}
	if rest := m.rest(m.Now()); rest > 0 {
		m.await(rest)
		return
	}
	m.voteless = false
	m.cfg.Events.Votes(m.name)
}

// Down has it told that nothing is sent to the node, and Up that requests are sent again.
func (m *Node) Down(why *lane.Failure) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.away = true
	m.cfg.Events.Down(m.name, why)
}

// Up: see Down.
func (m *Node) Up(down time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.away = false
	m.cfg.Events.Up(m.name, down)
	if rest := m.rest(m.Now()); m.held != nil && rest > 0 {
		m.quarantined(rest, m.held)
	}
	m.held = nil
	m.votesAgain()
}

// Close ends the node's timer.
func (m *Node) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	if m.watch != nil {
		m.watch.Stop()
	}
}

// Requarantine tells the hooks what follows from another length of quarantines for this node. Longer: the quarantine
// of a node that votes may begin again. Shorter: it may be over.
func (m *Node) Requarantine(longer bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.Now()
	if rest, why := m.rest(now), m.reason(now); rest > 0 && longer {
		m.quarantined(rest, fmt.Errorf("the set allows longer locks than was known, and %w", why))
	} else {
		m.votesAgain()
	}
}

// observeClock takes in the node's time.
func (m *Node) observeClock(micros int64, sent, now time.Time) {
	step, skew, known := m.group.sample(&m.clock, sent, now, time.UnixMicro(micros))
	m.mu.Lock()
	news := known && skew != 0 && m.skew == 0 && step <= 0 // a step forward has an event of its own
	if known {
		m.skew = skew
		m.voteless = m.voteless || news
		if step <= 0 { // or the node loses its vote for that
			m.votesAgain()
		}
	}
	m.mu.Unlock()
	if news {
		m.cfg.Events.Warning(fmt.Errorf("redlock: node %s has no vote: %w", m.name, SkewError{skew, m.cfg.MaxNodeSkew}))
	}
	if step == 0 {
		return
	}
	m.cfg.Events.ClockStep(m.name, step)
	if m.group.alike(&m.clock, now, step, 2*m.cfg.NodeTimeout) {
		m.cfg.Events.Warning(OwnClockError(step))
	}
	if step > 0 { // a node that goes back keeps keys for longer
		m.lose(now, false, stepError(step), m.Marked)
	}
}

// rest is for how much longer the node has no vote. It goes by the monotonic clock alone:
// when in doubt, longer. Under the mutex.
func (m *Node) rest(now time.Time) time.Duration {
	if m.lost.IsZero() {
		return 0
	}
	return max(0, m.lost.Add(m.group.Quarantine()).Sub(now))
}

// reason is why the node has no vote, or had none recently. Under the mutex.
func (m *Node) reason(now time.Time) error {
	if _, ok := m.why.(pastError); ok { // the time since then goes on
		return pastError(now.Sub(m.lost))
	}
	return m.why
}

// ScriptOnly reports whether the client may not release there what it acquires by plain commands: such acquires are void.
func (m *Node) ScriptOnly() bool { return m.scriptOnly.Load() }

// ErrNew is why a node cannot vote that had no marker.
var ErrNew = errors.New("it is new, or has lost its data")

// A pastError says that a node has no vote because it was restarted or lost data so long ago,
// before the client joined it.
type pastError time.Duration

func (e pastError) Error() string {
	return fmt.Sprintf("it was new, restarted, or had lost its data, %v ago", printable.Duration(time.Duration(e)))
}

// Suspended is for how much longer the node has no vote, and why; 0: it has one.
func (m *Node) Suspended() (rest time.Duration, why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.Now()
	if rest = m.rest(now); rest > 0 {
		why = m.reason(now)
	}
	return rest, why
}

// Skewed is how far the node's clock is from the others', if that is too far.
func (m *Node) Skewed() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.skew
}

// votes reports whether the node has a vote.
func (m *Node) votes() bool {
	rest, _ := m.Suspended()
	return rest == 0
}

// poisoned says why a grant with this fence is no vote; nil: it is one, since the fence is no
// further ahead of the middle of the nodes' clocks than it may be. See fence.go.
func (m *Node) poisoned(number int64, middle time.Time, most time.Duration) error {
	ahead := m.group.Beyond(number, middle)
	if ahead <= most {
		return nil
	}
	m.mu.Lock()
	news := !m.ahead
	m.ahead = true
	m.mu.Unlock()
	if news {
		m.cfg.Events.Warning(fmt.Errorf("redlock: node %s: %w", m.name, PoisonError(ahead)))
	}
	return PoisonError(ahead)
}

// floor is a number that is larger than every fence that the node may have lost, and below which
// the node gives no fence as long as it has a vote. What it has lost was numbered before its
// marker was written, by clocks that differ by less than the quarantine leaves room for (see
// fence.go). So a reader gets a fence above those of all earlier writers, though the node has
// forgotten them. Under the mutex.
func (m *Node) floor() int64 {
	if !m.Marked() || m.known.Born == 0 {
		return 0
	}
	return time.UnixMilli(m.known.Born).Add(m.group.Quarantine() - wire.Clamp).UnixMicro()
}
