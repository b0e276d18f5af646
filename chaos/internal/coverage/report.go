package coverage

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// A Report says which situations were reached, and which were not. It is what redlock chaos --coverage --json prints.
type Report struct {
	Schedules int           `json:"schedules"`
	Tables    []TableReport `json:"tables"`
}

// A TableReport is the part of a Report about one table.
type TableReport struct {
	Name    string `json:"name"`
	About   string `json:"about"`
	Reached int    `json:"reached"` // so many situations
	Missed  int    `json:"missed"`  // not reached, though nothing is known that is in the way
	Unmade  int    `json:"unmade"`  // not reached, since no scenario that ran has both the fault and the step
	Never   int    `json:"never"`   // cannot be reached, by the written list

	Situations []SituationReport `json:"situations"` // row by row

	table *Table
}

// A SituationReport is about one situation. If Schedules is 0, at most one of Unmade and Never says why.
type SituationReport struct {
	Row       string `json:"row"`
	Column    string `json:"column"`
	Schedules int    `json:"schedules"` // that have reached it
	Unmade    bool   `json:"unmade,omitempty"`
	Never     string `json:"never,omitempty"` // why it cannot be reached
}

// Report reports what was counted so far.
func (c *Counts) Report() (*Report, error) {
	list, err := Written()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &Report{Schedules: c.schedules}
	for _, t := range Tables {
		of := TableReport{Name: t.Name, About: t.About, table: t}
		for _, row := range t.Rows {
			for _, column := range t.Columns {
				s := Situation{t.Name, row, column}
				is := SituationReport{Row: row, Column: column, Schedules: c.reached[s]}
				switch _, reason := list.Of(s); {
				case is.Schedules > 0:
					of.Reached++
				case reason != "":
					of.Never++
					is.Never = reason
				case c.unmade(s):
					of.Unmade++
					is.Unmade = true
				default:
					of.Missed++
				}
				of.Situations = append(of.Situations, is)
			}
		}
		r.Tables = append(r.Tables, of)
	}
	return r, nil
}

// Write writes the report as text: for each table how many schedules have reached each situation, and then those that none
// has. A "-" is one that cannot be reached, and "..." one of a fault and a step that no scenario has both.
func (r *Report) Write(w io.Writer) error {
	fmt.Fprintf(w, "situations, with the number of schedules, of %d, that reached them;\n- : it cannot be reached; ... : no scenario that ran has both\n", r.Schedules)
	for i := range r.Tables {
		if err := r.Tables[i].write(w); err != nil {
			return err
		}
	}
	return nil
}

func (t *TableReport) write(w io.Writer) error {
	var missed strings.Builder
	grid := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\n%s: %s\n", t.Name, t.About)
	fmt.Fprintf(grid, "\t%s\t\n", strings.Join(t.table.Columns, "\t"))
	for i, row := range t.table.Rows {
		fmt.Fprintf(grid, "%s\t", row)
		var none []string
		for _, s := range t.Situations[i*len(t.table.Columns):][:len(t.table.Columns)] {
			text := strconv.Itoa(s.Schedules)
			switch {
			case s.Schedules > 0:
			case s.Never != "":
				text = "-"
			case s.Unmade:
				text = "..."
			default:
				none = append(none, s.Column)
			}
			fmt.Fprintf(grid, "%s\t", text)
		}
		if fmt.Fprintln(grid); len(none) > 0 {
			fmt.Fprintf(&missed, "    %s: %s\n", row, strings.Join(none, "; "))
		}
	}
	if err := grid.Flush(); err != nil {
		return err
	}
	said := fmt.Sprintf("%d reached, %d not, %d not made, %d impossible", t.Reached, t.Missed, t.Unmade, t.Never)
	if missed.Len() > 0 {
		said += "; not reached:"
	}
	_, err := fmt.Fprintf(w, "%s\n%s", said, &missed)
	return err
}
