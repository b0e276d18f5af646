package vote

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/testbed/reading"
	"github.com/quorumlock/redlock/internal/wire"
)

// A looked is an offsetEstimate of a node's clock, with what the clock really shows.
type looked struct {
	offsetEstimate
	allow tolerance
	now   time.Time     // by the client's clock
	ahead time.Duration // how far the node's is ahead of it
}

func look(o *Config) *looked {
	if o.MaxTTL == 0 {
		o.MaxTTL = 10 * time.Second
	}
	o.TTL = cmp.Or(o.TTL, o.MaxTTL)
	k := &looked{allow: o.tolerance(o.MaxTTL), now: time.Now(), ahead: time.Hour}
	k.sample(k.now, k.now, k.now.Add(k.ahead).Round(0), k.allow)
	return k
}

// after looks at the clock after a time in which it has moved away by so much. The look takes no
// time, so the sample is exact.
func (k *looked) after(since, moved time.Duration) (step time.Duration) {
	k.now, k.ahead = k.now.Add(since), k.ahead+moved
	return k.sample(k.now, k.now, k.now.Add(k.ahead).Round(0), k.allow)
}

// part is a fraction of a duration.
func part(of float64, d time.Duration) time.Duration { return time.Duration(of * float64(d)) }

// TestSteadyClocks: a clock that is no faster, or slower, than the drift allows is not suspected,
// however often it is looked at, if that is at least once in the life of a lock. A clock that is as
// good as quartz is never suspected.
func TestSteadyClocks(t *testing.T) {
	for _, o := range []Config{{MaxTTL: time.Second}, {MaxTTL: 10 * time.Second}, {MaxTTL: time.Minute},
		{MaxTTL: 10 * time.Second, Drift: time.Second}, {MaxTTL: 10 * time.Second, Drift: 10 * time.Millisecond},
		{TTL: 10 * time.Second, MaxTTL: 10 * time.Minute}, {TTL: 10 * time.Second, MaxTTL: 10 * time.Minute, Drift: time.Second}} {
		shortest := cmp.Or(o.TTL, o.MaxTTL)
		rate := o.tolerance(o.MaxTTL).speed
		if o.Drift == 0 && rate != 0.01 {
			t.Errorf("the default tolerates a speed of %v", rate)
		}
		for _, every := range []time.Duration{time.Microsecond, time.Millisecond, 100 * time.Millisecond, shortest / 3, shortest - 1, shortest} {
			for _, rate := range []float64{0, quartz, -quartz, rate / 2, rate, -rate} {
				k := look(&o)
				for n := range 2_000 {
					if step := k.after(every, part(rate, every)); step != 0 {
						t.Fatalf("%v: a clock at %+v, looked at every %v: step of %v at the %dth look", o.MaxTTL, rate, every, step, n)
					}
				}
			}
		}
		for _, every := range []time.Duration{time.Minute, time.Hour, 30 * 24 * time.Hour} {
			for _, rate := range []float64{0, quartz, -quartz} {
				k := look(&o)
				for range 100 {
					if step := k.after(every, part(rate, every)); step != 0 {
						t.Fatalf("%v: a clock at %+v, looked at every %v: step of %v", o.MaxTTL, rate, every, step)
					}
				}
			}
		}
	}
}

// TestStepsAreFound: the first nanosecond beyond the tolerance is found.
func TestStepsAreFound(t *testing.T) {
	const ms = time.Millisecond
	for _, drift := range []time.Duration{0, 20 * ms, time.Second} {
		for _, since := range []time.Duration{0, time.Microsecond, 10 * ms, 100 * ms, time.Second, 10*time.Second - 1, 10 * time.Second, time.Minute, time.Hour} {
			allow := look(&Config{Drift: drift}).allow
			for _, sign := range []time.Duration{1, -1} {
				may := sign * max(allow.slack(since), allow.steps) // speed or a step: one of them explains it
				if step := look(&Config{Drift: drift}).after(since, may); step != 0 {
					t.Errorf("drift %v: %v after %v is a step of %v", drift, may, since, step)
				}
				if step := look(&Config{Drift: drift}).after(since, may+sign); step != may+sign {
					t.Errorf("drift %v: %v after %v is a step of %v", drift, may+sign, since, step)
				}
			}
		}
	}
	// In figures, for the default.
	for _, tt := range []struct{ since, found time.Duration }{
		{0, 501 * time.Microsecond}, {40 * ms, 501 * time.Microsecond}, {time.Second, 11 * ms}, {10 * time.Second, 101 * ms},
		{time.Minute, 101 * ms}, {3 * time.Minute, 101 * ms}, {time.Hour, 1801 * ms},
	} {
		for _, sign := range []time.Duration{1, -1} {
			if step := look(&Config{}).after(tt.since, sign*tt.found); step != sign*tt.found {
				t.Errorf("%v after %v is a step of %v", sign*tt.found, tt.since, step)
			}
		}
	}
}

