package chaos

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

func whoOf(e Event) string {
	switch f := e.Fault; {
	case f != nil && !f.Trouble.onClient():
		return fmt.Sprintf("node %d", f.Node)
	case f != nil:
		return fmt.Sprintf("client %d", f.Client)
	case e.Client != 0:
		return fmt.Sprintf("client %d", e.Client)
	}
	return "run"
}

// tellEvent says in words what happened, but not when and to whom.
func tellEvent(e Event) string {
	var t strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&t, format, args...) }
	name := ""
	if e.Name != "" {
		name = " " + e.want().String()
	}
	switch e.Kind {
	case Ask:
		say("asks for%s", name)
		if e.Verb != "" {
			say(" (%s)", e.Verb)
		}
		if e.Limit != 0 {
			say(", for up to %s", roundTime(e.Limit))
		}
	case Got:
		say("has%s, valid to %s", name, roundTime(e.Until))
	case Denied:
		say("does not get%s", name)
	case Extend:
		say("begins to extend%s", name)
	case Extended:
		say("has extended%s, valid to %s", name, roundTime(e.Until))
	case Failed:
		say("has not extended%s", name)
	case Renewed:
		say("finds that%s is valid to %s", name, roundTime(e.Until))
	case Release:
		say("begins to release%s", name)
	case Released:
		say("has released%s", name)
	case Told:
		say("is told that its hold%s is over", name)
	case Read:
		say("reads %d at%s", e.Value, name)
	case Wrote:
		say("writes %d in the place of %d at%s", e.Value, e.Was, name)
	case Refused:
		say("is refused to write %d in the place of %d at%s", e.Value, e.Was, name)
	case Found:
		say("finds its token on %s", countOf(e.Value, "node"))
		if e.Was > 0 {
			say(", and %d could not say", e.Was)
		}
	case Stalled:
		say("the server of node %d is not run until %s", e.Value, roundTime(e.Until))
	case Measured:
		say("measured")
	case Weighed:
		switch w := e.Weight; {
		case w == nil:
		case e.Client > 0:
			say("keeps %s for node %d", countOf(w.Requests, "request"), w.Node)
		default:
			say("node %d has %s, which take %s", w.Node, countOf(w.Keys, "key"), countOf(w.Bytes, "byte"))
		}
	case Crashed:
		say("crashes, with all that it held")
	case Held:
		say("is stopped until %s", roundTime(e.Until))
	case Struck:
		if e.Fault != nil {
			_, what, _ := strings.Cut(e.Fault.String(), ": ")
			say("%s", what)
		}
	case Healed:
		if e.Fault != nil {
			say("%s is over", e.Fault.Trouble)
		}
	case Calm:
		say("all is well from here on")
	case Left:
		say("something is left%s", name)
	default:
		say("%s%s", e.Kind, name)
	}
	if e.Fence != 0 {
		say(", fence %d", e.Fence)
	}
	if e.Token != "" {
		say(", token %s", plainText(e.Token))
	}
	if e.Why != "" {
		say(": %s", e.Why)
	}
	if e.Error != "" {
		say(": %s", e.Error)
	}
	return t.String()
}

// plainText is text that nobody can hide anything in.
func plainText(s string) string {
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}

// roundTime leaves as many digits as one can grasp.
func roundTime(d time.Duration) string {
	switch a := max(d, -d); {
	case a >= time.Second:
		d = d.Round(time.Millisecond)
	case a >= time.Millisecond:
		d = d.Round(time.Microsecond)
	}
	return d.String()
}

// groupDigits writes 12345 as 12,345.
func groupDigits(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// rateOf leaves out digits that mean nothing.
func rateOf(x float64) string {
	if x >= 100 {
		return groupDigits(int(math.Round(x)))
	}
	return strconv.FormatFloat(x, 'g', 2, 64)
}

// countOf is a number and what is counted.
func countOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return groupDigits(n) + " " + what + "s"
}
