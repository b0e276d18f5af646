package look

import (
	"time"

	"github.com/quorumlock/redlock/cmd/redlock/internal/locks"
	"github.com/quorumlock/redlock/cmd/redlock/internal/peek"
)

// A listReport is a list of locks as JSON. Durations are in milliseconds.
type listReport struct {
	Time   time.Time        `json:"time"`
	Locks  []lockReport     `json:"locks"`
	Nodes  []listNodeReport `json:"nodes"`
	Set    string           `json:"set,omitempty"`
	Epoch  int64            `json:"epoch"` // 0: the nodes keep no description of their set
	Quorum int              `json:"quorum"`
}

type lockReport struct {
	locks.NameReport
	Also     []string             `json:"also,omitempty"`
	State    string               `json:"state"` // held, free, split or unknown
	Leftover bool                 `json:"leftover,omitempty"`
	TTL      int64                `json:"ttl_ms,omitempty"`
	Holders  []locks.HolderReport `json:"holders,omitempty"`
	Waiting  []locks.WaitReport   `json:"waiting"`
}

type listNodeReport struct {
	Node    string `json:"node"`
	Listed  bool   `json:"listed"`            // its locks are in the list
	Outcome string `json:"outcome,omitempty"` // why it cannot vote
	Error   string `json:"error,omitempty"`
}

func listReportOf(l *peek.List) *listReport {
	r := &listReport{Time: l.At.UTC(), Locks: make([]lockReport, 0, len(l.Rows)), Set: l.Members.Set, Epoch: l.Members.Epoch, Quorum: l.Members.Quorum}
	for _, row := range l.Rows {
		holders := locks.HolderReports(row.Names[0], row.Holders)
		if len(row.Names) > 1 {
			for i := range holders { // the row has the other names
				holders[i].Also, holders[i].More = nil, 0
			}
		}
		r.Locks = append(r.Locks, lockReport{
			NameReport: locks.Named(row.Names[0]), Also: row.Names[1:], State: row.State.String(), Leftover: row.Leftover, TTL: row.Left.Milliseconds(),
			Holders: holders, Waiting: locks.WaitReports(row.Waiting),
		})
	}
	for _, n := range l.Nodes {
		one := listNodeReport{Node: n.Name, Listed: n.Walked()}
		if n.Err != nil {
			one.Outcome, one.Error = n.Err.Outcome.String(), n.Err.Error()
		}
		r.Nodes = append(r.Nodes, one)
	}
	return r
}
