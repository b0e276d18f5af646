package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/judge"
)

// reportHistory makes up a history that a run could have: clients that wait for some names, hold them, extend,
// write, lose and release them, several at a time; faults; and one lock that two hold at once, which is in the
// verdict.
func reportHistory(seed uint64, clients, acquisitions int) (*history.History, judge.Verdict) {
	const ms = time.Millisecond
	rng := rand.New(rand.NewPCG(seed, 7))
	upTo := func(d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }
	names := []string{"orders", "stock", "mail"}
	h := &history.History{Run: history.Head{Scenario: "everything", Arena: "model", Seed: seed, Nodes: 5, Quorum: 3, Clients: clients, Bound: 5 * time.Second}}
	free := map[string]time.Duration{}
	ready := make([][2]time.Duration, clients) // two workers each
	ops := make([]int, clients)
	var fence uint64
	var end time.Duration
	broken := false
	note := func(at time.Duration, e history.Event) {
		e.At = at
		end = max(end, at)
		h.Events = append(h.Events, e)
	}
	for n := range acquisitions {
		client, worker := rng.IntN(clients), rng.IntN(2)
		name := names[rng.IntN(len(names))]
		ops[client]++
		e := history.Event{Client: client + 1, Op: ops[client], Name: name}
		put := func(at time.Duration, kind history.Kind, change func(*history.Event)) {
			e := e
			e.Kind = kind
			if change != nil {
				change(&e)
			}
			note(at, e)
		}
		asked := ready[client][worker] + upTo(60*ms)
		put(asked, history.Ask, func(e *history.Event) { e.Verb, e.Limit = "acquire", time.Second })
		got := max(asked, free[name]) + ms + upTo(3*ms)
		if n > max(8, acquisitions/2) && !broken && free[name] > asked+30*ms {
			broken, got = true, free[name]-20*ms
		} else if got-asked > 400*ms || rng.IntN(12) == 0 {
			got = asked + upTo(400*ms)
			put(got, history.Denied, func(e *history.Event) { e.Why, e.Error = "held", "redlock: held by others" })
			ready[client][worker] = got
			continue
		}
		fence++
		until := got + 120*ms
		put(got, history.Got, func(e *history.Event) {
			e.Token, e.Fence, e.Until = fmt.Sprintf("%016x", rng.Uint64()), fence, until
		})
		at := got
		for range rng.IntN(4) {
			at += 10*ms + upTo(50*ms)
			put(at, history.Wrote, func(e *history.Event) { e.Value, e.Was, e.Fence = n+1, n, fence })
			at += ms
			if rng.IntN(5) == 0 {
				put(at, history.Failed, func(e *history.Event) { e.Why = "no quorum" })
				continue
			}
			until = at + 120*ms
			put(at, history.Extended, func(e *history.Event) { e.Until = until })
		}
		over := at + upTo(60*ms)
		switch rng.IntN(8) {
		case 0: // lost
			put(over, history.Told, func(e *history.Event) { e.Why, e.Until = "lost", until })
		case 1: // runs out
			over = until
			put(over+upTo(5*ms), history.Told, func(e *history.Event) { e.Why, e.Until = "lost", until })
		default:
			put(over, history.Release, func(e *history.Event) { e.Until = until })
			put(over, history.Told, func(e *history.Event) { e.Why, e.Until = "released", until })
			put(over+ms, history.Released, nil)
		}
		free[name], ready[client][worker] = over+ms, over+8*ms
	}
	for range acquisitions / 8 {
		f := history.Fault{At: upTo(end), Kind: []history.FaultKind{history.Kill, history.Slow, history.Cut, history.Flush, history.ReadOnly, history.Reset}[rng.IntN(6)], Node: rng.IntN(5)}
		if f.Kind != history.Flush && f.Kind != history.Reset {
			f.For = 20*ms + upTo(300*ms)
		}
		note(f.At, history.Event{Kind: history.Struck, Fault: &f})
		if f.For > 0 {
			note(f.At+f.For, history.Event{Kind: history.Healed, Fault: &f})
		}
	}
	pause := history.Fault{At: end / 3, Kind: history.Pause, Client: 1, For: 90 * ms}
	note(pause.At, history.Event{Kind: history.Struck, Fault: &pause})
	note(pause.At, history.Event{Kind: history.Held, Client: 1, Until: pause.At + pause.For})
	note(pause.At+pause.For, history.Event{Kind: history.Healed, Fault: &pause})
	note(end*5/6, history.Event{Kind: history.Crashed, Client: clients})
	note(end*9/10, history.Event{Kind: history.Calm})
	slices.SortStableFunc(h.Events, func(a, b history.Event) int { return int(a.At - b.At) })
	crashed := slices.IndexFunc(h.Events, func(e history.Event) bool { return e.Kind == history.Crashed })
	kept := h.Events[:crashed+1]
	for _, e := range h.Events[crashed+1:] {
		if e.Client != clients {
			kept = append(kept, e)
		}
	}
	h.Events = kept
	return h, reportVerdict(h)
}

