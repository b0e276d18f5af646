package lane

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/wire"
)

// Redis expires keys by the wall clock of its host. One that is set forward drops
// them early, so a node whose clock is found to have been set counts as one that
// forgot. Every client finds out for itself: a reply to what left at s that came at
// r and says that it is t puts the node's clock between t-r and t-s ahead of ours,
// and the next reply must agree with that.
//
// How much it may disagree is what the drift of a lock leaves room for, since the
// locks that are valid need not fear it: a clock that runs fast by as much as the
// drift allows is not suspected. A lock of TTL t has the drift d(t) = t/100 + 2ms, and
// for its speed a clock gets a hundredth of t of that. Over times for which nobody
// has looked, a hundredth of the time is another matter: a lock of 10 s that is alive at
// the end of an idle minute was alive for the last 10 s of it only, and all of what is
// excused may have been one step, in the last of its moments. So speed excuses no more
// after any time than it does in the life of a lock that is as short as they are.
//
// How short others' locks are a client does not know. It takes Options.TTL, which those
// who use the same names have in common, as a rule, and not the shortest time that it
// has asked for itself: a clock that is as fast as drift allows moves by a hundredth of
// TTL between two looks that are TTL apart, which is no step, and would be one too many
// for a lock of half of that. So a lock that lasts for less than Options.TTL (TTL) has
// less room than is excused to those who have not looked for longer than it lives. Where
// Options.Drift is given, it is every lock's, and the shortest has as much room as the
// longest.
//
// Beyond that, what is excused is what quartz does: a client that is idle for an hour
// must not find that all clocks were set. With the default drift that is less than speed
// excuses for the first fifty times Options.TTL. After a longer time nothing tells a step
// from quartz.
const quartz = 200e-6

// resolution is the part of the default drift for what has no speed, and half of that for
// Redis itself, which counts milliseconds.
const resolution = 500 * time.Microsecond

// An offsetEstimate is what a Locker knows of one node's clock.
type offsetEstimate struct {
	low, up time.Duration // how far it is ahead of ours: at least, and at most
	at      time.Time     // as of when, by our clock; zero: nothing is known
	moved   time.Duration // what it was found to have moved by, and was not excused by its speed
}

// A tolerance says what an offsetEstimate puts up with: a speed that differs from ours by so
// much, for no longer than short locks live, or that of quartz; and steps that
// make so much in all in the time for which the longest lock lives.
type tolerance struct {
	speed          float64
	short, longest time.Duration // how long short locks live, and the longest
	steps          time.Duration
}

// slack is what speed excuses after some time.
func (a *tolerance) slack(since time.Duration) time.Duration {
	return time.Duration(max(a.speed*float64(min(since, a.short)), quartz*float64(since)))
}

// toleranceOf divides the drift of a lock, less a millisecond: half is for speed, and a
// quarter for steps, since as much may be forgiven while it lasts. A drift that was not
// given is each lock's own: speed gets the part that grows with the TTL, and steps get
// half a millisecond. A drift that was given is the same for the shortest lock and the
// longest, so its half is for the time for which the longest lives. One that leaves less
// than clocks need which nobody sets is taken at its user's word.
func (cfg *Config) toleranceOf() tolerance {
	if cfg.Drift == 0 {
		return tolerance{speed: 0.01, short: cfg.TTL, longest: cfg.MaxTTL, steps: resolution}
	}
	return tolerance{
		speed:   max(quartz, float64(cfg.Drift/2)/float64(cfg.MaxTTL)),
		short:   cfg.MaxTTL,
		longest: cfg.MaxTTL,
		steps:   max(resolution, (cfg.Drift/2-time.Millisecond)/2),
	}
}

// sample takes in that the node's clock said t some time from sent to now. It gives
// what the clock has been set by, if that is more than can be put up with; else 0.
//
// If our own two clocks disagree about the time since the last sample, our host
// was suspended, or its clock set, and the node's cannot be judged: it is as if it
// were seen for the first time.
func (k *offsetEstimate) sample(sent, now, t time.Time, allow tolerance) (step time.Duration) {
	// The node read its clock some time before now, and it may have gone on faster
	// than ours since.
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
	default:
		k.low, k.up, k.at = max(low, k.low-slack), min(up, k.up+slack), now
		return 0
	}
	k.low, k.up, k.at = low, up, now
	if k.moved += step.Abs(); k.moved <= allow.steps {
		return 0
	}
	k.moved = 0
	return step
}

// clocks are those of all nodes of a Locker.
type clocks struct {
	allow   tolerance
	maxSkew time.Duration

	mu  sync.Mutex
	all []offsetEstimate
}

func newClocks(n int, cfg *Config) *clocks {
	return &clocks{allow: cfg.toleranceOf(), maxSkew: cfg.MaxNodeSkew, all: make([]offsetEstimate, n)}
}

