package chaos

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// reportHistory makes up a history that a run could have: clients that wait for
// some names, hold them, extend, write, lose and give back, several at a time;
// faults; and one lock that two have at once, which the verdict says.
func reportHistory(seed uint64, clients, acquisitions int) (*History, Verdict) {
	const ms = time.Millisecond
	rng := rand.New(rand.NewPCG(seed, 7))
	upTo := func(d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }
	names := []string{"orders", "stock", "mail"}
	h := &History{Run: Head{Scenario: "everything", Arena: "model", Seed: seed, Nodes: 5, Quorum: 3, Clients: clients, Bound: 5 * time.Second}}
	free := map[string]time.Duration{}
	ready := make([][2]time.Duration, clients) // two workers each
	ops := make([]int, clients)
	var fence uint64
	var end time.Duration
	broken := false
	note := func(at time.Duration, e Event) {
		e.At = at
		end = max(end, at)
		h.Events = append(h.Events, e)
	}
	for n := range acquisitions {
		client, worker := rng.IntN(clients), rng.IntN(2)
		name := names[rng.IntN(len(names))]
		ops[client]++
		e := Event{Client: client + 1, Op: ops[client], Name: name}
		put := func(at time.Duration, kind Kind, change func(*Event)) {
			e := e
			e.Kind = kind
			if change != nil {
				change(&e)
			}
			note(at, e)
		}
		asked := ready[client][worker] + upTo(60*ms)
		put(asked, Ask, func(e *Event) { e.Verb, e.Limit = "acquire", time.Second })
		got := max(asked, free[name]) + ms + upTo(3*ms)
		if n > max(8, acquisitions/2) && !broken && free[name] > asked+30*ms {
			broken, got = true, free[name]-20*ms
		} else if got-asked > 400*ms || rng.IntN(12) == 0 {
			got = asked + upTo(400*ms)
			put(got, Denied, func(e *Event) { e.Why, e.Error = "held", "redlock: held by others" })
			ready[client][worker] = got
			continue
		}
		fence++
		until := got + 120*ms
		put(got, Got, func(e *Event) {
			e.Token, e.Fence, e.Until = fmt.Sprintf("%016x", rng.Uint64()), fence, until
		})
		at := got
		for range rng.IntN(4) {
			at += 10*ms + upTo(50*ms)
			put(at, Wrote, func(e *Event) { e.Value, e.Was, e.Fence = n+1, n, fence })
			at += ms
			if rng.IntN(5) == 0 {
				put(at, Failed, func(e *Event) { e.Why = "no quorum" })
				continue
			}
			until = at + 120*ms
			put(at, Extended, func(e *Event) { e.Until = until })
		}
		over := at + upTo(60*ms)
		switch rng.IntN(8) {
		case 0: // lost
			put(over, Told, func(e *Event) { e.Why, e.Until = "lost", until })
		case 1: // runs out
			over = until
			put(over+upTo(5*ms), Told, func(e *Event) { e.Why, e.Until = "lost", until })
		default:
			put(over, Release, func(e *Event) { e.Until = until })
			put(over, Told, func(e *Event) { e.Why, e.Until = "released", until })
			put(over+ms, Released, nil)
		}
		free[name], ready[client][worker] = over+ms, over+8*ms
	}
	for range acquisitions / 8 {
		f := Fault{At: upTo(end), Trouble: []Trouble{Kill, Slow, Cut, Flush, ReadOnly, Reset}[rng.IntN(6)], Node: rng.IntN(5)}
		if f.Trouble != Flush && f.Trouble != Reset {
			f.For = 20*ms + upTo(300*ms)
		}
		note(f.At, Event{Kind: Struck, Fault: &f})
		if f.For > 0 {
			note(f.At+f.For, Event{Kind: Healed, Fault: &f})
		}
	}
	pause := Fault{At: end / 3, Trouble: Pause, Client: 1, For: 90 * ms}
	note(pause.At, Event{Kind: Struck, Fault: &pause})
	note(pause.At, Event{Kind: Held, Client: 1, Until: pause.At + pause.For})
	note(pause.At+pause.For, Event{Kind: Healed, Fault: &pause})
	note(end*5/6, Event{Kind: Crashed, Client: clients})
	note(end*9/10, Event{Kind: Calm})
	slices.SortStableFunc(h.Events, func(a, b Event) int { return int(a.At - b.At) })
	crashed := slices.IndexFunc(h.Events, func(e Event) bool { return e.Kind == Crashed })
	kept := h.Events[:crashed+1]
	for _, e := range h.Events[crashed+1:] {
		if e.Client != clients {
			kept = append(kept, e)
		}
	}
	h.Events = kept
	return h, reportVerdict(h)
}

