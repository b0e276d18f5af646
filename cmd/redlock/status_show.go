package main

import (
	"time"

	"github.com/quorumlock/redlock"
)

// A statusReport is a status as JSON. Durations are in milliseconds.
type statusReport struct {
	Time *time.Time `json:"time,omitempty"`
	nameReport
	State string `json:"state"` // free, held, split or unknown
	Token string `json:"token,omitempty"`
	identityReport
	TTL     int64          `json:"ttl_ms,omitempty"`
	Fence   int64          `json:"fence_at_most,omitempty"`
	Holders []holderReport `json:"holders,omitempty"`
	Waiting []waitReport   `json:"waiting"`
	Nodes   []nodeReport   `json:"nodes"`
	Set     string         `json:"set,omitempty"`
	Epoch   int64          `json:"epoch"` // 0: the nodes keep no description of their set
	Quorum  int            `json:"quorum"`
}

type nodeReport struct {
	Node    string         `json:"node"`
	Token   string         `json:"token,omitempty"`
	TTL     int64          `json:"ttl_ms,omitempty"`
	Fence   int64          `json:"counter,omitempty"`
	Holders []holderReport `json:"holders,omitempty"`
	Waiting int            `json:"waiting"`
	Outcome string         `json:"outcome,omitempty"` // why it has no vote
	Error   string         `json:"error,omitempty"`
}

func report(s *redlock.Status) *statusReport {
	r := &statusReport{nameReport: named(s.Name), State: s.State.String(), Token: s.Token, identityReport: identity(s.Name, s.By), TTL: s.TTL.Milliseconds(), Fence: s.Fence, Holders: holderReports(s.Name, s.Holders), Waiting: waitReports(s.Waiting)}
	for _, n := range s.Nodes {
		one := nodeReport{Node: n.Node, Token: n.Token, TTL: n.TTL.Milliseconds(), Fence: n.Fence, Holders: holderReports(s.Name, n.Holders), Waiting: len(n.Waiting)}
		if n.Err != nil {
			one.Outcome, one.Error = n.Err.Outcome.String(), n.Err.Error()
		}
		r.Nodes = append(r.Nodes, one)
	}
	return r
}
