package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
)

// formatSubject names the subject of an event: a node, a client, or the run.
func formatSubject(h history.Head, e history.Event) string {
	switch f := e.Fault; {
	case f != nil && !f.Kind.OnClient():
		return h.Node(f.Node)
	case f != nil:
		return h.Client(f.Client)
	case e.Client != 0:
		return h.Client(e.Client)
	}
	return "run"
}

// FormatEvent describes an event, without its time and subject.
func FormatEvent(e history.Event) string {
	name := ""
	if e.Name != "" {
		name = " " + e.Request().String()
	}
	text, known := formatOp(e, name)
	if !known {
		text = formatRest(e, name)
	}
	if e.Fence != 0 {
		text += fmt.Sprintf(", fence %d", e.Fence)
	}
	if e.Token != "" {
		text += ", token " + formatPlain(e.Token)
	}
	if e.Why != "" {
		text += ": " + e.Why
	}
	if e.Error != "" {
		text += ": " + e.Error
	}
	return text
}

// formatOp describes the events of clients.
func formatOp(e history.Event, name string) (text string, known bool) {
	var t strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&t, format, args...) }
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
	case history.Changing:
		say("begins to change the set: %s, for up to %s", e.Name, FormatTime(e.Limit))
	case history.Break:
		say("begins to break the lock%s with token %s, for up to %s", name, e.Token, FormatTime(e.Limit))
	case history.Broke:
		if e.Error != "" {
			say("has not broken the lock%s with token %s", name, e.Token)
		} else {
			say("has broken the lock%s with token %s: its holder may believe in it until %s", name, e.Token, FormatTime(e.Until))
		}
	case history.Changed:
		if e.Error != "" {
			say("has not changed the set: %s", e.Name)
		} else {
			say("has changed the set: %s; description %d, with the members %s and a quorum of %d", e.Name, e.Value, e.Also, e.Was)
		}
	default:
		return "", false
	}
	return t.String(), true
}

// formatRest describes the events of nodes and of the run, and the faults of clients.
func formatRest(e history.Event, name string) string {
	switch e.Kind {
	case history.Stalled:
		return fmt.Sprintf("the server of node %d is not run until %s", e.Value, FormatTime(e.Until))
	case history.Lost:
		return fmt.Sprintf("most members of the set keep no description of it until %s, when an operator restores it", FormatTime(e.Until))
	case history.Measured:
		return "measured"
	case history.Weighed:
		switch w := e.Weight; {
		case w == nil:
			return ""
		case e.Client > 0:
			return fmt.Sprintf("keeps %s for node %d", FormatCount(w.Requests, "request"), w.Node)
		default:
			return fmt.Sprintf("node %d has %s, which take %s", w.Node, FormatCount(w.Keys, "key"), FormatCount(w.Bytes, "byte"))
		}
	case history.Crashed:
		return "crashes, with all that it held"
	case history.Held:
		return "is stopped until " + FormatTime(e.Until)
	case history.Struck:
		if e.Fault == nil {
			return ""
		}
		_, what, _ := strings.Cut(e.Fault.String(), ": ")
		return what
	case history.Healed:
		if e.Fault == nil {
			return ""
		}
		return string(e.Fault.Kind) + " is over"
	case history.Calm:
		return "all faults are over from here on"
	case history.Left:
		return "something is left" + name
	}
	return string(e.Kind) + name
}

// formatPlain escapes a text, so that no character is invisible.
func formatPlain(s string) string {
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}

// FormatTime rounds a time to a readable number of digits.
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

// formatRate leaves out digits without meaning.
func formatRate(x float64) string {
	if x >= 100 {
		return formatInt(int(math.Round(x)))
	}
	return strconv.FormatFloat(x, 'g', 2, 64)
}

// FormatCount is a number with the noun that it counts.
func FormatCount(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return formatInt(n) + " " + what + "s"
}
