package look

import (
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/locks"
)

// A statusReport is a status as JSON. Durations are in milliseconds.
type statusReport struct {
	Time *time.Time `json:"time,omitempty"`
	locks.NameReport
	State string `json:"state"` // free, held, split or unknown
	Token string `json:"token,omitempty"`
	locks.IdentityReport
	TTL     int64                `json:"ttl_ms,omitempty"`
	Fence   int64                `json:"fence_at_most,omitempty"`
	Holders []locks.HolderReport `json:"holders,omitempty"`
	Waiting []locks.WaitReport   `json:"waiting"`
	Nodes   []nodeReport         `json:"nodes"`
	Set     string               `json:"set,omitempty"`
	Epoch   int64                `json:"epoch"` // 0: the nodes keep no description of their set
	Quorum  int                  `json:"quorum"`
}

type nodeReport struct {
	Node    string               `json:"node"`
	Token   string               `json:"token,omitempty"`
	TTL     int64                `json:"ttl_ms,omitempty"`
	Fence   int64                `json:"counter,omitempty"`
	Holders []locks.HolderReport `json:"holders,omitempty"`
	Waiting int                  `json:"waiting"`
	Outcome string               `json:"outcome,omitempty"` // why it cannot vote
	Error   string               `json:"error,omitempty"`
}

func report(s *redlock.Status) *statusReport {
	r := &statusReport{NameReport: locks.Named(s.Name), State: s.State.String(), Token: s.Token, IdentityReport: locks.IdentityOf(s.Name, s.By), TTL: s.TTL.Milliseconds(), Fence: s.Fence, Holders: locks.HolderReports(s.Name, s.Holders), Waiting: locks.WaitReports(s.Waiting)}
	for _, n := range s.Nodes {
		one := nodeReport{Node: n.Node, Token: n.Token, TTL: n.TTL.Milliseconds(), Fence: n.Fence, Holders: locks.HolderReports(s.Name, n.Holders), Waiting: len(n.Waiting)}
		if n.Err != nil {
			one.Outcome, one.Error = n.Err.Outcome.String(), n.Err.Error()
		}
		r.Nodes = append(r.Nodes, one)
	}
	return r
}
