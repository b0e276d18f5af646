package record

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/explain"
	"github.com/quorumlock/redlock/cmd/redlock/internal/locks"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/internal/printable"
	"github.com/quorumlock/redlock/internal/recording"
)

// stamp formats an instant, to the millisecond.
func stamp(at time.Time) string { return at.Local().Format("2006-01-02 15:04:05.000") }

// since formats an instant without its day if the other one is of the same day.
func since(at, other time.Time) string {
	if a, b := at.Local(), other.Local(); a.YearDay() != b.YearDay() || a.Year() != b.Year() {
		return stamp(at)
	}
	return at.Local().Format("15:04:05.000")
}

// howLong formats a duration, to the millisecond.
func howLong(d time.Duration) string { return printable.Duration(max(0, d).Round(time.Millisecond)) }

// endings say how a hold ended.
var endings = map[recording.End]string{
	recording.EndReleased: "released, or broken by redlock break",
	recording.EndExpired:  "lost: its TTL ran out, and nobody had extended it",
	recording.EndEvicted:  "lost: servers dropped it for want of memory",
	recording.EndForgot:   "lost: nodes were emptied, or started without their data",
	recording.EndDeleted:  "ended before its TTL: released, broken, or dropped by the nodes, which was not seen",
	recording.EndGone:     "ended: released, or its TTL ran out, which was not seen",
	recording.EndReplaced: "ended: other locks are in its place, and how that came was not seen",
	recording.EndUnseen:   "not known: too few nodes were seen for longer than its TTL",
}

// ending returns how a hold ended, or that it did not, as text.
func ending(h *recording.Hold) string { return cmp.Or(endings[h.How()], "still held") }

// ownerOf returns the holder of a lock, as text.
func ownerOf(h *recording.Hold) string {
	return cmp.Or(printable.Text(h.By.Owner), explain.Holder(h.Token))
}

// modeOf returns a mode, escaped: anybody may have written the record.
func modeOf(m redlock.Mode) string { return printable.Text(string(m)) }

// fenceOf formats the fence; "-" if it is unknown.
func fenceOf(h *recording.Hold) string {
	if h.Fence == 0 {
		return "-"
	}
	return fmt.Sprint(h.Fence)
}

