package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/judge"
)

// The measures of a chart, in pixels.
const (
	chartMargin = 26.0 // left and right, so that items at the ends are not cut off
	leastWidth  = 1075.0
	mostWidth   = 9000.0
	usualBar    = 34.0 // the width of the median hold: room for its fence
	axisHeight  = 24.0
	flagHeight  = 20.0
	barHeight   = 18.0
	lanePitch   = 25.0
	rowPad      = 5.0
	leastBar    = 3.0 // wide enough to be seen
	halfMark    = 5.5
	emptyRow    = 22.0
	charWidth   = 7.0
	tickRoom    = 104.0
	leastLabels = 72.0
	mostLabel   = 24 // characters
	colours     = 10
)

// A chart is the drawing of a history: the places of its items, in pixels. It is made from the history
// alone, so it can be tested without a page.
type chart struct {
	ID            string
	Width, Height float64
	From, To      time.Duration // the part of the run that is drawn
	First, Last   int           // the events that are drawn: [First, Last)
	Events        int           // that there are

	LabelWidth                 float64 // of the names of the rows
	FlagsTop, RowsTop, RowsEnd float64

	Ticks []chartTick
	Rows  []chartRow
	Stops []chartItem // of clients, in the background
	Items []chartItem
	Flags []chartFlag
}

type (
	chartTick struct {
		X    float64
		Text string
	}
	// A chartRow belongs to a client or to a node.
	chartRow struct {
		Label, Class string
		Y, H, TextY  float64
	}
	// A chartItem is something that the reader can point at: an acquisition with its hold, or a fault.
	chartItem struct {
		ID, Class, Text string
		Bar             chartBox   // W is 0 if there is none
		Lines           []chartBox // waiting and releasing
		Marks           []chartMark
		Label           string
		LabelX, LabelY  float64
		LabelClass      string
	}
	chartBox  struct{ X, Y, W, H float64 }
	chartMark struct {
		X, Y  float64
		Shape string
	}
	// A chartFlag is an instant, drawn through all rows.
	chartFlag struct {
		ID, Link, Class, Label, Text string
		X, Y, W, End                 float64
	}
)

// Round is the radius of a bar's corners: narrow bars have none.
func (b chartBox) Round() float64 { return min(3, math.Floor(b.W/3)) }

// The places of a flag's parts.
func (f chartFlag) Left() float64 { return round1(f.X - f.W/2) }

func (f chartFlag) Foot() float64 { return f.Y + 17 }

func (f chartFlag) TextY() float64 { return f.Y + 12.5 }

// Foot is the place of the second axis, below the rows.
func (c *chart) Foot() float64 { return round1(c.RowsEnd + 16) }

// newChart draws at most limit events of h.
func newChart(h *history.History, v judge.Verdict, id string, limit int) *chart {
	c := &chart{ID: id, Events: len(h.Events)}
	c.choose(h, v, limit)
	all := timelines(h)
	c.scale(all)

	bad := map[int]bool{}
	for _, violation := range v.Violations {
		for _, i := range violation.Events {
			bad[i] = true
		}
	}
	c.FlagsTop = axisHeight
	c.RowsTop = c.FlagsTop + c.flags(h, v)
	c.rows(h, all, bad)
	for i := range c.Flags {
		c.Flags[i].End = c.RowsEnd
	}
	c.Height = round1(c.RowsEnd + axisHeight)
	c.LabelWidth = leastLabels
	for _, r := range c.Rows {
		c.LabelWidth = max(c.LabelWidth, 20+charWidth*float64(len([]rune(r.Label))))
	}
	c.axis()
	return c
}

// choose selects all events, or those around the first violation, or the first ones.
func (c *chart) choose(h *history.History, v judge.Verdict, limit int) {
	c.Last = len(h.Events)
	if c.Last > limit {
		if len(v.Violations) > 0 {
			at := v.Violations[0].At
			for _, violation := range v.Violations {
				at = min(at, violation.At)
			}
			before, _ := slices.BinarySearchFunc(h.Events, at, func(e history.Event, at time.Duration) int { return cmp.Compare(e.At, at) })
			c.First = min(max(before-limit*3/4, 0), c.Last-limit)
		}
		c.Last = c.First + limit
	}
	if c.First > 0 {
		c.From = h.Events[c.First].At
	}
	if c.Last > 0 {
		c.To = h.Events[c.Last-1].At
	}
	if c.To <= c.From {
		c.To = c.From + time.Millisecond
	}
}

// Capped reports whether only a part is drawn.
func (c *chart) Capped() bool { return c.Last-c.First < c.Events }

// shows reports whether an instant is drawn.
func (c *chart) shows(at time.Duration) bool { return c.From <= at && at <= c.To }

