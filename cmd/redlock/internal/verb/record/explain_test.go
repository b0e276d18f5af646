package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/chaos"
	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/internal/recording"
)

func TestMoment(t *testing.T) {
	end := time.Date(2026, 1, 31, 12, 0, 0, 0, time.Local)
	day := func(day, hour, minute, second, ms int) time.Time {
		return time.Date(2026, 1, day, hour, minute, second, ms*1e6, time.Local)
	}
	for text, want := range map[string]time.Time{
		"2026-01-31 11:22:33.5": day(31, 11, 22, 33, 500),
		"2026-01-31T11:22:33":   day(31, 11, 22, 33, 0),
		"2026-01-30 11:22":      day(30, 11, 22, 0, 0),
		"11:22:33.25":           day(31, 11, 22, 33, 250),
		"11:22":                 day(31, 11, 22, 0, 0),
		"23:59":                 day(30, 23, 59, 0, 0), // the last one before the end
		"2026-01-31T11:22:33Z":  time.Date(2026, 1, 31, 11, 22, 33, 0, time.UTC),
		"-5m":                   end.Add(-5 * time.Minute),
		"0s":                    end,
	} {
		if got, err := parseMoment(text, end); err != nil || !got.Equal(want) {
			t.Errorf("%s is %v, %v, and not %v", text, got, err, want)
		}
	}
	for _, text := range []string{"noon", "5m", "", "31.1.2026"} {
		if got, err := parseMoment(text, end); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

// TestEndings: how a lock ended, in the list of all and at an instant.
func TestEndings(t *testing.T) {
	at := time.Date(2026, 1, 31, 3, 0, 0, 0, time.Local)
	for end, want := range map[recording.End][2]string{
		recording.EndReleased: {"released, or broken by redlock break", "released"},
	} {
		h := &recording.Hold{Token: "t", By: redlock.Identity{Owner: "web"}, Mode: recording.ModeExclusive, From: at, To: at.Add(time.Second), Fence: 7, Nodes: []string{"a:1", "b:1"}, Quorum: 2,
			Lost: []recording.Loss{{Time: at.Add(time.Second), Node: "a:1", How: end}, {Time: at.Add(time.Second), Node: "b:1", How: end}}}
		s := &recording.Story{Name: "k", From: at, To: at.Add(time.Minute), Nodes: h.Nodes, Holds: []*recording.Hold{h}}
		var all, one strings.Builder
		if err := errors.Join(showStory(&all, s), showMoment(&one, s, at.Add(time.Millisecond))); err != nil {
			t.Fatal(err)
		}
		if line := "  1s        web    exclusive  7      2 of 2  " + want[0] + "\n"; !strings.Contains(all.String(), line) {
			t.Errorf("%s has no %q", all.String(), line)
		}
		for _, line := range []string{"\n    " + want[0] + "\n", " a:1: " + want[1] + "\n"} {
			if !strings.Contains(one.String(), line) {
				t.Errorf("%s has no %q", one.String(), line)
			}
		}
	}
}

// TestControl: nothing that a record has steers a terminal, or the order of what a browser shows.
func TestControl(t *testing.T) {
	const odd = "\x1b[2J\u202e\u009b<b>"
	at := time.Date(2026, 1, 31, 3, 0, 0, 0, time.UTC)
	s := &recording.Story{Name: "k" + odd, From: at, To: at.Add(time.Hour), Nodes: []string{"n" + odd}}
	for i, mode := range []redlock.Mode{recording.ModeExclusive, recording.ModeExclusive, "m" + odd} {
		h := &recording.Hold{Token: fmt.Sprint("t", i, odd), Mode: mode, From: at.Add(time.Second), Fence: 7, Nodes: s.Nodes, Quorum: 1}
		h.By = redlock.Identity{Owner: strings.Repeat("o"+odd, i), Trace: "tr" + odd}
		s.Holds = append(s.Holds, h)
	}
	s.Unfenced = [][2]*recording.Hold{{s.Holds[0], s.Holds[1]}}
	s.Waits = []*recording.Wait{{Waiter: "w" + odd, Since: at}, {Waiter: "w", Owner: "o" + odd, Since: at}}
	s.Silences = []recording.Silence{{Node: "n" + odd, From: at, Error: "e" + odd}}
	file := filepath.Join(t.TempDir(), "page.html")
	var out strings.Builder
	if err := errors.Join(showStory(&out, s), showMoment(&out, s, at.Add(time.Minute)), drawStory(s, time.Time{}, file)); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{out.String(), string(page)} {
		if i := strings.IndexAny(text, "\x1b\u202e\u009b"); i >= 0 {
			t.Errorf("%q", text[max(0, i-100):i+20])
		}
	}
	if strings.Contains(string(page), "<b>") {
		t.Error("the page has elements of others")
	}
}

// TestLastOf: an instant that was shown is one at which what was shown with it had begun, and it is in the record.
func TestLastOf(t *testing.T) {
	at := func(us int) time.Time { return time.Date(2026, 1, 31, 12, 0, 0, us*1000, time.UTC) }
	for _, c := range []struct{ is, end, want int }{{5000, 9000, 5999}, {5001, 9000, 5001}, {5000, 5700, 5700}, {5000, 5000, 5000}, {5000, 4999, 5999}} {
		if got := lastOf(at(c.is), at(c.end)); !got.Equal(at(c.want)) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestHistoryOf: the picture has what the story has, and what the judge finds in it is what is wrong with the story.
func TestHistoryOf(t *testing.T) {
	start := time.Date(2026, 1, 31, 3, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	hold := func(from, to int, token string, fence int64) *recording.Hold {
		h := &recording.Hold{Token: token, Mode: recording.ModeExclusive, From: at(from), Fence: fence, Nodes: []string{"a", "b"}, Quorum: 2}
		if to > 0 {
			h.To, h.Lost = at(to), []recording.Loss{{Time: at(to), Node: "a", How: recording.EndExpired}}
		}
		return h
	}
	s := &recording.Story{Name: "x", From: start, To: at(60), Nodes: []string{"a", "b", "c"}, Holds: []*recording.Hold{hold(1, 9, "t1", 7), hold(10, 20, "t2", 6), hold(30, 0, "t3", 8)}}
	s.Waits = []*recording.Wait{{Waiter: "w1", Owner: "one", Since: at(5), Until: at(10), Got: s.Holds[1]}, {Waiter: "w2", Since: at(6), Until: at(8)}, {Waiter: "w3", Since: at(40)}}
	s.Silences = []recording.Silence{{Node: "b", From: at(2), To: at(3)}, {From: at(50)}}
	h := historyOf(s, time.Time{})
	count := make(map[chaos.Kind]int)
	for _, e := range h.Events {
		count[e.Kind]++
	}
	for kind, want := range map[chaos.Kind]int{chaos.Ask: 5, chaos.Got: 3, chaos.Told: 2, chaos.Denied: 1, chaos.Struck: 4, chaos.Healed: 4} {
		if count[kind] != want {
			t.Errorf("%d %s, and not %d", count[kind], kind, want)
		}
	}
	var rules []string
	for _, v := range chaos.Judge(h).Violations {
		if v.Rule == "exclusion" || v.Rule == "fences" {
			rules = append(rules, v.Rule)
		}
	}
	if strings.Join(rules, " ") != "fences" {
		t.Errorf("violations: %q", rules)
	}
	if h.Run.Client(1) != "w2" || h.Run.Node(1) != "b" || h.Events[0].Kind != chaos.Ask {
		t.Errorf("%+v, %+v", h.Run, h.Events[0])
	}
	if f := h.Events[2].Fault; f == nil || f.Kind != history.Silent {
		t.Errorf("the third event is %+v", h.Events[2])
	}
	for range 2000 {
		s.Holds = append(s.Holds, hold(60, 61, "more", 9))
	}
	if h := historyOf(s, at(1)); len(h.Events) > 2*mostDrawn || h.Events[0].At > 10*time.Second {
		t.Errorf("%d events around the first, from %v on", len(h.Events), h.Events[0].At)
	}
}
