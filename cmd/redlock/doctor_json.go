package main

import (
	"math"
	"time"

	"github.com/quorumlock/redlock/cmd/redlock/internal/load"
)

// A doctorReport is the result of redlock doctor as JSON.
type doctorReport struct {
	OK       bool            `json:"ok"` // nothing has to change
	Nodes    []nodeExamined  `json:"nodes"`
	Findings []findingReport `json:"findings"`
	Set      string          `json:"set,omitempty"`
	Epoch    int64           `json:"epoch"` // 0: the nodes keep no description of one set
}

type nodeExamined struct {
	Node      string       `json:"node"`
	Server    string       `json:"server,omitempty"` // its kind and version
	RoundTrip *load.Millis `json:"round_trip_ms,omitempty"`
	Clock     *float64     `json:"clock_ms,omitempty"` // how far its clock is ahead of this machine's
	Error     string       `json:"error,omitempty"`    // it did not answer
}

type findingReport struct {
	Must    bool     `json:"must_change"` // false: it may be intended
	Nodes   []string `json:"nodes"`
	Finding string   `json:"finding"`
	Remedy  string   `json:"remedy"`
}

func newDoctorReport(patients []*patient, found []finding) *doctorReport {
	r := &doctorReport{OK: true, Findings: []findingReport{}}
	if set := setOf(patients).set; set != nil {
		r.Set, r.Epoch = set.Set, set.Epoch
	}
	for _, p := range patients {
		one := nodeExamined{Node: p.name}
		if p.err != nil {
			one.Error = p.err.Error()
		} else {
			trip, ahead := load.Millis(p.roundTrip), math.Round(float64(p.clock)/float64(time.Microsecond))/1000
			one.Server, one.RoundTrip, one.Clock = p.info.Server(), &trip, &ahead
		}
		r.Nodes = append(r.Nodes, one)
	}
	for _, f := range found {
		r.OK = r.OK && !f.must
		r.Findings = append(r.Findings, findingReport{f.must, f.nodes, f.what, f.todo})
	}
	return r
}