// TestAfterAStep: after a step the clock is estimated anew.
func TestAfterAStep(t *testing.T) {
	k := look(&Config{})
	for _, step := range []time.Duration{time.Second, -time.Minute, 3 * time.Second} {
		if got := k.after(time.Millisecond, step); got != step {
			t.Errorf("%v is a step of %v", step, got)
		}
		for range 10 {
			if got := k.after(time.Second, 5*time.Millisecond); got != 0 {
				t.Errorf("%v after it", got)
			}
		}
	}
}

// TestSmallStepsAddUp: small steps add up within the life of a lock, and are forgiven after it.
func TestSmallStepsAddUp(t *testing.T) {
	const lifetime = 10 * time.Second
	for _, tt := range []struct {
		every, step time.Duration
		found       int // the number of the step that is found; 0: none is
	}{
		{0, 100 * time.Microsecond, 6},
		{0, -100 * time.Microsecond, 0}, // back is no harm
		{0, time.Microsecond, 501},
		{time.Microsecond, 100 * time.Microsecond, 6},
		{lifetime / 10_000, 100 * time.Microsecond, 6},
		{time.Millisecond, 251 * time.Microsecond, 2},
		{time.Microsecond, resolution / 2, 3},
		{lifetime / 100_000, 10 * time.Nanosecond, 0}, // speed
		{lifetime / 10_000, part(0.01, lifetime/10_000), 0},
	} {
		k, found := look(&Config{}), 0
		for n := 1; n <= 20_000 && found == 0; n++ {
			if step := k.after(tt.every, tt.step); step != 0 {
				found = n
			}
		}
		if found != tt.found {
			t.Errorf("%v every %v: found by the step number %d, want %d", tt.step, tt.every, found, tt.found)
		}
	}
	// Steps at one instant, and the next ones when those are forgiven, and before.
	for rest, found := range map[time.Duration]bool{lifetime: false, lifetime - lifetime/1000: true} {
		k := look(&Config{})
		got := k.after(0, resolution) + k.after(rest, 0) + k.after(0, resolution)
		if (got != 0) != found {
			t.Errorf("%v, and again after %v: found %v", resolution, rest, got)
		}
	}
	// A step back does not make up for one forward, whether it is small or not.
	for _, back := range []time.Duration{300 * time.Microsecond, time.Second} {
		k := look(&Config{})
		got := k.after(0, 300*time.Microsecond)
		_ = k.after(0, -back)
		if got += k.after(0, 300*time.Microsecond); got != 300*time.Microsecond {
			t.Errorf("forth, back by %v, and forth: found %v", back, got)
		}
	}
}

// TestStallsAreNoSteps: all that a reply says is that the node had the request at some time between
// sending and receiving. So a slow reply makes the estimate vague, and never wrong.
func TestStallsAreNoSteps(t *testing.T) {
	for _, ttl := range []time.Duration{time.Second, 10 * time.Second, time.Minute} {
		for _, rate := range []float64{0, quartz, -quartz, 0.001, 0.01, -0.01} {
			t.Run(fmt.Sprintf("%v, %+v", ttl, rate), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(1, 2))
				below := func(d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }
				longest := min(max(4*min(max(min(ttl/10, 500*time.Millisecond), 50*time.Millisecond), ttl/2), time.Second), ttl/2) // more than that, and there is no reply
				leg := func() time.Duration {
					d := 20*time.Microsecond + below(200*time.Microsecond)
					if rng.IntN(20) == 0 {
						d += below(longest / 2)
					}
					return d
				}
				var k offsetEstimate
				allow := (&Config{TTL: ttl}).tolerance(ttl)
				begin, at := time.Now(), time.Duration(0)
				for n := range 10_000 {
					if at += below(20 * time.Millisecond); rng.IntN(100) == 0 {
						at += below(ttl / 3)
					}
					got := at + leg()
					back := got + leg()
					says := begin.Add(time.Hour + got + part(rate, got)).UnixMicro()
					if step := k.sample(begin.Add(at), begin.Add(back), time.UnixMicro(says), allow); step != 0 {
						t.Fatalf("a step of %v in the %dth reply, which came %v after the request had left, which came there after %v", step, n, back-at, got-at)
					}
					at = back
				}
			})
		}
	}
}

