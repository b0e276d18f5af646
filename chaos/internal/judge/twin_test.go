package judge

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
)

// compareWithTwin compares the verdicts of the judge and its twin on a history, unless time goes back in it.
func compareWithTwin(t *testing.T, h *history.History) []Violation {
	t.Helper()
	verdict := Judge(h)
	var now time.Duration
	for _, e := range h.Events {
		if e.At < now {
			return verdict.Violations
		}
		now = e.At
	}
	tw := newTwin(h)
	tw.judge()
	var got, want []string
	for _, v := range verdict.Violations {
		got = append(got, fmt.Sprintln(v.At, v.Rule, v.Events))
	}
	for _, v := range tw.found {
		want = append(want, fmt.Sprintln(v.At, v.Rule, v.Events))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		for i, e := range h.Events {
			t.Logf("%3d %+v %v", i, e, e.Fault)
		}
		t.Errorf("%+v\nthe judge says\n%v\nits twin\n%v", h.Run, got, want)
	}
	tw.numbers.Violations = verdict.Violations
	if got, want := fmt.Sprintf("%+v", verdict), fmt.Sprintf("%+v", tw.numbers); got != want {
		t.Errorf("counted\n%s\nwant\n%s", got, want)
	}
	if !slices.IsSortedFunc(verdict.Violations, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Text, b.Text))
	}) {
		t.Errorf("in disorder: %v", verdict.Violations)
	}
	return verdict.Violations
}

// A twin judges slowly: it goes through all events for each question, compares every pair, and goes
// through time instant by instant. Time must not go back, and there must be few instants.
type twin struct {
	*history.History
	found   []Violation
	numbers Verdict
	holds   []twinHold
	last    time.Duration

	ills   []twinIll
	stands map[int][]bool // by client and instant; see stood
}

type twinHold struct {
	what           history.Event // the request
	mine           []int         // all events of the op that count
	ask, got, told int
	release        int
	from, to       time.Duration
	until, died    time.Duration
	broken         time.Duration // from when on
	renews, failed bool
}

func newTwin(h *history.History) *twin {
	tw := &twin{History: h}
	for _, e := range h.Events {
		tw.last = e.At
	}
	for i, e := range h.Events {
		if e.Kind != history.Got {
			continue
		}
		mine := tw.lifeOf(i)
		if tw.first(mine, history.Got) != i {
			continue
		}
		o := twinHold{what: h.Events[mine[0]], mine: mine, got: i, ask: tw.first(mine, history.Ask), died: tw.died(mine[0]), release: -1, told: -1}
		if o.ask >= 0 {
			o.renews = h.Events[o.ask].Verb == "do" || h.Events[o.ask].Why == "renewed"
		}
		o.until = e.Until
		o.to = o.died
		for _, j := range mine {
			switch e := h.Events[j]; {
			case j <= i:
			case e.Kind == history.Failed:
				o.failed = true
			case e.Kind == history.Extended || e.Kind == history.Renewed:
				o.until = max(o.until, e.Until)
				o.renews = o.renews || e.Kind == history.Renewed
			case e.Kind == history.Release || e.Kind == history.Told && o.told < 0:
				o.until = max(o.until, e.Until)
				o.to = min(o.to, e.At)
				if e.Kind == history.Told {
					o.told = j
				} else if o.release < 0 {
					o.release = j
				}
			}
		}
		o.from, o.to = e.At, min(o.to, o.until)
		o.broken = math.MaxInt64
		for j, b := range h.Events {
			if b.Kind == history.Break && b.Token == e.Token && tw.breaks(j) != "lost" {
				o.broken = min(o.broken, b.At)
			}
		}
		o.to = min(o.to, o.broken)
		tw.holds = append(tw.holds, o)
	}
	return tw
}