// reportVerdict looks for two who have the same name at once.
func reportVerdict(h *History) (v Verdict) {
	holds := expectedHolds(h)
	for i, a := range holds {
		for _, b := range holds[i+1:] {
			e, f := h.Events[a.got], h.Events[b.got]
			if e.Name == f.Name && a.from < b.to && b.from < a.to {
				v.Violations = append(v.Violations, Violation{
					Rule: "exclusion", At: max(a.from, b.from), Events: []int{a.got, b.got},
					Text: fmt.Sprintf("clients %d and %d both have %q", e.Client, f.Client, e.Name),
				})
			}
		}
	}
	return v
}

// An expectedHold is what a reader of the list of events thinks of a hold.
type expectedHold struct {
	got, client int
	from, to    time.Duration
}

// expectedHolds reads for each hold all that comes after it.
func expectedHolds(h *History) (all []expectedHold) {
	for i, e := range h.Events {
		if e.Kind != Got {
			continue
		}
		until, end := e.Until, h.Events[len(h.Events)-1].At
	search:
		for _, f := range h.Events[i+1:] {
			if f.Client != e.Client {
				continue
			}
			if f.Op == e.Op && f.Until != 0 {
				until = f.Until
			}
			if f.Kind == Crashed || f.Op == e.Op && (f.Kind == Release || f.Kind == Told) {
				end = f.At
				break search
			}
		}
		all = append(all, expectedHold{i, e.Client, e.At, max(min(until, end), e.At)})
	}
	return all
}

// ms1 is a run of 1023 ms, which a chart of the least width shows with one pixel
// for each.
func ms1(events ...Event) *History {
	events = append(events, Event{At: 1023, Kind: Calm})
	for i := range events {
		events[i].At *= time.Millisecond
		events[i].Until *= time.Millisecond
	}
	return &History{Run: Head{Nodes: 1, Clients: 1}, Events: events}
}

// TestChartHolds: where a hold is, by what ends it.
func TestChartHolds(t *testing.T) {
	ask := Event{At: 100, Kind: Ask, Client: 1, Op: 1, Name: "a"}
	got := Event{At: 150, Kind: Got, Client: 1, Op: 1, Name: "a", Until: 400}
	heard := func(at int, kind Kind, until int, why string) Event {
		return Event{At: time.Duration(at), Kind: kind, Client: 1, Op: 1, Name: "a", Until: time.Duration(until), Why: why}
	}
	for name, test := range map[string]struct {
		events []Event
		from   float64 // in ms, as are the others
		to     float64
		marks  string
		words  string
	}{
		"released":        {[]Event{ask, got, heard(300, Release, 0, ""), heard(310, Released, 0, "")}, 150, 300, "", "gave it back"},
		"runs out":        {[]Event{ask, got}, 150, 400, "", "time ran out"},
		"told in time":    {[]Event{ask, got, heard(390, Told, 0, "lost")}, 150, 390, "told@390", "context ended. It was told at 390ms: lost"},
		"told too late":   {[]Event{ask, got, heard(450, Told, 0, "lost")}, 150, 400, "told@450", "time ran out. It was told at 450ms: lost"},
		"crashed":         {[]Event{ask, got, {At: 200, Kind: Crashed, Client: 1}}, 150, 200, "", "crashed"},
		"another crashes": {[]Event{ask, got, {At: 200, Kind: Crashed, Client: 2}}, 150, 400, "", "time ran out"},
		"extended":        {[]Event{ask, got, heard(350, Extended, 700, ""), heard(600, Release, 0, "")}, 150, 600, "extended@350", "1 extension."},
		"failed":          {[]Event{ask, got, heard(350, Failed, 0, "no quorum")}, 150, 400, "failed@350", "1 failed extension."},
		"renewed unseen":  {[]Event{ask, got, heard(600, Release, 900, "")}, 150, 600, "", "gave it back"},
		"renewed, lost":   {[]Event{ask, got, heard(600, Told, 550, "lost")}, 150, 550, "told@600", "time ran out"},
		"released, told":  {[]Event{ask, got, heard(300, Release, 0, ""), heard(300, Told, 0, "released")}, 150, 300, "", "gave it back"},
		"writes":          {[]Event{ask, got, heard(200, Wrote, 0, ""), heard(210, Refused, 0, "")}, 150, 400, "wrote@200 refused@210", "1 write, 1 refused write."},
		"over at once":    {[]Event{ask, heard(150, Got, 140, "")}, 150, 150 + leastBar, "", "time ran out"},
		"never said":      {[]Event{ask, heard(150, Got, 0, "")}, 150, 1023, "", "still had it"},
		"not asked for":   {[]Event{got}, 150, 400, "", "waited 0s"},
	} {
		c := newChart(ms1(test.events...), Verdict{}, "r1", 100)
		i := slices.IndexFunc(c.Items, func(i chartItem) bool { return strings.HasPrefix(i.Class, "hold ") })
		if i < 0 {
			t.Errorf("%s: there is no hold", name)
			continue
		}
		item := c.Items[i]
		if got := [2]float64{item.Bar.X - chartMargin, item.Bar.X + item.Bar.W - chartMargin}; got != [2]float64{test.from, test.to} {
			t.Errorf("%s: the bar is at %v, want %v to %v", name, got, test.from, test.to)
		}
		var marks []string
		for _, m := range item.Marks {
			marks = append(marks, fmt.Sprintf("%s@%v", m.Shape, m.X-chartMargin))
		}
		if got := strings.Join(marks, " "); got != test.marks {
			t.Errorf("%s: marks %q, want %q", name, got, test.marks)
		}
		if !strings.Contains(item.Text, test.words) {
			t.Errorf("%s: %q does not say %q", name, item.Text, test.words)
		}
		if len(test.events) > 1 && (len(item.Lines) == 0 || item.Lines[0].X != 100+chartMargin || item.Lines[0].W != 50) {
			t.Errorf("%s: waiting is drawn as %v", name, item.Lines)
		}
	}
}