// TestOwnClocksDisagree: when the client's host was suspended, or its clock set, what the node's
// clock did meanwhile cannot be known, and what it does from then on is judged.
func TestOwnClocksDisagree(t *testing.T) {
	for _, tt := range []struct {
		name    string
		ours    time.Duration // the wall clock moves on by so much more than the monotonic one
		unheard bool
	}{
		{"suspended for an hour", time.Hour, true},
		{"set forward", time.Second, true},
		{"set back", -time.Second, true},
		{"by more than can be a step of the node's", resolution + 1, true},
		{"by more than that, back", -resolution - 1, true},
		{"just not", resolution, false},
		{"not at all", 0, false},
	} {
		k := look(&Config{})
		// A minute passes by the wall clock, and at the node, whose clock is set forward
		// by a quarter of an hour then.
		const passed, set = time.Minute, 15 * time.Minute
		now := reading.Asleep(k.now.Add(passed), tt.ours)
		if got := now.Round(0).Sub(k.now.Round(0)) - now.Sub(k.now); got != tt.ours {
			t.Fatalf("the clocks differ by %v and not %v: the test does not test what it means to", got, tt.ours)
		}
		step := k.sample(now, now, now.Add(k.ahead+set).Round(0), k.allow)
		if (step == 0) != tt.unheard {
			t.Errorf("%s: a step of %v", tt.name, step)
		}
		k.now, k.ahead = now, k.ahead+set
		if step := k.after(time.Second, 0); step != 0 {
			t.Errorf("%s: and one of %v afterwards", tt.name, step)
		}
		if step := k.after(time.Second, time.Second); step != time.Second {
			t.Errorf("%s: then a second is a step of %v", tt.name, step)
		}
	}

	// Readings without a monotonic part, as Options.Clock may give them, are taken as
	// they are.
	k := look(&Config{})
	k.now = k.now.Round(0)
	if step := k.after(time.Minute, 0); step != 0 {
		t.Errorf("without a monotonic clock: a step of %v", step)
	}
	if step := k.after(time.Minute, time.Second); step != time.Second {
		t.Errorf("without a monotonic clock: a second is a step of %v", step)
	}
}

// TestUndetected: whatever a clock does undetected while it is looked at all the time, it moves in
// the life of a lock by no more than the drift, less a millisecond for Redis, which counts
// milliseconds. The sequence is the worst case: all the steps that are excused at once, then the
// fastest excused speed, with a step whenever one is forgiven.
func TestUndetected(t *testing.T) {
	for _, o := range []Config{
		{MaxTTL: time.Second}, {MaxTTL: 10 * time.Second}, {MaxTTL: time.Minute},
		{MaxTTL: 10 * time.Second, Drift: 50 * time.Millisecond}, {MaxTTL: 10 * time.Second, Drift: time.Second},
	} {
		const looks = 10_000
		k := look(&o)
		k.after(o.MaxTTL, 0)
		begin, every := k.ahead, o.MaxTTL/looks
		found := k.after(0, k.allow.steps)
		for range looks {
			found += k.after(every, k.allow.slack(every)).Abs()
			if spare := k.allow.steps - k.moved; spare > 0 {
				found += k.after(0, spare).Abs()
			}
		}
		moved, most := k.ahead-begin, driftOf(&o, o.MaxTTL)-time.Millisecond
		if found != 0 {
			t.Errorf("MaxTTL %v, drift %v: the steps were found", o.MaxTTL, driftOf(&o, o.MaxTTL))
		}
		if moved > most {
			t.Errorf("MaxTTL %v, drift %v: the clock has moved by %v in a lifetime, which is %v too much, unnoticed",
				o.MaxTTL, driftOf(&o, o.MaxTTL), moved, moved-most)
		}
	}
}

