package lane

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/wire"
)

// answers has a node answer a request, after which its marker is shown.
func (m *incarnation) answers(q *Request, says wire.Reply, shown string) {
	f := &flight{batch: []*Request{q}, sent: m.Now()}
	f.bound = m.bind(f.batch, f.sent)
	q.Reply, q.Shown = says, shown
	m.judge(f)
}

// TestWithoutVote: the answer of a node that may have forgotten is no vote: neither a grant, nor a
// refusal, nor the news that it has stored a fence, for it may have forgotten a higher one. Whether
// a token still holds a key, or is gone, it can tell as well as any other node.
func TestWithoutVote(t *testing.T) {
	cfg := testConfig()
	m := testIncarnation(&cfg)
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
			q := &Request{Op: tt.step, Claim: &Claim{}}
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
		m := testIncarnation(&cfg)
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
		m.Joined(mark("run1", born), time.Now())
		if got := rest(); got != full {
			t.Errorf("a new marker: %v, want %v", got, full)
		}
		time.Sleep(full / 2)
		m.Joined(mark("run1", born), time.Now())
		if got := rest(); got != full-full/2 {
			t.Errorf("the same one half the time later: %v", got)
		}
		m.Joined(mark("run2", time.Now().Add(-full/4).UnixMilli()), time.Now())
		if got := rest(); (got - (full - full/4)).Abs() > time.Millisecond {
			t.Errorf("another that is a quarter of the time old: %v", got)
		}
		m.Joined(mark("run3", time.Now().Add(-time.Hour).UnixMilli()), time.Now())
		if got := rest(); (got - (full - full/4)).Abs() > time.Millisecond {
			t.Errorf("an old one takes nothing away from a quarantine: %v", got)
		}
		m.Joined(mark("run4", time.Now().Add(time.Hour).UnixMilli()), time.Now())
		if got := rest(); got != full {
			t.Errorf("one from the future: %v, want %v", got, full)
		}
		if len(told) != 3 {
			t.Errorf("told of %v", told)
		}
	})
}

func testConfig() Config {
	drift := func(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }
	return Config{
		TTL: 10 * time.Second, MaxTTL: 10 * time.Second, DriftOf: drift, NodeTimeout: 500 * time.Millisecond,
		Quarantine: 10*time.Second + drift(10*time.Second), MaxNodeSkew: 4 * time.Second,
		Clock: systemClock{}, Host: sim.Chance{}, Events: quarantines(func(time.Duration) {}),
	}
}

// testIncarnation is the incarnation of the first of three nodes.
func testIncarnation(cfg *Config) *incarnation {
	s := &Set{cfg: *cfg, news: make(chan struct{}), clocks: clocksOf(3, cfg)}
	s.lanes.Store(new([]*Lane))
	s.view.Store(&View{Quorum: 1})
	m := newIncarnation("node", s, cfg, s.clocks)
	m.clocks.members[0] = &m.clock
	s.bound(cfg.MaxTTL)
	return m
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

// Quarantines are the events of that kind.
type quarantines func(time.Duration)

func (quarantines) Down(string, *Failure)                            {}
func (quarantines) Up(string, time.Duration)                         {}
func (quarantines) ClockStep(string, time.Duration)                  {}
func (quarantines) Votes(string)                                     {}
func (quarantines) Joined(*wire.Description)                         {}
func (quarantines) Members(*wire.Description)                        {}
func (quarantines) Warning(error)                                    {}
func (q quarantines) Quarantined(_ string, d time.Duration, _ error) { q(d) }