// TestChartWaits: what never became a hold.
func TestChartWaits(t *testing.T) {
	ask := Event{At: 100, Kind: Ask, Client: 1, Op: 1, Name: "a", Verb: "try"}
	for name, test := range map[string]struct {
		events []Event
		to     float64
		mark   bool
		words  string
	}{
		"denied":   {[]Event{ask, {At: 130, Kind: Denied, Client: 1, Op: 1, Why: "held"}}, 130, true, `asked for "a" (try) at 100ms and did not get it: held, after 30ms`},
		"crashed":  {[]Event{ask, {At: 140, Kind: Crashed, Client: 1}}, 140, false, "crashed after 40ms"},
		"for ever": {[]Event{ask}, 1023, false, "still waiting"},
	} {
		c := newChart(ms1(test.events...), Verdict{}, "r1", 100)
		item := c.Items[0]
		if item.Class != "wait" || item.Bar.W != 0 || len(item.Lines) != 1 || len(item.Marks) == 1 != test.mark {
			t.Errorf("%s: drawn as %+v", name, item)
			continue
		}
		if l := item.Lines[0]; l.X-chartMargin != 100 || l.X+l.W-chartMargin != test.to {
			t.Errorf("%s: from %v for %v", name, l.X, l.W)
		}
		if !strings.Contains(item.Text, test.words) {
			t.Errorf("%s: %q does not say %q", name, item.Text, test.words)
		}
	}
}

