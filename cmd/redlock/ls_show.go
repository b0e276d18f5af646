package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// showList prints the locks as a table, and a summary.
func showList(to io.Writer, l *lockList) error {
	if len(l.rows) > 0 {
		t := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "name\tstate\tmode\towner\tage\tleft\tnodes\twaiting\tnote")
		for _, r := range l.rows {
			c := r.Cells(l.at, len(l.nodes))
			fmt.Fprintln(t, strings.Join([]string{c.Name, c.State, c.Mode, c.Owner, c.Age, c.Left, c.Nodes, c.Waiting, c.Note}, "\t"))
		}
		if err := t.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(to)
	}
	_, err := fmt.Fprintln(to, l.summary())
	return err
}
