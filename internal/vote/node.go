// Package vote decides whether a node, a Redis server, may vote now, and what its answers are worth: whether it may have
// forgotten what it granted (node.go), how far its clock is off (clocks.go), and under which description of the set its
// answers count (keeps.go). It sends nothing.
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

// A node that was restarted without its data grants again what it had granted, and a client notices nothing: it connects
// anew, and the next SET NX succeeds. So a node must prove with every grant that it has not forgotten.
//
// It has a marker, a key without a TTL, which names the server's process (run_id) and the moment at which the marker was
// written (join.lua). The acquire script grants only if the marker is the one that the client knows:
//
//   - Restarted without data, flushed, or made a copy of an empty server: there is no marker.
//   - Restarted with data (of which the last second may be missing), a replica that was promoted, or a copy of another
//     server: the marker is of another process. A client that connects compares it with INFO and writes a new one. For a
//     client whose connection a proxy has kept, the script has the run_id in its text: a new process does not know it.
//
// A node has no vote until its marker is as old as a quarantine, which is longer than the longest TTL that the set allows
// (Group.Bound): whatever the node has forgotten has ended then. It grants as before, so that the lock is there, without a
// vote.
//
// Two clocks measure the age of the marker: the node's, and that of its writer against the client's own. The smaller age
// counts. If a host boots with a wrong clock that is then set right, a marker looks old, or as if it were of the future, by
// that clock, but not by the other. From the moment at which it has seen the marker, a client goes by its own clock alone.
//
// A node whose clock was set forward loses its vote in the same way, as it may have dropped keys early; but only for the
// client that has noticed, since it may as well be that client's own clock that is wrong.

// A Node is what a client knows about one server, and so whether the server may have forgotten locks, or has a vote.
type Node struct {
	name  string
	cfg   *Config
	group *Group
	clock nodeClock // the group's mutex guards it

	began   time.Time    // when the Node was made
	shownAt atomic.Int64 // when the latest request left that was answered with the marker: nanoseconds since began, plus 1; 0: none was

	as    atomic.Pointer[string] // the address of the member for which the client takes it; nil: for none
	alias atomic.Pointer[Alias]  // another address that it says is its own; nil: it says none

	scriptOnly atomic.Bool // an acquire by plain commands (wire.PlainAnswer) never counts here

	mu      sync.Mutex    // protects what follows
	joined  bool          // it has said what it keeps
	kept    wire.Kept     // the set's description, and its own address, that it keeps
	self    wire.Kept     // the last kept that had a description
	keptBy  wire.Marker   // the marker that it had then
	since   time.Time     // when the client first heard that it keeps kept
	met     bool          // its marker is known
	mark    string        // the marker's text
	known   wire.Marker   // the same, parsed
	lost    time.Time     // when it last may have forgotten something, by the client's clock; zero: never
	why     error         // what happened at lost
	emptied time.Time     // when it last may have lost all its data, and its marker with that; no later than lost
	skew    time.Duration // how far its clock is from the median of all, if so far that it has no vote; else 0
	ahead   bool          // it gave a fence that was ahead of the time, and Warning was called

	// Which Events were called.
	away     bool        // Down, and Up not since
	voteless bool        // Quarantined, or the Warning about its clock, and Votes not since
	held     error       // why it has no vote, for a Quarantined that waits for Up; nil: none waits
	watch    *time.Timer // calls lookAtVote at the end of the quarantine, if WatchVotes
	closed   bool        // Close was called: watch is set no more
}

// NewNode returns a Node of which nothing is known yet. name is for errors and Events. g is the Group by whose median and
// quarantine the Node is judged; the Node's own clock does not count for the median before g.Elect.
func NewNode(name string, cfg *Config, g *Group) *Node {
	return &Node{name: name, cfg: cfg, group: g, began: cfg.Clock.Now()}
}

// Vouched records that a request which left at sent was answered with the marker that the client knows: no data was lost.
func (m *Node) Vouched(sent time.Time) {
	now := int64(sent.Sub(m.began)) + 1
	for before := m.shownAt.Load(); now > before && !m.shownAt.CompareAndSwap(before, now); {
		before = m.shownAt.Load()
	}
}

// ShownSince reports whether a request that left after since (zero: any) was answered with the node's marker: no data lost.
func (m *Node) ShownSince(since time.Time) bool {
	at := m.shownAt.Load()
	return at != 0 && (since.IsZero() || at > int64(since.Sub(m.began)))
}

// Now returns the client's time.
func (m *Node) Now() time.Time { return m.cfg.Clock.Now() }

// Marked reports whether nodes are to have markers: without quarantines the client does not ask whether they have lost data.
func (m *Node) Marked() bool { return m.cfg.Quarantine > 0 }

// Joined records mark, the node's answer to join.lua, which left at sent. A new marker (data may have been lost) begins a
// quarantine. If markers are in use, Joined first calls heard, without m.mu, with the marker (zero: unreadable), and then
// stores the marker: it may name a later description of the set, which the set must know before a grant under it is judged.
func (m *Node) Joined(mark wire.Mark, sent time.Time, heard func(mark wire.Marker)) {
	now := m.Now()
	m.scriptOnly.Store(mark.ScriptOnly)
	m.observeClock(mark.Now, sent, now)
	before, had := wire.ParseMarker(mark.Before)
	says, ok := wire.ParseMarker(mark.Value)
	if m.Marked() {
		heard(says)
	}
	age := time.Duration(0) // stays 0 for a marker that cannot be read
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
		// If it is the marker of the same data as before, the client's own clock has measured the age since it saw that.
		as := m.met && (mark.Value == m.mark || ok && says.Same(m.known))
		m.mark, m.known, m.met = mark.Value, says, true
		if as {
			return false
		}
		m.ahead = false
		return m.Marked()
	})
}

