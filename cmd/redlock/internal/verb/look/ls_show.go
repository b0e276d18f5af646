package look

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/quorumlock/redlock/cmd/redlock/internal/peek"
)

// showList prints the locks as a table, and a summary.
func showList(to io.Writer, l *peek.List) error {
	if len(l.Rows) > 0 {
		t := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "name\tstate\tmode\towner\tage\tleft\tnodes\twaiting\tnote")
		for _, r := range l.Rows {
			c := r.Cells(l.At, len(l.Nodes))
			fmt.Fprintln(t, strings.Join([]string{c.Name, c.State, c.Mode, c.Owner, c.Age, c.Left, c.Nodes, c.Waiting, c.Note}, "\t"))
		}
		if err := t.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(to)
	}
	_, err := fmt.Fprintln(to, summary(l))
	return err
}