// TestIdleLooks: after idle time, too, what is excused is less than the drift of a lock
// of Options.TTL, by a millisecond for Redis: all of it may have been one step, in the
// last moment of that lock. That holds for as long as quartz alone cannot
// have done more; from then on it is what quartz does.
func TestIdleLooks(t *testing.T) {
	const ms = time.Millisecond
	for _, o := range []Config{
		{TTL: 10 * time.Second, MaxTTL: 10 * time.Minute}, {TTL: 10 * time.Second, MaxTTL: 10 * time.Second},
		{TTL: time.Second, MaxTTL: time.Hour}, {TTL: 100 * ms, MaxTTL: time.Minute}, {TTL: time.Minute, MaxTTL: time.Hour},
		{TTL: 10 * time.Second, MaxTTL: 10 * time.Minute, Drift: 200 * ms}, {TTL: 50 * ms, MaxTTL: 10 * time.Minute, Drift: 40 * ms},
	} {
		most := driftOf(&o, o.TTL) - ms
		for since := ms; part(quartz, since) <= driftOf(&o, o.TTL)/2-ms; since = since * 3 / 2 {
			for _, sign := range []time.Duration{1, -1} {
				if step := look(&o).after(since, sign*(most+1)); step != sign*(most+1) {
					t.Errorf("TTL %v, MaxTTL %v, drift %v: %v after %v is a step of %v", o.TTL, o.MaxTTL, o.Drift, sign*(most+1), since, step)
				}
			}
		}
		for since := ms; since < 60*24*time.Hour; since = since * 3 / 2 {
			for _, rate := range []float64{quartz, -quartz} {
				if step := look(&o).after(since, part(rate, since)); step != 0 {
					t.Errorf("TTL %v, MaxTTL %v, drift %v: a clock at %+v, looked at after %v: step of %v", o.TTL, o.MaxTTL, o.Drift, rate, since, step)
				}
			}
		}
	}
}

// TestUndetectedBetweenLooks: a client that looks only now and then cannot tell a step from speed,
// and two steps may lie just outside of a lifetime's looks. So such a client may miss more: what is
// excused in twice the time between its looks.
func TestUndetectedBetweenLooks(t *testing.T) {
	const lifetime = 10 * time.Second
	for _, every := range []time.Duration{lifetime / 100, lifetime / 10, lifetime / 3, lifetime} {
		rng := rand.New(rand.NewPCG(uint64(every), 0))
		allow := look(&Config{}).allow
		bound := part(allow.speed+quartz, lifetime+2*every) + 2*allow.steps
		var most time.Duration
		missed := 0
		for range 2_000 {
			// The worst case: in each time between looks, the clock moves all at once.
			type move struct{ at, by time.Duration }
			var moves []move
			k, found, at := look(&Config{}), false, time.Duration(0)
			for at < 2*lifetime && !found {
				since := every - time.Duration(rng.Int64N(int64(every)))*time.Duration(rng.IntN(2))
				by := allow.slack(since)
				switch rng.IntN(8) {
				case 0:
					by = part(rng.Float64(), by)
				case 1:
					by = part(rng.Float64(), max(by, allow.steps))
				case 2:
					since, by = 1, allow.steps/4
				}
				moves = append(moves, move{at + time.Duration(rng.Int64N(2))*(since-1), by})
				found = k.after(since, by) != 0
				at += since
			}
			if found {
				moves = moves[:len(moves)-1]
			}
			missed += len(moves)
			for i := range moves {
				sum := time.Duration(0)
				for _, m := range moves[i:] {
					if m.at-moves[i].at > lifetime {
						break
					}
					sum += m.by
				}
				most = max(most, sum)
			}
		}
		if missed < 5_000 {
			t.Errorf("looked every %v: only %d moves", every, missed)
		}
		if most > bound {
			t.Errorf("looked every %v: the clock has moved by %v in a lifetime, unnoticed; want at most %v", every, most, bound)
		}
		t.Logf("looked every %v: %v missed, of %v that are possible", every, most, bound)
	}
}

// clocksOf has the estimates of n members.
func clocksOf(n int, cfg *Config) *Group {
	if cfg.DriftOf == nil {
		cfg.DriftOf = func(time.Duration) time.Duration { return 0 }
	}
	c := NewGroup(cfg)
	for range n {
		c.members = append(c.members, new(nodeClock))
	}
	return c
}

// hear gives a client a sample of a node's clock.
func hear(c *Group, node int, now time.Time, ahead time.Duration) (step, skew time.Duration) {
	step, skew, _ = c.sample(c.members[node], now, now, now.Add(ahead).Round(0))
	return step, skew
}

