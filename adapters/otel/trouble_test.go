package otelredlock_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	otelredlock "github.com/quorumlock/redlock/adapters/otel"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

// only gives the count of a metric that has one sample.
func (s *station) only(metric string) int64 {
	s.t.Helper()
	all := s.samples(metric)
	for _, each := range all {
		if len(all) == 1 {
			return each.count
		}
	}
	s.t.Fatalf("%s has %v, want one sample", metric, all)
	return 0
}

// state is what the metrics say of node i; it checks that they say one thing.
func (s *station) state(i int) (state string) {
	s.t.Helper()
	host, _, _ := strings.Cut(s.nodes.Addr(i), ":")
	of := 0
	for attributes, is := range s.samples("redlock.node.status") {
		if !strings.Contains(attributes, "server.address="+host+",") {
			continue
		}
		if of++; is.count == 1 {
			rest := attributes[strings.Index(attributes, "redlock.state=")+len("redlock.state="):]
			state, _, _ = strings.Cut(rest, ",")
		}
	}
	if of != 4 {
		s.t.Errorf("node %d has %d states", i, of)
	}
	return state
}

func (s *station) votes(spare, missing int64) {
	s.t.Helper()
	if a, b := s.only("redlock.votes.spare"), s.only("redlock.votes.missing"); a != spare || b != missing {
		s.t.Errorf("%d votes are spare and %d missing, want %d and %d", a, b, spare, missing)
	}
}

func (s *station) use(name string) {
	s.t.Helper()
	l, err := s.lk.Acquire(s.t.Context(), name)
	if err == nil {
		err = l.Release(s.t.Context())
	}
	if err != nil {
		s.t.Fatal(err)
	}
	pass(0)
}

// ask has all nodes asked, whatever comes of it: a Locker learns of a failure by its next request.
func (s *station) ask() {
	if l, err := s.lk.TryAcquire(s.t.Context(), "asked"); err == nil {
		_ = l.Release(s.t.Context())
	}
	pass(0)
}

// TestVotesToSpare: the metrics follow nodes as they fail and come back, and the last vote that a
// quorum can lose is known to be the last.
func TestVotesToSpare(t *testing.T) {
	stationed(t, func(t *testing.T, s *station) {
		s.votes(2, 0)
		for i := range 3 {
			s.nodes.Kill(i)
			s.ask()
			pass(3 * time.Second)
			if got := s.state(i); got != "down" {
				t.Errorf("node %d was killed, and is %q", i, got)
			}
			s.votes(int64(1-i), int64(i+1))
		}
		s.nodes.Restart(0, true)
		pass(2 * time.Second)
		if got := s.state(0); got != "quarantined" {
			t.Errorf("a node that was restarted is %q", got)
		}
		s.votes(-1, 3)
		s.nodes.Restart(1, true)
		s.nodes.Restart(2, true)
		s.ask()
		pass(30 * time.Second) // until they are connected again, whenever that is, and a quarantine after it
		s.use("a")
		pass(time.Second)
		if got := s.state(0); got != "votes" {
			t.Errorf("after its quarantine it is %q", got)
		}
		s.votes(2, 0)
		host, _, _ := strings.Cut(s.nodes.Addr(0), ":")
		quarantines := s.samples("redlock.node.quarantines")
		if n := quarantines["server.address="+host+",server.port=6379"].count; len(quarantines) != 5 || n != 1 {
			t.Errorf("quarantines: %v", quarantines)
		}
	})
}

