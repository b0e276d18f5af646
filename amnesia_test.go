package redlock

import (
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/seam"
)

// An echo is a server that says the same to everything.
type echo reply

func (e echo) join() error { return nil }
func (e echo) pipeline(batch []*request) error {
	for _, q := range batch {
		q.reply = reply(e)
	}
	return nil
}

// TestWithoutVote: what a node says that may have forgotten is no vote: neither a
// grant, nor a refusal, nor that it has stored a fence, for it may have forgotten a
// higher one. That a key is still ours, or gone, it can tell as well as any other.
func TestWithoutVote(t *testing.T) {
	opts, err := (&Options{}).withDefaults(3)
	if err != nil {
		t.Fatal(err)
	}
	m := newMemory(0, "node", &opts)
	now := time.Now()
	for _, tt := range []struct {
		step          op
		reply, before Outcome // before: without a vote
	}{
		{opAcquire, Granted, Quarantined},
		{opAcquire, Held, Quarantined},
		{opAcquire, Foreign, Foreign},
		{opRaise, Granted, Quarantined},
		{opRaise, Expired, Expired},
		{opInspect, Granted, Quarantined},
		{opExtend, Granted, Granted},
		{opExtend, Stolen, Stolen},
		{opRelease, Granted, Granted},
	} {
		for _, voting := range []bool{false, true} {
			m.lost, m.why = time.Time{}, nil
			want := tt.reply
			if !voting {
				m.lost, want = now.Add(time.Hour-opts.Quarantine), tt.before
			}
			q := &request{op: tt.step, claim: &claim{}}
			if err := m.send(echo{outcome: tt.reply}, []*request{q}); err != nil {
				t.Fatal(err)
			}
			if q.reply.outcome != want {
				t.Errorf("%v, %v, with a vote %v: %v, want %v", tt.step, tt.reply, voting, q.reply.outcome, want)
			}
			if q.reply.outcome == Quarantined && (q.reply.rest <= 0 || q.reply.rest > time.Hour) {
				t.Errorf("%v: it votes in %v", tt.step, q.reply.rest)
			}
		}
	}
}

// TestMarkers: how old a marker is the node says when it is first seen, and our own
// clock from then on.
func TestMarkers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var told []time.Duration
		opts, err := (&Options{Hooks: &Hooks{Quarantined: func(_ string, d time.Duration, _ error) { told = append(told, d) }}}).withDefaults(3)
		if err != nil {
			t.Fatal(err)
		}
		m := newMemory(0, "node", &opts)
		at := func(ahead time.Duration) int64 { return time.Now().Add(ahead).UnixMicro() }
		rest := func() time.Duration {
			m.mu.Lock()
			defer m.mu.Unlock()
			rest, _ := m.quarantine(m.now())
			return rest
		}
		full := opts.Quarantine
		born := time.Now().UnixMilli()
		mark := func(id string, born int64) seam.Mark {
			mark := script.Mark{RunID: id, Born: born, Writer: born}.String()
			return seam.Mark{Value: mark, Before: "x", Now: at(0)}
		}
		m.joined(mark("run1", born), time.Now())
		if got := rest(); got != full {
			t.Errorf("a new marker: %v, want %v", got, full)
		}
		pass(full / 2)
		m.joined(mark("run1", born), time.Now())
		if got := rest(); got != full-full/2 {
			t.Errorf("the same one half the time later: %v", got)
		}
		m.joined(mark("run2", time.Now().Add(-full/4).UnixMilli()), time.Now())
		if got := rest(); (got - (full - full/4)).Abs() > time.Millisecond {
			t.Errorf("another that is a quarter of the time old: %v", got)
		}
		m.joined(mark("run3", time.Now().Add(-time.Hour).UnixMilli()), time.Now())
		if got := rest(); (got - (full - full/4)).Abs() > time.Millisecond {
			t.Errorf("an old one takes nothing away from a quarantine: %v", got)
		}
		m.joined(mark("run4", time.Now().Add(time.Hour).UnixMilli()), time.Now())
		if got := rest(); got != full {
			t.Errorf("one from the future: %v, want %v", got, full)
		}
		if len(told) != 3 {
			t.Errorf("told of %v", told)
		}
	})
}

// TestVouches: a node that hands somebody the lock says what its marker and its time are, and
// has no vote where a grant would be none.
func TestVouches(t *testing.T) {
	opts, err := (&Options{MaxNodeSkew: time.Second}).withDefaults(3)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	heardAll := func(m *memory) {
		for other := range 3 {
			_, _, _ = m.clocks.sample(other, now, now, now)
		}
	}
	for name, tt := range map[string]struct {
		set    func(*memory)
		mark   string
		time   time.Time
		want   bool
		number int64
	}{
		"well":                 {func(*memory) {}, "id:5", now, true, 0},
		"it has lost its data": {func(*memory) {}, "", now, false, 0},
		"another process":      {func(*memory) {}, "id2:5", now, false, 0},
		"no markers": {func(m *memory) {
			m.opts = &Options{Quarantine: -1, Clock: systemClock{}, clocks: m.clocks, Hooks: m.opts.Hooks}
		}, "", now, true, 0},
		"it may have forgotten": {func(m *memory) { m.lost = now.Add(time.Hour) }, "id:5", now, false, 0},
		"its clock was set":     {func(m *memory) { m.heard(now.Add(-time.Hour).UnixMicro(), now, now) }, "id:5", now, false, 0},
		"its clock is another": {func(m *memory) {
			for other := range 3 {
				_, _, _ = m.clocks.sample(other, now, now, now.Add(-time.Hour))
			}
			m.clocks.all[m.node] = tracker{}
		}, "id:5", now, false, 0},
		"its number is ahead":     {heardAll, "id:5", now, false, now.Add(3*time.Second + time.Millisecond).UnixMicro()},
		"its number is not ahead": {heardAll, "id:5", now, true, now.Add(2*time.Second - time.Millisecond).UnixMicro()},
	} {
		opts.clocks = newClocks(3, &opts)
		m := newMemory(0, "node", &opts)
		m.mark = "id:5"
		tt.set(m)
		if got := m.vouches(tt.mark, tt.time.UnixMicro(), tt.number, now); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
