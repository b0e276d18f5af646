package vote

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/internal/printable"
	"github.com/quorumlock/redlock/internal/wire"
)

// Redis expires keys by the wall clock of its host. A clock that is set forward drops them early, so a node whose clock was
// set forward counts as one that forgot. Every client finds out for itself. A request leaves at s, its reply comes at r and
// says that the node's time is t. So t-r <= node's clock - client's clock <= t-s, and the next reply must agree with that.
//
// How much it may disagree follows from the drift of a lock (by how much its validity is shorter than its TTL): a clock that
// moves by less does no harm to a valid lock, and a clock that runs fast by as much as the drift allows is not suspected. A
// lock of TTL t has the drift d(t) = t/100 + 2ms, and of that a clock gets t/100 for its speed. Over longer times without a
// reply, a hundredth of the time would be too much. A lock of 10 s that is alive at the end of an idle minute was alive for
// the last 10 s of it only, and all of what is excused may have been one step, in the last moment. So speed excuses no more
// after any time than it does in the life of a short lock.
//
// A client does not know how short the locks of other clients are. It takes Options.TTL, which as a rule all clients of the
// same names have in common, and not the shortest TTL that it has used itself: a clock that is as fast as the drift allows
// moves by TTL/100 between two replies that are TTL apart. That is no step, but would count as one for a lock of half that
// TTL. So a lock with a shorter TTL than Options.TTL has less drift than is excused after a time without a reply that is
// longer than the lock's life. A given Options.Drift is every lock's drift: the shortest lock has as much as the longest.
//
// Beyond that, what quartz does is excused, and a kernel that corrects it (500 ppm at most): a client that is idle for an
// hour must not find that all clocks were set. With the default drift, that is less than speed excuses for the first twenty
// times Options.TTL. After a longer time nothing tells a step from quartz.
//
// A clock that was set back costs the node no vote. The node keeps its keys for longer, and no request makes it drop one: so
// each lock that it has granted, to any client, is there until its TTL is over, which is all that a vote says. Mostly it is
// not the node's clock, either: a time service slews the client's own clock, which then runs fast (chrony: by up to 8 %),
// and all nodes seem to go back, with each reply. When the node's clock is set right again, it steps forward, and the node
// drops keys early that were set in between. That step is judged like any other: a client that sees it stops counting the
// node. Only a client that got no reply in between sees none, and may get a lock of that time early, as docs/safety.md says.
// Quarantine after the step back would help only if the step forward came within it, and only clients that saw both.
const quartz = 500e-6

// resolution is the part of the default drift (2 ms) that steps may use. 1 ms is for Redis, which counts milliseconds, and
// half of the rest is spare (tolerance).
const resolution = 500 * time.Microsecond

// An offsetEstimate is what a client knows about one node's clock.
type offsetEstimate struct {
	low, up time.Duration // bounds of the offset: the node's clock less the client's
	at      time.Time     // when they were found, by the client's clock; zero: nothing is known
	moved   time.Duration // the sum of steps forward that speed does not explain, less what was forgiven since
}

// A tolerance is what an offsetEstimate excuses: a speed that differs from the client's by so much, for no longer than short
// locks live, or the speed of quartz for any time; and steps of so much in all within the life of the longest lock.
type tolerance struct {
	speed          float64
	short, longest time.Duration // the life of short locks, and of the longest
	steps          time.Duration
}

// slack returns how far a node's clock may move from the client's, by its speed alone, while the time since passes.
func (a *tolerance) slack(since time.Duration) time.Duration {
	return time.Duration(max(a.speed*float64(min(since, a.short)), quartz*float64(since)))
}

