// Package screen is what redlock top shows: the lines of a screen, as functions of what the nodes have said
// and of the keys that were pressed. It knows no terminal and asks no node.
package screen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/explain"
	"github.com/quorumlock/redlock/cmd/redlock/internal/locks"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/internal/printable"
)

// A Picture is what the nodes have said in one look.
type Picture struct {
	At       time.Time
	Members  redlock.Members
	Nodes    []Node
	Rows     []*locks.Row
	Switches float64 // locks that got another holder, a second; negative: not known
}

// A Node is a node in a Picture.
type Node struct {
	Name      string
	Err       *redlock.NodeError // why it has no vote; nil: it has one
	Unlisted  *redlock.NodeError // why its locks could not be listed, though it has a vote
	Measured  bool               // what follows is known
	RoundTrip time.Duration      // the usual one
	Clock     time.Duration      // how far its clock is ahead
	Within    time.Duration      // so exactly
}

// A Line is a line of the screen. Its text is printable, and no wider than the screen.
type Line struct {
	Text          string
	Bold, Reverse bool
}

// Frame returns the lines for a screen of this size: as many as it has rows.
func (s *State) Frame(columns, rows int) (lines []Line) {
	if columns <= 0 || rows <= 0 {
		return nil
	}
	foot := s.foot(columns)
	switch room := rows - len(foot); {
	case room < 1:
	case s.Open != "":
		lines = s.detail(columns, room)
	default:
		lines = s.list(columns, room)
	}
	for len(lines)+len(foot) < rows {
		lines = append(lines, Line{})
	}
	lines = append(lines, foot...)
	lines = lines[max(0, len(lines)-rows):]
	for i := range lines {
		lines[i].Text = cut(printable.Text(lines[i].Text), columns)
		if lines[i].Reverse { // a bar
			lines[i].Text = pad(lines[i].Text, columns)
		}
	}
	return lines
}

// list returns the lines of the screen that shows all locks.
func (s *State) list(columns, rows int) (lines []Line) {
	add := func(texts ...string) {
		for _, text := range texts {
			lines = append(lines, Line{Text: text})
		}
	}
	p := s.Picture
	if p == nil {
		return []Line{{Text: "redlock top: asking the nodes", Bold: true}}
	}
	lines = append(lines, Line{Text: p.title(), Bold: true})
	add(p.Summary())
	nodes := NodeTable(p)
	const fixed, some = 5, 5 // two lines above, two empty ones and the heading of the locks; and some locks
	if room := rows - fixed - some; room >= 2 {
		shown := nodes
		if len(shown) > room {
			shown = append(slices.Clone(nodes[:room-1]), []string{fmt.Sprintf("and %s", phrase.Count(len(nodes)-room+1, "more node"))})
		}
		add("")
		for i, text := range table(shown, columns, 5) {
			lines = append(lines, Line{Text: text, Bold: i == 0})
		}
		add("")
	}
	shown := s.rows()
	room := rows - len(lines) - 1
	if room < 1 {
		return lines
	}
	if len(shown) == 0 {
		what := "no locks"
		if s.Filter != "" {
			what = fmt.Sprintf("no lock matches %q; Esc shows all", s.Filter)
		}
		add(what)
		return lines
	}
	at := s.index(shown)
	from := at / room * room // a page
	to := min(from+room, len(shown))
	// The columns are those of all locks, so that they do not move from page to page.
	cells := [][]string{{"  name", "mode", "owner", "age", "left", "waiting", "note"}}
	for i, r := range shown {
		mark := "  "
		if i == at {
			mark = "> "
		}
		row := p.Cells(r)
		row[0] = mark + row[0]
		cells = append(cells, row)
	}
	texts := table(cells, columns, 0, 2)
	lines = append(lines, Line{Text: texts[0], Bold: true})
	for i, text := range texts[1+from : 1+to] {
		lines = append(lines, Line{Text: text, Reverse: from+i == at})
	}
	return lines
}

// detail returns the lines of the screen that shows one lock, as redlock status does.
func (s *State) detail(columns, rows int) (lines []Line) {
	if s.Detail == nil || s.Detail.Name != s.Open {
		return []Line{{Text: fmt.Sprintf("%q: asking the nodes", s.Open), Bold: true}}
	}
	all := layOut(s.details(), columns)
	from := max(0, min(s.scroll, len(all)-rows))
	for i, text := range all[from:min(len(all), from+rows)] {
		lines = append(lines, Line{Text: text, Bold: from+i == 0 || from+i > 0 && all[from+i-1] == ""})
	}
	return lines
}

func (s *State) details() [][]string {
	var m redlock.Members
	if s.Picture != nil {
		m = s.Picture.Members
	}
	return locks.Lines(s.Detail, m, s.DetailAt)
}

// layOut returns lines of cells as text: consecutive lines of several cells are a table, others stay as they are.
func layOut(cells [][]string, columns int) (lines []string) {
	for len(cells) > 0 {
		n := slices.IndexFunc(cells, func(c []string) bool { return len(c) < 2 })
		switch {
		case n < 0:
			n = len(cells)
		case n == 0:
			lines = append(lines, strings.Join(cells[0], ""))
			cells = cells[1:]
			continue
		}
		lines = append(lines, table(cells[:n], columns, 0, 1, 4, 5)...)
		cells = cells[n:]
	}
	return lines
}

