package coverage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/vote"
	"github.com/quorumlock/redlock/redlocktrace"
)

// reached lists what a sheet has.
func reached(s *Sheet) (all []string) {
	c := new(Counts)
	c.Add(s)
	for _, of := range Situations() {
		if c.Of(of) > 0 {
			all = append(all, of.String())
		}
	}
	return all
}

// TestHistoryHasSituations: a fault meets the steps that are under way when it begins, and no step that is over; and an
// event is one of the kind of its lock.
func TestHistoryHasSituations(t *testing.T) {
	fault := func(kind history.FaultKind) history.Event {
		return history.Event{Kind: history.Struck, Fault: &history.Fault{Kind: kind}}
	}
	s := NewSheet(nil, nil)
	s.History(&history.History{Run: history.Head{Separator: "/"}, Events: []history.Event{
		{Kind: history.Ask, Client: 1, Op: 1, Name: "a", Verb: "acquire"},
		fault(history.Kill),
		{Kind: history.Got, Client: 1, Op: 1, Name: "a", Token: "t"},
		{Kind: history.Ask, Client: 2, Op: 1, Name: "a/b", Verb: "try", Shared: true},
		fault(history.Hang),
		{Kind: history.Denied, Client: 2, Op: 1, Name: "a/b", Why: "held"},
		{Kind: history.Extend, Client: 1, Op: 1},
		fault(history.Full),
		{Kind: history.Told, Client: 1, Op: 1, Why: "lost"},
		{Kind: history.Failed, Client: 1, Op: 1, Why: "lost"},
		fault(history.Slow), // meets nothing: the lock is lost
		{Kind: history.Release, Client: 1, Op: 1},
		fault(history.Reset),
		{Kind: history.Released, Client: 1, Op: 1, Why: "lost"},
		{Kind: history.Changing, Client: 3, Op: 1, Name: "remove node1"},
		fault(history.Flush),
		{Kind: history.Changed, Client: 3, Op: 1, Name: "remove node1"},
		{Kind: history.Break, Client: 3, Op: 2, Token: "t"},
		fault(history.Cut),
		{Kind: history.Broke, Client: 3, Op: 2, Token: "t"},
		{Kind: history.Ask, Client: 4, Op: 1, Name: "s", Slots: 2, Verb: "do"},
		{Kind: history.Got, Client: 4, Op: 1, Name: "s", Slots: 2},
		{Kind: history.Ask, Client: 4, Op: 2, Name: "s", Also: "a", Verb: "do"},
		{Kind: history.Crashed, Client: 4},
		fault(history.Busy), // meets nothing
	}})
	want := []string{
		"faults | kill | acquire", "faults | hang | try", "faults | hang | hold", "faults | cut | break", "faults | reset | release", "faults | flush | remove", "faults | full | extend",
		"kinds | got | exclusive", "kinds | got | slot", "kinds | denied: held | in a folder, shared", "kinds | failed: lost | exclusive", "kinds | told: lost | exclusive", "kinds | released: lost | exclusive",
		"kinds | broke | exclusive", "kinds | holder crashed | slot", "kinds | waiter crashed | several names",
		"ideas | Modes of keys, as in databases: shared, slots, intention | exercised",
	}
	if got := reached(s); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestHooksHaveTransitions: of each Locker by itself what follows what is counted, of lanes, votes, acquisitions, locks and
// the set.
func TestHooksHaveTransitions(t *testing.T) {
	s := NewSheet(nil, nil)
	h, other := s.Hooks(), s.Hooks()
	node := func(outcome string, late bool) {
		h.Trace.Node(t.Context(), redlocktrace.Reply{Step: "acquire", Node: "n", Outcome: outcome, Late: late})
	}
	h.Joined(redlock.Members{Nodes: []string{"n"}})
	h.Joined(redlock.Members{Set: "s", Epoch: 1, Nodes: []string{"n"}})
	h.Members(redlock.Members{Set: "s", Epoch: 2, Nodes: []string{"n", "m"}})
	h.Members(redlock.Members{Set: "s", Epoch: 5, Nodes: []string{"n"}})
	h.Members(redlock.Members{Set: "t", Epoch: 6, Nodes: []string{"n"}})
	node("granted", false)
	node("timeout", true)
	h.NodeDown(&redlock.NodeError{Node: "n"})
	other.NodeUp("n", time.Second) // another Locker's: of its own
	h.Quarantined("n", time.Second, errors.New("it is new, or has lost its data"))
	h.ClockStep("n", -time.Second)
	h.Votes("n")

	op := redlocktrace.Operation{Op: "acquire"}
	ctx := h.Trace.Start(t.Context(), op)
	op.Err = redlock.ErrHeld
	h.Trace.Wait(ctx, op)
	op.Err, op.Lock = nil, new(redlock.Lock)
	h.Trace.End(ctx, op)
	for _, err := range []error{redlock.ErrNoQuorum, redlock.ErrNoQuorum, nil} {
		h.Trace.End(ctx, redlocktrace.Operation{Op: "renew", Lock: op.Lock, Err: err})
	}
	h.Trace.End(ctx, redlocktrace.Operation{Op: "release", Lock: op.Lock})
	h.Trace.End(h.Trace.Start(t.Context(), redlocktrace.Operation{Op: "try-acquire"}), redlocktrace.Operation{Op: "try-acquire", Err: context.Canceled})
	want := []string{
		"answers | granted | acquire", "answers | timeout | acquire, later",
		"lanes | new | answers", "lanes | new | up", "lanes | answers | silent", "lanes | silent | down",
		"votes | unknown | votes", "votes | votes | empty", "votes | no vote: quarantine | votes", "votes | no vote: quarantine | clock back",
		"waiters | tries | ends: cancelled", "waiters | asks | held", "waiters | held | got",
		"locks | new | failed", "locks | extended | released", "locks | failed once | failed", "locks | failed again | extended",
		"sets | given | described", "sets | described | a member more", "sets | changed | several changes", "sets | changed | another set",
	}
	if got := slices.DeleteFunc(reached(s), func(s string) bool { return strings.HasPrefix(s, "ideas") }); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// fenced is a lock with a fence, in microseconds.
type fenced struct {
	redlocktrace.Lock
	fence int64
}

func (l *fenced) Fence() int64 { return l.fence }

// TestNumbersOfTheFuture: a node whose number was no vote, since it is ahead of the time, votes again with the Locker that gets
// a lock whose fence is ahead as well; no other lock shows that, nor one of another Locker.
func TestNumbersOfTheFuture(t *testing.T) {
	for _, tt := range []struct {
		ahead time.Duration
		other bool
		want  bool
	}{{time.Hour, false, true}, {time.Hour, true, false}, {0, false, false}} {
		s := NewSheet(nil, nil)
		warned := s.Hooks()
		got := warned
		if tt.other {
			got = s.Hooks()
		}
		warned.Warning(fmt.Errorf("redlock: node n: %w", vote.PoisonError(time.Hour)))
		op := redlocktrace.Operation{Op: "acquire"}
		ctx := got.Trace.Start(t.Context(), op)
		op.Lock = &fenced{fence: time.Now().Add(tt.ahead).UnixMicro()}
		got.Trace.End(ctx, op)
		if is := slices.Contains(reached(s), "votes | no vote: fence ahead | votes"); is != tt.want {
			t.Errorf("a fence that is %v ahead, of another Locker: %v: %v, want %v", tt.ahead, tt.other, is, tt.want)
		}
	}
}

// TestNodesHaveStates: each thing that a node is asked is counted in each of the node's states. One of the states is a
// description that is earlier than those of two other nodes.
func TestNodesHaveStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSheet(nil, nil)
		s.Watch([]*model.Node{new(model.Node), new(model.Node), new(model.Node)}, time.Second)
		well := model.Scripted | model.Marked | model.Described
		for i, epoch := range []int64{2, 2, 1} {
			s.watches[i].see(model.Sight{Asked: model.Connect, State: well, Age: time.Minute, Epoch: epoch})
			time.Sleep(time.Nanosecond)
		}
		s.watches[0].see(model.Sight{Asked: model.Join, State: well | model.Full, Age: time.Millisecond, Epoch: 2})
		want := []string{"nodes | full | join", "nodes | well | connect", "nodes | young marker | join", "nodes | earlier description | connect"}
		if got := reached(s); !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// TestNodesAreAskedAtOnce: what other nodes are asked at the same instant does not count, in whatever order it is seen.
func TestNodesAreAskedAtOnce(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}} {
		synctest.Test(t, func(t *testing.T) {
			s := NewSheet(nil, nil)
			s.Watch([]*model.Node{new(model.Node), new(model.Node), new(model.Node)}, time.Second)
			for _, i := range order {
				s.watches[i].see(model.Sight{Asked: model.Connect, State: model.Described, Epoch: []int64{2, 2, 1}[i]})
			}
			if got := reached(s); slices.Contains(got, "nodes | earlier description | connect") || slices.Contains(got, "nodes | later description | connect") {
				t.Errorf("in the order %v: %q", order, got)
			}
		})
	}
}