// reportVerdict looks for two holders of one name.
func reportVerdict(h *history.History) (v judge.Verdict) {
	holds := expectedHolds(h)
	for i, a := range holds {
		for _, b := range holds[i+1:] {
			e, f := h.Events[a.got], h.Events[b.got]
			if e.Name == f.Name && a.from < b.to && b.from < a.to {
				v.Violations = append(v.Violations, judge.Violation{
					Rule: "exclusion", At: max(a.from, b.from), Events: []int{a.got, b.got},
					Text: fmt.Sprintf("clients %d and %d both have %q", e.Client, f.Client, e.Name),
				})
			}
		}
	}
	return v
}

// An expectedHold is a hold as a reader of the list of events sees it.
type expectedHold struct {
	got, client int
	from, to    time.Duration
}

// expectedHolds reads for each hold all that comes after it.
func expectedHolds(h *history.History) (all []expectedHold) {
	for i, e := range h.Events {
		if e.Kind != history.Got {
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
			if f.Kind == history.Crashed || f.Op == e.Op && (f.Kind == history.Release || f.Kind == history.Told) {
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
func ms1(events ...history.Event) *history.History {
	events = append(events, history.Event{At: 1023, Kind: history.Calm})
	for i := range events {
		events[i].At *= time.Millisecond
		events[i].Until *= time.Millisecond
	}
	return &history.History{Run: history.Head{Nodes: 1, Clients: 1}, Events: events}
}

// TestChartHolds: the place of a hold, by the event that ends it.
func TestChartHolds(t *testing.T) {
	ask := history.Event{At: 100, Kind: history.Ask, Client: 1, Op: 1, Name: "a"}
	got := history.Event{At: 150, Kind: history.Got, Client: 1, Op: 1, Name: "a", Until: 400}
	heard := func(at int, kind history.Kind, until int, why string) history.Event {
		return history.Event{At: time.Duration(at), Kind: kind, Client: 1, Op: 1, Name: "a", Until: time.Duration(until), Why: why}
	}
	for name, test := range map[string]struct {
		events []history.Event
		from   float64 // in ms, as are the others
		to     float64
		marks  string
		words  string
	}{
		"released":        {[]history.Event{ask, got, heard(300, history.Release, 0, ""), heard(310, history.Released, 0, "")}, 150, 300, "", "gave it back"},
		"runs out":        {[]history.Event{ask, got}, 150, 400, "", "time ran out"},
		"told in time":    {[]history.Event{ask, got, heard(390, history.Told, 0, "lost")}, 150, 390, "told@390", "context ended. It was told at 390ms: lost"},
		"told too late":   {[]history.Event{ask, got, heard(450, history.Told, 0, "lost")}, 150, 400, "told@450", "time ran out. It was told at 450ms: lost"},
		"crashed":         {[]history.Event{ask, got, {At: 200, Kind: history.Crashed, Client: 1}}, 150, 200, "", "crashed"},
		"another crashes": {[]history.Event{ask, got, {At: 200, Kind: history.Crashed, Client: 2}}, 150, 400, "", "time ran out"},
		"extended":        {[]history.Event{ask, got, heard(350, history.Extended, 700, ""), heard(600, history.Release, 0, "")}, 150, 600, "extended@350", "1 extension."},
		"failed":          {[]history.Event{ask, got, heard(350, history.Failed, 0, "no quorum")}, 150, 400, "failed@350", "1 failed extension."},
		"renewed unseen":  {[]history.Event{ask, got, heard(600, history.Release, 900, "")}, 150, 600, "", "gave it back"},
		"renewed, lost":   {[]history.Event{ask, got, heard(600, history.Told, 550, "lost")}, 150, 550, "told@600", "time ran out"},
		"released, told":  {[]history.Event{ask, got, heard(300, history.Release, 0, ""), heard(300, history.Told, 0, "released")}, 150, 300, "", "gave it back"},
		"writes":          {[]history.Event{ask, got, heard(200, history.Wrote, 0, ""), heard(210, history.Refused, 0, "")}, 150, 400, "wrote@200 refused@210", "1 write, 1 refused write."},
		"over at once":    {[]history.Event{ask, heard(150, history.Got, 140, "")}, 150, 150 + leastBar, "", "time ran out"},
		"never said":      {[]history.Event{ask, heard(150, history.Got, 0, "")}, 150, 1023, "", "still had it"},
		"not asked for":   {[]history.Event{got}, 150, 400, "", "waited 0s"},
	} {
		c := newChart(ms1(test.events...), judge.Verdict{}, "r1", 100)
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

// TestChartWaits: acquisitions without a hold.
func TestChartWaits(t *testing.T) {
	ask := history.Event{At: 100, Kind: history.Ask, Client: 1, Op: 1, Name: "a", Verb: "try"}
	for name, test := range map[string]struct {
		events []history.Event
		to     float64
		mark   bool
		words  string
	}{
		"denied":   {[]history.Event{ask, {At: 130, Kind: history.Denied, Client: 1, Op: 1, Why: "held"}}, 130, true, `asked for "a" (try) at 100ms and did not get it: held, after 30ms`},
		"crashed":  {[]history.Event{ask, {At: 140, Kind: history.Crashed, Client: 1}}, 140, false, "crashed after 40ms"},
		"for ever": {[]history.Event{ask}, 1023, false, "still waiting"},
	} {
		c := newChart(ms1(test.events...), judge.Verdict{}, "r1", 100)
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

// TestChartFaults: the row, the extent and the label of faults.
func TestChartFaults(t *testing.T) {
	const ms = time.Millisecond
	kill := history.Fault{At: 100 * ms, Kind: history.Kill, Node: 1, For: 200 * ms}
	short := history.Fault{At: 100 * ms, Kind: history.Kill, Node: 1, For: 3 * ms}
	flush := history.Fault{At: 100 * ms, Kind: history.Flush, Node: 0}
	pause := history.Fault{At: 100 * ms, Kind: history.Pause, Client: 2, For: 200 * ms}
	event := func(at int, kind history.Kind, f history.Fault) history.Event {
		return history.Event{At: time.Duration(at), Kind: kind, Fault: &f}
	}
	for name, test := range map[string]struct {
		events []history.Event
		row    string
		want   string
	}{
		"a while":     {[]history.Event{event(100, history.Struck, kill), event(300, history.Healed, kill)}, "node 1", "100+200 kill/in"},
		"short":       {[]history.Event{event(100, history.Struck, short), event(103, history.Healed, short)}, "node 1", "100+3 kill/out"},
		"not over":    {[]history.Event{event(100, history.Struck, kill)}, "node 1", "100+923 kill/in"},
		"at once":     {[]history.Event{event(100, history.Struck, flush)}, "node 0", "point@100 flush/out"},
		"a client":    {[]history.Event{event(100, history.Struck, pause), event(300, history.Healed, pause)}, "client 2", "100+200 pause/in"},
		"others heal": {[]history.Event{event(100, history.Struck, kill), event(300, history.Healed, short)}, "node 1", "100+923 kill/in"},
		"twice the same": {[]history.Event{event(100, history.Struck, short), event(103, history.Healed, short), event(500, history.Struck, short), event(503, history.Healed, short)}, "node 1",
			"100+3 kill/out, 500+3 kill/out"},
		"no room": {[]history.Event{event(100, history.Struck, flush), event(115, history.Struck, flush)}, "node 0", "point@100 /out, point@115 flush/out"},
	} {
		c := newChart(ms1(test.events...), judge.Verdict{}, "r1", 100)
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

// overlap allows for rounding.
func overlap(a, b chartBox) bool {
	const most = 0.15
	return a.X+most < b.X+b.W && b.X+most < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H
}

func TestChartColours(t *testing.T) {
	var events []history.Event
	for i, got := range []history.Event{
		{Name: "a", Token: "x"}, {Name: "b", Token: "y"}, {Name: "b", Token: "x"}, // 0 1 0
		{Name: "a", Token: "z", Fence: 1}, {Name: "a", Token: "w", Fence: 1}, {Name: "b", Token: "w", Fence: 1}, // 2 2 3
	} {
		got.At, got.Kind, got.Client, got.Op = time.Duration(100*i), history.Got, 1, i
		events = append(events, got)
	}
	var classes []string
	for _, item := range newChart(ms1(events...), judge.Verdict{}, "r1", 100).Items {
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
