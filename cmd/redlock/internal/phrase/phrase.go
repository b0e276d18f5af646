// Package phrase formats figures, durations and errors for messages.
package phrase

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/printable"
)

// Count returns a number of things: 1 node, 3 nodes. what is one of them.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Verb returns the verb for n things: one ("has") if n is 1, else many ("have").
func Verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Counted returns a large number of things: 12,345 schedules. what is one of them.
func Counted(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "s"):
		return Digits(n) + " " + what + "es"
	}
	return Digits(n) + " " + what + "s"
}

// Digits returns 12345 as 12,345.
func Digits(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// PerSecond formats a rate with the digits that matter.
func PerSecond(x float64) string {
	if x >= 10 {
		return Digits(int(math.Round(x)))
	}
	return strconv.FormatFloat(x, 'g', 2, 64)
}

// Table formats rows in columns; the columns with the indices in numbers are aligned to the right.
func Table(rows [][]string, numbers ...int) string {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], len(cell))
		}
	}
	for _, i := range numbers {
		for _, row := range rows {
			row[i] = strings.Repeat(" ", width[i]-len(row[i])) + row[i]
		}
	}
	var out strings.Builder
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			line += cell + strings.Repeat(" ", width[i]-len(cell)+2)
		}
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return out.String()
}

// Tenths rounds a duration for messages about waiting to a tenth of a second, and never to zero.
func Tenths(d time.Duration) time.Duration {
	const tenth = time.Second / 10
	return max(d.Round(tenth), tenth)
}

// Short formats a duration for messages, with the two digits that matter, as the library does.
func Short(d time.Duration) string { return printable.Duration(d) }

// Plain returns the text of an error without "redlock: ", which Console.Say writes before each line.
func Plain(err error) string { return strings.TrimPrefix(err.Error(), "redlock: ") }
