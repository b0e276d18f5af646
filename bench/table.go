package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/quorumlock/redlock/bench/contender"
)

// A column is one figure, with the way to summarise its rounds.
type column struct {
	title  string
	figure string
	show   func(*series, string, string) string
}

// median shows the middle round.
func median(title, figure string, format func(float64) string) column {
	return column{title, figure, func(s *series, name, figure string) string {
		v := s.values(name, figure)
		if len(v) == 0 {
			return "–"
		}
		return format(spreadOf(v).median)
	}}
}

// worst shows the highest round, for what must not happen in any.
func worst(title, figure string, format func(float64) string) column {
	return column{title, figure, func(s *series, name, figure string) string {
		v := s.values(name, figure)
		if len(v) == 0 {
			return "–"
		}
		return format(spreadOf(v).high)
	}}
}

// total adds the rounds up.
func total(title, figure string, format func(float64) string) column {
	return column{title, figure, func(s *series, name, figure string) string {
		return format(sum(s.values(name, figure)))
	}}
}

// average shows the mean of the rounds: where they are of one size, a share of the whole.
func average(title, figure string, format func(float64) string) column {
	return column{title, figure, func(s *series, name, figure string) string {
		v := s.values(name, figure)
		if len(v) == 0 {
			return "–"
		}
		return format(sum(v) / float64(len(v)))
	}}
}

func sum(values []float64) (all float64) {
	for _, v := range values {
		all += v
	}
	return all
}

// versus shows the ratio to the reference, taken inside each round.
func versus(title, figure string) column { return over(title, figure, contender.Reference) }

// over shows the ratio to another contender, taken inside each round.
func over(title, figure, to string) column {
	return column{title, figure, func(s *series, name, figure string) string {
		return formatSpread(s.ratios(name, figure, to))
	}}
}

// within shows a figure that is a ratio already, like hung to healthy.
func within(title, figure string) column {
	return column{title, figure, func(s *series, name, figure string) string {
		return formatSpread(s.values(name, figure))
	}}
}

func formatSpread(values []float64) string {
	if len(values) == 0 {
		return "–"
	}
	r := spreadOf(values)
	return fmt.Sprintf("%s (%s–%s)", ratio(r.median), ratio(r.low), ratio(r.high))
}

func ratio(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// A table is one measurement as it is printed.
type table struct {
	title   string
	text    string
	head    string // of the first column; contender, if empty
	columns []column
	series  *series
	notes   []string
}

func (t *table) write(w io.Writer) {
	fmt.Fprintf(w, "### %s\n\n", t.title)
	if t.text != "" {
		fmt.Fprintf(w, "%s\n\n", t.text)
	}
	head, rule := []string{cmp.Or(t.head, "contender")}, []string{"---"}
	for _, c := range t.columns {
		head = append(head, c.title)
		rule = append(rule, "---:")
	}
	writeRow(w, head)
	writeRow(w, rule)
	for _, c := range t.series.contenders {
		name := c.Name
		if c.Single {
			name += " (1 node)"
		}
		row := []string{name}
		for _, col := range t.columns {
			row = append(row, col.show(t.series, c.Name, col.figure))
		}
		writeRow(w, row)
	}
	fmt.Fprintln(w)
	for _, n := range t.notes {
		fmt.Fprintf(w, "- %s\n", n)
	}
	for _, f := range t.series.failures {
		fmt.Fprintf(w, "- failed: %s\n", f)
	}
	if len(t.notes)+len(t.series.failures) > 0 {
		fmt.Fprintln(w)
	}
}

func writeRow(w io.Writer, cells []string) {
	fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
}

// duration keeps three digits: the fourth is noise on any machine.
func duration(ns float64) string {
	d := time.Duration(ns)
	switch {
	case d >= time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d >= 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/1e6)
	case d >= time.Millisecond:
		return fmt.Sprintf("%.2f ms", float64(d)/1e6)
	default:
		return fmt.Sprintf("%.0f µs", float64(d)/1e3)
	}
}

// micros is for what takes a few microseconds.
func micros(ns float64) string { return fmt.Sprintf("%.1f µs", ns/1e3) }

func count(v float64) string       { return fmt.Sprintf("%.0f", v) }
func decimal(v float64) string     { return fmt.Sprintf("%.1f", v) }
func hundredths(v float64) string  { return fmt.Sprintf("%.2f", v) }
func thousandths(v float64) string { return fmt.Sprintf("%.3f", v) }
func percent(v float64) string     { return fmt.Sprintf("%.1f %%", 100*v) }

// share is a percentage that is never rounded up to 100.
func share(v float64) string { return fmt.Sprintf("%g %%", math.Floor(1e4*v)/100) }