// lose calls update, which stores what was learnt and returns whether the node may have forgotten locks (data: all data),
// because of why. If so, it has no vote for a quarantine from the time at, unless it has lost something later; unless that
// is over, lose calls Events.Quarantined. update runs with m.mu held: a new marker must not be there without its quarantine.
func (m *Node) lose(at time.Time, data bool, why error, update func() bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	lost := update()
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

// quarantined calls Events.Quarantined: the node has no vote for rest, because of why. While the node is down, it only
// stores why for Up, since the lane joins a node before it calls Up. Caller holds m.mu.
func (m *Node) quarantined(rest time.Duration, why error) {
	if m.away {
		m.held = why
		return
	}
	m.voteless = true
	m.cfg.Events.Quarantined(m.name, rest, why)
	m.await(rest)
}

// await makes lookAtVote, which calls Events.Votes if the node votes again, run after d, in place of the run that was set
// before. Without WatchVotes it does nothing. Caller holds m.mu.
func (m *Node) await(d time.Duration) {
	switch {
	case !m.cfg.WatchVotes || m.closed:
	case m.watch == nil:
		m.watch = time.AfterFunc(d, m.lookAtVote)
	default:
		m.watch.Reset(d)
	}
}

func (m *Node) lookAtVote() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		m.votesAgain()
	}
}

// votesAgain calls Events.Votes if the node can be reached and has a vote, and the last event said that it has none. While
// the quarantine lasts, it sets the timer instead, to look again at its end. Caller holds m.mu.
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

// Down records that nothing is sent to the node from now on, because of why, until Up is called. It calls Events.Down.
func (m *Node) Down(why *lane.Failure) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.away = true
	m.cfg.Events.Down(m.name, why)
}

// Up records that requests are sent to the node again, after it was down for so long. It calls Events.Up; then Quarantined,
// if the node lost its vote while down and has none yet; or Votes, if it votes, and the last event said that it does not.
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

// Close stops the timer that calls Events.Votes at the end of a quarantine, for good.
func (m *Node) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	if m.watch != nil {
		m.watch.Stop()
	}
}

// Requarantine is called after all quarantines have become longer, or (longer is false) shorter. If longer, and the node is
// in quarantine, it calls Events.Quarantined. If the node has a vote again, it calls Events.Votes.
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

// observeClock records micros, the node's time in a reply that came at now, to a request that left at sent. It calls Events
// for a step of its clock, and when it is newly far from the others' (skew). A step forward costs the node its vote.
func (m *Node) observeClock(micros int64, sent, now time.Time) {
	step, skew, known := m.group.sample(&m.clock, sent, now, time.UnixMicro(micros))
	m.mu.Lock()
	news := known && skew != 0 && m.skew == 0 && step <= 0 // a step forward has an event of its own
	if known {
		m.skew = skew
		m.voteless = m.voteless || news
		if step <= 0 { // else the node loses its vote below
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

// rest returns for how much longer the node has no vote; 0: it has one. It uses the monotonic clock, which may stand still
// while the host is suspended: then rest is too long, and never too short. Caller holds m.mu.
func (m *Node) rest(now time.Time) time.Duration {
	if m.lost.IsZero() {
		return 0
	}
	return max(0, m.lost.Add(m.group.Quarantine()).Sub(now))
}

// reason returns why the node has no vote, or had none when it last was in quarantine; nil: it never was. Caller holds m.mu.
func (m *Node) reason(now time.Time) error {
	if _, ok := m.why.(pastError); ok { // its text says how long ago that was
		return pastError(now.Sub(m.lost))
	}
	return m.why
}

// ScriptOnly reports whether acquires by plain commands, without a script, never count at the node: since it was last
// joined, it has denied this user one of the commands, or the release script (by an ACL, as a rule).
func (m *Node) ScriptOnly() bool { return m.scriptOnly.Load() }

// ErrNew is why a node that had no marker has no vote.
var ErrNew = errors.New("it is new, or has lost its data")

// A pastError says that a node has no vote because it was restarted or lost data so long ago, before the client joined it.
type pastError time.Duration

func (e pastError) Error() string {
	return fmt.Sprintf("it was new, restarted, or had lost its data, %v ago", printable.Duration(time.Duration(e)))
}

// Suspended returns for how much longer the node is in quarantine, and why; 0 and nil: it may vote, if it is not Skewed.
func (m *Node) Suspended() (rest time.Duration, why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.Now()
	if rest = m.rest(now); rest > 0 {
		why = m.reason(now)
	}
	return rest, why
}

// Skewed returns how far the node's clock is from the median of all, negative if behind, if it has no vote for that; else 0.
func (m *Node) Skewed() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.skew
}

func (m *Node) votes() bool {
	rest, _ := m.Suspended()
	return rest == 0
}

// poisoned returns why a grant with the fence number is no vote: it is ahead of middle, the median of the nodes' clocks, by
// too much (Group.Beyond), and by more than most (Claim.Ahead); nil: a vote. It calls Events.Warning once per marker.
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

// floor returns the fence that Bind proposes for a shared lock, which has no number of its own: one that is larger than
// every fence that the node may have lost; 0: none is known. The node gives no smaller fence as long as it has a vote. What
// it has lost was numbered before its marker was written, by clocks for whose differences the quarantine Q leaves room (Q >=
// 2K + 3S in fence.go). So a shared lock's fence is above those of all earlier exclusive locks, though the node has
// forgotten them. Caller holds m.mu.
func (m *Node) floor() int64 {
	if !m.Marked() || m.known.Born == 0 {
		return 0
	}
	return time.UnixMilli(m.known.Born).Add(m.group.Quarantine() - wire.Clamp).UnixMicro()
}