// tolerance returns how a clock may move and not count as set, if no lock lives longer than longest. It divides a lock's
// drift, by which its validity is shorter than its TTL. By default each lock has its own, TTL/100 + 2 ms: the part that
// grows with the TTL is for speed, and half a millisecond (resolution) for steps. A given Config.Drift is that of all locks:
// half is for speed during the life of the longest, 1 ms for Redis, and half of the rest for steps, since as much may be
// forgiven again in that life. It excuses at least the speed of clocks that are never set (quartz), and resolution.
func (cfg *Config) tolerance(longest time.Duration) tolerance {
	if cfg.Drift == 0 {
		return tolerance{speed: 0.01, short: cfg.TTL, longest: longest, steps: resolution}
	}
	return tolerance{
		speed:   max(quartz, float64(cfg.Drift/2)/float64(longest)),
		short:   longest,
		longest: longest,
		steps:   max(resolution, (cfg.Drift/2-time.Millisecond)/2),
	}
}

// sample records that the node's clock showed t at some moment from sent, when the request left, to now. It returns the step
// of the node's clock, positive if forward; 0: none, or allow (what is tolerated) excuses it. Steps back do no harm: they
// neither add up nor offset steps forward.
//
// If the client's own two clocks disagree about the time since the last sample, its host was suspended, or its clock set,
// and the node's clock cannot be judged: sample starts anew, as with the first reply.
func (k *offsetEstimate) sample(sent, now, t time.Time, allow tolerance) (step time.Duration) {
	// The node read its clock some time before now, and may have run faster than the client since.
	low, up := t.Sub(now.Round(0)), t.Sub(sent.Round(0))+allow.slack(max(0, now.Sub(sent)))
	since := now.Sub(k.at)
	wall := now.Round(0).Sub(k.at.Round(0))
	if k.at.IsZero() || (wall-since).Abs() > resolution {
		*k = offsetEstimate{low: low, up: up, at: now}
		return 0
	}
	since = max(since, 0)
	slack := allow.slack(since)
	k.moved = max(0, k.moved-time.Duration(float64(allow.steps)*float64(since)/float64(allow.longest)))
	switch {
	case low > k.up+slack:
		step = low - k.up
	case up < k.low-slack:
		step = up - k.low
		k.low, k.up, k.at = low, up, now
		if -step <= allow.steps {
			return 0
		}
		return step
	default:
		k.low, k.up, k.at = max(low, k.low-slack), min(up, k.up+slack), now
		return 0
	}
	k.low, k.up, k.at = low, up, now
	if k.moved += step; k.moved <= allow.steps {
		return 0
	}
	k.moved = 0
	return step
}

// A Group is what one client knows of the nodes of a set in common: the median of their clocks, how long a quarantine lasts
// (for which a node that may have forgotten locks has no vote), and which description of the set the program cannot use.
type Group struct {
	cfg        *Config
	quarantine atomic.Int64
	unusable   atomic.Pointer[wire.Description]

	mu      sync.Mutex   // protects what follows, and the estimates of all nodes' clocks
	allow   tolerance    // what is excused of their clocks
	warned  time.Time    // when alike last returned true
	members []*nodeClock // the clocks that make the median
}

// A nodeClock is the estimate of a node's clock, and the last step that it has made.
type nodeClock struct {
	offsetEstimate
	lastStep clockStep
}

// NewGroup returns a Group whose median is of no nodes yet (Elect), for a set that allows TTLs up to cfg.MaxTTL.
func NewGroup(cfg *Config) *Group {
	g := &Group{cfg: cfg}
	g.Bound(cfg.MaxTTL)
	return g
}

// Bound makes a quarantine, for which a node that may have forgotten locks has no vote, outlast all locks with TTLs up to
// longest, and their drift. It returns how long a quarantine was before, and is now.
func (g *Group) Bound(longest time.Duration) (before, now time.Duration) {
	g.mu.Lock()
	g.allow = g.cfg.tolerance(longest)
	g.mu.Unlock()
	now = max(g.cfg.Quarantine, longest+g.cfg.DriftOf(longest))
	return time.Duration(g.quarantine.Swap(int64(now))), now
}

// Quarantine returns for how long a node has no vote after it may have forgotten something: for longer than any lock lives
// under the set's description by which the client goes (wire.Description.Longest).
func (g *Group) Quarantine() time.Duration { return time.Duration(g.quarantine.Load()) }