// TestIdeasAreThoseOfTheDesign: each idea of the table in docs/design.md is a row, and no other, and shown by a situation
// that there is.
func TestIdeasAreThoseOfTheDesign(t *testing.T) {
	text, err := os.ReadFile("../../../docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| idea | what it buys | where |\n|---|---|---|\n")
	var want []string
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "| ") {
			break
		}
		want = append(want, strings.Split(line, " | ")[0][2:])
	}
	if !slices.Equal(ideas.Rows, want) {
		t.Errorf("the rows are\n%s\nand the design has\n%s", strings.Join(ideas.Rows, "\n"), strings.Join(want, "\n"))
	}
	all := Situations()
	for _, i := range shows {
		if !slices.Contains(all, i.by) {
			t.Errorf("%s: no table has %v", i.idea, i.by)
		}
	}
}

// TestEachFaultHasARow: all kinds of package history but silent, which no fault injects.
func TestEachFaultHasARow(t *testing.T) {
	text, err := os.ReadFile("../../history/fault.go")
	if err != nil {
		t.Fatal(err)
	}
	kinds := regexp.MustCompile(`FaultKind += "(.*)"`).FindAllStringSubmatch(string(text), -1)
	for _, kind := range kinds {
		if kind[1] != string(history.Silent) && !slices.Contains(faults.Rows, kind[1]) {
			t.Errorf("%q has no row", kind[1])
		}
	}
	if len(kinds) != len(faults.Rows)+1 {
		t.Errorf("%d kinds of faults and %d rows", len(kinds), len(faults.Rows))
	}
}

