package report

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
)

// A timeline is one acquisition, from Ask to its last event. A negative got says that the lock was
// never acquired.
type timeline struct {
	client             int
	who                string // the client, as a sentence begins
	request            history.Request
	verb, token        string
	fence              uint64
	ask, got           int           // the events
	asked, since, end  time.Duration // waits from asked to since, or to end; holds from since to end
	until              time.Duration // the end of validity, as far as it is known
	last               time.Duration // the time of its last event
	how                string        // how it ended
	colour             int
	over               bool // the hold is over; more events may follow
	extended, failed   []time.Duration
	wrote, refused     []time.Duration
	told               time.Duration // when its context ended, if that was news
	toldWhy, why, gave string
	nodes              string // that granted it, if the history says so
	events             []int
}

// timelines groups the events by acquisition. An acquisition that is open at the end of the history ends
// there.
func timelines(h *history.History) []*timeline {
	events := h.Events
	type key struct{ client, op int }
	var all []*timeline
	open := map[key]*timeline{}
	for i, e := range events {
		if e.Client == 0 {
			continue
		}
		k := key{e.Client, e.Op}
		if e.Kind == history.Crashed {
			for k, s := range open {
				if k.client == e.Client {
					s.stop(e.At, "crashed")
					s.events = append(s.events, i)
					delete(open, k)
				}
			}
			continue
		}
		s := open[k]
		if e.Kind == history.Ask || e.Kind == history.Got && s == nil {
			s = &timeline{client: e.Client, who: upper(h.Run.Client(e.Client)), request: e.Request(), verb: e.Verb, ask: i, got: -1, asked: e.At}
			all, open[k] = append(all, s), s
		}
		if s != nil {
			s.events = append(s.events, i)
			s.add(i, e)
		}
	}
	if len(events) > 0 {
		for _, s := range open {
			s.stop(events[len(events)-1].At, "")
		}
	}
	colour(all)
	return all
}

// colour gives timelines with the same name and fence, or with the same token if there is no fence, the same
// colour, and the next ones another.
func colour(all []*timeline) {
	type key struct {
		name, token string
		fence       uint64
	}
	known := map[key]int{}
	for _, s := range all {
		k := key{token: s.token}
		if s.fence != 0 {
			k = key{name: s.request.Name, fence: s.fence}
		}
		if s.got < 0 {
			continue
		}
		n, ok := known[k]
		if !ok {
			n = len(known)
			known[k] = n
		}
		s.colour = n % colours
	}
}

// add adds one event of the acquisition.
func (s *timeline) add(i int, e history.Event) {
	s.last = e.At
	switch e.Kind {
	case history.Got:
		s.got, s.since, s.token, s.fence = i, e.At, e.Token, e.Fence
		s.until, s.nodes = math.MaxInt64, e.Why
		s.trust(e.Until)
	case history.Denied:
		s.why = cmp.Or(e.Why, e.Error)
		s.stop(e.At, "denied")
	case history.Extended, history.Renewed:
		s.extended = append(s.extended, e.At)
		s.trust(e.Until)
	case history.Failed:
		s.failed = append(s.failed, e.At)
	case history.Wrote:
		s.wrote = append(s.wrote, e.At)
	case history.Refused:
		s.refused = append(s.refused, e.At)
	case history.Release:
		s.trust(e.Until)
		s.stop(e.At, "released")
	case history.Released:
		s.gave = cmp.Or(e.Why, e.Error)
	case history.Told:
		if !s.over || e.Why != "released" {
			s.told, s.toldWhy = e.At, cmp.Or(e.Why, e.Error)
		}
		s.trust(e.Until)
		s.stop(e.At, "told")
	}
}

// trust records the end of validity, if the event has it. Renewals in the background have no events of their
// own; only their result shows.
func (s *timeline) trust(until time.Duration) {
	if until != 0 && !s.over {
		s.until = until
	}
}