// Refuse makes no vote count by d, a description that the program cannot use, until it is called with another one, or nil.
func (g *Group) Refuse(d *wire.Description) { g.unusable.Store(d) }

// usable reports whether votes may count by d, a description of the set: d is nil, or not that of the last Refuse call.
func (g *Group) usable(d *wire.Description) bool { return d == nil || g.unusable.Load() != d }

// Elect makes these nodes those of which Ticket, Skewed and others take the median clock: the members of the set.
func (g *Group) Elect(members []*Node) {
	clocks := make([]*nodeClock, len(members))
	for i, m := range members {
		clocks[i] = &m.clock
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.members = clocks
}

// sample records that the clock k showed t at some moment from sent to now. It returns the clock's step, positive if forward
// (0: none, or g.allow excuses it), how far it is ahead of the median of the members' clocks, and if that is known (off).
func (g *Group) sample(k *nodeClock, sent, now, t time.Time) (step, skew time.Duration, known bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	step = k.sample(sent, now, t, g.allow)
	skew, known = g.off(k, now)
	return step, skew, known
}

// A clockStep is a step of a node's clock, as it seems to the client.
type clockStep struct {
	at time.Time
	by time.Duration
}

// alike records a step of the clock k (by) at now, and reports whether more likely the client's own clock was wrong: a
// majority of the members' clocks have made the same step within the duration within, in which the client hears of all
// nodes. It is true only once then, and false with a single member: nothing tells one clock from the other. No vote depends
// on it, only a warning: if the nodes' clocks really were set forward together (on one host), all dropped locks early.
func (g *Group) alike(k *nodeClock, now time.Time, by, within time.Duration) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	k.lastStep = clockStep{now, by}
	same := 0
	for _, member := range g.members {
		if s := member.lastStep; !s.at.IsZero() && now.Sub(s.at) <= within && (s.by-by).Abs() <= by.Abs()/4 {
			same++
		}
	}
	if len(g.members) < 2 || same <= len(g.members)/2 || !g.warned.IsZero() && now.Sub(g.warned) <= within {
		return false
	}
	g.warned = now
	return true
}

// skew returns how far the clock k is ahead of the median of all at now (negative: behind), if beyond MaxNodeSkew; else 0,
// also if that is off, or k or the median is not known. It takes g.mu.
func (g *Group) skew(k *nodeClock, now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	skew, _ := g.off(k, now)
	return skew
}

// off returns how far the clock k is ahead of the median of all at now (negative: behind), if beyond MaxNodeSkew; else 0.
// known is false, and skew 0, if MaxNodeSkew is on, and the median or k is not known. Caller holds g.mu.
func (g *Group) off(k *nodeClock, now time.Time) (skew time.Duration, known bool) {
	if g.cfg.MaxNodeSkew <= 0 || k.at.IsZero() {
		return 0, g.cfg.MaxNodeSkew <= 0
	}
	low, up, known := g.median(now)
	slack := g.uncertainty(&k.offsetEstimate, now)
	switch {
	case !known:
	case k.low-slack-up > g.cfg.MaxNodeSkew:
		skew = k.low - slack - up
	case low-k.up-slack > g.cfg.MaxNodeSkew:
		skew = k.up + slack - low
	}
	return skew, known
}

// uncertainty returns by how much k's offset (node less client) may have changed since its last sample. Caller holds g.mu.
func (g *Group) uncertainty(k *offsetEstimate, now time.Time) time.Duration {
	since := now.Sub(k.at)
	return g.allow.slack(max(0, since)) + (now.Round(0).Sub(k.at.Round(0)) - since).Abs()
}