// TestListIsChecked: the written list has each situation once at most, and a line that names none, or that says nothing, is
// refused. Of two lines that name a situation the first counts.
func TestListIsChecked(t *testing.T) {
	list, err := Written()
	if err != nil {
		t.Fatal(err)
	}
	named := make(map[Situation]bool)
	for _, l := range list {
		for _, column := range l.Columns {
			if s := (Situation{l.Table, l.Row, column}); named[s] {
				t.Errorf("%v is there twice", s)
			} else {
				named[s] = true
			}
		}
	}
	for _, line := range []string{
		"kinds | got | exclusive", "moons | got | exclusive | soon", "kinds | gotten | exclusive | soon", "kinds | got | shared; exclusively | soon", "kinds | got | exclusive | later",
		"kinds | got | exclusive | never", "kinds | got | exclusive | soon: it is frequent", "kinds | got | * | soon", "kinds | * | slot | night",
	} {
		if _, err := parse("# a comment\n\n" + line + "\n"); err == nil {
			t.Errorf("%q is accepted", line)
		}
	}
	list, err = parse("kinds | got | slot; shared | soon\nkinds | * | slot | never: there are none\n")
	if err != nil {
		t.Fatal(err)
	}
	for s, want := range map[Situation]string{{"kinds", "got", "slot"}: "soon ", {"kinds", "wrote", "slot"}: "never there are none", {"kinds", "wrote", "shared"}: " "} {
		if class, reason := list.Of(s); string(class)+" "+reason != want {
			t.Errorf("%v: %q, %q, want %q", s, class, reason, want)
		}
	}
}

// TestReportShowsWhatIsMissed: each situation is reached, missed, not made, or impossible, in the text and in JSON.
func TestReportShowsWhatIsMissed(t *testing.T) {
	c := new(Counts)
	for range 2 {
		s := NewSheet([]history.FaultKind{history.Kill}, []string{"try", "do"})
		s.mark(faults, "kill", "try")
		c.Add(s)
	}
	r, err := c.Report()
	if err != nil {
		t.Fatal(err)
	}
	f := r.Tables[0]
	if f.Reached != 1 || f.Missed != 1 || f.Reached+f.Missed+f.Unmade+f.Never != len(faults.Rows)*len(faults.Columns) {
		t.Errorf("%d reached, %d missed, %d not made, %d impossible", f.Reached, f.Missed, f.Unmade, f.Never)
	}
	var out strings.Builder
	if err := r.Write(&out); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(out.String()) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	for _, want := range []string{"kill 2 ... 0 ... ... ... ... ... ... ... ... ... ...", "kill: do", fmt.Sprintf("1 reached, 1 not, %d not made, %d impossible; not reached:", f.Unmade, f.Never)} {
		if !slices.Contains(lines, want) {
			t.Errorf("no line %q in\n%s", want, &out)
		}
	}
	text, err := json.Marshal(f.Situations[:3])
	if err != nil {
		t.Fatal(err)
	}
	if want := `[{"row":"kill","column":"try","schedules":2},{"row":"kill","column":"acquire","schedules":0,"unmade":true},{"row":"kill","column":"do","schedules":0}]`; string(text) != want {
		t.Errorf("%s, want %s", text, want)
	}
}
