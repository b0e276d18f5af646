package realarena

import (
	"bufio"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/client"
	"github.com/quorumlock/redlock/chaos/internal/drive"
	"github.com/quorumlock/redlock/chaos/internal/scenario"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// testLimits are similar to those of the arena.
var testLimits = scenario.Limits{Name: "real", Lag: 100 * time.Millisecond, Least: 200 * time.Millisecond, Most: time.Second, Room: 12}

// newMember starts a client process with a resource, and with nodes that do not exist. It needs no
// redis-server.
func newMember(t *testing.T) (r *remote, rec *drive.Recorder, values client.Resource) {
	t.Helper()
	store, err := newShop()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.close)
	p := (&scenario.Scenario{
		Name: t.Name(), Nodes: []int{3}, Clients: [2]int{1, 1}, TTL: []time.Duration{testLimits.Least}, RTT: []time.Duration{time.Millisecond}, Span: 1,
	}).NewPlan(testLimits, 1, nil, 0)
	p.Run.Bound = time.Second
	r, err = newRemote(1, briefing{Nodes: []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"}, Resource: store.addr(), Plan: p})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.end)
	d := drive.New(p, nil)
	r.rec, r.leftovers = d.Recorder, d.Leftovers
	values = client.NewMemory(d.Recorder.Note)
	store.serve(values)
	return r, d.Recorder, values
}

func lefts(rec *drive.Recorder) (all []string) {
	for _, e := range rec.Sorted() {
		if e.Kind == history.Left {
			all = append(all, e.Error)
		}
	}
	return all
}

func TestMemberLivesAndLeaves(t *testing.T) {
	need.Full(t) // it looks for a quorum for seconds
	t.Parallel()
	r, rec, _ := newMember(t)
	if err := r.Enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(r.plan.TTL / 2)
	r.Rest()
	r.Last()
	r.Leave()
	events := rec.Sorted()
	denied := slices.ContainsFunc(events, func(e history.Event) bool { return e.Kind == history.Denied && e.Client == 1 && e.Why == "no quorum" })
	if left := lefts(rec); !denied || len(left) > 0 {
		t.Errorf("left %q in %v", left, events)
	}
}

func TestMemberDiesByItself(t *testing.T) {
	t.Parallel()
	r, rec, _ := newMember(t)
	if err := r.Enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.child.Kill() // not by way of die
	<-r.silent
	r.Rest()
	r.Leave()
	if left := lefts(rec); len(left) != 1 || !strings.Contains(left[0], "client 1") || !strings.Contains(left[0], "it has died: "+r.child.Ended()) {
		t.Errorf("left %q", left)
	}
}

func TestMemberIsKilled(t *testing.T) {
	t.Parallel()
	r, rec, _ := newMember(t)
	if err := r.Enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.Die()
	events := rec.Sorted()
	if last := events[len(events)-1]; last.Kind != history.Crashed || last.Client != 1 || len(lefts(rec)) > 0 {
		t.Errorf("%v", events)
	}
}

// The error about a client that does not carry out an order says what it does instead.
func TestMemberHangs(t *testing.T) {
	t.Parallel()
	r, rec, _ := newMember(t)
	if err := r.Enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := r.order("", patience)
	if err == nil || !strings.Contains(err.Error(), "has no meaning") {
		t.Errorf("an unknown order: %v", err)
	}
	if left := lefts(rec); len(left) != 1 {
		t.Errorf("left %q", left)
	}

	r, _, _ = newMember(t)
	if err := r.Enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, _ = r.orders.Write([]byte(wordLast)) // without a line end, so the client waits
	err = r.order("", 0)
	dump := "goroutine "
	if runtime.GOOS == "windows" {
		dump = ": " + r.child.Ended() // there is no SIGQUIT: the process ends without a dump
	}
	if err == nil || !strings.Contains(err.Error(), dump) {
		t.Errorf("one that does nothing: %v", err)
	}
}

func TestMemberThatIsNone(t *testing.T) {
	t.Parallel()
	_, err := newRemote(1, briefing{Resource: "127.0.0.1:1", Plan: &scenario.Plan{Scenario: new(scenario.Scenario)}})
	if err == nil || !strings.Contains(err.Error(), "ClientMain") || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("a process that cannot come in: %v", err)
	}
}

// TestBriefing: a client's briefing is complete, also for a scenario that is not in the list.
func TestBriefing(t *testing.T) {
	s := &scenario.Scenario{
		Name: t.Name(), Nodes: []int{5}, Clients: [2]int{2, 2}, TTL: []time.Duration{testLimits.Least}, RTT: []time.Duration{time.Millisecond}, Span: 2,
		Quorum: func(n int) int { return n - 1 }, Troubles: []history.FaultKind{history.Kill, history.Pause}, Rate: 5, Write: true, Unended: true,
	}
	p := s.NewPlan(testLimits, 7, &redlock.Options{Prefix: "p:", Hooks: new(redlock.Hooks), NodeTimeout: time.Millisecond}, 0)
	text, err := briefing{Number: 2, Nodes: []string{"a", "b"}, Plan: p}.marshal()
	if err != nil {
		t.Fatal(err)
	}
	var b briefing
	if err := json.Unmarshal([]byte(text), &b); err != nil {
		t.Fatal(err)
	}
	q, o := b.Plan, b.Options.Options
	if got, want := fmt.Sprint(q.Run, q.TTL, q.Span, q.Faults, q.Names, q.Workers, b.Nodes, b.Number), fmt.Sprint(p.Run, p.TTL, p.Span, p.Faults, p.Names, p.Workers, []string{"a", "b"}, 2); got != want {
		t.Errorf("the plan is %s, want %s", got, want)
	}
	if !b.Scenario.Write || !b.Scenario.Unended || b.Scenario.Plain || b.Scenario.Name != s.Name {
		t.Errorf("the scenario is %+v", b.Scenario)
	}
	if o.Prefix != "p:" || o.Quorum != 4 || o.TTL != p.TTL || o.NodeTimeout != time.Millisecond || o.Hooks != nil {
		t.Errorf("the options are %+v", o)
	}
}

func TestMemberSays(t *testing.T) {
	for line, good := range map[string]bool{
		`{"event":{"at":1,"kind":"ask"}}` + "\n": true,
		`{"done":"rest"}` + "\n":                 true,
		`{"lot":"YzEuMQ=="}` + "\n":              true,
		`{}` + "\n":                              false,
		`hello` + "\n":                           false,
		`{"event":`:                              false,
		``:                                       false,
	} {
		r := &remote{reports: bufio.NewReader(strings.NewReader(line))}
		if got, err := r.next(); (err == nil) != good {
			t.Errorf("%q: %v, %v", line, got, err)
		}
	}
}

// TestShop: writes that many clients make at once are recorded in the order of the writes.
func TestShop(t *testing.T) {
	var events []history.Event
	values := client.NewMemory(func(e history.Event) { events = append(events, e) })
	s, err := newShop()
	if err != nil {
		t.Fatal(err)
	}
	s.serve(values)
	var customers sync.WaitGroup
	for number := range 4 {
		customers.Go(func() {
			c, err := newCustomer(s.addr())
			if err != nil {
				t.Error(err)
				return
			}
			for op := range 50 {
				c.Write(history.Event{Client: number, Op: op, Name: "a", Value: c.Read("a", 0) + 1})
			}
		})
	}
	customers.Wait()
	s.close()
	s.close()
	last := 0
	for _, e := range events {
		if e.Kind != history.Wrote || e.Was != last {
			t.Fatalf("%v after %d", e, last)
		}
		last = e.Value
	}
	if len(events) != 200 {
		t.Errorf("%d writes", len(events))
	}
}
