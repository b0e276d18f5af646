package coverage

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// Tables lists all tables.
var Tables = []*Table{faults, kinds, nodes, answers, lanes, votes, waiters, locks, sets, ideas}

// Situations lists all situations, in the order of the tables.
func Situations() (all []Situation) {
	for _, t := range Tables {
		for _, row := range t.Rows {
			for _, column := range t.Columns {
				all = append(all, Situation{t.Name, row, column})
			}
		}
	}
	return all
}

//go:embed situations.txt
var situations string

// A Class says when a situation is to be reached.
type Class string

const (
	Soon  Class = "soon"  // by a few hundred schedules
	Night Class = "night" // by those of a night
	Never Class = "never" // it cannot be reached, for a reason
)

// A Line is one line of the written list. A situation that has none may be reached, and need not be.
type Line struct {
	Table, Row string // "*" as the row: all
	Columns    []string
	Class      Class
	Reason     string // of Never
}

func (l Line) String() string {
	s := l.Table + " | " + l.Row + " | " + strings.Join(l.Columns, "; ") + " | " + string(l.Class)
	if l.Reason != "" {
		s += ": " + l.Reason
	}
	return s
}

// A List has the lines of the written list.
type List []Line

// Written returns the written list, situations.txt.
func Written() (List, error) { return parse(situations) }

func parse(text string) (list List, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		part := strings.SplitN(line, " | ", 4)
		if len(part) != 4 {
			return nil, fmt.Errorf("%q: it is not TABLE | ROW | COLUMNS | CLASS", line)
		}
		class, reason, _ := strings.Cut(part[3], ": ")
		l := Line{part[0], part[1], strings.Split(part[2], "; "), Class(class), reason}
		if why := l.wrong(); why != "" {
			return nil, fmt.Errorf("%q: %s", line, why)
		}
		list = append(list, l)
	}
	return list, nil
}

// wrong returns what is wrong with a line; "": nothing.
func (l *Line) wrong() string {
	at := slices.IndexFunc(Tables, func(t *Table) bool { return t.Name == l.Table })
	if at < 0 {
		return "there is no such table"
	}
	t := Tables[at]
	switch {
	case l.Row != "*" && !slices.Contains(t.Rows, l.Row):
		return "the table has no such row"
	case !slices.Contains([]Class{Soon, Night, Never}, l.Class):
		return "there is no such class"
	case (l.Class == Never) != (l.Reason != ""):
		return "what is never reached needs a reason, and nothing else has one"
	case l.Class != Never && (l.Row == "*" || slices.Contains(l.Columns, "*")):
		return "what is to be reached is named"
	}
	for _, column := range l.Columns {
		if column != "*" && !slices.Contains(t.Columns, column) {
			return fmt.Sprintf("the table has no column %q", column)
		}
	}
	return ""
}

// Of returns the class of a situation, and the reason for Never; "": the list does not say. The first line that names it
// counts.
func (list List) Of(s Situation) (class Class, reason string) {
	for _, l := range list {
		if l.Table == s.Table && (l.Row == s.Row || l.Row == "*") && (slices.Contains(l.Columns, s.Column) || l.Columns[0] == "*") {
			return l.Class, l.Reason
		}
	}
	return "", ""
}