// breaks is how the breaking of a lock has ended, "no end" and "again" included.
func (tw *twin) breaks(i int) string {
	b := tw.Events[i]
	for j, e := range tw.Events {
		if e.Client != b.Client || e.Op != b.Op {
			continue
		}
		switch begins := e.Kind == history.Break || e.Kind == history.Changing; {
		case begins && j < i:
			return "lost" // it has begun before: this is no beginning
		case j > i && (e.Kind == history.Broke || e.Kind == history.Changed):
			if e.Why == "" && e.Kind != history.Broke {
				return "changed"
			}
			return e.Why
		}
	}
	return "no end"
}

// lifeOf returns all events of an event's op, from the first one that can begin an op to the death
// of its client, without a second beginning.
func (tw *twin) lifeOf(i int) (mine []int) {
	for j, e := range tw.Events {
		begins := e.Kind == history.Ask || e.Kind == history.Got || e.Kind == history.Denied
		switch {
		case e.Kind == history.Crashed && e.Client == tw.Events[i].Client && mine != nil:
			return mine
		case e.Client != tw.Events[i].Client || e.Op != tw.Events[i].Op || !isClients(e.Kind):
		case mine == nil && begins, mine != nil && e.Kind != history.Ask:
			mine = append(mine, j)
		}
	}
	return mine
}

func isClients(k history.Kind) bool {
	return slices.Contains([]history.Kind{history.Ask, history.Got, history.Denied, history.Extend, history.Extended, history.Failed, history.Renewed, history.Release, history.Released, history.Told, history.Read, history.Wrote, history.Refused, history.Found}, k)
}

func (tw *twin) first(of []int, kinds ...history.Kind) int {
	for _, i := range of {
		if slices.Contains(kinds, tw.Events[i].Kind) {
			return i
		}
	}
	return -1
}

// died is when the client of an event died, if it died later.
func (tw *twin) died(i int) time.Duration {
	for _, e := range tw.Events[i:] {
		if e.Kind == history.Crashed && e.Client == tw.Events[i].Client {
			return e.At
		}
	}
	return math.MaxInt64
}

func (tw *twin) add(rule string, at time.Duration, events ...int) {
	if events[0] < 0 {
		events = events[1:]
	}
	tw.found = append(tw.found, Violation{Rule: rule, At: at, Events: events})
}

// stopped reports whether a client was stopped at one of these instants.
func (tw *twin) stopped(client int, from, to time.Duration) bool {
	for _, e := range tw.Events {
		if e.Kind == history.Held && e.Client == client {
			for at := from; at <= to; at++ {
				if e.At <= at && at <= e.Until {
					return true
				}
			}
		}
	}
	return false
}

// deadline goes through time, and counts the instants at which the client was not stopped.
func (tw *twin) deadline(client int, begin, limit time.Duration) time.Duration {
	for at, rest := begin, limit+tw.Run.Lag; ; at++ {
		stopped := false
		for _, e := range tw.Events {
			stopped = stopped || e.Kind == history.Held && e.Client == client && e.At <= at && at < e.Until
		}
		if stopped {
			continue
		}
		if rest <= 0 {
			return at
		}
		rest--
	}
}

// noticed adds Look for a client that was suspended since it set its timer, or in a stop that turns
// into a suspension.
func (tw *twin) noticed(client int, since, due time.Duration) time.Duration {
	lag := tw.Run.Lag
	for _, e := range tw.Events {
		if e.Kind != history.Held || e.Client != client || e.At > e.Until || e.Why != "suspended" {
			continue
		}
		from, to := e.At, e.Until
		for grows := true; grows; { // the stop may grow with each pass
			grows = false
			for _, f := range tw.Events {
				if f.Kind == history.Held && f.Client == client && f.At <= f.Until && f.At <= to && f.Until >= from && (f.At < from || f.Until > to) {
					from, to, grows = min(from, f.At), max(to, f.Until), true
				}
			}
		}
		if from <= due && to >= since {
			lag = tw.Run.Lag + tw.Run.Look
		}
	}
	by := due + lag
	for range tw.Events {
		for _, e := range tw.Events {
			if e.Kind == history.Held && e.Client == client && e.At <= e.Until && e.At <= by && e.Until >= due {
				by = max(by, e.Until+lag)
			}
		}
	}
	return by
}

