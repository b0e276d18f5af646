package chaos

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/redisproc"
)

// TestMachine hangs servers, and the bystander with them or not: only what the bystander has
// suffered, too, is the computer's fault, and only while it lasts.
func TestMachine(t *testing.T) {
	needReal(t)
	for _, tt := range []struct {
		name                 string
		servers, bystander   bool
		stalled, thereAndWay bool
	}{
		{"nobody", false, false, false, false},
		{"the servers", true, false, false, false},
		{"the servers and the bystander", true, true, true, true},
		{"the bystander", false, true, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var nodes []*realNode
			for range 3 {
				s, err := redisproc.Start("", watchArgs...)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(s.Stop)
				nodes = append(nodes, &realNode{server: s})
			}
			m, err := newMachine(nodes)
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			rec := &recorder{now: func() time.Duration { return time.Since(start) }, start: start}
			m.begin(rec)
			defer m.end()
			var hung []*redisproc.Server
			if tt.servers {
				hung = slices.Clone(m.servers)
			}
			if tt.bystander {
				hung = append(hung, m.bystander)
			}
			time.Sleep(5 * tick)
			from := rec.now()
			for _, s := range hung {
				if err := s.Hang(); err != nil {
					t.Error(err)
				}
			}
			const stop = 300 * time.Millisecond
			time.Sleep(stop)
			for _, s := range hung {
				if err := s.Resume(); err != nil {
					t.Error(err)
				}
			}
			to := rec.now()
			time.Sleep(5 * tick)
			m.end()
			var both, way int
			for _, e := range rec.sorted() {
				if e.Kind != Stalled || e.Until-e.At < stop/2 { // else the computer has done that
					continue
				}
				if e.At < from-2*tick || e.Until > to+stop/2 {
					t.Errorf("stalled from %v to %v: %v to %v", from, to, e.At, e.Until)
				}
				if strings.Contains(e.Error, "there and back") {
					way++
				} else {
					both++
				}
			}
			if want := 3; tt.stalled != (both == want) || !tt.stalled && both > 0 || tt.thereAndWay != (way == want) || !tt.thereAndWay && way > 0 {
				t.Errorf("%d servers were late with the bystander, and for %d the bystander was", both, way)
			}
		})
	}
}

func TestCommon(t *testing.T) {
	for _, tt := range []struct{ a, b, want []stretch }{
		{nil, []stretch{{1, 9}}, nil},
		{[]stretch{{1, 3}}, []stretch{{3, 9}}, nil},
		{[]stretch{{1, 5}, {7, 9}}, []stretch{{2, 3}, {4, 8}}, []stretch{{2, 3}, {4, 5}, {7, 8}}},
	} {
		if got := common(tt.a, tt.b); !slices.Equal(got, tt.want) {
			t.Errorf("%v and %v have %v in common, not %v", tt.a, tt.b, got, tt.want)
		}
	}
}

// TestFindingTellsOfTheMachine: what was measured before a violation is told with it.
func TestFindingTellsOfTheMachine(t *testing.T) {
	h := historyOf(t, time.Second, "idle=5", "0 1/1 ask; 1 - measured error=long-ago; 9 - measured error=steal; 12 - stalled until=13; 30 - measured error=later")
	h.Run.Arena = Real.Name
	v := Violation{Rule: "idle", At: 15 * time.Second, Text: "too long"}
	f := Finding{ScenarioResult: ScenarioResult{Scenario: "s", Arena: Real.Name, Violations: 1, Schedules: 1}, Shown: []ShownRun{{History: h, Verdict: Verdict{Violations: []Violation{v}}}}}
	got := f.Tell()
	for text, want := range map[string]bool{"steal": true, "not run until 13s": true, "long-ago": false, "later": false} {
		if strings.Contains(got, text) != want {
			t.Errorf("%q: %v, in\n%s", text, !want, got)
		}
	}
}
