package lane

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/internal/printable"
	"github.com/quorumlock/redlock/internal/wire"
)

// A quarantine must outlast every lock that the node may have forgotten, also those of
// programs whose MaxTTL is longer than this one's. So each client that joins a node announces
// its MaxTTL there: the marker has the largest, and keeps it. Every grant compares the whole
// marker. From that follows:
//
//   - Where a lock was granted, its owner had announced its MaxTTL before.
//   - The next request of a client that had joined the node earlier is refused. The client joins
//     again, and knows the longer TTL before a grant counts.
//   - A quarantine is not a date but a time since the loss (incarnation.lost): when a longer TTL
//     becomes known, all quarantines get longer, also those that were over.
//
// A node that has lost its data has also lost what was announced there. An example: there are
// programs with 60 s and 2 s, and two of three nodes are emptied. The second program must learn
// of the 60 s from the third node before it counts the two. So a node that has lost its data has
// no vote until all others have shown their markers since, or are known to be away (silent); for
// a minute at most (unheard). A node shows its marker with each grant, and with each refusal of a
// request that came too late: so a node whose clock is far off shows it, too, though it has no
// vote (longAgo). docs/safety.md says what risk is left.
//
// Each client announces the longest MaxTTL that it has learned of, not only its own: so the
// announcement is there again before all nodes have been replaced one by one. What a refusal
// shows (shown) is not announced.
type terms struct {
	cfg     *Config
	longest atomic.Int64 // the longest TTL that any client uses, as far as is known
	rest    atomic.Int64 // the quarantine that follows from it

	mu        sync.Mutex    // protects announced and told, and each change of longest and rest
	announced time.Duration // the longest that was announced, by this client or others
	told      time.Duration // the longest MaxTTL that a warning was given about
	agreed    time.Duration // that of the set, which all its programs announce; 0: it is not known, or the set has none

	members atomic.Pointer[[]member] // nil: not yet
	began   time.Time
}

// A member is what terms know of one: its node, and the reason why nothing is sent there now (Lane.Away).
type member struct {
	node *incarnation
	away func() *Failure
}

// unheard is for how long after it lost its data a node has to wait for the others. A client that
// comes later treats it like a node that has been running for a long time. Otherwise a node that
// hangs would take the vote of all others.
const unheard = time.Minute

// longestShown bounds the TTL that is believed of a lock that a refusal shows. A key that lives for
// longer is more likely no lock at all, and nodes would have no vote for as long.
const longestShown = 24 * time.Hour

func newTerms(cfg *Config) *terms {
	t := &terms{cfg: cfg, began: cfg.Clock.Now()}
	t.announced = cfg.MaxTTL
	t.set(cfg.MaxTTL)
	return t
}

// set makes all quarantines go by this TTL.
func (t *terms) set(longest time.Duration) {
	t.longest.Store(int64(longest))
	t.rest.Store(int64(max(t.cfg.Quarantine, longest+t.cfg.DriftOf(longest))))
}

// quarantine is how long a node has no vote after it may have forgotten something.
func (t *terms) quarantine() time.Duration { return time.Duration(t.rest.Load()) }

// announces is the TTL to announce to a node that is joined.
func (t *terms) announces() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.announced
}

// announce takes in a TTL that locks of the set may have.
func (t *terms) announce(longest time.Duration) {
	t.mu.Lock()
	t.announced, t.agreed = max(t.announced, longest), longest
	t.mu.Unlock()
	t.raise(longest)
}

// hear takes in the TTL that the marker of a node had before the client joined it, and has now; and that of the
// set that the node is of, if the client does not know it yet.
func (t *terms) hear(m *incarnation, before, now, set time.Duration) {
	t.mu.Lock()
	t.announced = max(t.announced, now)
	differ := before > max(t.told, t.agreed, set) && before != t.cfg.MaxTTL
	if differ {
		t.told = before
	}
	t.mu.Unlock()
	t.raise(now)
	if differ {
		t.cfg.Events.Warning(fmt.Errorf("redlock: node %s: another program has announced a MaxTTL of %v, and ours (Options.MaxTTL) is %v: every quarantine goes by the longer one; give all programs the same", m.name, before, t.cfg.MaxTTL))
	}
}

// shown takes in how long a lock at a node still lives, and reports whether quarantines are longer
// now. A lock that is renewed in time always has two thirds of its TTL left. The TTL of a key of
// another library, or of no lock, does not count: it may be anything. Such a token may look like ours as
// it likes (a UUID, 32 hexadecimal digits), but it is not signed.
func (t *terms) shown(m *incarnation, token string, rest time.Duration) bool {
	longest := time.Duration(t.longest.Load())
	if !wire.Signed(token) || rest <= longest+t.cfg.DriftOf(longest) || rest > longestShown || !t.raise((rest + rest/2).Truncate(time.Millisecond)) {
		return false
	}
	t.cfg.Events.Warning(fmt.Errorf("redlock: node %s: a lock there lives for another %v, and our MaxTTL (Options.MaxTTL) is %v: every quarantine goes by half as much again now; give all programs the same", m.name, printable.Duration(rest), t.cfg.MaxTTL))
	return true
}

// raise takes in that locks may live so long, and reports whether that was not known before.
func (t *terms) raise(longest time.Duration) bool {
	t.mu.Lock()
	news := longest > time.Duration(t.longest.Load())
	if news {
		t.set(longest)
	}
	t.mu.Unlock()
	if !news {
		return false
	}
	if members := t.members.Load(); members != nil {
		for _, n := range *members {
			n.node.prolong()
		}
	}
	return true
}

// vouched records that a node has shown its marker, whose content is known, in answer to a request
// that left at sent.
func (t *terms) vouched(m *incarnation, sent time.Time) {
	at, now := &m.heard, int64(sent.Sub(t.began))+1
	for before := at.Load(); now > before && !at.CompareAndSwap(before, now); {
		before = at.Load()
	}
}

// shownSince reports whether a node has shown its marker since a time.
func (t *terms) shownSince(m *incarnation, since time.Time) bool {
	at := m.heard.Load()
	return at != 0 && (since.IsZero() || at > int64(since.Sub(t.began)))
}

// silent gives the members, except one, that have not shown their markers since a time, and are not
// known to be away.
func (t *terms) silent(m *incarnation, since time.Time) (others []*incarnation) {
	members := t.members.Load()
	if members == nil {
		return nil
	}
	for _, n := range *members {
		if n.node != m && !t.shownSince(n.node, since) && n.away() == nil {
			others = append(others, n.node)
		}
	}
	return others
}

// A SilentError says that a node that lost its data longer ago than a quarantine cannot vote,
// because another node, which may know longer TTLs, has not answered since.
type SilentError struct {
	node  *incarnation
	other string
}

func (e SilentError) Error() string {
	return fmt.Sprintf("it is new, or has lost its data, and %s, where longer TTLs may have been announced, has not answered since", e.other)
}

// Votes reports whether the node can vote by now.
func (e SilentError) Votes() bool { return e.node.votes() }
