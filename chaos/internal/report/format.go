package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
)

func formatSubject(e history.Event) string {
	switch f := e.Fault; {
	case f != nil && !f.Trouble.OnClient():
		return fmt.Sprintf("node %d", f.Node)
	case f != nil:
		return fmt.Sprintf("client %d", f.Client)
	case e.Client != 0:
		return fmt.Sprintf("client %d", e.Client)
	}
	return "run"
}

// FormatEvent says in words what happened, but not when and to whom.
func FormatEvent(e history.Event) string {
	var t strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&t, format, args...) }
	name := ""
	if e.Name != "" {
		name = " " + e.Request().String()
	}
	switch e.Kind {
	case history.Ask:
		say("asks for%s", name)
		if e.Verb != "" {
			say(" (%s)", e.Verb)
		}
		if e.Limit != 0 {
			say(", for up to %s", FormatTime(e.Limit))
		}
	case history.Got:
		say("has%s, valid to %s", name, FormatTime(e.Until))
	case history.Denied:
		say("does not get%s", name)
	case history.Extend:
		say("begins to extend%s", name)
	case history.Extended:
		say("has extended%s, valid to %s", name, FormatTime(e.Until))
	case history.Failed:
		say("has not extended%s", name)
	case history.Renewed:
		say("finds that%s is valid to %s", name, FormatTime(e.Until))
	case history.Release:
		say("begins to release%s", name)
	case history.Released:
		say("has released%s", name)
	case history.Told:
		say("is told that its hold%s is over", name)
	case history.Read:
		say("reads %d at%s", e.Value, name)
	case history.Wrote:
		say("writes %d in the place of %d at%s", e.Value, e.Was, name)
	case history.Refused:
		say("is refused to write %d in the place of %d at%s", e.Value, e.Was, name)
	case history.Found:
		say("finds its token on %s", FormatCount(e.Value, "node"))
		if e.Was > 0 {
			say(", and %d could not say", e.Was)
		}
	case history.Stalled:
		say("the server of node %d is not run until %s", e.Value, FormatTime(e.Until))
	case history.Measured:
		say("measured")
	case history.Weighed:
		switch w := e.Weight; {
		case w == nil:
		case e.Client > 0:
			say("keeps %s for node %d", FormatCount(w.Requests, "request"), w.Node)
		default:
			say("node %d has %s, which take %s", w.Node, FormatCount(w.Keys, "key"), FormatCount(w.Bytes, "byte"))
		}
	case history.Crashed:
		say("crashes, with all that it held")
	case history.Held:
		say("is stopped until %s", FormatTime(e.Until))
	case history.Struck:
		if e.Fault != nil {
			_, what, _ := strings.Cut(e.Fault.String(), ": ")
			say("%s", what)
		}
	case history.Healed:
		if e.Fault != nil {
			say("%s is over", e.Fault.Trouble)
		}
	case history.Calm:
		say("all is well from here on")
	case history.Left:
		say("something is left%s", name)
	default:
		say("%s%s", e.Kind, name)
	}
	if e.Fence != 0 {
		say(", fence %d", e.Fence)
	}
	if e.Token != "" {
		say(", token %s", formatPlain(e.Token))
	}
	if e.Why != "" {
		say(": %s", e.Why)
	}
	if e.Error != "" {
		say(": %s", e.Error)
	}
	return t.String()
}

// formatPlain is text in which nothing can hide.
func formatPlain(s string) string {
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}

// FormatTime leaves as many digits as one can grasp.
func FormatTime(d time.Duration) string {
	switch a := max(d, -d); {
	case a >= time.Second:
		d = d.Round(time.Millisecond)
	case a >= time.Millisecond:
		d = d.Round(time.Microsecond)
	}
	return d.String()
}

// formatInt writes 12345 as 12,345.
func formatInt(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// formatRate leaves out digits that mean nothing.
func formatRate(x float64) string {
	if x >= 100 {
		return formatInt(int(math.Round(x)))
	}
	return strconv.FormatFloat(x, 'g', 2, 64)
}

// FormatCount is a number and what is counted.
func FormatCount(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return formatInt(n) + " " + what + "s"
}