// median returns bounds of the lower median of the nodes' clock offsets (node less client) at now. ok is false until a
// majority of the nodes has replied. The lower median is at most what some correct node shows, as long as a majority of the
// nodes that have replied are correct. The bounds include what a node may have drifted since its last reply, and what the
// client's own clock was set by: idle times make the median uncertain, and never wrong. Caller holds g.mu.
func (g *Group) median(now time.Time) (low, up time.Duration, ok bool) {
	var some [2][9]time.Duration // for the usual number of nodes, so that nothing is allocated
	lows, ups := some[0][:0], some[1][:0]
	for _, k := range g.members {
		if k.at.IsZero() {
			continue
		}
		slack := g.uncertainty(&k.offsetEstimate, now)
		lows, ups = append(lows, k.low-slack), append(ups, k.up+slack)
	}
	if len(lows) < len(g.members)/2+1 {
		return 0, 0, false
	}
	slices.Sort(lows)
	slices.Sort(ups)
	i := (len(lows) - 1) / 2
	return lows[i], ups[i], true
}

// Middle returns the latest time that the median of the nodes' clocks may show at now; zero: not known, or no MaxNodeSkew.
func (g *Group) Middle(now time.Time) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, up, ok := g.median(now)
	if !ok || g.cfg.MaxNodeSkew <= 0 {
		return time.Time{}
	}
	return now.Round(0).Add(up)
}

// Beyond returns by how much number, a fence in microseconds, is ahead of middle, the median of the nodes' clocks, if that
// is too much for the grant to be a vote (see fence.go); else 0, also if middle is zero (not known).
func (g *Group) Beyond(number int64, middle time.Time) time.Duration {
	if middle.IsZero() {
		return 0
	}
	ahead := time.UnixMicro(number).Sub(middle)
	if ahead < g.cfg.MaxNodeSkew+2*wire.Clamp {
		return 0
	}
	return ahead
}

// Ticket returns at, an instant of the client's clock, in microseconds by the median of the nodes' clocks, so that tickets
// of clients can be compared, whatever their own clocks show. It is the middle of a range of this width, which has the true
// value. If known is false, the median is not known, the ticket is by the client's own clock, and width is 0.
func (g *Group) Ticket(at time.Time) (ticket int64, width time.Duration, known bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	low, up, known := g.median(at)
	return at.Round(0).Add(low + (up-low)/2).UnixMicro(), up - low, known
}

// latest returns the latest time, in microseconds, that the node's clock k may show at an instant of the client's clock,
// such as a request's deadline; 0: at is zero, or nothing is known of the clock.
func (g *Group) latest(k *nodeClock, at time.Time) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if k.at.IsZero() || at.IsZero() {
		return 0
	}
	ahead := k.up + g.allow.slack(max(0, at.Sub(k.at))) + g.allow.steps
	return at.Round(0).Add(ahead).UnixMicro()
}

// A stepError says that a node has no vote because its clock was set forward.
type stepError time.Duration

func (e stepError) Error() string {
	return fmt.Sprintf("its clock was set by %v, so it may have dropped locks", printable.Duration(time.Duration(e)))
}

// An OwnClockError says that the clocks of most nodes seem to have made the same step.
type OwnClockError time.Duration

func (e OwnClockError) Error() string {
	by := time.Duration(e)
	if by < 0 {
		return fmt.Sprintf("redlock: the clocks of most nodes seem to have been set back by %v at once: more likely this computer's own clock ran fast (a time service slews it); the nodes keep their votes", printable.Duration(-by))
	}
	return fmt.Sprintf("redlock: the clocks of most nodes seem to have been set forward by %v at once: more likely this computer's own clock stood or ran slow (a virtual machine that was paused), and locks that it held then ended that much earlier than it knew; but if the nodes' clocks were set, they have dropped locks early, so they have no vote for a quarantine", printable.Duration(by))
}

// A SkewError says that a node has no vote because its clock differs from the others'.
type SkewError struct{ Skew, Limit time.Duration }

func (e SkewError) Error() string {
	return fmt.Sprintf("its clock is %v from the middle of the nodes' clocks (Options.MaxNodeSkew %v)", printable.Duration(e.Skew), printable.Duration(e.Limit))
}

// A PoisonError says that a grant is no vote because its fence is so far ahead of the time.
type PoisonError time.Duration

func (e PoisonError) Error() string {
	return fmt.Sprintf("the number of its grant is %v ahead of the nodes' clocks, for its clock was wrong once: redlock prepare --reset-fences mends it", printable.Duration(time.Duration(e)))
}
