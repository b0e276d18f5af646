package locks

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/internal/printable"
	"github.com/quorumlock/redlock/internal/wire"
)

// mostNames is how many other names of a lock are in the table.
const mostNames = 3

// Cells are what the columns of a table have.
type Cells struct{ Name, State, Mode, Owner, Age, Left, Nodes, Waiting, Note string }

// Cells returns the cells of the row at an instant, where the lock may be on "of" nodes. What is not known is "-". All
// of it is printable.
func (r *Row) Cells(at time.Time, of int) Cells {
	mode, owner, age, left, nodes, waiting := "-", "-", "-", "-", "-", "-"
	if len(r.Holders) > 0 {
		mode, owner = string(r.Holders[0].Mode), shortOwner(r.Holders[0])
		if n := len(r.Holders) - 1; n > 0 {
			owner += fmt.Sprintf(" +%d", n)
		}
		nodes = fmt.Sprintf("%d of %d", r.Nodes, of)
	}
	if since := r.Since(); !since.IsZero() {
		age = printable.Duration(max(0, at.Sub(since)).Round(time.Millisecond))
	}
	if r.Left > 0 {
		left = printable.Duration(r.Left)
	}
	if n := len(r.Waiting); n > 0 {
		waiting = fmt.Sprintf("%d, %s", n, printable.Duration(r.Wait().Round(time.Millisecond)))
	}
	return Cells{printable.Text(r.Names[0]), r.State.String(), mode, owner, age, left, nodes, waiting, r.note()}
}

// shortOwner returns the owner of a lock, or the beginning of its token if that names none.
func shortOwner(h redlock.Holder) string {
	return cmp.Or(printable.Text(h.By.Owner), "token "+printable.Token(wire.Secret(h.Token)))
}

// note returns what is unusual about the row: it is a leftover, or a lock of several names; "-": nothing is.
func (r *Row) note() string {
	var notes []string
	if r.Leftover {
		notes = append(notes, "leftover")
	}
	if others := r.Names[1:]; len(others) > 0 {
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
