package chaos

import (
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/chaos/internal/scenario"
)

// An Arena carries out plans.
type Arena struct {
	Name  string
	About string
	Lag   time.Duration // see Head.Lag
	Exact bool          // see Head.Exact
	Least time.Duration // the shortest TTL that makes sense here; 0: any
	Most  time.Duration // the longest TTL that there is time for; 0: any
	Room  int           // the largest number of clients; 0: any

	cannot []Trouble
	ready  func() error // returns what is missing on this machine; nil: nothing ever is
	run    func(*Plan) (*History, error)
}

// limits returns what this arena allows of a plan.
func (a *Arena) limits() scenario.Limits {
	return scenario.Limits{Name: a.Name, Lag: a.Lag, Exact: a.Exact, Least: a.Least, Most: a.Most, Room: a.Room, Cannot: a.cannot}
}

// plan draws a plan for this arena.
func (a *Arena) plan(s *Scenario, seed uint64, opts *redlock.Options, nodes int) *Plan {
	return s.NewPlan(a.limits(), seed, opts, nodes)
}

// Ready returns what is missing on this machine to run plans here; nil: nothing is.
func (a *Arena) Ready() error {
	if a.ready == nil {
		return nil
	}
	return a.ready()
}
