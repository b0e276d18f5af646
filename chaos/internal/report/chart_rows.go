package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
)

// shorten is the beginning of a long name.
func shorten(name string) string {
	if all := []rune(name); len(all) > mostLabel {
		return string(all[:mostLabel-1]) + "…"
	}
	return name
}

// drawn reports whether a part of a timeline is in the chart.
func (c *chart) drawn(s *timeline) bool { return s.asked <= c.To && s.heard() >= c.From }

// rows draws the clients and the nodes, each in its row.
func (c *chart) rows(h *history.History, all []*timeline, bad map[int]bool) {
	clients, nodes := h.Run.Clients, h.Run.Nodes
	for _, e := range h.Events {
		clients = max(clients, e.Client)
		if f := e.Fault; f != nil && f.Kind.OnClient() {
			clients = max(clients, f.Client)
		} else if f != nil {
			nodes = max(nodes, f.Node+1)
		}
	}
	faults := history.Spells(h.Events)
	y := c.RowsTop
	for client := 1; client <= clients; client++ {
		row := chartRow{Label: shorten(h.Run.Client(client)), Class: "client", Y: y}
		top := y + rowPad
		lanes := c.putFaults(&h.Run, faults, true, client, top)
		top += lanePitch * float64(lanes)
		row.TextY = top + 13
		lanes = max(c.putTimelines(all, client, top, bad), 1)
		row.H = round1(top + lanePitch*float64(lanes) + rowPad - 2 - y)
		c.putStops(h, client, top-3, row)
		y += row.H
		c.Rows = append(c.Rows, row)
	}
	for node := range nodes {
		row := chartRow{Label: shorten(h.Run.Node(node)), Class: "node", Y: y}
		if node == 0 {
			row.Class = "node first"
		}
		row.H, row.TextY = emptyRow, y+15
		if lanes := c.putFaults(&h.Run, faults, false, node, y+rowPad); lanes > 0 {
			row.H, row.TextY = round1(lanePitch*float64(lanes)+2*rowPad-5), y+rowPad+13
		}
		y += row.H
		c.Rows = append(c.Rows, row)
	}
	c.RowsEnd = y
}

// putTimelines draws the acquisitions of a client, in as many lanes as keep them apart, and returns their
// number.
func (c *chart) putTimelines(all []*timeline, client int, top float64, bad map[int]bool) (most int) {
	var lanes laneList
	for _, s := range all {
		if s.client != client || !c.drawn(s) {
			continue
		}
		x, solid, end := c.x(s.asked), c.x(s.end), c.x(s.heard())
		if s.got >= 0 {
			solid = c.x(s.since)
			end = max(end, solid+leastBar)
		}
		solidEnd := end
		if s.told != 0 || s.got < 0 {
			solidEnd += halfMark + 1
		}
		lane := lanes.place(x, solid, end, solidEnd)
		most = max(most, lane+1)
		item := c.timeline(s, top+lanePitch*float64(lane))
		if slices.ContainsFunc(s.events, func(i int) bool { return bad[i] }) {
			item.Class += " shows"
		}
		c.Items = append(c.Items, item)
	}
	return most
}

// timeline draws one acquisition.
func (c *chart) timeline(s *timeline, y float64) chartItem {
	middle := y + barHeight/2
	item := chartItem{Text: s.text(), LabelClass: "in"}
	line := func(from, to time.Duration) {
		if b := c.box(from, to, middle-1, 2, 0); b.W >= 1 {
			item.Lines = append(item.Lines, b)
		}
	}
	mark := func(at time.Duration, y float64, shape string) {
		if c.shows(at) {
			item.Marks = append(item.Marks, chartMark{round1(c.x(at)), round1(y), shape})
		}
	}
	if s.got < 0 {
		item.ID, item.Class = fmt.Sprintf("%s-w%d", c.ID, s.ask), "wait"
		line(s.asked, s.end)
		if s.how == "denied" {
			mark(s.end, middle, "denied")
		}
		return item
	}
	item.ID, item.Class = fmt.Sprintf("%s-h%d", c.ID, s.got), fmt.Sprintf("hold c%d", s.colour)
	line(s.asked, s.since)
	if s.end <= c.To && s.since <= c.To && s.end >= c.From {
		line(s.end, s.last)
	}
	if s.since <= c.To && s.end >= c.From {
		item.Bar = c.box(s.since, s.end, y, barHeight, leastBar)
		fence := ""
		if s.fence != 0 {
			fence = "#" + strconv.FormatUint(s.fence, 10)
		}
		name := formatPlain(s.request.Label())
		for _, label := range []string{strings.TrimSpace(name + " " + fence), fence, name} {
			if fits(label, item.Bar.W-8) {
				item.Label, item.LabelX, item.LabelY = label, round1(item.Bar.X+5), y+12.5
				break
			}
		}
	}
	for _, at := range s.extended {
		mark(at, y+barHeight, "extended")
	}
	for _, at := range s.failed {
		mark(at, y+barHeight, "failed")
	}
	for _, at := range s.wrote {
		mark(at, y+barHeight+3, "wrote")
	}
	for _, at := range s.refused {
		mark(at, y+barHeight+3, "refused")
	}
	if s.told != 0 {
		mark(s.told, middle, "told")
	}
	return item
}

