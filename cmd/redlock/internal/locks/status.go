package locks

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

// News returns a status in one line, without what changes all the time, such as TTLs: a new line is news.
func News(s *redlock.Status) string {
	text := said(s, true)
	if down := explain.Absent(s); len(down) > 0 {
		text += fmt.Sprintf("; %d of %s %s", len(down), phrase.Count(len(s.Nodes), "node"), explain.NoVote(len(down)))
	}
	return text
}

// Brief returns News without nodes and fence, which a listing does not have.
func Brief(s *redlock.Status) string { return said(s, false) }

func said(s *redlock.Status, fence bool) string {
	var say strings.Builder
	fmt.Fprintf(&say, "%q: %v", s.Name, s.State)
	if s.Token != "" {
		fmt.Fprintf(&say, " by %s", explain.Holder(s.Token))
		if fence {
			fmt.Fprintf(&say, ", fence at most %d", s.Fence)
		}
	}
	for _, h := range s.Holders {
		fmt.Fprintf(&say, ", %s by %s", string(h.Mode), explain.Holder(h.Token))
	}
	if n := len(s.Waiting); n > 0 {
		fmt.Fprintf(&say, "; %d waiting, the first is %s", n, Owner(s.Waiting[0]))
	}
	return say.String()
}

// Owner returns who waits, for messages: the owner, or the waiter's name if it has none.
func Owner(w redlock.Waiter) string {
	return printable.Text(cmp.Or(w.Owner, w.Waiter))
}

// Others returns the other names of a lock on several names, as far as its token has room for them.
func Others(name string, by redlock.Identity) (all []string) {
	for _, other := range by.Names {
		if other != name {
			all = append(all, other)
		}
	}
	return all
}

// Also returns a text that says which other names a lock takes in; "": none.
func Also(name string, by redlock.Identity) string {
	var text []string
	for _, other := range Others(name, by) {
		text = append(text, fmt.Sprintf("%q", other))
	}
	if by.More > 0 {
		text = append(text, phrase.Count(by.More, "more name"))
	}
	if len(text) == 0 {
		return ""
	}
	return "takes in " + strings.Join(text, ", ") + " as well"
}

// HolderRow returns a row of the table of holders. What the token does not say (by) is "-".
func HolderRow(now time.Time, by redlock.Identity, mode redlock.Mode, left time.Duration, token string) []string {
	since := "-"
	if !by.Since.IsZero() {
		since = fmt.Sprintf("%s, %s ago", by.Since.Format(time.DateTime), printable.Duration(max(0, now.Sub(by.Since))))
	}
	said := func(s string) string { return cmp.Or(printable.Text(s), "-") }
	return []string{said(by.Owner), string(mode), since, left.String(), said(by.Trace), printable.Text(token)}
}

// Lines returns a status as text: lines of cells. Lines of several cells that follow each other are a table, and an
// empty line stands before each. All of it is printable.
func Lines(s *redlock.Status, m redlock.Members, now time.Time) [][]string {
	lines := [][]string{{News(s)}}
	add := func(cells ...string) { lines = append(lines, cells) }
	if s.TTL > 0 {
		add(fmt.Sprintf("%v left unless renewed", s.TTL))
	}
	if s.State == redlock.StateHeld || len(s.Holders) > 0 {
		add()
		add("holder", "mode", "since", "left", "trace", "token")
		if s.Token != "" {
			add(HolderRow(now, s.By, ModeExclusive, s.TTL, s.Token)...)
		}
		for _, h := range s.Holders {
			add(HolderRow(now, h.By, h.Mode, h.TTL, h.Token)...)
		}
		for _, h := range append([]redlock.Holder{{Token: s.Token, By: s.By}}, s.Holders...) {
			if also := Also(s.Name, h.By); also != "" {
				add(explain.Holder(h.Token) + " " + also)
			}
		}
	}
	if len(s.Waiting) > 0 {
		add()
		add("waiting", "for", "known to")
		for _, w := range s.Waiting {
			add(Owner(w), w.For.Round(time.Millisecond).String(), phrase.Count(w.Nodes, "node"))
		}
	}
	add()
	add("node", "has", "left", "counter", "waiting", "")
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
			note = printable.Text(explain.What(n.Err))
		}
		add(printable.Text(n.Node), has, left, fence, fmt.Sprint(len(n.Waiting)), note)
	}
	if m.Epoch > 0 {
		add()
		add(fmt.Sprintf("set %s, epoch %d: %s, quorum %d", printable.Text(m.Set), m.Epoch, phrase.Count(len(m.Nodes), "member"), m.Quorum))
	}
	return lines
}

// Show prints a status, with the set that the nodes belong to, as text.
func Show(to io.Writer, s *redlock.Status, m redlock.Members) error {
	t := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, cells := range Lines(s, m, time.Now()) {
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	return t.Flush()
}