// TestFromTheMiddle: the node that is far from the median is named, as soon as the clocks of a
// majority are known, and no other node.
func TestFromTheMiddle(t *testing.T) {
	o := Config{TTL: 10 * time.Second, MaxTTL: 10 * time.Second, MaxNodeSkew: time.Second}
	for _, off := range []time.Duration{3 * time.Second, -3 * time.Second, time.Second + 1, -time.Second - 1, time.Second, -time.Second, 0} {
		want := time.Duration(0)
		if off.Abs() > o.MaxNodeSkew {
			want = off
		}
		for wrong := range 5 {
			c, now := clocksOf(5, &o), time.Now()
			const all = 42 * time.Minute // the nodes agree with each other, and not with the client
			ahead := func(node int) time.Duration {
				if node == wrong {
					return all + off
				}
				return all
			}
			for round := range 2 {
				for node := range 5 {
					step, skew := hear(c, node, now, ahead(node))
					named := node == wrong && (round > 0 || node >= 2)
					if step != 0 || named && skew != want || !named && skew != 0 {
						t.Errorf("node %d is off by %v: node %d is said to be off by %v in round %d, with a step of %v", wrong, off, node, skew, round, step)
					}
				}
			}
		}
	}

	// Of two halves, neither has the median of more than a half.
	c, now := clocksOf(4, &o), time.Now()
	for range 2 {
		for node, ahead := range []time.Duration{0, 0, time.Minute, time.Minute} {
			if _, skew := hear(c, node, now, ahead); node < 2 && skew != 0 {
				t.Errorf("node %d of the first half is off by %v", node, skew)
			}
		}
	}

	// A node is not named for what the network may have caused.
	c = clocksOf(3, &o)
	for node := range 3 {
		hear(c, node, now, 0)
	}
	*c.members[2] = nodeClock{}
	if _, skew, _ := c.sample(c.members[2], now.Add(-5*time.Second), now, now.Round(0)); skew != 0 {
		t.Errorf("a reply that took five seconds makes a skew of %v", skew)
	}

	// It is switched off.
	c = clocksOf(3, &Config{TTL: 10 * time.Second, MaxTTL: 10 * time.Second, MaxNodeSkew: -1})
	for node := range 3 {
		if _, skew := hear(c, node, now, time.Duration(node)*time.Hour); skew != 0 {
			t.Errorf("a skew of %v, though MaxNodeSkew is negative", skew)
		}
	}
}

// TestLatest: no node's clock shows more than that at an instant of the client's, whatever delay
// the network added to the samples. Nor does it show much less, or the node's refusal would come too
// late to be of use.
func TestLatest(t *testing.T) {
	o := Config{TTL: 10 * time.Second, MaxTTL: 10 * time.Second}
	c := clocksOf(2, &o)
	now := time.Now()
	if got := c.latest(c.members[0], now); got != 0 {
		t.Errorf("of a node that has never replied: %d", got)
	}
	hear(c, 0, now, time.Hour)
	if got := c.latest(c.members[0], time.Time{}); got != 0 {
		t.Errorf("at no time: %d", got)
	}
	if got := c.latest(c.members[1], now); got != 0 {
		t.Errorf("of another node: %d", got)
	}
	if got, want := c.latest(c.members[0], now.Add(time.Second)), now.Add(time.Hour+time.Second+c.allow.slack(time.Second)+resolution).UnixMicro(); got < want || got > want+1 {
		t.Errorf("in a second: %dµs off", got-want)
	}
	hear(c, 0, now, time.Hour+resolution) // no step yet
	if got, shows := c.latest(c.members[0], now), now.Add(time.Hour+resolution).UnixMicro(); got < shows {
		t.Errorf("after a small step: %dµs early", shows-got)
	}

	for _, rate := range []float64{0, quartz, -quartz, 0.01, -0.01} {
		rng := rand.New(rand.NewPCG(3, 4))
		below := func(d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }
		c, begin, at := clocksOf(1, &o), time.Now(), time.Duration(0)
		shows := func(at time.Duration) int64 { return begin.Add(time.Hour + at + part(rate, at)).UnixMicro() }
		for range 10_000 {
			got := at + below(time.Second)
			back := got + below(time.Second)
			if step, _, _ := c.sample(c.members[0], begin.Add(at), begin.Add(back), time.UnixMicro(shows(got))); step != 0 {
				t.Errorf("%+v: a step of %v", rate, step)
				break
			}
			at = back + below(time.Second)
			if latest := c.latest(c.members[0], begin.Add(at)); latest < shows(at) {
				t.Errorf("%+v: the node shows %dµs more", rate, shows(at)-latest)
				break
			} else if late := time.Duration(latest-shows(at)) * time.Microsecond; late > 2*time.Second {
				t.Errorf("%+v: the node shows %v less", rate, late)
				break
			}
		}
	}
}

