package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/explain"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/internal/printable"
)

// news is a status in one line, without what changes all the time.
func news(s *redlock.Status) string {
	var say strings.Builder
	fmt.Fprintf(&say, "%q: %v", s.Name, s.State)
	if s.Token != "" {
		fmt.Fprintf(&say, " by %s, fence %d", explain.Holder(s.Token), s.Fence)
	}
	for _, h := range s.Holders {
		fmt.Fprintf(&say, ", %s by %s", string(h.Mode), explain.Holder(h.Token))
	}
	if n := len(s.Waiting); n > 0 {
		fmt.Fprintf(&say, "; %d waiting, the first is %s", n, owner(s.Waiting[0]))
	}
	if down := explain.Absent(s); len(down) > 0 {
		fmt.Fprintf(&say, "; %d of %s %s", len(down), phrase.Count(len(s.Nodes), "node"), explain.NoVote(len(down)))
	}
	return say.String()
}

func owner(w redlock.Waiter) string {
	return printable.Text(cmp.Or(w.Owner, w.Waiter))
}

// holderRow is a row of the table of those who have a lock. What a token does not say is "-".
func holderRow(by redlock.Identity, mode redlock.Mode, left time.Duration, token string) string {
	since := "-"
	if !by.Since.IsZero() {
		since = fmt.Sprintf("%s, %s ago", by.Since.Format(time.DateTime), printable.Duration(max(0, time.Since(by.Since))))
	}
	said := func(s string) string { return cmp.Or(printable.Text(s), "-") }
	return strings.Join([]string{said(by.Owner), string(mode), since, left.String(), said(by.Trace), printable.Text(token)}, "\t")
}

// show prints a status as text.
func show(to io.Writer, s *redlock.Status, m redlock.Members) error {
	fmt.Fprintln(to, news(s))
	if s.TTL > 0 {
		fmt.Fprintf(to, "%v left unless renewed\n", s.TTL)
	}
	t := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	if s.State == redlock.StateHeld || len(s.Holders) > 0 {
		fmt.Fprintln(t, "\nholder\tmode\tsince\tleft\ttrace\ttoken")
		if s.Token != "" {
			fmt.Fprintln(t, holderRow(s.By, "exclusive", s.TTL, s.Token))
		}
		for _, h := range s.Holders {
			fmt.Fprintln(t, holderRow(h.By, h.Mode, h.TTL, h.Token))
		}
	}
	if len(s.Waiting) > 0 {
		fmt.Fprintln(t, "\nwaiting\tfor\tknown to")
		for _, w := range s.Waiting {
			fmt.Fprintf(t, "%s\t%v\t%s\n", owner(w), w.For.Round(time.Millisecond), phrase.Count(w.Nodes, "node"))
		}
	}
	fmt.Fprintln(t, "\nnode\thas\tleft\tfence\twaiting\t")
	for _, n := range s.Nodes {
		has, left, fence, note := "-", "-", "-", ""
		if n.Token != "" {
			has = explain.Holder(n.Token)
		} else if len(n.Holders) > 0 {
			has = fmt.Sprintf("%s %s", phrase.Count(len(n.Holders), "holder"), n.Holders[0].Mode)
		}
		if n.TTL > 0 {
			left = n.TTL.String()
		}
		if n.Fence > 0 {
			fence = fmt.Sprint(n.Fence)
		}
		if n.Err != nil {
			note = strings.TrimPrefix(n.Err.Error(), n.Node+": ")
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%s\n", n.Node, has, left, fence, len(n.Waiting), note)
	}
	if m.Epoch > 0 {
		fmt.Fprintf(t, "\nset %s, epoch %d: %s, quorum %d\n", printable.Text(m.Set), m.Epoch, phrase.Count(len(m.Nodes), "member"), m.Quorum)
	}
	return t.Flush()
}

// A statusReport is a status as JSON. Durations are in milliseconds.
type statusReport struct {
	Time  *time.Time `json:"time,omitempty"`
	Name  string     `json:"name"`
	State string     `json:"state"` // free, held, split or unknown
	Token string     `json:"token,omitempty"`
	identityReport
	TTL     int64          `json:"ttl_ms,omitempty"`
	Fence   int64          `json:"fence,omitempty"`
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
	Fence   int64          `json:"fence,omitempty"`
	Holders []holderReport `json:"holders,omitempty"`
	Waiting int            `json:"waiting"`
	Outcome string         `json:"outcome,omitempty"` // why it has no vote
	Error   string         `json:"error,omitempty"`
}

func report(s *redlock.Status) *statusReport {
	r := &statusReport{Name: s.Name, State: s.State.String(), Token: s.Token, identityReport: identity(s.By), TTL: s.TTL.Milliseconds(), Fence: s.Fence, Holders: holderReports(s.Holders), Waiting: waitReports(s.Waiting)}
	for _, n := range s.Nodes {
		one := nodeReport{Node: n.Node, Token: n.Token, TTL: n.TTL.Milliseconds(), Fence: n.Fence, Holders: holderReports(n.Holders), Waiting: len(n.Waiting)}
		if n.Err != nil {
			one.Outcome, one.Error = n.Err.Outcome.String(), n.Err.Error()
		}
		r.Nodes = append(r.Nodes, one)
	}
	return r
}