// putStops draws when a client was stopped, and where it crashed.
func (c *chart) putStops(h *history.History, client int, top float64, row chartRow) {
	who := upper(h.Run.Client(client))
	for i, e := range h.Events {
		if e.Client != client {
			continue
		}
		switch e.Kind {
		case history.Held:
			if e.At <= c.To && e.Until >= c.From {
				c.Stops = append(c.Stops, chartItem{
					ID: fmt.Sprintf("%s-s%d", c.ID, i), Class: "stop",
					Text: fmt.Sprintf("%s was stopped from %s to %s (%s).", who, FormatTime(e.At), FormatTime(e.Until), FormatTime(e.Until-e.At)),
					Bar:  c.box(e.At, e.Until, top, row.Y+row.H-top-1, leastBar),
				})
			}
		case history.Crashed:
			if c.shows(e.At) {
				c.Items = append(c.Items, chartItem{
					ID: fmt.Sprintf("%s-x%d", c.ID, i), Class: "crash",
					Text:  fmt.Sprintf("%s crashed at %s, with all that it held.", who, FormatTime(e.At)),
					Lines: []chartBox{{round1(c.x(e.At)) - 1, row.Y + 1, 2, row.H - 2}},
					Marks: []chartMark{{round1(c.x(e.At)), row.TextY - 4, "crashed"}},
				})
			}
		}
	}
}

// putFaults draws the faults of one client or node, and returns the number of lanes.
func (c *chart) putFaults(h *history.Head, all []*history.Spell, ofClient bool, index int, top float64) int {
	var lanes laneList
	last := []int{} // in each lane, as an index into Items
	for _, s := range all {
		place := s.Node
		if s.Kind.OnClient() {
			place = s.Client
		}
		if s.Kind.OnClient() != ofClient || place != index || s.From > c.To || s.To < c.From {
			continue
		}
		x, end := c.x(s.From), c.x(s.To)
		begin, free := x-halfMark, max(end, x+leastBar)+halfMark
		lane := lanes.place(begin, begin, free, free)
		y := top + lanePitch*float64(lane)
		item := chartItem{ID: fmt.Sprintf("%s-f%d", c.ID, s.Struck), Class: "fault", Text: formatSpell(h, s)}
		item.LabelY = y + 12.5
		if s.Healed || s.Open {
			item.Bar = c.box(s.From, s.To, y, barHeight, leastBar)
		} else {
			item.Marks = []chartMark{{round1(x), y + barHeight/2, "point"}}
		}
		// The label is inside the bar, or behind it if the next fault leaves room.
		if label := string(s.Kind); fits(label, item.Bar.W-8) {
			item.Label, item.LabelX, item.LabelClass = label, item.Bar.X+5, "in"
		} else {
			item.Label, item.LabelX, item.LabelClass = label, round1(max(end, x+5)+5), "out"
		}
		for len(last) <= lane {
			last = append(last, -1)
		}
		if before := last[lane]; before >= 0 && c.Items[before].LabelClass == "out" {
			if b := &c.Items[before]; !fits(b.Label, x-7-b.LabelX) {
				b.Label = ""
			}
		}
		last[lane] = len(c.Items)
		c.Items = append(c.Items, item)
	}
	for _, i := range last {
		if i >= 0 && c.Items[i].LabelClass == "out" && !fits(c.Items[i].Label, c.Width-c.Items[i].LabelX) {
			c.Items[i].Label = ""
		}
	}
	return len(lanes)
}

// fits is a guess: only a browser knows the width of its letters.
func fits(label string, width float64) bool {
	return label != "" && charWidth*float64(len([]rune(label))) <= width
}

func round1(x float64) float64 { return math.Round(x*10) / 10 }
