package operate

import (
	"math"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/load"
)

// A doctorReport is the result of redlock doctor as JSON.
type doctorReport struct {
	OK       bool            `json:"ok"`       // locks can be acquired, and nothing has to change
	Can      bool            `json:"can_lock"` // locks can be acquired
	Answer   string          `json:"answer"`   // can_lock in words, and why
	Remedy   string          `json:"remedy,omitempty"`
	Votes    int             `json:"votes"`
	Quorum   int             `json:"quorum"`
	VotesAt  *time.Time      `json:"votes_at,omitempty"` // when enough nodes vote by themselves
	Nodes    []nodeExamined  `json:"nodes"`
	Findings []findingReport `json:"findings"`
	Set      string          `json:"set,omitempty"`
	Epoch    int64           `json:"epoch"`                    // 0: the nodes keep no description of one set
	Longest  int64           `json:"longest_ttl_ms,omitempty"` // of locks on these nodes
}

type nodeExamined struct {
	Node       string       `json:"node"`
	Given      bool         `json:"given"`
	Member     bool         `json:"member"` // its vote counts
	Vote       bool         `json:"vote"`
	Quarantine int64        `json:"quarantine_ms,omitempty"`
	Server     string       `json:"server,omitempty"` // its kind and version
	RoundTrip  *load.Millis `json:"round_trip_ms,omitempty"`
	Clock      *float64     `json:"clock_ms,omitempty"` // how far its clock is ahead of this machine's
	Error      string       `json:"error,omitempty"`    // it did not answer
}

type findingReport struct {
	Must    bool     `json:"must_change"` // false: it may be intended
	Nodes   []string `json:"nodes"`
	Finding string   `json:"finding"`
	Remedy  string   `json:"remedy"`
}

func newDoctorReport(x *examination, can *verdict, found []finding) *doctorReport {
	r := &doctorReport{OK: can.can, Can: can.can, Answer: can.text, Remedy: can.todo, Votes: can.votes, Quorum: x.need, Findings: []findingReport{}}
	r.Longest = x.longest().Milliseconds()
	if !can.until.IsZero() {
		r.VotesAt = &can.until
	}
	if set := x.set.Set; set != nil {
		r.Set, r.Epoch = set.Set, set.Epoch
	}
	for _, p := range x.patients {
		one := nodeExamined{Node: p.name, Given: p.given, Member: p.member, Vote: p.member && p.vote == nil && p.barred == ""}
		if p.vote != nil && p.vote.Outcome == redlock.OutcomeQuarantined {
			one.Quarantine = p.vote.TTL.Milliseconds()
		}
		if p.err != nil {
			one.Error = p.err.Error()
		} else {
			trip, ahead := load.Millis(p.RoundTrip), math.Round(float64(p.Clock)/float64(time.Microsecond))/1000
			one.Server, one.RoundTrip, one.Clock = p.info.Server(), &trip, &ahead
		}
		r.Nodes = append(r.Nodes, one)
	}
	for _, f := range found {
		r.OK = r.OK && !f.must
		nodes := f.nodes
		if nodes == nil {
			nodes = []string{}
		}
		r.Findings = append(r.Findings, findingReport{f.must, nodes, f.what, f.todo})
	}
	return r
}
