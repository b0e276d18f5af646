package chaos

import (
	"slices"
	"testing"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/scenario"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// TestForeignClients: the scenarios with clients of other libraries do what they promise. Clients of every dialect get
// locks, those that extend do so, and so do our own clients. Where nodes lose data, other libraries' clients get locks that
// others have: the judge is right to excuse that, and nothing else.
func TestForeignClients(t *testing.T) {
	type did struct{ got, extended bool }
	seen := make(map[string]did) // by dialect; "": of this library
	excused := false
	for _, s := range Scenarios {
		if s.Others[1] == 0 {
			continue
		}
		for seed := range need.Sized[uint64](16, 40, 200) {
			p := Model.plan(s, seed, nil, 0)
			h, verdict, err := Model.Replay(s, seed, nil)
			if err != nil || len(verdict.Violations) > 0 {
				t.Fatalf("%s, seed %d: %v %v", s.Name, seed, err, verdict.Violations)
			}
			for _, e := range h.Events {
				if e.Client == 0 {
					continue
				}
				name := ""
				if d := p.Dialect(e.Client); d != nil {
					name = d.Name
				}
				is := seen[name]
				seen[name] = did{is.got || e.Kind == history.Got, is.extended || e.Kind == history.Extended}
			}
			if h.Run.Forgetful {
				h.Run.Forgetful = false
				excused = excused || slices.ContainsFunc(Judge(h).Violations, func(v Violation) bool { return v.Rule == "exclusion" })
			}
		}
	}
	if is := seen[""]; !is.got || !is.extended {
		t.Errorf("our own clients: %+v", is)
	}
	for _, d := range scenario.Dialects {
		if is := seen[d.Name]; !is.got || is.extended != d.Extends {
			t.Errorf("clients that are like %s: %+v", d.Name, is)
		}
		if d.Same && d.Patience < time.Second {
			t.Errorf("%s has one token for all tries, and waits for %v only", d.Name, d.Patience)
		}
	}
	if !excused {
		t.Error("no client of another library ever got a lock that another client had, so there is nothing to excuse")
	}
}