// foot returns the last lines of the screen: the latest message, and what the keys do.
func (s *State) foot(columns int) (lines []Line) {
	if s.Note != "" {
		lines = append(lines, Line{Text: s.Note})
	}
	var keys string
	switch {
	case s.Typing:
		text := printable.Text(s.Filter)
		for room := columns - len("filter: _") - 1; Width(text) > room && text != ""; { // the end of it is typed
			text = string([]rune(text)[1:])
		}
		keys = "filter: " + text + "_"
	case s.Open != "":
		keys = "Esc back  up/down scroll  q quit"
	default:
		keys = "q quit  s sort: " + s.Order + "  / filter"
		if s.Filter != "" {
			keys += ": " + printable.Text(s.Filter) + " (Esc clears)"
		}
		keys += "  up/down select  Enter look into it"
	}
	return append(lines, Line{Text: keys, Reverse: true})
}

func (p *Picture) title() string {
	return "redlock top  " + p.At.Format(time.TimeOnly) + "  " + Set(p.Members)
}

// Set returns a line about the set: its name, epoch, members and quorum.
func Set(m redlock.Members) string {
	if m.Epoch == 0 {
		return fmt.Sprintf("a set without a description: %s, quorum %d", phrase.Count(len(m.Nodes), "node"), m.Quorum)
	}
	return fmt.Sprintf("set %s, epoch %d: %s, quorum %d", printable.Text(m.Set), m.Epoch, phrase.Count(len(m.Nodes), "member"), m.Quorum)
}

// Counts returns how many locks are held, how many are leftovers, and how many processes wait.
func (p *Picture) Counts() (held, leftovers, waiting int) {
	for _, r := range p.Rows {
		if r.State == redlock.StateHeld {
			held++
		}
		if r.Leftover {
			leftovers++
		}
		waiting += len(r.Waiting)
	}
	return held, leftovers, waiting
}

// Votes returns how many nodes have a vote, and how many of these could be listed.
func (p *Picture) Votes() (votes, listed int) {
	for _, n := range p.Nodes {
		if n.Err == nil {
			votes++
			if n.Unlisted == nil {
				listed++
			}
		}
	}
	return votes, listed
}

// Summary returns a line about all locks: how many are held and waited for, and how many nodes vote.
func (p *Picture) Summary() string {
	held, leftovers, waiting := p.Counts()
	votes, listed := p.Votes()
	text := fmt.Sprintf("%s held, %s waiting", phrase.Counted(held, "lock"), phrase.Digits(waiting))
	if leftovers > 0 {
		text += ", " + phrase.Counted(leftovers, "leftover")
	}
	switch {
	case p.Switches == 0:
		text += "; 0 switches/s"
	case p.Switches > 0:
		text += "; " + phrase.PerSecond(p.Switches) + " switches/s"
	}
	text += fmt.Sprintf("; %d of %s vote", votes, phrase.Count(len(p.Nodes), "node"))
	switch {
	case votes < p.Members.Quorum:
		text += ": too few, locks may be missing"
	case listed < p.Members.Quorum:
		text += ", and too few could be listed: locks may be missing"
	}
	return text
}

// Cells returns the row of a lock: name, mode, owner, age, left, waiting, note. All of it is printable.
func (p *Picture) Cells(r *locks.Row) []string {
	c := r.Cells(p.At, len(p.Nodes))
	note := c.Note
	if r.State != redlock.StateHeld && !r.Leftover {
		note = strings.TrimSuffix(c.State+"; "+note, "; -")
	}
	if note == "-" {
		note = ""
	}
	return []string{c.Name, c.Mode, c.Owner, c.Age, c.Left, c.Waiting, note}
}

// NodeTable returns the rows of the table of nodes, with its heading: those without a vote first.
func NodeTable(p *Picture) [][]string {
	cells := [][]string{{"node", "vote", "round trip", "quarantine", "clock", ""}}
	nodes := slices.Clone(p.Nodes)
	slices.SortStableFunc(nodes, func(a, b Node) int { return cmp.Compare(trouble(a), trouble(b)) })
	for _, n := range nodes {
		vote, trip, quarantine, clock, why := "yes", "-", "-", "-", ""
		if n.Err != nil {
			vote, why = "no", explain.What(n.Err)
			if n.Err.Outcome == redlock.OutcomeQuarantined {
				quarantine = printable.Duration(n.Err.TTL.Round(100 * time.Millisecond))
			}
		}
		if n.Err == nil && n.Unlisted != nil {
			why = "could not be listed: " + explain.What(n.Unlisted)
		}
		if n.Measured {
			trip, clock = printable.Duration(n.RoundTrip), n.offset()
		}
		cells = append(cells, []string{printable.Text(n.Name), vote, trip, quarantine, clock, printable.Text(why)})
	}
	return cells
}

func trouble(n Node) int {
	switch {
	case n.Err != nil:
		return 0
	case n.Unlisted != nil:
		return 1
	}
	return 2
}

// offset returns how far the node's clock is ahead of this machine's, as text; ± if it may be neither ahead nor behind.
func (n *Node) offset() string {
	within := printable.Duration(n.Within)
	switch {
	case n.Clock.Abs() <= n.Within:
		return "±" + within
	case n.Clock > 0:
		return "+" + printable.Duration(n.Clock)
	}
	return printable.Duration(n.Clock)
}
