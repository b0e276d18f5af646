package look

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/explain"
	"github.com/quorumlock/redlock/cmd/redlock/internal/locks"
	"github.com/quorumlock/redlock/cmd/redlock/internal/screen"
	"github.com/quorumlock/redlock/internal/printable"
)

// topLines is redlock top without a screen: it prints a line for each change.
func topLines(ctx context.Context, c *console.Console, looks *looks, every time.Duration) error {
	var seen topNews
	for {
		p, list, err := looks.next(ctx)
		if err != nil {
			return nil // ctx has ended
		}
		for _, line := range seen.lines(p, list.Found) {
			if _, err := fmt.Fprintln(c.Stdout, p.At.Format("15:04:05.000"), line); err != nil {
				return err
			}
		}
		if !pauseFor(ctx, every) {
			return nil
		}
	}
}

// A topNews remembers what the last lines have said.
type topNews struct {
	set   string
	nodes map[string]string
	locks map[string]string
}

// lines returns a line for each thing that has changed since the last picture.
func (t *topNews) lines(p *screen.Picture, found []*redlock.Status) (lines []string) {
	if set := screen.Set(p.Members); set != t.set {
		t.set = set
		lines = append(lines, set)
	}
	nodes := make(map[string]string)
	for _, n := range p.Nodes {
		is, why := "votes", "votes"
		switch {
		case n.Err != nil:
			is, why = n.Err.Outcome.String(), "has no vote: "+printable.Text(explain.What(n.Err))
		case n.Unlisted != nil:
			is, why = "unlisted", "votes, and could not be listed: "+printable.Text(explain.What(n.Unlisted))
		}
		if before, known := t.nodes[n.Name]; is != before && (known || is != "votes") {
			lines = append(lines, "node "+printable.Text(n.Name)+" "+why)
		}
		nodes[n.Name] = is
	}
	t.nodes = nodes

	shown := make(map[string]bool) // the other names are folders above these
	for _, r := range p.Rows {
		for _, name := range r.Names {
			shown[name] = true
		}
	}
	now := make(map[string]string)
	for _, s := range found {
		if !shown[s.Name] {
			continue
		}
		now[s.Name] = locks.Brief(s)
		if now[s.Name] != t.locks[s.Name] {
			lines = append(lines, now[s.Name])
		}
	}
	_, listed := p.Votes()
	for _, name := range slices.Sorted(maps.Keys(t.locks)) {
		switch {
		case now[name] != "":
		case listed < p.Members.Quorum:
			now[name] = t.locks[name] // it may still be there
		default:
			lines = append(lines, fmt.Sprintf("%q: %v", name, redlock.StateFree))
		}
	}
	t.locks = now
	return lines
}
