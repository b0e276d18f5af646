package main

import (
	"time"
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
	nameReport
	Also     []string       `json:"also,omitempty"`
	State    string         `json:"state"` // held, free, split or unknown
	Leftover bool           `json:"leftover,omitempty"`
	TTL      int64          `json:"ttl_ms,omitempty"`
	Holders  []holderReport `json:"holders,omitempty"`
	Waiting  []waitReport   `json:"waiting"`
}

type listNodeReport struct {
	Node    string `json:"node"`
	Listed  bool   `json:"listed"`            // what it has counts
	Outcome string `json:"outcome,omitempty"` // why it has no vote
	Error   string `json:"error,omitempty"`
}

func listReportOf(l *lockList) *listReport {
	r := &listReport{Time: l.at.UTC(), Locks: make([]lockReport, 0, len(l.rows)), Set: l.members.Set, Epoch: l.members.Epoch, Quorum: l.members.Quorum}
	for _, row := range l.rows {
		holders := holderReports(row.Names[0], row.Holders)
		if len(row.Names) > 1 {
			for i := range holders { // the row has them
				holders[i].Also, holders[i].More = nil, 0
			}
		}
		r.Locks = append(r.Locks, lockReport{
			nameReport: named(row.Names[0]), Also: row.Names[1:], State: row.State.String(), Leftover: row.Leftover, TTL: row.Left.Milliseconds(),
			Holders: holders, Waiting: waitReports(row.Waiting),
		})
	}
	for _, n := range l.nodes {
		one := listNodeReport{Node: n.Name, Listed: n.Walked()}
		if n.Err != nil {
			one.Outcome, one.Error = n.Err.Outcome.String(), n.Err.Error()
		}
		r.Nodes = append(r.Nodes, one)
	}
	return r
}
