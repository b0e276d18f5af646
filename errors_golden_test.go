package redlock

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	arena "github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/testbed/redistest/golden"
	"github.com/quorumlock/redlock/internal/wire"
)

var updateErrors = flag.Bool("update", false, "write testdata/errors.golden anew")

const errorsGolden = "testdata/errors.golden"

// A texts collects what a user reads, for testdata/errors.golden.
type texts struct {
	strings.Builder
	logged lines
}

// lines are what was logged, from whatever goroutine.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// take gives the lines since it was last called.
func (l *lines) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}

// section begins with a heading.
func (g *texts) section(heading string) { fmt.Fprintf(g, "\n## %s\n\n", heading) }

// say adds what happened, and what is said about it.
func (g *texts) say(when string, said any) {
	text := fmt.Sprint(said)
	if err, ok := said.(error); ok {
		text = err.Error()
	}
	fmt.Fprintf(g, "%s\n", when)
	for line := range strings.Lines(text) {
		fmt.Fprintf(g, "    %s\n", strings.TrimRight(secrets.Replace(line), "\n"))
	}
}

// log adds the lines that were logged since, or that nothing was.
func (g *texts) log(when string) {
	synctest.Wait()
	g.say(when, strings.TrimSuffix(g.logged.take(), "\n"))
}

// hooks are LogHooks, without the time of a line; also of debug messages, if they are wanted.
func (g *texts) hooks(level slog.Level) *Hooks {
	return LogHooks(slog.New(slog.NewTextHandler(&g.logged, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch {
		case a.Key == slog.TimeKey:
			return slog.Attr{}
		case a.Value.Kind() == slog.KindTime:
			return slog.String(a.Key, a.Value.Time().UTC().Format(time.TimeOnly))
		case a.Value.Kind() == slog.KindDuration:
			return slog.String(a.Key, "a number of nanoseconds without a unit, as JSON")
		}
		return a
	}})))
}

// secrets replaces what differs from run to run.
var secrets = regexpReplacer{regexp.MustCompile(`\b[0-9a-f]{40}\b`), "RUN_ID"}

type regexpReplacer struct {
	from *regexp.Regexp
	to   string
}

func (r regexpReplacer) Replace(s string) string { return r.from.ReplaceAllString(s, r.to) }

// TestErrorsGolden provokes each error and each log line of the library, and compares all of them with
// one file, in which they can be read. With -update the file is written anew.
func TestErrorsGolden(t *testing.T) {
	g := new(texts)
	g.WriteString("# What the library says\n\nEach error and each log line, with what provokes it. Written by\n`go test . -run TestErrorsGolden -update`.\n")
	for _, part := range []struct {
		heading string
		write   func(*testing.T, *texts)
	}{
		{"Options", optionTexts}, {"Connect and New", connectTexts}, {"Connections", connectionTexts}, {"Mocks", mockTexts}, {"Names and options of a lock", nameTexts},
		{"No lock", refusalTexts}, {"Fences", fenceTexts}, {"Lock lost", lossTexts}, {"Release", releaseTexts}, {"Release that was forgotten", forgottenTexts},
		{"Re-entry", reentryTexts}, {"Detach and Attach", handleTexts}, {"Break", breakTexts}, {"WaitReady and Inspect", readyTexts},
		{"Votes of a node", voteTexts}, {"The description of the set", setTexts}, {"Changes of the set", changeTexts}, {"Warnings", warningTexts}, {"Node down, node up, in this order", orderTexts},
		{"Many Lockers, and slow hooks", slowTexts}, {"Operations, at level debug", debugTexts}, {"Printing", printTexts}, {"Replies", replyTexts},
	} {
		t.Run(part.heading, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				g.section(part.heading)
				part.write(t, g)
			})
		})
	}
	golden.Compare(t, errorsGolden, g.String(), *updateErrors, "go test . -run TestErrorsGolden -update")
}

