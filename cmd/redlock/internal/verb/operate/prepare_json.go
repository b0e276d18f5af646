package operate

import (
	"time"
)

// A prepareReport is the result of redlock prepare as JSON.
type prepareReport struct {
	Prepared bool         `json:"prepared"` // all nodes vote, or with --quorum enough of them
	Votes    int          `json:"votes"`    // of the members
	Quorum   int          `json:"quorum"`
	VotesAt  *time.Time   `json:"votes_at,omitempty"` // --no-wait: when all nodes vote
	Nodes    []nodeVoting `json:"nodes"`
}

type nodeVoting struct {
	Node       string `json:"node"`
	Vote       bool   `json:"vote"`
	Quarantine int64  `json:"quarantine_ms,omitempty"` // until it votes
	Fences     *int64 `json:"fences_deleted,omitempty"`
	Outcome    string `json:"outcome,omitempty"` // why it cannot vote
	Error      string `json:"error,omitempty"`
}

func newPrepareReport(v *voting) *prepareReport {
	r := &prepareReport{Quorum: v.need, Votes: len(v.nodes) - len(v.absent)}
	for _, node := range v.nodes {
		one := nodeVoting{Node: node, Vote: true}
		for _, e := range v.absent {
			if e.Node == node {
				one.Vote, one.Quarantine, one.Outcome, one.Error = false, e.TTL.Milliseconds(), e.Outcome.String(), e.Error()
			}
		}
		r.Nodes = append(r.Nodes, one)
	}
	return r
}