// stop ends the waiting, or the hold: at an instant, or at its end of validity.
func (s *timeline) stop(at time.Duration, how string) {
	if s.over {
		return
	}
	s.over, s.how = true, how
	s.end = at
	if s.got >= 0 && s.until < at {
		s.end, s.how = max(s.until, s.since), "ran out"
	}
	if how != "" {
		s.last = at
	}
}

// heard is the last instant that has to be drawn.
func (s *timeline) heard() time.Duration { return max(s.end, s.last) }

// text describes the timeline.
func (s *timeline) text() string {
	var t strings.Builder
	if s.got < 0 {
		fmt.Fprintf(&t, "%s asked for %v", s.who, s.request)
		if s.verb != "" {
			fmt.Fprintf(&t, " (%s)", s.verb)
		}
		fmt.Fprintf(&t, " at %s", FormatTime(s.asked))
		waited := FormatTime(s.end - s.asked)
		switch s.how {
		case "denied":
			fmt.Fprintf(&t, " and did not get it: %s, after %s.", cmp.Or(s.why, "no reason given"), waited)
		case "crashed":
			fmt.Fprintf(&t, " and crashed after %s.", waited)
		case "":
			fmt.Fprintf(&t, " and was still waiting when the record ends, after %s.", waited)
		default:
			fmt.Fprintf(&t, ", for %s.", waited)
		}
		return t.String()
	}
	fmt.Fprintf(&t, "%s had %v from %s to %s (%s)", s.who, s.request, FormatTime(s.since), FormatTime(s.end), FormatTime(s.end-s.since))
	sep := ": "
	say := func(format string, args ...any) {
		fmt.Fprintf(&t, sep+format, args...)
		sep = ", "
	}
	if s.fence != 0 {
		say("fence %d", s.fence)
	}
	if s.token != "" {
		say("token %s", formatPlain(s.token))
	}
	say("waited %s", FormatTime(s.since-s.asked))
	if s.nodes != "" {
		say("%s", s.nodes)
	}
	for _, did := range []struct {
		times []time.Duration
		what  string
	}{{s.extended, "extension"}, {s.failed, "failed extension"}, {s.wrote, "write"}, {s.refused, "refused write"}} {
		if len(did.times) > 0 {
			say("%s", FormatCount(len(did.times), did.what))
		}
	}
	t.WriteString(map[string]string{
		"released": ". It gave it back.",
		"told":     ". Its context ended.",
		"crashed":  ". It crashed.",
		"ran out":  ". Its time ran out.",
		"":         ". It still had it when the record ends.",
	}[s.how])
	if s.told != 0 {
		fmt.Fprintf(&t, " It was told at %s: %s.", FormatTime(s.told), cmp.Or(s.toldWhy, "no cause given"))
	}
	if s.gave != "" {
		fmt.Fprintf(&t, " Giving it back: %s.", s.gave)
	}
	return t.String()
}

// upper is a name as a sentence begins.
func upper(name string) string {
	if rest, is := strings.CutPrefix(name, "client "); is {
		return "Client " + rest
	}
	if rest, is := strings.CutPrefix(name, "node "); is {
		return "Node " + rest
	}
	return name // somebody has given it
}

// formatSpell describes a fault.
func formatSpell(h *history.Head, s *history.Spell) string {
	_, what, _ := strings.Cut(strings.TrimPrefix(s.String(), s.At.String()+" "), ": ")
	place := h.Node(s.Node)
	if s.Kind.OnClient() {
		place = h.Client(s.Client)
	}
	text := fmt.Sprintf("%s: %s, ", upper(place), what)
	switch {
	case s.Healed:
		return text + fmt.Sprintf("from %s to %s.", FormatTime(s.From), FormatTime(s.To))
	case s.Open:
		return text + fmt.Sprintf("from %s on; not over when the record ends.", FormatTime(s.From))
	}
	return text + fmt.Sprintf("at %s.", FormatTime(s.From))
}
