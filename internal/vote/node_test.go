package vote

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/wire"
)

// answers has a node answer a request, after which its marker is shown.
func (m *Node) answers(q *lane.Request, says wire.Reply, shown string) {
	batch, sent := []*lane.Request{q}, m.Now()
	before := m.Bind(batch, sent)
	q.Reply, q.Shown = says, shown
	m.Judge(batch, sent, before)
}

// joined has a node say what it is.
func joined(m *Node, mark wire.Mark, sent time.Time) { m.Joined(mark, sent, func(wire.Marker) {}) }

// TestWithoutVote: the answer of a node that may have forgotten is no vote: neither a grant, nor a
// refusal, nor the news that it has stored a fence, for it may have forgotten a higher one. Whether
// a token still holds a key, or is gone, it can tell as well as any other node.
func TestWithoutVote(t *testing.T) {
	cfg := testConfig()
	m := testNode(&cfg)
	now := time.Now()
	for _, tt := range []struct {
		step          wire.Op
		reply, before wire.Status // before: without a vote
	}{
		{wire.Acquire, wire.Granted, wire.Quarantined},
		{wire.Acquire, wire.Held, wire.Quarantined},
		{wire.Acquire, wire.Foreign, wire.Foreign},
		{wire.Raise, wire.Granted, wire.Quarantined},
		{wire.Raise, wire.Expired, wire.Expired},
		{wire.Inspect, wire.Granted, wire.Quarantined},
		{wire.Extend, wire.Granted, wire.Granted},
		{wire.Extend, wire.Stolen, wire.Stolen},
		{wire.Release, wire.Granted, wire.Granted},
	} {
		for _, voting := range []bool{false, true} {
			m.lost, m.why = time.Time{}, nil
			want := tt.reply
			if !voting {
				m.lost, want = now.Add(time.Hour-cfg.Quarantine), tt.before
			}
			q := &lane.Request{Op: tt.step, Claim: &lane.Claim{}}
			m.answers(q, wire.Reply{Status: tt.reply}, "")
			if q.Reply.Status != want {
				t.Errorf("%v, %v, with a vote %v: %v, want %v", tt.step, tt.reply, voting, q.Reply.Status, want)
			}
			if q.Reply.Status == wire.Quarantined && (q.Reply.Rest <= 0 || q.Reply.Rest > time.Hour) {
				t.Errorf("%v: it votes in %v", tt.step, q.Reply.Rest)
			}
		}
	}
}

// TestMarkers: the node's clock gives the age of a marker when it is first seen, and the client's
// own clock from then on.
func TestMarkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []time.Duration
		cfg := testConfig()
		cfg.Events = quarantines(func(d time.Duration) { told = append(told, d) })
		m := testNode(&cfg)
		at := func(ahead time.Duration) int64 { return time.Now().Add(ahead).UnixMicro() }
		rest := func() time.Duration {
			m.mu.Lock()
			defer m.mu.Unlock()
			rest := m.rest(m.Now())
			return rest
		}
		full := cfg.Quarantine
		born := time.Now().UnixMilli()
		mark := func(id string, born int64) wire.Mark {
			mark := wire.Marker{RunID: id, Born: born, Writer: born}.String()
			return wire.Mark{Value: mark, Before: "x", Now: at(0)}
		}
		joined(m, mark("run1", born), time.Now())
		if got := rest(); got != full {
			t.Errorf("a new marker: %v, want %v", got, full)
		}
		time.Sleep(full / 2)
		joined(m, mark("run1", born), time.Now())
		if got := rest(); got != full-full/2 {
			t.Errorf("the same one half the time later: %v", got)
		}
		joined(m, mark("run2", time.Now().Add(-full/4).UnixMilli()), time.Now())
		if got := rest(); (got - (full - full/4)).Abs() > time.Millisecond {
			t.Errorf("another that is a quarter of the time old: %v", got)
		}
		joined(m, mark("run3", time.Now().Add(-time.Hour).UnixMilli()), time.Now())
		if got := rest(); (got - (full - full/4)).Abs() > time.Millisecond {
			t.Errorf("an old one takes nothing away from a quarantine: %v", got)
		}
		joined(m, mark("run4", time.Now().Add(time.Hour).UnixMilli()), time.Now())
		if got := rest(); got != full {
			t.Errorf("one from the future: %v, want %v", got, full)
		}
		if len(told) != 3 {
			t.Errorf("told of %v", told)
		}
	})
}

// TestKnownForAQuarantine: a client that has known a node for a whole quarantine needs no clock but its own monotonic one: by
// the node's clock, and by the client's wall clock, the marker is still new then.
func TestKnownForAQuarantine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := testConfig()
		m := testNode(&cfg)
		later := time.Now().Add(time.Hour)
		mark := wire.Mark{Value: wire.Marker{RunID: "run", Born: later.UnixMilli(), Writer: later.UnixMilli()}.String(), Before: "x", Now: time.Now().UnixMicro()}
		joined(m, mark, time.Now())
		for _, passed := range []time.Duration{0, cfg.Quarantine - time.Millisecond, time.Millisecond} {
			time.Sleep(passed)
			joined(m, mark, time.Now())
			m.mu.Lock()
			rest := m.rest(m.Now())
			m.mu.Unlock()
			if voting := passed == time.Millisecond; (rest == 0) != voting {
				t.Errorf("it votes in %v", rest)
			}
		}
	})
}

func testConfig() Config {
	drift := func(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }
	return Config{
		Config: lane.Config{NodeTimeout: 500 * time.Millisecond, Clock: systemClock{}, Host: sim.Chance{}},
		TTL:    10 * time.Second, MaxTTL: 10 * time.Second, DriftOf: drift,
		Quarantine: 10*time.Second + drift(10*time.Second), MaxNodeSkew: 4 * time.Second,
		Events: quarantines(func(time.Duration) {}),
	}
}

// testNode is the first of three nodes.
func testNode(cfg *Config) *Node {
	g := clocksOf(3, cfg)
	m := NewNode("node", cfg, g)
	g.members[0] = &m.clock
	return m
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

// Quarantines are the events of that kind.
type quarantines func(time.Duration)

func (quarantines) Down(string, *lane.Failure)                       {}
func (quarantines) Up(string, time.Duration)                         {}
func (quarantines) ClockStep(string, time.Duration)                  {}
func (quarantines) Votes(string)                                     {}
func (quarantines) Warning(error)                                    {}
func (q quarantines) Quarantined(_ string, d time.Duration, _ error) { q(d) }