// TestVotesOfALargerQuorum: the votes to spare are those beyond the quorum of the options, and a node
// that is no member is none.
func TestVotesOfALargerQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &station{t: t, nodes: redistest.NewBubble(t, 5), reader: sdkmetric.NewManualReader()}
		hooks, err := otelredlock.Hooks(otelredlock.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(s.reader))))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.samples("redlock.votes.spare"); len(got) != 0 {
			t.Errorf("votes of no Locker: %v", got)
		}
		hooks.Joined(redlock.Members{Nodes: []string{"a:1", "b:1", "c:1", "d:1", "e:1"}, Quorum: 4})
		s.votes(1, 0)
		hooks.NodeDown(&redlock.NodeError{Node: "f:1", Outcome: redlock.OutcomeUnreachable}) // no member
		s.votes(1, 0)
		hooks.NodeDown(&redlock.NodeError{Node: "e:1", Outcome: redlock.OutcomeUnreachable})
		s.votes(0, 1)
		hooks.Members(redlock.Members{Epoch: 2, Set: "x", Nodes: []string{"a:1", "b:1", "c:1", "d:1"}, Quorum: 3})
		s.votes(1, 0)
		hooks.Joined(redlock.Members{Nodes: []string{"f:1"}, Quorum: 1}) // another Locker
		s.votes(0, 0)
	})
}

// TestClockSteps: a node whose clock was set is counted, and one whose clock is far off has no vote
// until it is right again.
func TestClockSteps(t *testing.T) {
	stationed(t, func(t *testing.T, s *station) {
		s.use("a")
		uses := func() { // not every answer says whether the node votes: a void one does not
			for range 12 {
				pass(5 * time.Second)
				s.use("a")
			}
		}
		s.nodes.Step(2, time.Hour)
		uses()
		if got := s.state(2); got != "ineligible" && got != "quarantined" { // both are true at first
			t.Errorf("a node whose clock is an hour ahead is %q", got)
		}
		s.votes(1, 1)
		steps := int64(0)
		for _, n := range s.samples("redlock.node.clock.steps") {
			steps += n.count
		}
		if steps != 1 {
			t.Errorf("%d steps of clocks", steps)
		}
		s.nodes.Step(2, -time.Hour)
		uses()
		if got := s.state(2); got != "votes" {
			t.Errorf("a node whose clock is right again is %q", got)
		}
		s.votes(2, 0)
	})
}

// TestIneligible: a node that does not qualify is told from one that is down.
func TestIneligible(t *testing.T) {
	stationed(t, func(t *testing.T, s *station) {
		s.use("a")
		s.nodes.SetInfo(1, "role", "slave")
		s.nodes.Restart(1, true)
		s.ask()
		pass(5 * time.Second)
		if got := s.state(1); got != "ineligible" {
			t.Errorf("a replica is %q", got)
		}
		s.votes(1, 1)
	})
}

// TestOverdue: a wait counts while it lasts, once it is longer than the bound.
func TestOverdue(t *testing.T) {
	label := func(name string) string { return strings.TrimRight(name, "0123456789") }
	stationed(t, func(t *testing.T, s *station) {
		rival, err := s.locker(nil).Acquire(t.Context(), "job1", redlock.AutoRenew())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range 2 {
			go func() { _, _ = s.lk.Acquire(ctx, "job1") }()
		}
		overdue := func(want map[string]sample) {
			t.Helper()
			if got := s.samples("redlock.wait.overdue"); !maps.Equal(got, want) {
				t.Errorf("overdue: %v, want %v", got, want)
			}
		}
		pass(4 * time.Second)
		overdue(map[string]sample{"": {}})
		pass(2 * time.Second)
		overdue(map[string]sample{"": {}, "redlock.label=job": {count: 2}})
		cancel()
		pass(0)
		overdue(map[string]sample{"": {}})
		if lost := s.samples("redlock.lost"); len(lost) != 6 { // each with the label and without
			t.Errorf("counters that have begun: %v", lost)
		}
		rival.Release(t.Context())
	}, otelredlock.WithWaitBound(5*time.Second), otelredlock.WithLabel(label))
	if _, err := otelredlock.Hooks(otelredlock.WithWaitBound(0)); err == nil {
		t.Error("a bound of 0 is taken")
	}
}

// TestWarnings: each is counted.
func TestWarnings(t *testing.T) {
	stationed(t, func(t *testing.T, s *station) {
		s.want("redlock.warnings", map[string]sample{"": {}})
		s.ask()
		s.nodes.Step(0, -time.Hour)
		s.ask()
		pass(10 * time.Second)
		if n := s.only("redlock.warnings"); n == 0 {
			t.Error("a clock that is far from the others' is no warning")
		}
	})
}
