package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/judge"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

func TestReportVerdict(t *testing.T) {
	good := ScenarioResult{Scenario: "a", Arena: "model", Schedules: 10, Holds: 100}
	bad := ScenarioResult{Scenario: "b", Arena: "model", Schedules: 10, Holds: 100, Violations: 3}
	failed := ScenarioResult{Scenario: "c", Arena: "model", Schedules: 10, MustFail: true, Failed: true, Fails: []string{"this"}}
	missed := ScenarioResult{Scenario: "d", Arena: "model", Schedules: 10, MustFail: true}
	otherwise := ScenarioResult{Scenario: "e", Arena: "model", Schedules: 10, Violations: 2, MustFail: true, Failed: true}
	run := func(scenario string, rules ...string) ShownRun {
		s := ShownRun{History: &history.History{Run: history.Head{Scenario: scenario, Arena: "model"}}}
		for _, rule := range rules {
			s.Verdict.Violations = append(s.Verdict.Violations, judge.Violation{Rule: rule})
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
			{Scenario: "everything", About: "every fault that a lock survives, at any node, at any time", Arena: "model", Schedules: 10_000, Holds: 298_211,
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

// TestReportPage: the page is complete in itself, its links have targets, and it shows all of the histories.
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
			if e.Kind == history.Crashed {
				crashes++
			}
			if e.Kind == history.Struck && !ids[fmt.Sprintf("r1-f%d", i)] && !ids[fmt.Sprintf("r2-f%d", i)] {
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

// TestReportEscapes: all names are shown as text.
func TestReportEscapes(t *testing.T) {
	const evil = "</script></title></style><b onclick='x'>\"'&amp;`\x00\u202e{{.}}-->"
	h := ms1(
		history.Event{At: 1, Kind: history.Ask, Client: 1, Op: 1, Name: evil, Verb: evil},
		history.Event{At: 2, Kind: history.Got, Client: 1, Op: 1, Name: evil, Token: evil, Until: 900},
		history.Event{At: 3, Kind: history.Ask, Client: 1, Op: 2, Name: evil},
		history.Event{At: 4, Kind: history.Denied, Client: 1, Op: 2, Name: evil, Why: evil, Error: evil},
		history.Event{At: 5, Kind: history.Kind(evil), Client: 1, Name: evil},
		history.Event{At: 6, Kind: history.Struck, Fault: &history.Fault{Kind: history.FaultKind(evil)}},
		history.Event{At: 7, Kind: history.Left, Error: evil},
	)
	h.Run.Scenario, h.Run.Arena = evil, evil
	r := &Report{
		Title:   evil,
		Summary: []ScenarioResult{{Scenario: evil, About: evil, Arena: evil, Replay: evil, Schedules: 1}},
		Shown:   []ShownRun{{History: h, Verdict: judge.Verdict{Violations: []judge.Violation{{Rule: evil, Text: evil, Events: []int{1}}}}, Replay: evil}},
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
	need.Full(t) // the history and the page are long; TestDrawLimit has the limits
	h, v := reportHistory(3, 5, 4000)
	for len(h.Events) < 4*mostOfOne {
		t.Fatalf("only %d events", len(h.Events))
	}
	v.Violations = append(v.Violations, judge.Violation{Rule: "later", At: h.Events[len(h.Events)-1].At})
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
	if want := fmt.Sprintf("events %s to %s of %s", formatInt(c.First+1), formatInt(c.Last), formatInt(len(h.Events))); !strings.Contains(page, want) {
		t.Errorf("the page does not say that it shows %s", want)
	}
	if strings.Count(page, "not in the part that is drawn") != 1 {
		t.Error("the page does not say that one violation is not drawn")
	}

	kept := &history.History{Run: history.Head{Scenario: "kept"}, Events: h.Events}
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
	events := make([]history.Event, 100_000)
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
			shown = append(shown, ShownRun{History: &history.History{Events: events[:n]}})
		}
		if got := drawLimit(shown); got != test.want {
			t.Errorf("%v: %d, want %d", test.lengths, got, test.want)
		}
	}
}

// TestReportOfOddHistories: impossible histories can be shown.
func TestReportOfOddHistories(t *testing.T) {
	for name, h := range map[string]*history.History{
		"empty":         {},
		"one event":     {Events: []history.Event{{Kind: history.Calm}}},
		"all at once":   {Run: history.Head{Clients: 2}, Events: []history.Event{{Kind: history.Ask, Client: 2, Op: 1}, {Kind: history.Got, Client: 2, Op: 1}, {Kind: history.Release, Client: 2, Op: 1}}},
		"unknown heads": {Events: []history.Event{{At: 1, Kind: history.Release, Client: 7, Op: 3}, {At: 2, Kind: history.Healed, Fault: &history.Fault{Node: 8}}, {At: 3, Kind: history.Struck}}},
		"far off":       {Events: []history.Event{{At: 1, Kind: history.Got, Client: 1, Op: 1, Until: -5}, {At: 1 << 62, Kind: history.Calm}}},
	} {
		r := &Report{Shown: []ShownRun{{History: h, Verdict: judge.Verdict{Violations: []judge.Violation{{Events: []int{-1, 0, 99}, At: time.Hour}}}}}}
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
		if got := formatInt(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// TestOfARecord: a history that was made of a record says who it was, when, and where.
func TestOfARecord(t *testing.T) {
	h, v := reportHistory(7, 2, 8)
	h.Run.Start = time.Date(2026, 1, 31, 3, 0, 0, 0, time.UTC)
	h.Run.Seed, h.Run.Arena = 0, "record"
	for range h.Run.Clients {
		h.Run.Owners = append(h.Run.Owners, "web-1.example.com:4242 <the first>")
	}
	h.Run.Addrs = []string{"a:6379", "b:6379"}
	f := &history.Fault{At: 1, Kind: history.Silent, Node: 1, For: time.Second}
	h.Events = append(h.Events, history.Event{At: h.Events[len(h.Events)-1].At, Kind: history.Struck, Fault: f})
	page := written(t, &Report{Title: "x", Good: "8 holds, in order", Shown: []ShownRun{{History: h, Verdict: v}}})
	elements(t, page)
	for _, want := range []string{
		"8 holds, in order</p>", "0s is 2026-01-31 03:00:00 UTC", ">web-1.example.com:4242 …<", "web-1.example.com:4242 &lt;the first&gt; had",
		">a:6379<", "<title>b:6379: silent for 1s", `<svg class="labels" width="188"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(page, "seed 0") || strings.Contains(page, ">client 1<") || strings.Contains(page, "Client 1 ") {
		t.Error("it speaks of a seed, or of clients by their numbers")
	}
}
