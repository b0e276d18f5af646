package record

import (
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/locks"
	"github.com/quorumlock/redlock/internal/recording"
)

// A storyReport is a story as JSON: all of it, or what was at one instant. Durations are in milliseconds.
type storyReport struct {
	locks.NameReport
	Time    time.Time         `json:"time,omitzero"`
	Since   time.Time         `json:"since"` // of the record
	Until   time.Time         `json:"until"`
	Nodes   []string          `json:"nodes"`
	Holds   []storyHoldReport `json:"holds"`
	Waits   []storyWaitReport `json:"waits"`
	Missing []storyGapReport  `json:"missing"`
	Rise    bool              `json:"fences_rise"`
}

type storyHoldReport struct {
	Token  string            `json:"token"`
	Owner  string            `json:"owner,omitempty"`
	Trace  string            `json:"trace,omitempty"`
	Also   []string          `json:"also,omitempty"`
	Mode   redlock.Mode      `json:"mode"`
	Fence  int64             `json:"fence,omitempty"`
	Since  time.Time         `json:"since"`
	Until  time.Time         `json:"until,omitzero"`
	Before bool              `json:"before,omitempty"` // it was held before the record began to see it
	Ended  recording.End     `json:"ended,omitempty"`
	Nodes  []string          `json:"nodes"`
	Lost   []storyLossReport `json:"lost"`
}

type storyLossReport struct {
	Time time.Time     `json:"time"`
	Node string        `json:"node"`
	How  recording.End `json:"ended"`
	Left int64         `json:"left_ms,omitempty"`
}

type storyWaitReport struct {
	Waiter string    `json:"waiter"`
	Owner  string    `json:"owner,omitempty"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until,omitzero"`
	Nodes  []string  `json:"nodes"`
	Got    string    `json:"got,omitempty"`    // the token
	Unseen bool      `json:"unseen,omitempty"` // the nodes were not seen when it ended, so it may have gone on
}

type storyGapReport struct {
	Node  string    `json:"node,omitempty"` // "": all
	Since time.Time `json:"since"`
	Until time.Time `json:"until,omitzero"`
	Error string    `json:"error,omitempty"`
}

func storyReportOf(s *recording.Story, at time.Time) *storyReport {
	r := &storyReport{
		NameReport: locks.Named(s.Name), Time: at, Since: s.From, Until: s.To, Nodes: s.Nodes, Rise: len(s.Unfenced) == 0,
		Holds: []storyHoldReport{}, Waits: []storyWaitReport{}, Missing: []storyGapReport{},
	}
	holds, waits := s.Holds, s.Waits
	if !at.IsZero() {
		r.Time = at.UTC()
		holds, waits = s.Then(at), s.WhoWaited(at)
	}
	for _, h := range holds {
		one := storyHoldReport{
			Token: h.Token, Owner: h.By.Owner, Trace: h.By.Trace, Also: locks.Others(s.Name, h.By), Mode: h.Mode, Fence: h.Fence, Since: h.From, Until: h.To, Before: h.Before,
			Ended: h.How(), Nodes: h.Nodes, Lost: []storyLossReport{},
		}
		for _, l := range h.Lost {
			one.Lost = append(one.Lost, storyLossReport{l.Time, l.Node, l.How, l.Left.Milliseconds()})
		}
		r.Holds = append(r.Holds, one)
	}
	for _, w := range waits {
		one := storyWaitReport{Waiter: w.Waiter, Owner: w.Owner, Since: w.Since, Until: w.Until, Nodes: w.Nodes, Unseen: w.Unseen}
		if w.Got != nil {
			one.Got = w.Got.Token
		}
		r.Waits = append(r.Waits, one)
	}
	for _, q := range s.Silences {
		if at.IsZero() || !q.From.After(at) && (q.To.IsZero() || q.To.After(at)) {
			r.Missing = append(r.Missing, storyGapReport{q.Node, q.From, q.To, q.Error})
		}
	}
	return r
}
