package scenario

import (
	"slices"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
)

// Limits is what an arena allows of a plan.
type Limits struct {
	Name  string
	Lag   time.Duration
	Exact bool
	Least time.Duration // the shortest TTL; 0: any
	Most  time.Duration // the longest TTL; 0: any
	Room  int           // the most clients; 0: any number

	Cannot []history.FaultKind // the kinds of fault that the arena cannot inject
}

// Able leaves out the kinds of fault that the arena cannot inject.
func (a Limits) Able(kinds []history.FaultKind) []history.FaultKind {
	return slices.DeleteFunc(slices.Clone(kinds), func(t history.FaultKind) bool { return slices.Contains(a.Cannot, t) })
}

// TTLs leaves out TTLs that are too long or too short.
func (a Limits) TTLs(from []time.Duration) []time.Duration {
	fit := slices.DeleteFunc(slices.Clone(from), func(d time.Duration) bool { return d < a.Least || a.Most > 0 && d > a.Most })
	switch {
	case len(fit) > 0:
		return fit
	case from[0] < a.Least:
		return []time.Duration{a.Least}
	}
	return []time.Duration{a.Most}
}