// TestMiddleIsVague: the bounds of the median widen by what the client's own clock was set by, and
// by what the nodes' clocks may have drifted since their last replies. No node is named for that,
// and new replies of a majority make the median exact again.
func TestMiddleIsVague(t *testing.T) {
	o := Config{MaxTTL: 10 * time.Second, MaxNodeSkew: time.Second}
	for _, tt := range []struct {
		name   string
		passes time.Duration // by the client's monotonic clock
		set    time.Duration // the client's wall clock moves on by so much more
		drift  time.Duration // and the nodes' by so much
	}{
		{"our clock is set forward", time.Second, time.Hour, 0},
		{"our clock is set back", time.Second, -30 * 24 * time.Hour, 0},
		{"our machine was suspended", time.Second, time.Hour, time.Hour},
		{"half a day goes by", 12 * time.Hour, 0, 8 * time.Second},
		{"and the other way", 12 * time.Hour, 0, -8 * time.Second},
	} {
		c, begin := clocksOf(3, &o), time.Now()
		for node := range 3 {
			hear(c, node, begin, time.Minute)
		}
		now := reading.Asleep(begin.Add(tt.passes), tt.set)
		shows := begin.Add(time.Minute + tt.passes + tt.drift) // what all nodes show
		for node := range 3 {
			if _, skew, _ := c.sample(c.members[node], now, now, shows.Round(0)); skew != 0 {
				t.Errorf("%s: node %d is said to be off by %v", tt.name, node, skew)
			}
			if ahead := c.Beyond(shows.Round(0).Add(wire.Clamp).UnixMicro(), c.Middle(now)); ahead != 0 {
				t.Errorf("%s: a number of now is said to be %v ahead", tt.name, ahead)
			}
		}
		if ahead := c.Beyond(shows.Round(0).Add(2*time.Second+time.Millisecond).UnixMicro(), c.Middle(now)); ahead == 0 {
			t.Errorf("%s: a number of the future is none", tt.name)
		}
	}
}

// driftOf is what is taken off the validity of a lock with this TTL.
func driftOf(cfg *Config, ttl time.Duration) time.Duration {
	return cmp.Or(cfg.Drift, ttl/100+2*time.Millisecond)
}

// TestAlike: a majority of the members that make the same step within a moment is told of once, as the client's
// own clock.
func TestAlike(t *testing.T) {
	const second = time.Second
	type step struct {
		node   int
		at, by time.Duration
	}
	for _, tt := range []struct {
		name  string
		nodes int
		steps []step
		told  int
	}{
		{"all", 3, []step{{0, 0, -second}, {1, 1, -second}, {2, 2, -second}}, 1},
		{"forward", 3, []step{{0, 0, second}, {2, 2, second}}, 1},
		{"nearly the same", 3, []step{{0, 0, second}, {2, 2, second + 200*time.Millisecond}}, 1},
		{"one", 3, []step{{0, 0, second}, {0, 1, second}, {0, 2, second}}, 0},
		{"half", 4, []step{{0, 0, second}, {1, 1, second}}, 0},
		{"each by another time", 3, []step{{0, 0, second}, {1, 1, 2 * second}, {2, 2, 3 * second}}, 0},
		{"forth and back", 3, []step{{0, 0, second}, {1, 1, -second}}, 0},
		{"at other times", 3, []step{{0, 0, second}, {1, 2 * second, second}}, 0},
		{"twice", 3, []step{{0, 0, second}, {1, 1, second}, {2, 2, second}, {0, 9 * second, second}, {1, 9 * second, second}}, 2},
		{"the only node", 1, []step{{0, 0, second}}, 0},
	} {
		c, told := clocksOf(tt.nodes, &Config{TTL: 10 * second, MaxTTL: 10 * second}), 0
		now := time.Now()
		for _, s := range tt.steps {
			if c.alike(c.members[s.node], now.Add(s.at), s.by, second) {
				told++
			}
		}
		if told != tt.told {
			t.Errorf("%s: told %d times, want %d", tt.name, told, tt.told)
		}
	}
}