// TestChartFaults: in whose row, from when to when, and with what label.
func TestChartFaults(t *testing.T) {
	const ms = time.Millisecond
	kill := Fault{At: 100 * ms, Trouble: Kill, Node: 1, For: 200 * ms}
	short := Fault{At: 100 * ms, Trouble: Kill, Node: 1, For: 3 * ms}
	flush := Fault{At: 100 * ms, Trouble: Flush, Node: 0}
	pause := Fault{At: 100 * ms, Trouble: Pause, Client: 2, For: 200 * ms}
	event := func(at int, kind Kind, f Fault) Event { return Event{At: time.Duration(at), Kind: kind, Fault: &f} }
	for name, test := range map[string]struct {
		events []Event
		row    string
		want   string
	}{
		"a while":     {[]Event{event(100, Struck, kill), event(300, Healed, kill)}, "node 1", "100+200 kill/in"},
		"short":       {[]Event{event(100, Struck, short), event(103, Healed, short)}, "node 1", "100+3 kill/out"},
		"not over":    {[]Event{event(100, Struck, kill)}, "node 1", "100+923 kill/in"},
		"at once":     {[]Event{event(100, Struck, flush)}, "node 0", "point@100 flush/out"},
		"a client":    {[]Event{event(100, Struck, pause), event(300, Healed, pause)}, "client 2", "100+200 pause/in"},
		"others heal": {[]Event{event(100, Struck, kill), event(300, Healed, short)}, "node 1", "100+923 kill/in"},
		"twice the same": {[]Event{event(100, Struck, short), event(103, Healed, short), event(500, Struck, short), event(503, Healed, short)}, "node 1",
			"100+3 kill/out, 500+3 kill/out"},
		"no room": {[]Event{event(100, Struck, flush), event(115, Struck, flush)}, "node 0", "point@100 /out, point@115 flush/out"},
	} {
		c := newChart(ms1(test.events...), Verdict{}, "r1", 100)
		row := c.Rows[slices.IndexFunc(c.Rows, func(r chartRow) bool { return r.Label == test.row })]
		var all []string
		for _, item := range c.Items {
			y := item.Bar.Y
			what := fmt.Sprintf("%v+%v", item.Bar.X-chartMargin, item.Bar.W)
			if len(item.Marks) > 0 {
				y = item.Marks[0].Y
				what = fmt.Sprintf("%s@%v", item.Marks[0].Shape, item.Marks[0].X-chartMargin)
			}
			if y < row.Y || y > row.Y+row.H {
				t.Errorf("%s: at %v, its row is at %v to %v", name, y, row.Y, row.Y+row.H)
			}
			all = append(all, what+" "+item.Label+"/"+item.LabelClass)
		}
		if got := strings.Join(all, ", "); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestChartOfHistories compares charts with what a reader of the events would
// draw: every hold has a bar, at its place, and none hides another.
func TestChartOfHistories(t *testing.T) {
	for seed := range uint64(40) {
		h, v := reportHistory(seed, 1+int(seed%7), 10+int(seed)*5)
		c := newChart(h, v, "r1", math.MaxInt)
		items := map[string]chartItem{}
		for _, item := range c.Items {
			items[item.ID] = item
		}
		scale := (c.Width - 2*chartMargin) / float64(h.Events[len(h.Events)-1].At)
		bars := map[int][]chartBox{}
		for _, want := range expectedHolds(h) {
			item := items[fmt.Sprintf("r1-h%d", want.got)]
			x, right := chartMargin+float64(want.from)*scale, chartMargin+float64(want.to)*scale
			if math.Abs(item.Bar.X-x) > 0.1 || math.Abs(item.Bar.X+item.Bar.W-max(right, x+leastBar)) > 0.2 {
				t.Errorf("seed %d: event %d: the bar is at %v for %v, want from %v to %v", seed, want.got, item.Bar.X, item.Bar.W, x, right)
			}
			row := c.Rows[want.client-1]
			if item.Bar.Y < row.Y || item.Bar.Y+item.Bar.H > row.Y+row.H {
				t.Errorf("seed %d: event %d: the bar is not in the row of client %d", seed, want.got, want.client)
			}
			for _, other := range bars[want.client] {
				if overlap(other, item.Bar) {
					t.Errorf("seed %d: event %d: the bar %v hides %v", seed, want.got, item.Bar, other)
				}
			}
			bars[want.client] = append(bars[want.client], item.Bar)
		}
		flags := slices.DeleteFunc(c.Flags, func(f chartFlag) bool { return f.Class != "violation" })
		if len(flags) != len(v.Violations) {
			t.Errorf("seed %d: %d flags for %d violations", seed, len(flags), len(v.Violations))
		}
		for _, violation := range v.Violations {
			for _, i := range violation.Events {
				if item := items[fmt.Sprintf("r1-h%d", i)]; !strings.HasSuffix(item.Class, " shows") {
					t.Errorf("seed %d: event %d: %q does not stand out", seed, i, item.Class)
				}
			}
		}
	}
}

// overlap allows for what rounding does.
func overlap(a, b chartBox) bool {
	const most = 0.15
	return a.X+most < b.X+b.W && b.X+most < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H
}

func TestChartColours(t *testing.T) {
	var events []Event
	for i, got := range []Event{
		{Name: "a", Token: "x"}, {Name: "b", Token: "y"}, {Name: "b", Token: "x"}, // 0 1 0
		{Name: "a", Token: "z", Fence: 1}, {Name: "a", Token: "w", Fence: 1}, {Name: "b", Token: "w", Fence: 1}, // 2 2 3
	} {
		got.At, got.Kind, got.Client, got.Op = time.Duration(100*i), Got, 1, i
		events = append(events, got)
	}
	var classes []string
	for _, item := range newChart(ms1(events...), Verdict{}, "r1", 100).Items {
		classes = append(classes, item.Class)
	}
	if got, want := strings.Join(classes, " "), "hold c0 hold c1 hold c0 hold c2 hold c2 hold c3"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestLanes(t *testing.T) {
	for _, test := range []struct {
		spans string // from-to, or from-bar-to when waiting comes first, or ... * with a mark at the end
		want  string
	}{
		{"0-10 10-20 20-30", "0 0 0"},
		{"0-10 5-20 10-30", "0 1 0"},
		{"0-10 1-10 2-10 10-11", "0 1 2 0"},
		{"0-10* 10-20", "0 1"},
		{"0-10* 10-16-20", "0 0"},
		{"0-10* 12-15-20", "0 1"},
	} {
		var lanes laneList
		var got []string
		for span := range strings.FieldsSeq(test.spans) {
			span, marked := strings.CutSuffix(span, "*")
			var x, solid, end float64
			if n, _ := fmt.Sscanf(strings.ReplaceAll(span, "-", " "), "%g %g %g", &x, &solid, &end); n == 2 {
				solid, end = x, solid
			}
			solidEnd := end
			if marked {
				solidEnd += 6
			}
			got = append(got, fmt.Sprint(lanes.place(x, solid, end, solidEnd)))
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: %v, want %s", test.spans, got, test.want)
		}
	}
}

func TestTicks(t *testing.T) {
	for _, test := range []struct{ least, step, text string }{
		{"1ns", "1ns", "0s 1ns 2ns"},
		{"3us", "5us", "0s 5µs 10µs"},
		{"80ms", "100ms", "0s 100ms 200ms"},
		{"110ms", "200ms", "0s 200ms 400ms"},
		{"501ms", "1s", "0s 1s 2s"},
		{"6s", "10s", "0s 10s 20s"},
		{"21s", "30s", "0s 30s 1m"},
		{"31s", "1m", "0s 1m 2m"},
		{"21m", "30m", "0s 30m 1h"},
		{"50m", "1h", "0s 1h 2h"},
		{"13h", "24h", "0s 24h 48h"},
		{"50h", "72h", "0s 72h 144h"},
	} {
		least, _ := time.ParseDuration(test.least)
		step, _ := time.ParseDuration(test.step)
		got := tickStep(least)
		var texts []string
		for i := range 3 {
			texts = append(texts, tickText(time.Duration(i)*got))
		}
		if got != step || strings.Join(texts, " ") != test.text {
			t.Errorf("%s: %v %q, want %s %q", test.least, got, texts, test.step, test.text)
		}
	}
}

func TestReportVerdict(t *testing.T) {
	good := ScenarioResult{Scenario: "a", Arena: "model", Schedules: 10, Holds: 100}
	bad := ScenarioResult{Scenario: "b", Arena: "model", Schedules: 10, Holds: 100, Violations: 3}
	failed := ScenarioResult{Scenario: "c", Arena: "model", Schedules: 10, MustFail: true, Failed: true, Fails: []string{"this"}}
	missed := ScenarioResult{Scenario: "d", Arena: "model", Schedules: 10, MustFail: true}
	otherwise := ScenarioResult{Scenario: "e", Arena: "model", Schedules: 10, Violations: 2, MustFail: true, Failed: true}
	run := func(scenario string, rules ...string) ShownRun {
		s := ShownRun{History: &History{Run: Head{Scenario: scenario, Arena: "model"}}}
		for _, rule := range rules {
			s.Verdict.Violations = append(s.Verdict.Violations, Violation{Rule: rule})
		}
		return s
	}
	for _, test := range []struct {
		summary []ScenarioResult
		shown   []ShownRun
		want    string
	}{
		{nil, nil, "none: Nothing was run. "},
		{[]ScenarioResult{{Scenario: "a"}}, nil, "none: Nothing was run. "},
		{[]ScenarioResult{good}, nil, "good: All promises kept. "},
		{[]ScenarioResult{good, failed}, nil, "good: All promises kept. What must fail has failed."},
		{[]ScenarioResult{good, bad}, nil, "bad: 3 violations. "},
		{[]ScenarioResult{good, missed}, nil, "bad: An expected failure did not show. Too few schedules were run, or the judge overlooks things."},
		{[]ScenarioResult{missed, missed}, nil, "bad: 2 expected failures did not show. Too few schedules were run, or the judge overlooks things."},
		{[]ScenarioResult{good, otherwise}, nil, "bad: 2 violations. "},
		{[]ScenarioResult{good, bad, missed}, nil, "bad: 3 violations. And an expected failure did not show."},
		{nil, []ShownRun{run("a")}, "good: All promises kept. "},
		{nil, []ShownRun{run("a", "this")}, "bad: 1 violation. "},
		{[]ScenarioResult{good}, []ShownRun{run("a", "this")}, "bad: 1 violation. "}, // the summary is wrong
		{[]ScenarioResult{good, failed}, []ShownRun{run("c", "this", "this")}, "good: All promises kept. What must fail has failed."},
		{[]ScenarioResult{good, failed}, []ShownRun{run("c", "this", "that")}, "bad: 1 violation. "},
	} {
		r := &Report{Summary: test.summary, Shown: test.shown}
		p := r.page()
		if got := fmt.Sprintf("%s: %s. %s", p.Class, p.Verdict, p.Detail); got != test.want {
			t.Errorf("%+v: %q, want %q", test.summary, got, test.want)
		}
		if page := written(t, r); !strings.Contains(page, `id="verdict">`+p.Verdict+"<") {
			t.Errorf("the page does not say %q", p.Verdict)
		}
	}
}

func TestScenarioResultAsJSON(t *testing.T) {
	text, err := json.Marshal(ScenarioResult{
		Scenario: "everything", About: "all at once", Arena: "model", Schedules: 10, Holds: 99, Violations: 1, PerSecond: 812.5,
		MustFail: true, Failed: true, Fails: []string{"exclusion"}, Because: "so it is", Seed: math.MaxUint64, Replay: "go run",
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"scenario":"everything","about":"all at once","arena":"model","schedules":10,"holds":99,"violations":1,"per_second":812.5,` +
		`"must_fail":true,"failed":true,"fails":["exclusion"],"because":"so it is","seed":18446744073709551615,"replay":"go run"}`
	if string(text) != want {
		t.Errorf("%s, want %s", text, want)
	}
}

// reportSample is a page with something of everything.
func reportSample() *Report {
	long, broken := reportHistory(3, 5, 120)
	short, kept := reportHistory(5, 2, 8)
	short.Run.Scenario = "calm"
	return &Report{
		Title: "redlock under chaos", Created: time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC),
		Summary: []ScenarioResult{
			{Scenario: "calm", About: "nothing goes wrong", Arena: "model", Schedules: 10_000, Holds: 412_345, PerSecond: 3120.5, Seed: 1, Replay: "go run ./cmd/redlock chaos --scenario calm --seed 1"},
			{Scenario: "everything", About: "whatever a lock survives, at any node, at any time", Arena: "model", Schedules: 10_000, Holds: 298_211,
				Violations: len(broken.Violations), PerSecond: 1204.25, Seed: 3, Replay: "go run ./cmd/redlock chaos --scenario everything --seed 3"},
			{Scenario: "flushed nodes", About: "a majority forgets", Arena: "miniredis", Schedules: 400, Holds: 9_120, PerSecond: 28,
				MustFail: true, Failed: true, Because: "a node that has forgotten a lock grants it again", Seed: 9},
		},
		Shown: []ShownRun{
			{History: long, Verdict: broken, Replay: "go run ./cmd/redlock chaos --scenario everything --seed 3"},
			{History: short, Verdict: kept},
		},
	}
}

func written(t testing.TB, r *Report) string {
	t.Helper()
	var page bytes.Buffer
	if err := r.Write(&page); err != nil {
		t.Fatal(err)
	}
	return page.String()
}

// elements reads a page as a browser does, but complains if it is not well formed.
func elements(t *testing.T, page string) (all []xml.StartElement) {
	t.Helper()
	in := xml.NewDecoder(strings.NewReader(page))
	in.Strict, in.AutoClose, in.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for {
		token, err := in.Token()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok {
			all = append(all, e.Copy())
		}
	}
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// TestReportPage: it is complete in itself, its links lead somewhere, and what is
// in the histories is in it.
func TestReportPage(t *testing.T) {
	r := reportSample()
	page := written(t, r)
	ids, links, classes := map[string]bool{}, []string{}, map[string]int{}
	for _, e := range elements(t, page) {
		if id := attribute(e, "id"); id != "" {
			if ids[id] {
				t.Errorf("two elements are called %s", id)
			}
			ids[id] = true
		}
		if href := attribute(e, "href"); href != "" {
			links = append(links, href)
		}
		switch e.Name.Local {
		case "script", "img", "iframe", "object":
			t.Errorf("there is a <%s>", e.Name.Local)
		}
		for _, a := range e.Attr {
			if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "src" {
				t.Errorf("there is %s=%q", a.Name.Local, a.Value)
			}
		}
		first, _, _ := strings.Cut(attribute(e, "class"), " ")
		classes[e.Name.Local+"."+first]++
	}
	for _, link := range links {
		if id, ok := strings.CutPrefix(link, "#"); link != "data:," && (!ok || !ids[id]) {
			t.Errorf("the link %s leads nowhere", link)
		}
	}
	for _, u := range regexp.MustCompile(`url\([^)]*\)|@import`).FindAllString(page, -1) {
		if u != "url(#p-stop)" {
			t.Errorf("there is %s", u)
		}
	}
	holds, crashes, violations := 0, 0, 0
	for _, s := range r.Shown {
		holds += len(expectedHolds(s.History))
		violations += len(s.Verdict.Violations)
		for i, e := range s.History.Events {
			if e.Kind == Crashed {
				crashes++
			}
			if e.Kind == Struck && !ids[fmt.Sprintf("r1-f%d", i)] && !ids[fmt.Sprintf("r2-f%d", i)] {
				t.Errorf("%v is not drawn", e.Fault)
			}
		}
	}
	if violations == 0 {
		t.Error("there is no violation to show")
	}
	if classes["a.hold"] != holds || classes["a.crash"] != crashes || classes["a.violation"] != violations || ids[fmt.Sprintf("r1-v%d", violations+1)] {
		t.Errorf("of %d holds, %d crashes, %d violations there are %v", holds, crashes, violations, classes)
	}
	for _, want := range []string{
		"prefers-color-scheme: dark", "max-width: 700px", `name="viewport"`, `default-src 'none'`,
		"go run ./cmd/redlock chaos --scenario everything --seed 3", "719,676", "did not get it", "21 November 2026",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
}

// TestReportEscapes: whatever the names are, they are text.
func TestReportEscapes(t *testing.T) {
	const evil = "</script></title></style><b onclick='x'>\"'&amp;`\x00\u202e{{.}}-->"
	h := ms1(
		Event{At: 1, Kind: Ask, Client: 1, Op: 1, Name: evil, Verb: evil},
		Event{At: 2, Kind: Got, Client: 1, Op: 1, Name: evil, Token: evil, Until: 900},
		Event{At: 3, Kind: Ask, Client: 1, Op: 2, Name: evil},
		Event{At: 4, Kind: Denied, Client: 1, Op: 2, Name: evil, Why: evil, Error: evil},
		Event{At: 5, Kind: Kind(evil), Client: 1, Name: evil},
		Event{At: 6, Kind: Struck, Fault: &Fault{Trouble: Trouble(evil)}},
		Event{At: 7, Kind: Left, Error: evil},
	)
	h.Run.Scenario, h.Run.Arena = evil, evil
	r := &Report{
		Title:   evil,
		Summary: []ScenarioResult{{Scenario: evil, About: evil, Arena: evil, Replay: evil, Schedules: 1}},
		Shown:   []ShownRun{{History: h, Verdict: Verdict{Violations: []Violation{{Rule: evil, Text: evil, Events: []int{1}}}}, Replay: evil}},
	}
	page := written(t, r)
	for _, bad := range []string{"<b ", "</script", "-->", "\x00", `onclick='`} {
		if strings.Contains(page, bad) {
			t.Errorf("there is %q in the page", bad)
		}
	}
	for _, e := range elements(t, page) {
		if e.Name.Local == "b" || attribute(e, "onclick") != "" {
			t.Errorf("there is %v", e)
		}
	}
}

// TestReportIsCapped: a long history is drawn around its violation, and says so;
// of many histories each has its share.
func TestReportIsCapped(t *testing.T) {
	h, v := reportHistory(3, 5, 4000)
	for len(h.Events) < 4*mostOfOne {
		t.Fatalf("only %d events", len(h.Events))
	}
	v.Violations = append(v.Violations, Violation{Rule: "later", At: h.Events[len(h.Events)-1].At})
	r := &Report{Shown: []ShownRun{{History: h, Verdict: v}}}
	p := r.page()
	c := p.Runs[0].Chart
	if n := c.Last - c.First; n != mostOfOne || !c.Capped() {
		t.Errorf("%d events are drawn", n)
	}
	if b := p.Runs[0].Broken; !b[0].Drawn || b[len(b)-1].Drawn {
		t.Errorf("the part that is drawn is from %v to %v, the first violation at %v", c.From, c.To, v.Violations[0].At)
	}
	for _, item := range c.Items {
		if right := item.Bar.X + item.Bar.W; item.Bar.W > 0 && (item.Bar.X < chartMargin-0.1 || right > c.Width-chartMargin+leastBar) {
			t.Errorf("%s is at %v to %v of %v", item.ID, item.Bar.X, right, c.Width)
		}
	}
	page := written(t, r)
	if want := fmt.Sprintf("events %s to %s of %s", groupDigits(c.First+1), groupDigits(c.Last), groupDigits(len(h.Events))); !strings.Contains(page, want) {
		t.Errorf("the page does not say that it shows %s", want)
	}
	if strings.Count(page, "not in the part that is drawn") != 1 {
		t.Error("the page does not say that one violation is not drawn")
	}

	kept := &History{Run: Head{Scenario: "kept"}, Events: h.Events}
	r.Shown = slices.Concat(slices.Repeat([]ShownRun{{History: kept}}, 99), r.Shown)
	if first := r.page().Runs[0]; first.Class != "bad" {
		t.Errorf("the first history that is drawn is %s", first.Outcome)
	}
	page = written(t, r)
	if n := strings.Count(page, "<article"); n != mostRuns || !strings.Contains(page, "Of 100 histories 24 are here") {
		t.Errorf("%d histories are drawn", n)
	}
	if len(page) > 6<<20 {
		t.Errorf("the page has %d bytes", len(page))
	}
}

func TestDrawLimit(t *testing.T) {
	for _, test := range []struct {
		lengths []int
		want    int
	}{
		{nil, mostOfOne},
		{[]int{10}, mostOfOne},
		{[]int{100_000}, mostOfOne},
		{[]int{100_000, 100, 100_000}, mostEvents/2 - 50},
		{[]int{100_000, 1000, 2000}, mostOfOne},
		{slices.Repeat([]int{100}, mostRuns), mostOfOne},
		{slices.Repeat([]int{100_000}, mostRuns), leastOfOne},
	} {
		var shown []ShownRun
		for _, n := range test.lengths {
			shown = append(shown, ShownRun{History: &History{Events: make([]Event, n)}})
		}
		if got := drawLimit(shown); got != test.want {
			t.Errorf("%v: %d, want %d", test.lengths, got, test.want)
		}
	}
}

// TestReportOfOddHistories: nothing is too strange to be looked at.
func TestReportOfOddHistories(t *testing.T) {
	for name, h := range map[string]*History{
		"empty":         {},
		"one event":     {Events: []Event{{Kind: Calm}}},
		"all at once":   {Run: Head{Clients: 2}, Events: []Event{{Kind: Ask, Client: 2, Op: 1}, {Kind: Got, Client: 2, Op: 1}, {Kind: Release, Client: 2, Op: 1}}},
		"unknown heads": {Events: []Event{{At: 1, Kind: Release, Client: 7, Op: 3}, {At: 2, Kind: Healed, Fault: &Fault{Node: 8}}, {At: 3, Kind: Struck}}},
		"far off":       {Events: []Event{{At: 1, Kind: Got, Client: 1, Op: 1, Until: -5}, {At: 1 << 62, Kind: Calm}}},
	} {
		r := &Report{Shown: []ShownRun{{History: h, Verdict: Verdict{Violations: []Violation{{Events: []int{-1, 0, 99}, At: time.Hour}}}}}}
		page := written(t, r)
		elements(t, page)
		if strings.Contains(page, "NaN") || strings.Contains(page, "Inf") {
			t.Errorf("%s: the page has impossible numbers", name)
		}
	}
}

func BenchmarkReport(b *testing.B) {
	h, v := reportHistory(3, 8, 4000)
	r := &Report{Shown: []ShownRun{{History: h, Verdict: v}, {History: h, Verdict: v}}}
	for b.Loop() {
		if err := r.Write(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(written(b, r))), "page-bytes")
}

func TestGroupDigits(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", -1000: "-1,000", -100: "-100", 1234567: "1,234,567"} {
		if got := groupDigits(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
