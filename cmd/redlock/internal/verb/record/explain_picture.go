package record

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock/chaos"
	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/internal/printable"
	"github.com/quorumlock/redlock/internal/recording"
)

// mostDrawn is how many holds, waits and silences a picture has, of each: those nearest to --at, or the last ones.
const mostDrawn = 500

// drawStory draws the timeline of a story into a file, in the form of the report of redlock chaos. Only the rules of
// the judge that need no knowledge of the clients apply.
func drawStory(s *recording.Story, at time.Time, file string) error {
	h := historyOf(s, at)
	v := chaos.Judge(h)
	v.Violations = slices.DeleteFunc(v.Violations, func(v chaos.Violation) bool { return v.Rule != "exclusion" && v.Rule != "fences" })
	for i := range v.Violations {
		v.Violations[i].Text = numbered.ReplaceAllStringFunc(v.Violations[i].Text, func(client string) string {
			number, _ := strconv.Atoi(strings.TrimPrefix(client, "client "))
			return h.Run.Client(number)
		})
	}
	page := &chaos.Report{
		Title: fmt.Sprintf("%q", s.Name), Created: time.Now(), Good: fmt.Sprintf("%s, in order", phrase.Counted(v.Holds, "hold")),
		Shown: []chaos.ShownRun{{History: h, Verdict: v}},
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := page.Write(out); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}

// numbered matches a client as the judge names it.
var numbered = regexp.MustCompile(`client \d+`)

// near returns the mostDrawn elements nearest to an instant; the last ones if it is zero. all is sorted by from.
func near[T any](all []T, from func(T) time.Time, at time.Time) []T {
	last := len(all)
	if !at.IsZero() {
		i, _ := slices.BinarySearchFunc(all, at, func(one T, at time.Time) int { return from(one).Compare(at) })
		last = min(last, i+mostDrawn/2)
	}
	return all[max(0, last-mostDrawn):last]
}

// historyOf converts a story to a history of the chaos harness, in which the owners of locks are the clients.
func historyOf(s *recording.Story, at time.Time) *chaos.History {
	holds := near(s.Holds, func(h *recording.Hold) time.Time { return h.From }, at)
	waits := near(s.Waits, func(w *recording.Wait) time.Time { return w.Since }, at)
	start := s.To
	for _, h := range holds {
		start = earlier(start, h.From)
	}
	for _, w := range waits {
		start = earlier(start, w.Since)
	}
	start = start.Truncate(time.Second)
	b := &histories{start: start, end: s.To, clients: make(map[string]int), History: &chaos.History{Run: chaos.Head{
		Scenario: printable.Text(s.Name), Arena: "record", Start: start.Local(), Nodes: len(s.Nodes),
	}}}
	for _, n := range s.Nodes {
		b.Run.Addrs = append(b.Run.Addrs, printable.Text(n))
	}
	got := make(map[*recording.Hold]*recording.Wait)
	for _, w := range waits {
		if w.Got != nil && slices.Contains(holds, w.Got) {
			got[w.Got] = w
			continue
		}
		b.wait(s.Name, w)
	}
	for _, h := range holds {
		b.hold(s.Name, h, got[h])
		b.Run.Quorum = h.Quorum
	}
	for _, q := range near(s.Silences, func(q recording.Silence) time.Time { return q.From }, at) {
		b.silence(s, q)
	}
	slices.SortStableFunc(b.Events, func(a, b chaos.Event) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(first(a.Kind), first(b.Kind)))
	})
	b.Run.Clients = len(b.Run.Owners)
	return b.History
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// first returns a rank for the order of events of the same instant: ends come before beginnings.
func first(k chaos.Kind) int {
	switch k {
	case chaos.Release, chaos.Released, chaos.Told, chaos.Denied:
		return 0
	case chaos.Ask:
		return 1
	}
	return 2
}

// histories builds the events of a history.
type histories struct {
	*chaos.History
	start, end time.Time
	clients    map[string]int
	ops        int
}

func (b *histories) event(at time.Time, e chaos.Event) {
	e.At = max(0, at.Sub(b.start))
	b.Events = append(b.Events, e)
}

// client returns the number of an owner's client; a new one if the owner has none yet.
func (b *histories) client(owner string) int {
	if b.clients[owner] == 0 {
		b.Run.Owners = append(b.Run.Owners, owner)
		b.clients[owner] = len(b.Run.Owners)
	}
	return b.clients[owner]
}

func (b *histories) wait(name string, w *recording.Wait) {
	b.ops++
	e := chaos.Event{Kind: chaos.Ask, Client: b.client(printable.Text(cmp.Or(w.Owner, w.Waiter))), Op: b.ops, Name: name}
	b.event(w.Since, e)
	if !w.Until.IsZero() {
		e.Kind, e.Why = chaos.Denied, notGot
		b.event(w.Until, e)
	}
}

func (b *histories) hold(name string, h *recording.Hold, w *recording.Wait) {
	b.ops++
	e := chaos.Event{Client: b.client(ownerOf(h)), Op: b.ops, Name: name, Shared: h.Mode != recording.ModeExclusive}
	asked, got, end := e, e, e
	asked.Kind = chaos.Ask
	since := h.From
	if w != nil {
		since = earlier(since, w.Since)
	}
	b.event(since, asked)
	got.Kind, got.Token, got.Why = chaos.Got, printable.Text(h.Token), fmt.Sprintf("%s, on %s", modeOf(h.Mode), addresses(h.Nodes))
	if h.Mode == recording.ModeExclusive {
		got.Fence = uint64(h.Fence)
	}
	got.Until = cmp.Or(h.To, b.end).Sub(b.start)
	b.event(h.From, got)
	switch h.How() {
	case "":
	case recording.EndReleased:
		end.Kind, end.Until = chaos.Release, got.Until
		b.event(h.To, end)
		end.Kind, end.Until = chaos.Released, 0
		b.event(h.To, end)
	default:
		end.Kind, end.Why, end.Until = chaos.Told, string(h.How()), got.Until
		b.event(h.To, end)
	}
}

// silence adds the time in which one node, or with q.Node "" each, was not seen, as a fault of that node.
func (b *histories) silence(s *recording.Story, q recording.Silence) {
	to := cmp.Or(q.To, b.end)
	if to.Before(b.start) {
		return
	}
	for i, n := range s.Nodes {
		if q.Node != "" && q.Node != n {
			continue
		}
		from := q.From
		if from.Before(b.start) {
			from = b.start
		}
		f := &chaos.Fault{At: from.Sub(b.start), Kind: history.Silent, Node: i, For: to.Sub(from)}
		b.event(from, chaos.Event{Kind: chaos.Struck, Fault: f})
		b.event(to, chaos.Event{Kind: chaos.Healed, Fault: f})
	}
}