// judgeForm checks for each event what must have come before it.
func (tw *twin) judgeForm(i int, e history.Event) {
	odd := func(is bool) {
		if is {
			tw.add("well-formed", e.At, i)
		}
	}
	switch e.Kind {
	case history.Calm, history.Left, history.Measured:
		return
	case history.Weighed:
		odd(e.Weight == nil)
		return
	case history.Stalled, history.Lost:
		odd(e.Until < e.At)
		return
	case history.Struck, history.Healed:
		odd(e.Fault == nil)
		return
	case history.Changing, history.Changed, history.Break, history.Broke:
		odd(e.Client < 1 || e.Op < 1)
		begun, ended := false, false
		for _, f := range tw.Events[:i] {
			if f.Client == e.Client && f.Op == e.Op {
				begun = begun || f.Kind == history.Changing || f.Kind == history.Break
				ended = ended || begun && (f.Kind == history.Changed || f.Kind == history.Broke)
			}
		}
		begins := e.Kind == history.Changing || e.Kind == history.Break
		odd(begun == begins || ended && !begins)
		return
	case history.Crashed, history.Held:
		odd(e.Client < 1)
		odd(e.Kind == history.Held && e.Until < e.At)
		return
	}
	if !isClients(e.Kind) {
		odd(true)
		return
	}
	odd(e.Client < 1 || e.Op < 1)
	mine := tw.lifeOf(i)
	if mine == nil || i < mine[0] {
		odd(true)
		return
	}
	if e.Kind == history.Ask {
		odd(mine[0] != i)
		if mine[0] == i {
			odd(e.Name == "")
			odd(e.Slots < 0 || e.Slots > 0 && !isSlot(e))
			odd(!slices.Contains([]string{"try", "acquire", "do", "plain"}, e.Verb))
		}
		return
	}
	if !slices.Contains(mine, i) {
		return // the client is dead
	}
	past := mine[:slices.Index(mine, i)]
	ended, got := tw.first(past, history.Got, history.Denied), tw.first(past, history.Got)
	// open counts the events of a kind that have begun and not ended before this one.
	open := func(begin history.Kind, ends ...history.Kind) (is bool) {
		for _, j := range past {
			if j < got {
				continue
			}
			if tw.Events[j].Kind == begin {
				is = true
			} else if slices.Contains(ends, tw.Events[j].Kind) {
				is = false
			}
		}
		return is
	}
	switch e.Kind {
	case history.Got, history.Denied:
		if e.Kind == history.Denied {
			tw.numbers.Denials++
		}
		odd(ended >= 0 || len(past) == 0)
		was := tw.Events[mine[0]]
		odd(e.Kind == history.Got && got < 0 && e.Name != "" && (e.Name != was.Name || e.Also != was.Also || e.Shared != was.Shared || e.Slots != was.Slots))
		return
	}
	if got < 0 {
		odd(true)
		return
	}
	switch e.Kind {
	case history.Extend:
		odd(open(history.Extend, history.Extended, history.Failed))
	case history.Extended, history.Failed:
		odd(!open(history.Extend, history.Extended, history.Failed))
		if e.Kind == history.Extended {
			tw.numbers.Extensions++
		}
	case history.Release:
		odd(open(history.Release, history.Released))
	case history.Released:
		odd(!open(history.Release, history.Released))
	case history.Told:
		again := slices.ContainsFunc(past, func(j int) bool { return j > got && tw.Events[j].Kind == history.Told })
		odd(again)
		if !again && e.Why == "lost" {
			tw.numbers.Losses++
		}
	}
}
