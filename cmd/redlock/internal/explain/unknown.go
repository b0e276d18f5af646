package explain

import (
	"slices"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
)

// Unknown returns the failure of a verb that could not find out the state of the lock. within says for how long it has
// tried; "" if it has tried once.
func Unknown(s *redlock.Status, within string) error {
	down := Absent(s)
	if !slices.ContainsFunc(down, func(e *redlock.NodeError) bool { return e.Outcome != redlock.OutcomeQuarantined }) {
		return exit.Fail(exit.NoQuorum, RemedyForAll(down, len(s.Nodes)), "too few nodes have a vote%s: the nodes in quarantine may have forgotten the lock", within)
	}
	silent := func(e *redlock.NodeError) bool {
		return e.Outcome == redlock.OutcomeTimeout || e.Outcome == redlock.OutcomeUnreachable
	}
	if !slices.ContainsFunc(down, silent) { // all have answered, and some cannot vote
		return exit.Fail(exit.NoQuorum, Remedy(down, len(s.Nodes)/2+1), "too few nodes have a vote%s: redlock doctor says why", within)
	}
	if within == "" {
		within = " to tell"
	}
	return exit.Fail(exit.NoQuorum, Remedy(down, len(s.Nodes)/2+1), "too few nodes have answered%s", within)
}