// sample is offsetEstimate.sample for a node. It also gives how far the node is from
// the middle of the nodes' clocks, if that is more than MaxNodeSkew; known is false if the
// middle is not.
func (c *clocks) sample(node int, sent, now, t time.Time) (step, skew time.Duration, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	step = c.all[node].sample(sent, now, t, c.allow)
	skew, known = c.off(node, now)
	return step, skew, known
}

// skew is how far a node is from the middle at an instant, by what is known by now of all of
// them, if that is more than MaxNodeSkew.
func (c *clocks) skew(node int, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	skew, _ := c.off(node, now)
	return skew
}

// off is skew, and whether the middle is known. Under the mutex.
func (c *clocks) off(node int, now time.Time) (skew time.Duration, known bool) {
	k := &c.all[node]
	if c.maxSkew <= 0 || k.at.IsZero() {
		return 0, c.maxSkew <= 0
	}
	low, up, known := c.median(now)
	slack := c.vague(k, now)
	switch {
	case !known:
	case k.low-slack-up > c.maxSkew:
		skew = k.low - slack - up
	case low-k.up-slack > c.maxSkew:
		skew = k.up + slack - low
	}
	return skew, known
}

// vague is by how much a node's clock may be elsewhere than when it was last heard of.
func (c *clocks) vague(k *offsetEstimate, now time.Time) time.Duration {
	since := now.Sub(k.at)
	return c.allow.slack(max(0, since)) + (now.Round(0).Sub(k.at.Round(0)) - since).Abs()
}

// median is the lower median of how far the clocks are ahead at an instant, at least and at
// most, if a majority has been heard of. So it is no more than what a node shows that is
// right, as long as a majority of those that have been heard of are. What a node may have
// drifted by since it was last heard of counts, and what our own clock was set by: idle times
// make the middle vague, and never wrong. Under the mutex.
func (c *clocks) median(now time.Time) (low, up time.Duration, ok bool) {
	var some [2][9]time.Duration // as many as anybody has, so that nothing is allocated
	lows, ups := some[0][:0], some[1][:0]
	for i := range c.all {
		k := &c.all[i]
		if k.at.IsZero() {
			continue
		}
		slack := c.vague(k, now)
		lows, ups = append(lows, k.low-slack), append(ups, k.up+slack)
	}
	if len(lows) < len(c.all)/2+1 {
		return 0, 0, false
	}
	slices.Sort(lows)
	slices.Sort(ups)
	i := (len(lows) - 1) / 2
	return lows[i], ups[i], true
}

// beyond gives by how much a lock's number is ahead of the middle of the nodes' clocks, if that
// is so much that it is no vote; else 0. See acquire.go.
func (c *clocks) beyond(number int64, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, up, ok := c.median(now)
	if !ok || c.maxSkew <= 0 {
		return 0
	}
	ahead := time.UnixMicro(number).Sub(now.Round(0).Add(up))
	if ahead < c.maxSkew+2*wire.Clamp {
		return 0
	}
	return ahead
}

// ticket is an instant of ours, in microseconds, by the middle of the nodes' clocks:
// so that tickets can be compared, whatever the waiters' own clocks say. It is anywhere within
// width; if the median is not known, it is by our own clock.
func (c *clocks) ticket(at time.Time) (ticket int64, width time.Duration, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	low, up, known := c.median(at)
	return at.Round(0).Add(low + (up-low)/2).UnixMicro(), up - low, known
}

// latest is what a node's clock shows at the latest at an instant of ours, in
// microseconds; 0: nobody knows.
func (c *clocks) latest(node int, at time.Time) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := &c.all[node]
	if k.at.IsZero() || at.IsZero() {
		return 0
	}
	ahead := k.up + c.allow.slack(max(0, at.Sub(k.at))) + c.allow.steps
	return at.Round(0).Add(ahead).UnixMicro()
}

// A stepError is why a node has no vote whose clock was set.
type stepError time.Duration

func (e stepError) Error() string {
	return fmt.Sprintf("its clock was set by %v, so it may have dropped locks", time.Duration(e).Round(time.Microsecond))
}

// A skewError is why a node has no vote whose clock is not like the others'.
type skewError struct{ skew, limit time.Duration }

func (e skewError) Error() string {
	return fmt.Sprintf("its clock is %v from the middle of the nodes' clocks (Options.MaxNodeSkew %v)", e.skew.Round(time.Millisecond), e.limit.Round(time.Millisecond))
}

// A PoisonError is why a grant is no vote whose number is far ahead of the time.
type PoisonError time.Duration

func (e PoisonError) Error() string {
	return fmt.Sprintf("the number of its grant is %v ahead of the nodes' clocks, for its clock was wrong once: redlock prepare --reset-fences mends it", time.Duration(e).Round(time.Millisecond))
}
