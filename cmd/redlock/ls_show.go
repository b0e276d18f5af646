package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/internal/printable"
	"github.com/quorumlock/redlock/internal/wire"
)

// mostNames is how many other names of a lock are in the table.
const mostNames = 3

// showList prints the locks as a table, and a summary.
func showList(to io.Writer, l *lockList) error {
	if len(l.rows) > 0 {
		t := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "name\tstate\tmode\towner\tage\tleft\tnodes\twaiting\tnote")
		for _, r := range l.rows {
			fmt.Fprintln(t, r.text(l))
		}
		if err := t.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(to)
	}
	_, err := fmt.Fprintln(to, l.summary())
	return err
}

// text is the row in the table. What is not known is "-".
func (r *lockRow) text(l *lockList) string {
	mode, owner, age, left, nodes, waiting := "-", "-", "-", "-", "-", "-"
	if len(r.holders) > 0 {
		mode, owner = string(r.holders[0].Mode), shortOwner(r.holders[0])
		if n := len(r.holders) - 1; n > 0 {
			owner += fmt.Sprintf(" +%d", n)
		}
		nodes = fmt.Sprintf("%d of %d", r.nodes, len(l.nodes))
	}
	if since := r.since(); !since.IsZero() {
		age = printable.Duration(max(0, l.at.Sub(since)).Round(time.Millisecond))
	}
	if r.left > 0 {
		left = printable.Duration(r.left)
	}
	if n := len(r.waiting); n > 0 {
		waiting = fmt.Sprintf("%d, %s", n, printable.Duration(r.wait().Round(time.Millisecond)))
	}
	return strings.Join([]string{printable.Text(r.names[0]), r.state.String(), mode, owner, age, left, nodes, waiting, r.note()}, "\t")
}

// shortOwner is who has a lock, or what its token begins with.
func shortOwner(h redlock.Holder) string {
	secret := wire.Secret(h.Token)
	if len(secret) > 8 {
		secret = secret[:8] + "…"
	}
	return cmp.Or(printable.Text(h.By.Owner), "token "+printable.Text(secret))
}

// note is what is unusual.
func (r *lockRow) note() string {
	var notes []string
	if r.leftover {
		notes = append(notes, "leftover")
	}
	if others := r.names[1:]; len(others) > 0 {
		text := make([]string, 0, mostNames)
		for _, name := range others[:min(len(others), mostNames)] {
			text = append(text, printable.Text(name))
		}
		and := ""
		if more := len(others) - mostNames; more > 0 {
			and = fmt.Sprintf(" and %s", phrase.Count(more, "more name"))
		}
		notes = append(notes, "also "+strings.Join(text, ", ")+and)
	}
	return cmp.Or(strings.Join(notes, "; "), "-")
}