// showStory prints all that a record says of a lock.
func showStory(to io.Writer, s *recording.Story) error {
	t := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%q, recorded from %s to %s on %s\n", s.Name, stamp(s.From), since(s.To, s.From), phrase.Count(len(s.Nodes), "node"))
	if len(s.Holds) == 0 {
		fmt.Fprintf(t, "no majority of the nodes had it\n")
	} else {
		fmt.Fprintf(t, "\nfrom\theld for\towner\tmode\tfence\tnodes\tended\n")
	}
	for _, h := range s.Holds {
		began := since(h.From, s.From)
		if h.Before {
			began = "before " + began
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d of %d\t%s\n", began, howLong(cmp.Or(h.To, s.To).Sub(h.From)), ownerOf(h), modeOf(h.Mode), fenceOf(h), len(h.Nodes), len(s.Nodes), ending(h))
	}
	showWaits(t, s, s.Waits)
	showGaps(t, s)
	showFences(t, s)
	return t.Flush()
}

// notGot is the end of a wait that no node knows any more and that no lock followed.
const notGot = "left the queue, or lost its place, without the lock"

// showWaits prints who waited.
func showWaits(t io.Writer, s *recording.Story, all []*recording.Wait) {
	if len(all) > 0 {
		fmt.Fprintf(t, "\nwaited from\tfor\towner\tknown to\tand then\n")
	}
	for _, w := range all {
		then := notGot
		switch {
		case w.Got != nil:
			then = "had it from " + since(w.Got.From, s.From)
		case w.Until.IsZero():
			then = "still waits"
		case w.Unseen:
			then = "not known: the nodes were not seen"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", since(w.Since, s.From), howLong(cmp.Or(w.Until, s.To).Sub(w.Since)), printable.Text(cmp.Or(w.Owner, w.Waiter)), phrase.Count(len(w.Nodes), "node"), then)
	}
}

// mostGaps is how many gaps in the record are shown, the last ones. A node may come and go all the time.
const mostGaps = 100

// showGaps prints the gaps: when the recorder did not see a node.
func showGaps(t io.Writer, s *recording.Story) {
	if len(s.Silences) > 0 {
		fmt.Fprintf(t, "\nnot seen\tfrom\tfor\twhy\n")
	}
	shown := s.Silences[max(0, len(s.Silences)-mostGaps):]
	if n := len(s.Silences) - len(shown); n > 0 {
		fmt.Fprintf(t, "%s before\n", phrase.Counted(n, "more time"))
	}
	for _, q := range shown {
		who, why := printable.Text(q.Node), printable.Text(q.Error)
		if q.Node == "" {
			who, why = "all nodes", recording.Nothing
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", who, since(q.From, s.From), howLong(cmp.Or(q.To, s.To).Sub(q.From)), why)
	}
}

// showFences prints whether the fences rose.
func showFences(t io.Writer, s *recording.Story) {
	if s.Fenced > 1 {
		fmt.Fprintf(t, "\n")
	}
	switch {
	case len(s.Unfenced) > 0:
		for _, pair := range s.Unfenced {
			fmt.Fprintf(t, "the fences do not rise: %s had %d at %s, and %s had %d at %s\n", ownerOf(pair[0]), pair[0].Fence, stamp(pair[0].From), ownerOf(pair[1]), pair[1].Fence, stamp(pair[1].From))
		}
	case s.Fenced > 1:
		fmt.Fprintf(t, "the fence of each of %s is larger than all before it\n", phrase.Counted(s.Fenced, "exclusive lock"))
	}
}

// showMoment prints what a record says of an instant.
func showMoment(to io.Writer, s *recording.Story, at time.Time) error {
	t := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	then, status := s.Then(at), s.At(at)
	fmt.Fprintf(t, "%q at %s\n", s.Name, stamp(at))
	switch {
	case len(then) > 0:
	case status.State == redlock.StateUnknown:
		fmt.Fprintf(t, "who had it is not known: too few of the nodes were seen\n")
	default:
		fmt.Fprintf(t, "no majority of the nodes had it\n")
	}
	for _, h := range then {
		fmt.Fprintf(t, "\nheld by %s, %s\n", ownerOf(h), modeOf(h.Mode))
		fmt.Fprintf(t, "    token %s\n", printable.Text(h.Token))
		if h.Fence > 0 {
			fmt.Fprintf(t, "    fence %d\n", h.Fence)
		}
		if h.By.Trace != "" {
			fmt.Fprintf(t, "    trace %s\n", printable.Text(h.By.Trace))
		}
		if also := locks.Also(s.Name, h.By); also != "" {
			fmt.Fprintf(t, "    %s\n", also)
		}
		fmt.Fprintf(t, "    from %s, for %s, on %s\n", stamp(h.From), howLong(cmp.Or(h.To, s.To).Sub(h.From)), addresses(h.Nodes))
		fmt.Fprintf(t, "    %s\n", ending(h))
		for _, l := range h.Lost {
			fmt.Fprintf(t, "    %s  %s: %s\n", since(l.Time, at), printable.Text(l.Node), l.How)
		}
	}
	showWaits(t, s, s.WhoWaited(at))
	fmt.Fprintf(t, "\nnode\thad\twaiting\t\n")
	for _, n := range status.Nodes {
		var has []string
		if n.Token != "" {
			has = append(has, explain.Holder(n.Token))
		}
		for _, h := range n.Holders {
			has = append(has, fmt.Sprintf("%s (%s)", explain.Holder(h.Token), modeOf(h.Mode)))
		}
		note := ""
		if n.Err != nil {
			note = "not seen: " + printable.Text(n.Err.Err.Error())
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\n", printable.Text(n.Node), cmp.Or(strings.Join(has, ", "), "-"), len(n.Waiting), note)
	}
	var before, after *recording.Hold
	for _, h := range s.Holds {
		if !h.To.IsZero() && !h.To.After(at) {
			before = h
		}
		if h.From.After(at) && after == nil {
			after = h
		}
	}
	if before != nil {
		fmt.Fprintf(t, "\nbefore it: %s, until %s, fence %s: %s\n", ownerOf(before), since(before.To, at), fenceOf(before), ending(before))
	}
	if after != nil {
		fmt.Fprintf(t, "\nafter it: %s, from %s, fence %s\n", ownerOf(after), since(after.From, at), fenceOf(after))
	}
	showFences(t, s)
	return t.Flush()
}

func addresses(nodes []string) string {
	all := make([]string, len(nodes))
	for i, n := range nodes {
		all[i] = printable.Text(n)
	}
	return strings.Join(all, ", ")
}
