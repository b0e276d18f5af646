package chaos

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/chaos/internal/drive"
	"github.com/quorumlock/redlock/chaos/internal/modelarena"
	"github.com/quorumlock/redlock/chaos/internal/report"
)

// CheckOptions returns the error that redlock.New would, for every number of nodes that the scenarios
// may have.
func CheckOptions(opts *redlock.Options, nodes int, scenarios []*Scenario) (err error) {
	counts := []int{nodes}
	if nodes == 0 {
		counts = nil
		for _, s := range scenarios {
			counts = append(counts, s.Nodes...)
		}
		slices.Sort(counts)
	}
	for _, n := range slices.Compact(counts) {
		blocked := drive.Bubble(func() {
			p, _ := modelarena.NewWorld(&Plan{Run: Head{Nodes: n}, Rates: make([]float64, n)}).Enter(1, "c1")
			var o redlock.Options
			if opts != nil {
				o = *opts
			}
			o.Hooks = nil // this Locker must not call the caller's hooks
			var locker *redlock.Locker
			if locker, err = p.Locker(&o); err == nil {
				err = locker.Close()
			}
		})
		if blocked != nil {
			return fmt.Errorf("virtual time is not available here, as in a testing/synctest bubble: %w", blocked)
		}
		if err != nil {
			return fmt.Errorf("%d nodes: %w", n, err)
		}
	}
	return nil
}

// LeastTTL is what a client needs to do anything with a lock.
const LeastTTL = 5 * time.Millisecond

// Unfit says why a scenario cannot run in an arena with these options and this number of nodes (0: its
// own); "": it can.
func (a *Arena) Unfit(s *Scenario, opts *redlock.Options, nodes int) string {
	var o redlock.Options
	if opts != nil {
		o = *opts
	}
	counts := s.Nodes
	if nodes > 0 {
		counts = []int{nodes}
	}
	least := max(a.Least, LeastTTL)
	switch {
	case !slices.Contains(a.Scenarios(), s):
		return "the arena " + a.Name + " cannot do it"
	case o.TTL > 0 && o.TTL < least:
		return fmt.Sprintf("a TTL of %v is over before anything has happened in the arena %s: the least is %v", o.TTL, a.Name, least)
	case a.Most > 0 && o.TTL > a.Most:
		return fmt.Sprintf("there is no time for a TTL of %v in the arena %s: the most is %v", o.TTL, a.Name, a.Most)
	case s.Quorum != nil && (o.Quorum > 0 || nodes > 0 && !slices.Contains(s.Nodes, nodes)):
		return fmt.Sprintf("it is about a quorum of its own, among %v nodes", s.Nodes)
	}
	for _, n := range counts {
		if q := max(o.Quorum, n/2+1); s.Minority && (n < 3 || q > n-(n-1)/2) {
			return fmt.Sprintf("it is about a minority that fails, and with a quorum of %d of %s that is too many", q, report.FormatCount(n, "node"))
		}
	}
	return ""
}

// FindScenarios returns the scenarios with these names; without names, all. A name may have hyphens for
// its spaces.
func FindScenarios(names []string) (found []*Scenario, err error) {
	if len(names) == 0 {
		return slices.Clone(Scenarios), nil
	}
	for _, name := range names {
		i := slices.IndexFunc(Scenarios, func(s *Scenario) bool {
			return s.Name == name || s.Name == strings.ReplaceAll(name, "-", " ")
		})
		switch {
		case i < 0:
			return nil, &UnknownScenario{name}
		case slices.Contains(found, Scenarios[i]):
			return nil, fmt.Errorf("%q is there twice", name)
		}
		found = append(found, Scenarios[i])
	}
	return found, nil
}

// An UnknownScenario is a name that no scenario has.
type UnknownScenario struct{ Name string }

func (e *UnknownScenario) Error() string {
	return fmt.Sprintf("there is no scenario %q; there are: %s", e.Name, strings.Join(e.Closest(), ", "))
}

// Closest lists the known names, the most similar first.
func (e *UnknownScenario) Closest() []string {
	name := strings.ToLower(strings.ReplaceAll(e.Name, "-", " "))
	type candidate struct {
		name string
		far  int
	}
	var all []candidate
	for _, s := range Scenarios {
		far := distance(name, s.Name)
		for word := range strings.FieldsSeq(s.Name) {
			far = min(far, distance(name, word))
		}
		if strings.Contains(s.Name, name) {
			far = 0
		}
		all = append(all, candidate{s.Name, far})
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return a.far - b.far })
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = c.name
	}
	return names
}

// distance is how many letters have to be inserted, removed or changed.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // from what there is of a so far to each beginning of b
	for j := range row {
		row[j] = j
	}
	for i := range a {
		corner := i
		row[0] = i + 1
		for j := range b {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, row[j]+1, corner+1)
		}
	}
	return row[len(b)]
}