// changeTexts: why a set is not changed.
func changeTexts(t *testing.T, g *texts) {
	f := newFleet(t, 5)
	open := func(opts Options, nodes ...*arena.Node) *Locker {
		lk, _, err := f.over(opts, nodes...)
		if err == nil {
			err = lk.ready(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		return lk
	}
	change := func(when string, lk *Locker, c Change) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := lk.Change(ctx, c, nil)
		g.say(when, err)
	}
	lk, alone := open(Options{Hooks: g.hooks(slog.LevelInfo)}, f.nodes[:3]...), open(Options{}, f.nodes[4])
	three, five, micro := 3, 5, time.Microsecond
	change("a member comes", lk, Change{Add: "node0"})
	change("a node goes that is none", lk, Change{Remove: "10.0.0.9:6379"})
	change("the only member goes", alone, Change{Remove: "node4"})
	change("a node of another set comes", lk, Change{Add: "node4"})
	change("a quorum that there cannot be", lk, Change{Quorum: &five})
	change("a MaxTTL that is none", lk, Change{MaxTTL: &micro})
	change("a quorum that this program does not have", open(Options{Quorum: 2}, f.nodes[:3]...), Change{Quorum: &three})
	change("two things", lk, Change{Add: "node3", Remove: "node0"})
	change("a declaration that goes with another change", lk, Change{Add: "node3", LongerOver: true})
	change("nothing", lk, Change{})
	change("by a program that has no quarantine", open(Options{Quarantine: -1}, f.nodes[:3]...), Change{Add: "node3"})

	theirs := *f.Agrees(f.nodes[:3]...).Copy()
	theirs.Epoch, theirs.MaxTTL = 2, 60_000
	for _, n := range f.nodes[:3] {
		f.Choose(n, strings.Repeat("0", 23)+"1", &theirs)
	}
	change("another program has died in the middle of a change", lk, Change{Add: "node3"})
	pass(time.Minute)
	was := lk.lanes.View().Lanes[0]
	change("a node goes", lk, Change{Remove: "node0"})
	pass(time.Second)
	g.log("and in the log")
	claim := lane.Claim{Key: "jobs", Keys: []string{"jobs"}}
	claim.Span(3)
	q := lane.Request{Op: wire.Extend, Claim: &claim}
	was.Submit(&q, time.Now())
	e := nodeError("node0", &q.Reply, 0)
	g.say("and is asked all the same", &e)
	f.nodes[1].Kill()
	pass(time.Second)
	change("a member goes, and the other one is down", lk, Change{Remove: "node2"})
	change("a node comes while one is down", lk, Change{Add: "node3"})
}

// setTexts: the description of the set, and why a program cannot use it, or a node has no vote by it.
func setTexts(t *testing.T, g *texts) {
	f, lk, _ := aFleet(t, 3, Options{TTL: 5 * time.Second, MaxTTL: 5 * time.Second, Separator: "/", Quorum: 2})
	for _, o := range []struct {
		what string
		opts Options
	}{
		{"another Quorum", Options{TTL: time.Second, Quorum: 3}},
		{"another Separator", Options{TTL: time.Second, Separator: ":"}},
		{"both", Options{TTL: time.Minute, Separator: ":", Quorum: 3}},
	} {
		_, _, err := f.over(o.opts, f.nodes...)
		g.say(o.what, err)
	}
	_, err := lk.TryAcquire(t.Context(), "jobs", TTL(10*time.Second))
	g.say("a TTL above the MaxTTL of the set", err)

	try := func(when string, lk *Locker) {
		_, err := lk.TryAcquire(t.Context(), "jobs")
		g.say(when, err)
	}
	f.nodes[2].Flush()
	f.Tell(f.nodes[2], &wire.Description{MaxTTL: 10_000, Epoch: 1, Set: "another", Members: []string{"10.0.0.7:6379", "10.0.0.8:6379", "10.0.0.9:6379"}})
	f.nodes[2].Reset()
	f.nodes[1].Kill()
	_, _ = lk.TryAcquire(t.Context(), "jobs") // finds out that the connections have broken
	pass(time.Minute)
	try("the address of a member leads to a node of another set, and another member is down", lk)

	f = newFleet(t, 5)
	if first, _, err := f.over(Options{}, f.nodes[:3]...); err != nil || first.ready(t.Context()) != nil {
		t.Fatal(err)
	}
	pass(time.Second)
	mixed, _, err := f.over(Options{}, f.nodes[2:]...)
	if err != nil {
		t.Fatal(err)
	}
	try("a node of a set and two nodes of none", mixed)

	f = newFleet(t, 3)
	copied, _, err := f.over(Options{}, f.nodes...)
	if err != nil || copied.ready(t.Context()) != nil {
		t.Fatal(err)
	}
	pass(time.Second)
	f.nodes[2].Flush()
	f.TellAs(f.nodes[2], "node1", f.Kept(f.nodes[0]).Description)
	f.nodes[1].Kill()
	_, _ = copied.TryAcquire(t.Context(), "jobs")
	pass(time.Minute)
	try("a member was set up with the data of another one, which is down", copied)

	f = newFleet(t, 6)
	if first, _, err := f.over(Options{}, f.nodes[:3]...); err != nil || first.ready(t.Context()) != nil {
		t.Fatal(err)
	}
	pass(time.Second)
	f.TellAs(f.nodes[3], "node0", f.Kept(f.nodes[0]).Description)
	f.TellAs(f.nodes[4], "node1", f.Kept(f.nodes[0]).Description)
	for _, n := range f.nodes[3:] { // what they keep is not known when New returns
		n.Hang(true)
	}
	copies, _, err := f.over(Options{}, f.nodes[3:]...)
	for _, n := range f.nodes[3:] {
		n.Hang(false)
	}
	if err == nil {
		pass(10 * time.Second)
		_, err = copies.TryAcquire(t.Context(), "jobs")
	}
	g.say("two of three nodes have copies of other servers' data", err)

	three := newFleet(t, 3)
	lost, second := three.changed()
	for _, n := range three.nodes[:2] {
		n.Flush()
	}
	_, _ = lost.TryAcquire(t.Context(), "jobs")
	pass(time.Second)
	_, err = lost.TryAcquire(t.Context(), "jobs")
	g.say("two of three nodes have lost their data, and the set had been changed", err)
	restored := second.Next()
	restored.Set, restored.Members = "restored", []string{"node2", "node7", "node8"}
	three.nodes[2].Forget()
	three.Tell(three.nodes[2], restored)
	_, _ = lost.TryAcquire(t.Context(), "jobs")
	pass(time.Second)
	_, err = lost.TryAcquire(t.Context(), "jobs")
	g.say("the third one has become a node of a set that was restored", err)
	three.nodes[2].Flush()
	_, _ = lost.TryAcquire(t.Context(), "jobs")
	pass(time.Second)
	_, err = lost.TryAcquire(t.Context(), "jobs")
	g.say("and the third one", err)

	_, _, err = f.over(Options{}, newFleet(t, 32).nodes...)
	g.say("32 nodes", err)
	newer := f.Kept(f.nodes[0]).Description.Text()
	d := wire.ParseDescription(strings.TrimSuffix(newer, "}") + `,"zones":3}`)
	_, err = (&Change{Add: "node3"}).next(d, time.Now())
	g.say("a later version has described the set", err)
	long := strings.Repeat("x", 70)
	_, err = (&Change{Separator: &long}).next(d.Copy(), time.Now())
	g.say("a separator that is too long", err)
	for _, damage := range []string{
		"x", "a:1\n{", "a:1\n" + strings.Repeat(" ", wire.MaxText+1), `{"epoch":0}`, `{"epoch":1,"set":""}`, `{"epoch":1,"set":"s","members":[]}`,
		`{"epoch":1,"set":"s","members":["a:1"],"quorum":2}`, `{"epoch":1,"set":"s","members":["a:1","a:1"],"max_ttl_ms":1000}`, `{"epoch":1,"set":"s","members":[""],"max_ttl_ms":1000}`,
		`{"epoch":1,"set":"s","members":["a:1"],"max_ttl_ms":-1}`, `{"epoch":1,"set":"s","members":["a:1"],"max_ttl_ms":1000,"other_ttl_ms":1000}`, `{"epoch":1,"set":"s","members":["a:1"],"max_ttl_ms":1000,"separator":"` + long + `"}`,
		`{"set":"s","epoch":1,"members":["a:1"],"max_ttl_ms":1000}`,
	} {
		if strings.HasPrefix(damage, "{") {
			damage = "a:1\n" + damage
		}
		g.say("a node keeps what is no description", wire.ParseKept(damage).Damage)
	}
	var many []string
	for i := range 40 {
		many = append(many, fmt.Sprint("m", i))
	}
	for _, d := range []wire.Description{{Members: many}, {Members: many[:1], Former: many}, {Members: many[:1], Past: many}} {
		d.Epoch, d.Set, d.MaxTTL = 1, "s", 1000
		g.say("a node keeps what is no description", d.Check())
	}
	g.say("a connection that was made to see what answers", errSeen)
}

func refusalTexts(t *testing.T, g *texts) {
	f, lk, _ := aFleet(t, 3, Options{})
	other, _ := f.open(Options{})
	try := func(when string) {
		_, err := lk.TryAcquire(t.Context(), "jobs")
		g.say(when, err)
		pass(time.Second)
	}
	l := acquired(t, other, "jobs")
	try("held by another")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	_, err := lk.Acquire(ctx, "jobs")
	g.say("waited for until the context's deadline", err)
	cancel()
	stopped, why := context.WithCancelCause(t.Context())
	why(errors.New("shutting down"))
	_, err = lk.TryAcquire(stopped, "jobs")
	g.say("the context has ended before, with a cause", err)
	_ = l.Release(t.Context())

	waiting, stop := context.WithCancel(t.Context())
	acquired(t, other, "jobs")
	third, _ := f.open(Options{})
	done := make(chan struct{})
	go func() { defer close(done); _, _ = third.Acquire(waiting, "jobs") }()
	pass(500 * time.Millisecond)
	for _, n := range f.nodes {
		n.Evict(1)
	}
	try("reserved for a waiter that came earlier")
	stop()
	<-done
	pass(time.Minute)

	f.nodes[0].Kill()
	f.nodes[1].Hang(true)
	try("one node is down, and one hangs")
	try("the same, when the second is known to be silent")
	f.nodes[0].Restart(true)
	f.nodes[1].Hang(false)
	pass(time.Minute)
	for _, n := range f.nodes[:2] {
		n.Refuse(errLoading)
	}
	try("two nodes load their data")
	for _, n := range f.nodes[:2] {
		n.Refuse(nil)
		n.ReadOnly(true)
	}
	try("two nodes take no writes")
	for _, n := range f.nodes[:2] {
		n.ReadOnly(false)
		n.Full(true)
	}
	try("two nodes are out of memory")
	for _, n := range f.nodes[:2] {
		n.Full(false)
		n.Refuse(arena.Error("NOPERM this user has no permissions to run the 'evalsha' command"))
	}
	try("two nodes deny it")
	for _, n := range f.nodes[:2] {
		n.Refuse(nil)
		n.Put("jobs")
	}
	try("two nodes have a key of another type")
	for _, n := range f.nodes[:2] {
		n.Take("jobs")
		n.Flush()
	}
	try("two nodes have lost their data")
	bs := newModels(3)
	quick := bs.locker(t, nil)
	r := quick.newRound(wire.Acquire, mustLock(t, quick, "jobs"), nil)
	r.sent = time.Now().Add(-12 * time.Second)
	r.ballot.yes = 3
	r.verdict = won
	g.say("the votes came when the lock's life was over", r.tooLate(time.Now()))

	for _, slot := range []int64{wire.NoSlot, 3} {
		g.say("the slot that was asked for is held", &NodeError{Node: "10.0.0.1:6379", Outcome: OutcomeHeld, Holder: "TOKEN", TTL: time.Second, slot: slot})
	}
}

func mustLock(t *testing.T, lk *Locker, name string) *Lock {
	t.Helper()
	a, err := lk.settings().acquisition(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return lk.newLock(a, 0, "TOKEN")
}

func fenceTexts(t *testing.T, g *texts) {
	f, lk, _ := aFleet(t, 3, Options{Hooks: g.hooks(slog.LevelWarn)})
	_ = f
	e := mustRound(t, lk, "jobs").explain(time.Now(), errUnfenced)
	g.say("a quorum granted the lock, and did not store its fence", e)
	e = mustRound(t, lk, "jobs").poisoned(time.Now(), 30*24*time.Hour)
	g.say("the fence of a quorum is far ahead of the time", e)

	refused := &QuorumError{Op: "acquire", Name: "jobs", N: 3, Need: 2, Failed: 2, Kind: ErrNoQuorum, Cause: errRefused}
	for _, node := range []string{"node0", "node1"} {
		refused.note(&NodeError{Node: node, Outcome: OutcomeDenied, Err: serverError("WRONGPASS invalid username-password pair or user is disabled.")})
	}
	g.say("a majority of the nodes refuses the client for five seconds", refused)
}

// mustRound is a round that all nodes but the last have granted.
func mustRound(t *testing.T, lk *Locker, name string) *round {
	t.Helper()
	r := lk.newRound(wire.Acquire, mustLock(t, lk, name), nil)
	r.sent = time.Now()
	for i := range len(r.replied) - 1 {
		r.replied[i] = true
		r.ballot.add(voteYes)
	}
	r.verdict = won
	return r
}

func lossTexts(t *testing.T, g *texts) {
	f, lk, h := aFleet(t, 3, Options{Hooks: g.hooks(slog.LevelInfo)})
	ends := func(when string, l *Lock) {
		t.Helper()
		ctx := l.Context(t.Context())
		<-ctx.Done()
		g.say(when, context.Cause(ctx))
		g.log("and in the log")
		pass(time.Minute)
	}
	ends("nobody extends it", acquired(t, lk, "jobs"))
	ends("MaxHold", acquired(t, lk, "jobs", MaxHold(5*time.Second), AutoRenew()))

	l := acquired(t, lk, "jobs")
	pass(9200 * time.Millisecond)
	for _, n := range f.nodes {
		n.Refuse(errLoading)
	}
	g.say("an Extend fails", l.Extend(t.Context()))
	for _, n := range f.nodes {
		n.Refuse(nil)
	}
	ends("and it is the only one", l)

	l = acquired(t, lk, "jobs", AutoRenew())
	pass(time.Second)
	f.nodes[0].Hang(true)
	f.nodes[1].Kill()
	pass(4 * time.Second)
	g.log("renewals fail: a node is down, and one hangs")
	ends("until the lock is lost", l)
	f.nodes[0].Hang(false)
	f.nodes[1].Restart(true)
	pass(time.Minute)
	g.logged.take()

	l = acquired(t, lk, "jobs", AutoRenew())
	pass(time.Second)
	for _, n := range f.nodes[:2] {
		n.Refuse(errLoading)
	}
	pass(4 * time.Second)
	for _, n := range f.nodes[:2] {
		n.Refuse(nil)
	}
	pass(5 * time.Second)
	g.log("renewals fail, and recover")
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}

	l = acquired(t, lk, "jobs", AutoRenew())
	ctx := l.Context(t.Context())
	pass(time.Second)
	h.Stop(15 * time.Second)
	<-ctx.Done()
	g.say("this process stood still", context.Cause(ctx))
	g.log("and in the log")
	pass(time.Minute)

	l = acquired(t, lk, "jobs", AutoRenew())
	for _, n := range f.nodes {
		n.Evict(1)
	}
	ends("the nodes have dropped the lock", l)
	l = acquired(t, lk, "jobs", AutoRenew())
	for _, n := range f.nodes {
		n.Flush()
	}
	ends("the nodes were flushed", l)
	_, _ = lk.TryAcquire(t.Context(), "jobs")
	pass(time.Minute)
	g.logged.take()

	l = acquired(t, lk, "jobs", AutoRenew())
	kept := l.Context(t.Context())
	released := acquired(t, lk, "others")
	detached := acquired(t, lk, "third")
	ctxs := []context.Context{released.Context(t.Context()), detached.Context(t.Context())}
	_ = released.Release(t.Context())
	if _, err := detached.Detach(); err != nil {
		t.Error(err)
	}
	g.say("no loss: the lock was released", context.Cause(ctxs[0]))
	g.say("no loss: the lock was detached", context.Cause(ctxs[1]))
	lk.Close()
	g.say("the Locker was closed", context.Cause(kept))
	g.log("and in the log")
}

func releaseTexts(t *testing.T, g *texts) {
	f, lk, _ := aFleet(t, 3, Options{Hooks: g.hooks(slog.LevelInfo)})
	l := acquired(t, lk, "jobs")
	for _, n := range f.nodes[:2] {
		n.Hang(true)
	}
	g.say("two nodes hang", l.Release(t.Context()))
	g.log("and in the log")
	for _, n := range f.nodes[:2] {
		n.Hang(false)
	}
	pass(time.Minute)
	l = acquired(t, lk, "jobs")
	for _, n := range f.nodes {
		n.Evict(1)
	}
	g.say("the nodes do not have it any more", l.Release(t.Context()))
	g.log("and in the log")

	l = acquired(t, lk, "jobs", MinHold(5*time.Second))
	_ = l.Release(t.Context())
	_, err := lk.Acquire(t.Context(), "jobs", Wait(2*time.Second))
	g.say("released, and kept by MinHold; another one waits for it", err)
	pass(time.Minute)
	go func() {
		_ = lk.Do(t.Context(), "jobs", func(context.Context, *Lock) error { pause(time.Minute); return nil })
	}()
	pass(time.Second)
	work := acquired(t, lk, "more").Context(t.Context())
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	g.say("Shutdown, and a function of Do does not end", lk.Shutdown(ctx))
	g.say("what the work under another lock is told", context.Cause(work))
	pass(time.Minute)
}

func reentryTexts(t *testing.T, g *texts) {
	lk := newModels(3).locker(t, nil)
	l := acquired(t, lk, "jobs")
	ctx := l.Context(t.Context())
	_, err := lk.Acquire(ctx, "jobs")
	g.say("without Reentrant", err)
	_, err = lk.Acquire(ctx, "jobs", Also("more"), Reentrant())
	g.say("more than the lock takes in", err)
	shared := acquired(t, lk, "read", Shared())
	_, err = lk.Acquire(shared.Context(t.Context()), "read", Reentrant())
	g.say("exclusive under shared", err)
	slot := acquired(t, lk, "pool", Slots(1))
	_, err = lk.Acquire(slot.Context(t.Context()), "pool", Reentrant())
	g.say("all under one slot", err)
}

func handleTexts(t *testing.T, g *texts) {
	_, lk, _ := aFleet(t, 3, Options{})
	l := acquired(t, lk, "jobs")
	inner, err := lk.TryAcquire(l.Context(t.Context()), "jobs", Reentrant())
	if err != nil {
		t.Fatal(err)
	}
	_, err = inner.Detach()
	g.say("a handle that has joined", err)
	for _, h := range []Handle{{Name: "\xff"}, {Prefix: "\xff"}, {Separator: "\xff"}} {
		_, err = h.MarshalJSON()
		g.say("a handle that JSON cannot carry", err)
	}
	for _, h := range []struct {
		when string
		Handle
	}{
		{"no token", Handle{Name: "jobs"}},
		{"a fence below zero", Handle{Name: "jobs", Token: "TOKEN", TTL: time.Second, Fence: -1}},
		{"a fence that is too large", Handle{Name: "jobs", Token: "TOKEN", TTL: time.Second, Fence: 1<<63 - 1}},
		{"another prefix", Handle{Name: "jobs", Token: "TOKEN", Fence: 7, Prefix: "app:"}},
		{"another separator", Handle{Name: "jobs", Token: "TOKEN", Fence: 7, Separator: "/"}},
		{"a slot that there is not", Handle{Name: "jobs", Token: "TOKEN", Fence: 7, Slot: 3, Slots: 2}},
		{"another set of nodes", Handle{Name: "jobs", Token: "TOKEN", Fence: 7, TTL: time.Second, Healed: []string{"10.0.0.9:6379"}}},
		{"a lock that is not there", Handle{Name: "gone", Token: "TOKEN", Fence: 7, TTL: time.Second}},
	} {
		_, err = lk.Attach(t.Context(), h.Handle)
		g.say(h.when, err)
	}
	_, err = lk.Attach(t.Context(), Handle{Name: "jobs", Token: "TOKEN", Fence: 7, TTL: time.Second}, Shared())
	g.say("an option that the handle has", err)
}

func breakTexts(t *testing.T, g *texts) {
	f, lk, _ := aFleet(t, 3, Options{Separator: "/"})
	slot := acquired(t, lk, "pool", Slots(2))
	own := slot.claim.Keys[1]
	without := &lane.Claim{Key: own, Keys: []string{own}, Modes: string(wire.ModeSlot), Token: slot.Token(), TTL: time.Second}
	without.Span(len(f.nodes))
	for i := range f.nodes {
		without.Found(lk.lanes.Lane(i))
		lk.lanes.Lane(i).Submit(&lane.Request{Op: wire.Release, Claim: without, To: lane.Nobody{}}, time.Now())
	}
	pass(time.Second)
	g.say("a slot without its key", lk.Break(t.Context(), "pool", slot.Token()))
	l := acquired(t, lk, "jobs/night")
	g.say("no name", lk.Break(t.Context(), "", "TOKEN"))
	g.say("no token", lk.Break(t.Context(), "jobs", ""))
	g.say("a lock below it", lk.Break(t.Context(), "jobs", l.Token()))
	g.say("another lock", lk.Break(t.Context(), "jobs/night", "TOKEN"))
	g.say("a lock that is not there", lk.Break(t.Context(), "gone", "TOKEN"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g.say("the context has ended", lk.Break(ctx, "jobs/night", l.Token()))
	for _, n := range f.nodes[:2] {
		n.Hang(true)
	}
	g.say("two nodes hang", lk.Break(t.Context(), "jobs/night", l.Token()))
	for _, n := range f.nodes[:2] {
		n.Hang(false)
	}
}

func readyTexts(t *testing.T, g *texts) {
	f, lk, _ := aFleet(t, 3, Options{})
	f.nodes[0].Flush()
	f.nodes[1].Kill()
	_, _ = lk.TryAcquire(t.Context(), "jobs")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	g.say("a node was flushed, and one is down", lk.WaitReady(ctx))
}

// voteTexts: why a node has no vote, and that it votes again.
func voteTexts(t *testing.T, g *texts) {
	f, lk, _ := aFleet(t, 3, Options{Hooks: g.hooks(slog.LevelInfo)})
	try := func() { _, _ = lk.TryAcquire(t.Context(), "jobs", TTL(time.Millisecond*10)) }
	f.nodes[0].Flush()
	try()
	pass(11 * time.Second)
	try() // the others show what they know
	pass(time.Second)
	g.log("a node is emptied")
	f.nodes[0].Step(time.Minute)
	try()
	pass(20 * time.Second)
	try()
	g.log("a node's clock is set, and stays there")
	f.nodes[0].Step(-time.Minute)
	try()
	pass(20 * time.Second)
	try()
	g.log("and is set right")

	mark := func(run string, born time.Time, db string) string {
		return wire.Marker{RunID: run, Born: born.UnixMilli(), Writer: born.UnixMilli(), DB: db}.String()
	}
	for _, m := range []struct {
		when          string
		before, value func(now time.Time) string
	}{
		{"a node is new", func(time.Time) string { return "" }, func(now time.Time) string { return mark("r", now, "0") }},
		{"a node was new when it was first seen, and its quarantine is not over", func(now time.Time) string { return mark("r", now.Add(-3*time.Second), "0") }, func(now time.Time) string { return mark("r", now.Add(-3*time.Second), "0") }},
		{"a node was restarted", func(now time.Time) string { return mark("q", now.Add(-time.Hour), "0") }, func(now time.Time) string { return mark("r", now, "0") }},
		{"a node's databases were swapped", func(now time.Time) string { return mark("r", now.Add(-time.Hour), "1") }, func(now time.Time) string { return mark("r", now, "0") }},
		{"a node's marker is of the future", func(now time.Time) string { return mark("r", now.Add(time.Hour), "0") }, func(now time.Time) string { return mark("r", now, "0") }},
	} {
		ms := newModels(3)
		lk := ms.over(t, &Options{Hooks: g.hooks(slog.LevelInfo)}, func(c *modelConn) {
			if c.model == ms[0] {
				c.Server = &marked{c.Server, c.session, m.before, m.value}
			}
		})
		g.log(m.when)
		lk.Close()
	}
}

// A marked is a connection to a node that shows these markers when it is joined.
type marked struct {
	lane.Server
	session       lane.Session
	before, value func(time.Time) string
}

func (m *marked) Connect(context.Context) error {
	now := m.session.Now()
	m.session.Joined(wire.Mark{Value: m.value(now), Before: m.before(now), Now: now.UnixMicro()}, now)
	return nil
}

func warningTexts(t *testing.T, g *texts) {
	f := newFleet(t, 3)
	short, _ := f.open(Options{TTL: 2 * time.Second, Hooks: g.hooks(slog.LevelInfo)})
	operator, _ := f.open(Options{TTL: time.Second})
	acquired(t, short, "jobs", AutoRenew())
	second := time.Second
	if _, err := operator.Change(t.Context(), Change{MaxTTL: &second}, nil); err != nil {
		t.Error(err)
	}
	pass(3 * time.Second)
	g.log("the set gets a MaxTTL that is shorter than that of a program, which holds a lock")
	short.Close()

	f = newFleet(t, 3)
	short, _ = f.open(Options{TTL: 2 * time.Second, Quorum: 2, Hooks: g.hooks(slog.LevelInfo)})
	operator, _ = f.open(Options{TTL: time.Second})
	acquired(t, short, "jobs", AutoRenew())
	three := 3
	if _, err := operator.Change(t.Context(), Change{Quorum: &three}, nil); err != nil {
		t.Error(err)
	}
	pass(3 * time.Second)
	g.log("the set gets another quorum than a program wants, which holds a lock")
	short.Close()

	f = newFleet(t, 3)
	day, _ := f.open(Options{TTL: 24 * time.Hour})
	f.nodes[0].Flush()
	f.nodes[1].Flush()
	_, err := day.TryAcquire(t.Context(), "jobs")
	g.say("nodes are new, and the first program has locks of a day", err)

	f = newFleet(t, 3)
	short, _ = f.open(Options{TTL: time.Second, Hooks: g.hooks(slog.LevelInfo)})
	l := acquired(t, short, "jobs", TTL(8*time.Second))
	pass(time.Second)
	f.nodes[0].Flush()
	_, _ = short.TryAcquire(t.Context(), "other")
	pass(100 * time.Millisecond)
	minute, two := time.Minute, 2*time.Second
	for _, most := range []*time.Duration{&minute, &two} {
		if _, err := short.Change(t.Context(), Change{MaxTTL: most}, nil); err != nil {
			t.Error(err)
		}
	}
	g.log("a node was emptied, and the set gets a longer MaxTTL, and a shorter one")
	g.say("a lock is extended that is longer than that", l.Extend(t.Context()))
	f.nodes[2].Kill()
	pass(3 * time.Second)
	_, err = short.Change(t.Context(), Change{MaxTTL: &minute}, nil)
	g.say("a longer MaxTTL, while a member is away", err)

	f, lk, _ := aFleet(t, 3, Options{Hooks: g.hooks(slog.LevelInfo)})
	for _, n := range f.nodes[:1] {
		n.Step(24 * time.Hour)
	}
	fresh, _ := f.open(Options{Hooks: g.hooks(slog.LevelInfo)})
	_, err = fresh.TryAcquire(t.Context(), "jobs")
	if err != nil {
		t.Error(err)
	}
	g.log("a node's clock is far from the others'")
	_ = lk
	pass(time.Second)
	f.nodes[1].Kill()
	_, err = fresh.TryAcquire(t.Context(), "late")
	g.say("and with another node down", err)
}

// forgottenTexts: the place in the program is that of acquired in rig_test.go, without its line.
func forgottenTexts(t *testing.T, g *texts) {
	g.logged.take()
	_, lk, _ := aFleet(t, 3, Options{Hooks: g.hooks(slog.LevelInfo)})
	l := acquired(t, lk, "jobs", AutoRenew())
	pass(2 * time.Hour)
	_ = l.Release(t.Context())
	g.say("a lock is renewed for long, and no context of it is in use", regexp.MustCompile(`_test\.go:\d+`).ReplaceAllString(g.logged.take(), "_test.go:1"))
}

// orderTexts: what happens to a node is told once, in the order in which it happens.
func orderTexts(t *testing.T, g *texts) {
	f, lk, _ := aFleet(t, 3, Options{Hooks: g.hooks(slog.LevelInfo)})
	f.nodes[0].Kill()
	acquired(t, lk, "a")
	pass(5 * time.Second)
	f.nodes[0].Restart(false)
	pass(15 * time.Second)
	acquired(t, lk, "b")
	pass(time.Second)
	g.log("a node goes down, and comes back empty")
}

func slowTexts(t *testing.T, g *texts) {
	before, told := openLockers.Swap(manyLockers-1), toldLockers.Swap(false)
	newModels(3).locker(t, &Options{Hooks: g.hooks(slog.LevelInfo)})
	g.log("a program makes a Locker for each request")
	openLockers.Store(before + 1)
	toldLockers.Store(told)
	stuck := make(chan struct{})
	hooks := JoinHooks(g.hooks(slog.LevelInfo), &Hooks{Joined: func(Members) { <-stuck }})
	lk := newModels(3).locker(t, &Options{Hooks: hooks})
	for i := range 1030 {
		lk.settings().callbacks.warning(fmt.Errorf("redlock: node %d cannot be used", i))
	}
	close(stuck)
	synctest.Wait()
	g.say("a hook was slow", slices.Collect(strings.Lines(g.logged.take()))[0])

	stuck = make(chan struct{})
	lk = newModels(3).locker(t, &Options{Hooks: hooks})
	lk.settings().callbacks.warning(errors.New("redlock: a node cannot be used"))
	g.say("the Locker is closed, and a hook has not returned", lk.Close())
	close(stuck)
	synctest.Wait()
	g.logged.take()
}

func debugTexts(t *testing.T, g *texts) {
	f, lk, _ := aFleet(t, 3, Options{Hooks: g.hooks(slog.LevelDebug)})
	other, _ := f.open(Options{})
	l := acquired(t, other, "jobs")
	time.AfterFunc(50*time.Millisecond, func() { _ = l.Release(context.Background()) })
	l, err := lk.Acquire(t.Context(), "jobs")
	if err != nil {
		t.Fatal(err)
	}
	pass(time.Second)
	_ = l.Extend(t.Context())
	_ = l.Release(t.Context())
	g.log("a lock is waited for, extended and released")
	if _, err := lk.TryAcquire(t.Context(), "jobs", TTL(time.Second)); err != nil {
		t.Error(err)
	}
	g.log("asked for once")
}

// TestErrorsAreShown: each text of an error or a log line in the source of the library is in
// testdata/errors.golden, so that a reviewer sees it.
func TestErrorsAreShown(t *testing.T) {
	text, err := os.ReadFile(errorsGolden)
	if err != nil {
		t.Fatal(err)
	}
	shown := string(text)
	verbs := regexp.MustCompile(`%[-+# 0]*[0-9.]*[a-zA-Z]`)
	check := func(at token.Position, text string) {
		for _, part := range verbs.Split(text, -1) {
			part = strings.TrimSpace(part)
			if !regexp.MustCompile(`[a-zA-Z]{2}`).MatchString(part) || strings.Contains(shown, part) {
				continue
			}
			t.Errorf("%v: %s does not have %q", at, errorsGolden, part)
		}
	}
	dirs := []string{".", "internal/lane", "internal/redisnode", "internal/resp", "internal/waitlist", "internal/wire", "internal/facts", "internal/nodeurl"}
	golden.EachSource(t, dirs, func(_ string, fset *token.FileSet, file *ast.File) {
		for _, decl := range file.Decls {
			fn, _ := decl.(*ast.FuncDecl)
			says := fn != nil && slices.Contains([]string{"Error", "reason", "rejectReason", "warning", "notATTL", "Unsupported"}, fn.Name.Name)
			ast.Inspect(decl, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					if slices.Contains([]string{"Errorf", "New", "refuse", "Warn", "Info", "DebugContext"}, golden.Called(n)) {
						for _, arg := range n.Args[:min(2, len(n.Args))] {
							literals(arg, func(l *ast.BasicLit, text string) { check(fset.Position(l.Pos()), text) })
						}
					}
				case *ast.BasicLit:
					if says && n.Kind == token.STRING && strings.Contains(n.Value, " ") {
						literals(n, func(l *ast.BasicLit, text string) { check(fset.Position(l.Pos()), text) })
					}
				}
				return true
			})
		}
	})
}

// literals calls f for the strings of an expression: one, or several that are joined.
func literals(e ast.Expr, f func(*ast.BasicLit, string)) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			f(e, text)
		}
	case *ast.BinaryExpr:
		literals(e.X, f)
		literals(e.Y, f)
	}
}
