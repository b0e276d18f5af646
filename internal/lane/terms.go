package lane

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// A quarantine must outlast every lock that the node may have forgotten, also those of
// programs whose MaxTTL is longer than ours. So whoever joins a node announces its MaxTTL
// there: the marker has the largest, and keeps it. Every grant compares the whole marker.
// That is what makes it work:
//
//   - Where a lock was granted, its owner had announced it before.
//   - Who had joined the node earlier is refused with its next request, joins again, and
//     knows of the longer TTL before a grant counts.
//   - A quarantine is not a date but a time since the loss (incarnation.lost): when a longer TTL
//     becomes known, all of them get longer, also those that were over.
//
// A node that has lost its data has lost what was announced there, too. Two programs with
// 60 s and 2 s, and two of three nodes emptied: the second one must hear of the 60 s at the
// third node before it counts the two. So a node that has lost its data has no vote until all
// others have shown their markers since, or are known to be away (silent); for a minute at
// most (unheard). A node shows its marker with each grant, and with each refusal of a request
// that came too late: so one whose clock is far off is heard of, too, though it has no vote
// (longAgo). What is left is in docs/safety.md.
//
// Each client announces what it has heard, not only its own: so it is there again before
// all nodes have been replaced one by one. What a refusal shows (shown) is not announced.
type terms struct {
	cfg     *Config
	longest atomic.Int64 // TTL that anybody uses, as far as we know
	rest    atomic.Int64 // the quarantine that goes with it

	mu        sync.Mutex
	announced time.Duration // the longest that was, by us or others
	told      time.Duration // the longest that a warning was given of
	nodes     []*incarnation

	lanes atomic.Pointer[[]*Lane] // nil: not yet

	// By node, when a request left in answer to which it has last shown its marker, since
	// the beginning.
	began time.Time
	heard []atomic.Int64
}

// unheard is for how long after it lost its data a node has to wait for others. Whoever comes
// later takes it for one that has been there for long, or a node that hangs would be in the
// way of all others.
const unheard = time.Minute

// longestShown bounds what is believed of a lock by a refusal. A key that lives for longer is
// more likely no lock at all, and nodes would have no vote for as long.
const longestShown = 24 * time.Hour

func newTerms(n int, cfg *Config) *terms {
	t := &terms{cfg: cfg, nodes: make([]*incarnation, n), began: cfg.Clock.Now(), heard: make([]atomic.Int64, n)}
	for i := range t.heard {
		t.heard[i].Store(math.MinInt64) // never
	}
	t.announced = cfg.MaxTTL
	t.set(cfg.MaxTTL)
	return t
}

// set has all quarantines go by this TTL.
func (t *terms) set(longest time.Duration) {
	t.longest.Store(int64(longest))
	t.rest.Store(int64(max(t.cfg.Quarantine, longest+t.cfg.DriftOf(longest))))
}

// quarantine is how long a node has no vote after it may have forgotten something.
func (t *terms) quarantine() time.Duration { return time.Duration(t.rest.Load()) }

// announces is what is announced to a node that is joined.
func (t *terms) announces() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.announced
}

// hear takes in what the marker of a node said before we joined it, and says now.
func (t *terms) hear(m *incarnation, before, now time.Duration, sent time.Time) {
	t.mu.Lock()
	t.announced = max(t.announced, now)
	differ := before > t.told && before != t.cfg.MaxTTL
	if differ {
		t.told = before
	}
	t.mu.Unlock()
	t.vouched(m.node, sent)
	t.raise(now)
	if differ {
		t.cfg.Events.Warning(fmt.Errorf("redlock: node %s: another program has announced a MaxTTL of %v, and ours (Options.MaxTTL) is %v: every quarantine goes by the longer one; give all programs the same", m.name, before, t.cfg.MaxTTL))
	}
}

// shown takes in that a lock at a node has so long to live, and reports whether quarantines
// are longer now. One that is renewed in time always has two thirds of its TTL. What another
// library, or nobody's lock, shows is not acted on: it may be anything.
func (t *terms) shown(m *incarnation, token string, rest time.Duration) bool {
	longest := time.Duration(t.longest.Load())
	if !t.cfg.Host.Made(token) || rest <= longest+t.cfg.DriftOf(longest) || rest > longestShown || !t.raise((rest + rest/2).Truncate(time.Millisecond)) {
		return false
	}
	t.cfg.Events.Warning(fmt.Errorf("redlock: node %s: a lock there lives for another %v, and our MaxTTL (Options.MaxTTL) is %v: every quarantine goes by half as much again now; give all programs the same", m.name, rest.Round(time.Millisecond), t.cfg.MaxTTL))
	return true
}

// raise takes in that locks may live so long, and reports whether that is news.
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
	for _, m := range t.nodes {
		if m != nil {
			m.prolong()
		}
	}
	return true
}

// vouched notes that a node has shown its marker, of which we know what it says, in answer
// to a request that left then.
func (t *terms) vouched(node int, sent time.Time) {
	at, now := &t.heard[node], int64(sent.Sub(t.began))
	for before := at.Load(); now > before && !at.CompareAndSwap(before, now); {
		before = at.Load()
	}
}

// silent gives the nodes, but for one, that have not been heard of since a time, and are not
// known to be away.
func (t *terms) silent(node int, since time.Time) (others []int) {
	lanes := t.lanes.Load()
	for i := range t.heard {
		if i != node && t.heard[i].Load() < int64(since.Sub(t.began)) && (lanes == nil || (*lanes)[i].Away() == nil) {
			others = append(others, i)
		}
	}
	return others
}

// A SilentError is why a node cannot vote that has lost its data longer ago than a quarantine:
// another one, which may know of longer TTLs, has not been heard of since.
type SilentError struct {
	node  *incarnation
	other string
}

func (e SilentError) Error() string {
	return fmt.Sprintf("it is new, or has lost its data, and %s, where longer TTLs may have been announced, has not answered since", e.other)
}

// Votes reports whether the node can vote by now.
func (e SilentError) Votes() bool { return e.node.votes() }
