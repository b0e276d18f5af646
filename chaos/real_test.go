package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/chaos/internal/realarena"
	"github.com/quorumlock/redlock/chaos/internal/realtest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// runReally carries a plan out, and accepts only violations that the scenario is known for.
func runReally(t *testing.T, p *Plan) *History {
	t.Helper()
	h, err := Real.run(p)
	if err != nil {
		t.Fatal(err)
	}
	if v := Judge(h); !expects(p.Scenario, v) {
		for _, violation := range v.Violations {
			t.Errorf("seed %d: %v", p.Run.Seed, violation)
		}
		for _, text := range around(h, v.Violations[0].At) {
			t.Log(text)
		}
		keep(t, h)
	}
	return h
}

// keep saves the history of a run that went wrong, since the run cannot be repeated.
func keep(t *testing.T, h *History) {
	file, err := os.CreateTemp("", strings.ReplaceAll(h.Run.Scenario, " ", "-")+"-*.jsonl")
	if err == nil {
		defer file.Close()
		err = h.Write(file)
	}
	if err != nil {
		t.Error(err)
		return
	}
	t.Logf("the history is in %s", file.Name())
}

// TestRealScenarios runs one short seed of each scenario.
func TestRealScenarios(t *testing.T) {
	realtest.NeedServer(t)
	for _, s := range Real.Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			suits := func(p *Plan) bool {
				short := p.TTL <= 500*time.Millisecond || len(Real.limits().TTLs(s.TTL)) == 1
				return short && p.Run.Clients <= 20
			}
			p := search(t, s, suits)
			for seed := range need.Sized[uint64](16, 16, 0) { // the smallest that has faults: the night has others
				if q := Real.plan(s, seed, nil, 0); suits(q) && size(q) < size(p) && len(q.Faults) >= min(1, len(p.Faults)) {
					p = q
				}
			}
			h := runReally(t, p)
			for _, kind := range []Kind{Ask, Got, Release, Calm} {
				if count(h, kind) == 0 {
					t.Errorf("no %q in %d events", kind, len(h.Events))
				}
			}
			if got, want := count(h, Struck), len(p.Faults); got > want || got == 0 && want > 0 {
				t.Errorf("%d of %d faults struck", got, want)
			}
		})
	}
}

// search finds the first seed whose plan is suitable.
func search(t *testing.T, s *Scenario, good func(*Plan) bool) *Plan {
	t.Helper()
	for seed := range uint64(1000) {
		if p := Real.plan(s, seed, nil, 0); good(p) {
			return p
		}
	}
	t.Fatalf("no seed of %q will do", s.Name)
	return nil
}

// clientsScenario has faults of clients only.
func clientsScenario(t *testing.T, kind Trouble) *Scenario {
	return &Scenario{
		Name: t.Name(), Nodes: []int{3}, Clients: [2]int{2, 2}, TTL: []time.Duration{Real.Least}, RTT: Scenarios[0].RTT, Span: 5, Workers: 1,
		Troubles: []Trouble{kind}, Rate: 1, Unended: true, Quorum: func(int) int { return 2 },
	}
}

func count(h *History, kind Kind) (n int) {
	for i := range h.Events {
		if h.Events[i].Kind == kind {
			n++
		}
	}
	return n
}

// TestRealPause: while a client's process is stopped, no event comes from it, and the history says
// so. The scenario is not in the list of scenarios, so the clients get all of it in their briefing.
func TestRealPause(t *testing.T) {
	realtest.NeedServer(t)
	t.Parallel()
	p := search(t, clientsScenario(t, Pause), func(p *Plan) bool { return longest(p, Pause).For > 200*time.Millisecond })
	h := runReally(t, p)
	f := longest(p, Pause)
	var held *Event
	for i := range h.Events {
		if e := &h.Events[i]; e.Kind == Held && e.Client == f.Client && e.At >= f.At && (held == nil || e.Until-e.At > held.Until-held.At) {
			held = e
		}
	}
	if held == nil || held.Until-held.At < f.For {
		t.Fatalf("%v: the longest that it was held up is %v", f, held)
	}
	const leeway = 20 * time.Millisecond // for stopping, and for recording it
	for _, e := range h.Events {
		if e.Client == f.Client && e.Kind != Held && e.At > held.At+leeway && e.At < held.Until-leeway {
			t.Errorf("stopped from %v to %v, but at %v: %s", held.At, held.Until, e.At, e.Kind)
		}
	}
}

