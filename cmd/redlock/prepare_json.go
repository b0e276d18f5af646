package main

import (
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
)

// A prepareReport is the result of redlock prepare as JSON.
type prepareReport struct {
	Prepared bool         `json:"prepared"` // what was asked for: all nodes vote, or with --quorum enough of them
	Votes    int          `json:"votes"`    // of the nodes
	Quorum   int          `json:"quorum"`
	VotesAt  *time.Time   `json:"votes_at,omitempty"` // --no-wait: when all nodes vote
	Nodes    []nodeVoting `json:"nodes"`
}

type nodeVoting struct {
	Node       string `json:"node"`
	Vote       bool   `json:"vote"`
	Quarantine int64  `json:"quarantine_ms,omitempty"` // how much longer it has none
	Fences     *int64 `json:"fences_deleted,omitempty"`
	Outcome    string `json:"outcome,omitempty"` // why it has no vote
	Error      string `json:"error,omitempty"`
}

func newPrepareReport(servers []*redis.Options, absent []*redlock.NodeError) *prepareReport {
	r := &prepareReport{Quorum: len(servers)/2 + 1, Votes: len(servers) - len(absent)}
	for _, o := range servers {
		one := nodeVoting{Node: o.Addr, Vote: true}
		for _, e := range absent {
			if e.Node == o.Addr {
				one.Vote, one.Quarantine, one.Outcome, one.Error = false, e.TTL.Milliseconds(), e.Outcome.String(), e.Error()
			}
		}
		r.Nodes = append(r.Nodes, one)
	}
	return r
}