// scale makes the chart so wide that there is room for the fence in most bars.
func (c *chart) scale(all []*timeline) {
	var lengths []time.Duration
	for _, s := range all {
		if s.got >= 0 && s.end > s.since && c.drawn(s) {
			lengths = append(lengths, s.end-s.since)
		}
	}
	width := leastWidth
	if len(lengths) > 0 {
		slices.Sort(lengths)
		median := lengths[len(lengths)/2]
		width = float64(c.To-c.From)/float64(median)*usualBar + 2*chartMargin
	}
	c.Width = math.Round(min(max(width, leastWidth), mostWidth))
}

// x is the place of an instant; one that is not drawn is at the nearer end.
func (c *chart) x(at time.Duration) float64 {
	at = min(max(at, c.From), c.To)
	return chartMargin + float64(at-c.From)/float64(c.To-c.From)*(c.Width-2*chartMargin)
}

// box is from one instant to another.
func (c *chart) box(from, to time.Duration, y, height, least float64) chartBox {
	x := c.x(from)
	return chartBox{round1(x), round1(y), round1(max(c.x(to)-x, least)), round1(height)}
}

// flags marks the events of the whole run, above all rows, and returns the room that this takes.
func (c *chart) flags(h *history.History, v judge.Verdict) float64 {
	type flag struct {
		at time.Duration
		chartFlag
	}
	var all []flag
	for i := c.First; i < c.Last; i++ {
		if e := h.Events[i]; e.Kind == history.Calm || e.Kind == history.Left {
			all = append(all, flag{e.At, chartFlag{
				ID: fmt.Sprintf("%s-a%d", c.ID, i), Link: fmt.Sprintf("%s-a%d-t", c.ID, i),
				Class: string(e.Kind), Label: string(e.Kind), Text: fmt.Sprintf("At %s: %s.", FormatTime(e.At), FormatEvent(e)),
			}})
		}
	}
	for i, violation := range v.Violations[:min(len(v.Violations), mostListed)] {
		if c.shows(violation.At) {
			all = append(all, flag{violation.At, chartFlag{
				ID: fmt.Sprintf("%s-flag%d", c.ID, i+1), Link: fmt.Sprintf("%s-v%d", c.ID, i+1),
				Class: "violation", Label: strconv.Itoa(i + 1),
				Text: fmt.Sprintf("Violation %d, %s, at %s: %s", i+1, violation.Rule, FormatTime(violation.At), violation.Text),
			}})
		}
	}
	slices.SortStableFunc(all, func(a, b flag) int { return cmp.Compare(a.at, b.at) })
	var lanes laneList
	for _, f := range all {
		f.X, f.W = round1(c.x(f.at)), round1(charWidth*float64(len(f.Label))+11)
		begin, end := f.X-f.W/2, f.X+f.W/2+2
		f.Y = c.FlagsTop + flagHeight*float64(lanes.place(begin, begin, end, end))
		c.Flags = append(c.Flags, f.chartFlag)
	}
	return flagHeight * float64(len(lanes))
}

// axis puts ticks at round times.
func (c *chart) axis() {
	step := tickStep(time.Duration(float64(c.To-c.From) * tickRoom / (c.Width - 2*chartMargin)))
	for at := (c.From + step - 1) / step * step; c.From <= at && at <= c.To; at += step {
		c.Ticks = append(c.Ticks, chartTick{round1(c.x(at)), tickText(at)})
	}
}

// tickStep is the first round time that is not below least.
func tickStep(least time.Duration) time.Duration {
	for unit := time.Nanosecond; unit < 10*time.Second; unit *= 10 {
		for _, n := range []time.Duration{1, 2, 5} {
			if n*unit >= least {
				return n * unit
			}
		}
	}
	for _, step := range []time.Duration{10 * time.Second, 20 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute,
		5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour} {
		if step >= least {
			return step
		}
	}
	const day = 24 * time.Hour
	return (least + day - 1) / day * day
}

// tickText is a time without units that are zero.
func tickText(at time.Duration) string {
	s := at.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// A laneList has, for each lane, from where on it is free: for a line, and for a bar, which would hide a mark
// at the end of the line before.
type laneList []struct{ line, solid float64 }

// place takes the first lane that is free for a line from x on, and for a bar from
// solid on.
func (l *laneList) place(x, solid, end, solidEnd float64) int {
	for i, free := range *l {
		if free.line <= x && free.solid <= solid {
			(*l)[i].line, (*l)[i].solid = end, solidEnd
			return i
		}
	}
	*l = append(*l, struct{ line, solid float64 }{end, solidEnd})
	return len(*l) - 1
}
