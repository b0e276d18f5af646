package operate

import (
	"time"

	"github.com/quorumlock/redlock"
)

// A membersReport is a set as JSON.
type membersReport struct {
	Set       string         `json:"set,omitempty"`
	Epoch     int64          `json:"epoch"` // 0: the nodes keep no description
	Since     *time.Time     `json:"since,omitempty"`
	Quorum    int            `json:"quorum,omitempty"`
	Separator string         `json:"separator,omitempty"`
	MaxTTL    int64          `json:"max_ttl_ms,omitempty"`
	LongerTTL int64          `json:"longer_ttl_ms,omitempty"` // bounds quarantines while max_ttl_ms changes
	Members   []memberReport `json:"members,omitempty"`
	Others    []memberReport `json:"others,omitempty"` // nodes that were given, and are no members
	Next      *nextReport    `json:"next,omitempty"`   // a change that has begun
}

type memberReport struct {
	Node    string `json:"node"`
	Given   bool   `json:"given"`
	Keeps   int64  `json:"keeps"`          // the epoch of the description that it keeps; 0: it keeps none
	Set     string `json:"set,omitempty"`  // of that description, if it is another set
	Vote    *bool  `json:"vote,omitempty"` // absent: it was not asked
	Outcome string `json:"outcome,omitempty"`
	Error   string `json:"error,omitempty"`
}

type nextReport struct {
	Epoch   int64    `json:"epoch"`
	Members []string `json:"members"`
	Quorum  int      `json:"quorum"`
	Taken   int      `json:"taken"` // how many members have accepted it
}

// A changeReport is the result of a change as JSON, or of its plan.
type changeReport struct {
	Changed bool `json:"changed"`
	Plan    bool `json:"plan,omitempty"`
	membersReport
	Waits []waitFor `json:"waits,omitempty"` // of a plan

	these []waitFor // of the step that is being planned
}

type waitFor struct {
	What string `json:"for"`
	Most int64  `json:"for_ms,omitempty"` // absent: until it happens
}

// waits is the callback of a plan: it notes what the change would wait for.
func (r *changeReport) waits(what string, most time.Duration) {
	r.these = append(r.these, waitFor{what, most.Milliseconds()})
}

// of copies the set into the report.
func (r *membersReport) of(m redlock.Members) {
	r.Set, r.Epoch, r.Quorum, r.Separator, r.MaxTTL, r.LongerTTL = m.Set, m.Epoch, m.Quorum, m.Separator, m.MaxTTL.Milliseconds(), m.LongerTTL.Milliseconds()
	if !m.Since.IsZero() {
		r.Since = &m.Since
	}
	if r.Members == nil {
		for _, n := range m.Nodes {
			r.Members = append(r.Members, memberReport{Node: n})
		}
	}
}