func longest(p *Plan, kind Trouble) (longest Fault) {
	for _, f := range p.Faults {
		if f.Kind == kind && f.For > longest.For {
			longest = f
		}
	}
	return longest
}

// TestRealCrash: no event comes from a client that was killed, and another takes its place and gets locks.
func TestRealCrash(t *testing.T) {
	realtest.NeedServer(t)
	t.Parallel()
	p := search(t, clientsScenario(t, Crash), func(p *Plan) bool {
		f := longest(p, Crash)
		return f.For > 0 && f.At > p.Span/8 && f.At+f.For < p.Span/2
	})
	h := runReally(t, p)
	crashed := slices.IndexFunc(h.Events, func(e Event) bool { return e.Kind == Crashed })
	if crashed < 0 {
		t.Fatal("no client has crashed")
	}
	dead := h.Events[crashed].Client
	successor, holds := p.Run.Clients-len(p.Faults)+1, 0
	for _, e := range h.Events[crashed+1:] {
		switch {
		case e.Client == dead && e.Kind != Crashed && e.Kind != Held:
			t.Errorf("%v after client %d is dead, %q comes of it", e.At, dead, e.Kind)
		case e.Client == successor && e.Kind == Got:
			holds++
			if !strings.HasPrefix(e.Token, fmt.Sprintf("c%d.", successor)) {
				t.Errorf("its token is %s", e.Token)
			}
		}
	}
	if holds == 0 {
		t.Errorf("client %d, which took the place of %d, never got a lock", successor, dead)
	}
}

// TestRealLeavesNothing counts the processes, goroutines and directories that a run could leave.
func TestRealLeavesNothing(t *testing.T) {
	realtest.NeedServer(t)
	leaks.Check(t)
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	before := realtest.Children()
	s := Real.Scenarios()[0]
	runReally(t, search(t, s, func(p *Plan) bool { return p.TTL == Real.Least }))
	if left := realtest.Children(); !slices.Equal(left, before) {
		t.Errorf("running: %v; before it was %v", left, before)
	}
	if left, _ := filepath.Glob(filepath.Join(tmp, "*")); len(left) > 0 {
		t.Errorf("in the temporary directory: %v", left)
	}
}

// TestRealPowerCutsNeedTheQuarantine: without it, the scenario "power cuts" has two holders.
func TestRealPowerCutsNeedTheQuarantine(t *testing.T) {
	need.Long(t) // it takes one schedule in four
	realtest.NeedServer(t)
	found, err := FindScenarios([]string{"power cuts"})
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(40) {
		h, err := Real.run(Real.plan(found[0], seed, &redlock.Options{Quarantine: -1}, 0))
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range Judge(h).Violations {
			if v.Rule == "exclusion" {
				t.Logf("seed %d: %v", seed, v)
				return
			}
		}
	}
	t.Error("no lock had two holders in 40 schedules")
}

func TestRealIsNotReady(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if err := Real.Ready(); err == nil || !strings.Contains(err.Error(), "apt-get install redis-server") {
		t.Errorf("without redis-server: %v", err)
	}
	if err := Model.Ready(); err != nil {
		t.Errorf("the model needs it, too: %v", err)
	}
	h, err := Real.run(search(t, Scenarios[0], func(*Plan) bool { return true }))
	if err == nil {
		t.Errorf("without redis-server there is a history of %d events", len(h.Events))
	}
}

// TestRealRefusesToBeAClient: without this check, a program without ClientMain would start itself
// again and again.
func TestRealRefusesToBeAClient(t *testing.T) {
	t.Setenv(realarena.ClientVariable, "{}")
	_, err := Real.run(search(t, Scenarios[0], func(*Plan) bool { return true }))
	if err == nil || !strings.Contains(err.Error(), "ClientMain") {
		t.Errorf("a client runs plans: %v", err)
	}
}
