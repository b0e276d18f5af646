package redlock

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/internal/script"
)

// A quarantine must outlast every lock that the node may have forgotten, also those of
// programs whose MaxTTL is longer than ours. So whoever joins a node announces its MaxTTL
// there: the marker has the largest, and keeps it. Every grant compares the whole marker.
// That is what makes it work:
//
//   - Where a lock was granted, its owner had announced it before.
//   - Who had joined the node earlier is refused with its next request, joins again, and
//     knows of the longer TTL before a grant counts.
//   - A quarantine is not a date but a time since the loss (memory.lost): when a longer TTL
//     becomes known, all of them get longer, also those that were over.
//
// A node that has lost its data has lost what was announced there, too. Two programs with
// 60 s and 2 s, and two of three nodes emptied: the second one must hear of the 60 s at the
// third node before it counts the two. So the others are asked as soon as a node is found
// to have lost its data (ask), and while one of them has not answered since (silent), the
// node has no vote for at least a minute (unheard). What is left is in docs/safety.md.
//
// Each client announces what it has heard, not only its own: so it is there again before
// all nodes have been replaced one by one. What a refusal shows is not announced. It may be
// anybody's key.
type terms struct {
	opts    Options
	longest atomic.Int64 // TTL that anybody uses, as far as we know
	rest    atomic.Int64 // the quarantine that goes with it

	mu        sync.Mutex
	announced time.Duration          // the longest that was, by us or others
	told      map[time.Duration]bool // what a warning was given of
	nodes     []*memory
	heard     []time.Time // when the node was last asked what is announced there, and said so
	lanes     []*node     // nil: not yet
}

const (
	// unheard is how long a node has no vote at least that has lost its data, if another
	// one has not been heard of since.
	unheard = time.Minute

	// longestShown bounds what is believed of a lock by a refusal. A key that lives for
	// longer is more likely no lock at all, and nodes would have no vote for as long.
	longestShown = 24 * time.Hour
)

func newTerms(n int, o *Options) *terms {
	t := &terms{opts: *o, told: make(map[time.Duration]bool), nodes: make([]*memory, n), heard: make([]time.Time, n)}
	t.announced = o.MaxTTL
	t.set(o.MaxTTL)
	return t
}

// set has all quarantines go by this TTL.
func (t *terms) set(longest time.Duration) {
	t.longest.Store(int64(longest))
	t.rest.Store(int64(max(t.opts.Quarantine, longest+t.opts.drift(longest))))
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
func (t *terms) hear(m *memory, before, now time.Duration, sent time.Time) {
	t.mu.Lock()
	t.announced = max(t.announced, now)
	differ := before > 0 && before != t.opts.MaxTTL && !t.told[before]
	if differ {
		t.told[before] = true
	}
	t.mu.Unlock()
	t.vouched(m.node, sent)
	t.raise(now)
	if differ {
		t.opts.Hooks.warning(fmt.Errorf("redlock: node %s: another program has announced a MaxTTL of %v, and ours (Options.MaxTTL) is %v: every quarantine goes by the longer one; give all programs the same", m.name, before, t.opts.MaxTTL))
	}
}

// shown takes in that a lock at a node has so long to live, and reports whether quarantines
// are longer now. One that is renewed in time always has two thirds of its TTL.
func (t *terms) shown(m *memory, rest time.Duration) bool {
	longest := time.Duration(t.longest.Load())
	if rest <= longest+t.opts.drift(longest) || rest > longestShown || !t.raise((rest + rest/2).Truncate(time.Millisecond)) {
		return false
	}
	t.opts.Hooks.warning(fmt.Errorf("redlock: node %s: a lock there lives for another %v, and our MaxTTL (Options.MaxTTL) is %v: every quarantine goes by half as much again now; give all programs the same", m.name, rest.Round(time.Millisecond), t.opts.MaxTTL))
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

// vouched notes that a node has told us its marker, of which we know what it says, in answer
// to a request that left then.
func (t *terms) vouched(node int, sent time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if sent.After(t.heard[node]) {
		t.heard[node] = sent
	}
}

// silent gives the nodes, but for one, that have not been heard of since a time.
func (t *terms) silent(node int, since time.Time) (others []int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, at := range t.heard {
		if i != node && !at.After(since) {
			others = append(others, i)
		}
	}
	return others
}

// open has the nodes asked from now on, since there are lanes to them.
func (t *terms) open(lanes []*node) {
	t.mu.Lock()
	t.lanes = lanes
	t.mu.Unlock()
	for _, m := range t.nodes {
		if m != nil {
			t.ask(m)
		}
	}
}

// ask asks the nodes that have not been heard of since another lost its data.
func (t *terms) ask(m *memory) {
	since := m.dataLost()
	if since.IsZero() || m.now().Sub(since) > unheard {
		return
	}
	t.mu.Lock()
	lanes := t.lanes
	t.mu.Unlock()
	if lanes == nil {
		return
	}
	about := &claim{key: script.Marker, keys: []string{script.Marker}, at: make([]place, len(lanes))}
	for _, i := range t.silent(m.node, since) {
		lanes[i].submit(&request{op: opInspect, claim: about, to: nobody{}}, m.now())
	}
}

// A silentError is why a node has no vote that has lost its data longer ago than a
// quarantine: another one, which may know of longer TTLs, has not been heard of since.
type silentError string

func (e silentError) Error() string {
	return fmt.Sprintf("it is new, or has lost its data, and %s, where longer TTLs may have been announced, has not been heard of since", string(e))
}
