package redlock

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/redlocktrace"
)

func inspected(t *testing.T, lk *Locker, name string) *Status {
	t.Helper()
	s, err := lk.Inspect(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestInspectNamesHolderAndNodes: the holder of the lock, for how long, with which fence, and according to which nodes.
func TestInspectNamesHolderAndNodes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes := redistest.NewBubble(t, 5)
		lk, err := New(nodes.Clients(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer lk.Close()
		if s := inspected(t, lk, "a"); s.State != StateFree || s.Fence != 0 || s.Token != "" || len(s.Nodes) != 5 {
			t.Errorf("it was never locked: %+v", s)
		}
		l := acquired(t, lk, "a")
		pass(4 * time.Second)
		s := inspected(t, lk, "a")
		if s.State != StateHeld || s.Token != l.Token() || s.Fence != l.Fence() || s.TTL <= 5*time.Second || s.TTL > 6*time.Second {
			t.Errorf("held for four seconds: %+v", s)
		}
		if at := s.Nodes[4]; at.Node != nodes.Addr(4) || at.Token != l.Token() || at.Err != nil || at.TTL != s.TTL {
			t.Errorf("one of the nodes: %+v", at)
		}

		nodes.Kill(0)
		nodes.Hang(1)
		nodes.Mini(2).FlushAll()
		s = inspected(t, lk, "a")
		if s.State != StateUnknown && s.State != StateSplit {
			t.Errorf("two of five nodes hold it: %+v", s)
		}
		for i, want := range []Outcome{OutcomeUnreachable, OutcomeTimeout, OutcomeQuarantined} {
			if e := s.Nodes[i].Err; e == nil || e.Outcome != want {
				t.Errorf("node %d: %v, want %v", i, e, want)
			}
		}
		if e := s.Nodes[2].Err; e != nil && (e.TTL <= 10*time.Second || !strings.Contains(e.Error(), "quarantined for 10s") || !strings.Contains(e.Error(), "lost its data")) {
			t.Errorf("the quarantine is told as %v", e)
		}
		nodes.Restart(0, true)
		nodes.Resume(1)
		pass(2 * time.Second)
		if s := inspected(t, lk, "a"); s.State != StateHeld || s.Nodes[0].Err == nil || s.Nodes[0].Token != l.Token() {
			t.Errorf("four of five nodes hold it, one of them without a vote: %+v", s)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if s := inspected(t, lk, "a"); s.State != StateFree && s.State != StateSplit || s.Fence != 0 || s.Nodes[3].Fence != l.Fence() {
			t.Errorf("released: %+v", s)
		}
		pass(11 * time.Second)
		if s := inspected(t, lk, "a"); s.State != StateFree || s.Nodes[0].Err != nil || s.Nodes[2].Err != nil {
			t.Errorf("all nodes have votes again: %+v", s)
		}
	})
}

// TestInspectRefusesWhatCannotBeAsked: a name that no lock can have is an error of Inspect, as it is of Acquire.
func TestInspectRefusesWhatCannotBeAsked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		lk := newModels(3).locker(t, nil)
		for _, name := range []string{"", "a" + script.QueueSuffix, script.Marker} {
			if _, err := lk.Inspect(t.Context(), name); err == nil || !strings.HasPrefix(err.Error(), "redlock: inspect: the name") {
				t.Errorf("%q: %v", name, err)
			}
			if _, err := lk.TryAcquire(t.Context(), name); err == nil || !strings.HasPrefix(err.Error(), "redlock: acquire: the name") {
				t.Errorf("%q: %v", name, err)
			}
		}
		lk.Close()
		if _, err := lk.Inspect(t.Context(), "a"); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
}

// TestStateByTheNodesAnswers: which State Inspect reports, and for how long, by what each node answers: held if a
// quorum has one token, free if a quorum could grant the lock, split or unknown otherwise.
func TestStateByTheNodesAnswers(t *testing.T) {
	us, they := NodeStatus{Token: "us", TTL: 3 * time.Second, Fence: 7}, NodeStatus{Token: "they", TTL: time.Second, Fence: 6}
	sooner := NodeStatus{Token: "us", TTL: 2 * time.Second, Fence: 7}
	free, down := NodeStatus{}, NodeStatus{Err: &NodeError{Outcome: OutcomeUnreachable}}
	quarantined := NodeStatus{Err: &NodeError{Outcome: OutcomeQuarantined}}
	foreign := NodeStatus{Err: &NodeError{Outcome: OutcomeNotALock}}
	reader := NodeStatus{Holders: []Holder{{Token: "us", Mode: "shared", TTL: time.Second, Nodes: 1}}}
	for _, tt := range []struct {
		name  string
		nodes []NodeStatus
		want  State
		ttl   time.Duration
	}{
		{"all hold it", []NodeStatus{us, us, us, us, sooner}, StateHeld, 3 * time.Second},
		{"just a quorum does", []NodeStatus{us, free, sooner, they, us}, StateHeld, 2 * time.Second},
		{"two of each", []NodeStatus{us, us, they, they, free}, StateSplit, 0},
		{"a quorum could grant it", []NodeStatus{us, us, free, free, free}, StateFree, 0},
		{"not with a node in quarantine", []NodeStatus{us, us, free, free, quarantined}, StateSplit, 0},
		{"nobody has it, as far as two nodes know", []NodeStatus{free, free, quarantined, quarantined, quarantined}, StateUnknown, 0},
		{"nobody has it, as far as any node knows", []NodeStatus{quarantined, quarantined, quarantined, quarantined, quarantined}, StateUnknown, 0},
		{"one has a reader", []NodeStatus{reader, free, free, quarantined, quarantined}, StateSplit, 0},
		{"no lock on two", []NodeStatus{free, free, free, foreign, foreign}, StateFree, 0},
		{"no lock on three", []NodeStatus{free, free, foreign, foreign, foreign}, StateUnknown, 0},
		{"too few to tell", []NodeStatus{us, us, down, down, down}, StateUnknown, 0},
		{"enough to tell", []NodeStatus{us, us, us, down, down}, StateHeld, 3 * time.Second},
	} {
		s := Judge("a", tt.nodes, 3)
		if s.State != tt.want || s.TTL != tt.ttl || (s.Fence == 7) != (tt.want == StateHeld) {
			t.Errorf("%s: %v for %v with fence %d, want %v for %v", tt.name, s.State, s.TTL, s.Fence, tt.want, tt.ttl)
		}
	}
}

// TestWaitReadyNeedsAQuorum: it waits neither for a node that is down, nor for one that hangs, nor for one
// that came back later than the others.
func TestWaitReadyNeedsAQuorum(t *testing.T) {
	for _, tt := range []struct {
		name string
		last func(nodes *redistest.Bubble, lk *Locker)
	}{
		{"down", func(nodes *redistest.Bubble, _ *Locker) { nodes.Kill(4) }},
		{"hung", func(nodes *redistest.Bubble, _ *Locker) { nodes.Hang(4) }},
		{"late", func(nodes *redistest.Bubble, lk *Locker) {
			pass(9 * time.Second)
			nodes.Restart(4, true)
			_, _ = lk.TryAcquire(context.Background(), "a")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				nodes := redistest.NewBubble(t, 5)
				for i := range 4 {
					nodes.Mini(i).FlushAll()
				}
				lk, err := New(nodes.Clients(), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer lk.Close()
				begin := time.Now()
				tt.last(nodes, lk)
				if err := lk.WaitReady(t.Context()); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(begin); took < 10*time.Second || took > 10500*time.Millisecond {
					t.Errorf("ready after %v", took)
				}
				begin = time.Now()
				if err := lk.WaitReady(t.Context()); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(begin); took > time.Millisecond {
					t.Errorf("ready nodes are waited for: %v", took)
				}
			})
		})
	}
}

// TestWaitReady: new nodes have no vote at first; WaitReady returns when they do, or
// says what is the matter.
func TestWaitReady(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes := redistest.NewBubble(t, 3)
		for i := range 3 {
			nodes.Mini(i).FlushAll()
		}
		begin := time.Now()
		lk, err := New(nodes.Clients(), nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err = lk.WaitReady(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(message(err), "redlock: wait-ready: no quorum: 0 votes, 2 of 3 needed, context deadline exceeded (10.0.0.1:6379: quarantined for ") {
			t.Error(err)
		}
		_, err = lk.TryAcquire(t.Context(), "a")
		for _, way := range []string{"Locker.WaitReady", "redlock prepare --fresh", "package redlocktest", "docs/testing.md"} {
			if !strings.Contains(message(err), way) {
				t.Errorf("%v does not name %s", err, way)
			}
		}
		if err := lk.WaitReady(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took < 10*time.Second || took > 10500*time.Millisecond {
			t.Errorf("prepared after %v", took)
		}
		acquired(t, lk, "a")
		lk.Close()
		if err := lk.WaitReady(t.Context()); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
}

// TestAgeGoesOn: how long ago a node was new is said as of when it is said, and not as of
// when that was found.
func TestAgeGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes := redistest.NewBubble(t, 3)
		for i := range 3 {
			nodes.Mini(i).FlushAll()
		}
		first, err := New(nodes.Clients(), nil) // which the nodes are new to
		if err != nil {
			t.Fatal(err)
		}
		defer first.Close()
		pass(time.Second)
		lk, err := New(nodes.Clients(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer lk.Close()
		for range 3 {
			pass(2 * time.Second)
			s := inspected(t, lk, "a")
			_, err := lk.TryAcquire(t.Context(), "a")
			for _, said := range []string{s.Nodes[0].Err.Error(), message(err)} {
				_, rest, _ := strings.Cut(said, "quarantined for ")
				left, after, _ := strings.Cut(rest, ": it was new, restarted, or had lost its data, ")
				ago, _, ok := strings.Cut(after, " ago")
				a, err1 := time.ParseDuration(left)
				b, err2 := time.ParseDuration(ago)
				if sum := a + b; !ok || err1 != nil || err2 != nil || (sum-lk.settings().Quarantine).Abs() > 50*time.Millisecond {
					t.Errorf("the quarantine is %v, and a node says %q", lk.settings().Quarantine, said)
				}
			}
		}
	})
}

// TestStateIsUnknownInQuarantine: no client has had a lock, and nodes that may have forgotten cannot say that it
// is free. Its state is unknown, and not split.
func TestStateIsUnknownInQuarantine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes := redistest.NewBubble(t, 3)
		nodes.Mini(0).FlushAll()
		nodes.Mini(1).FlushAll()
		lk, err := New(nodes.Clients(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer lk.Close()
		if s := inspected(t, lk, "nobody's"); s.State != StateUnknown {
			t.Errorf("two of three nodes cannot tell: %v, %+v", s.State, s)
		}
		pass(11 * time.Second)
		if s := inspected(t, lk, "nobody's"); s.State != StateFree {
			t.Errorf("all can: %v", s.State)
		}
	})
}

// TestKeyThatIsNoLockHasNoHolder: a key without a TTL, or of another type, is no lock, whatever it contains.
func TestKeyThatIsNoLockHasNoHolder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes := redistest.NewBubble(t, 3)
		lk, err := New(nodes.Clients(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer lk.Close()
		for i := range 3 {
			mini := nodes.Mini(i)
			_ = mini.Set("counter", "1")
			_, _ = mini.Push("list", "1")
			mini.HSet("hash", "1", "1")
			_, _ = mini.ZAdd("board", 1, "1")
		}
		for _, key := range []string{"counter", "list", "hash", "board"} {
			s := inspected(t, lk, key)
			if s.State != StateUnknown || s.Token != "" || len(s.Holders) > 0 || s.TTL != 0 {
				t.Errorf("%s: %v by %q, %+v", key, s.State, s.Token, s)
			}
			for _, n := range s.Nodes {
				if n.Err == nil || n.Err.Outcome != OutcomeNotALock || n.Token != "" {
					t.Errorf("%s: %s has %q, and says %v", key, n.Node, n.Token, n.Err)
				}
			}
		}
		// One of three nodes has such a key: the others can tell.
		_ = nodes.Mini(0).Set("stray", "1")
		if s := inspected(t, lk, "stray"); s.State != StateFree || s.Nodes[0].Err == nil || s.Nodes[0].Err.Outcome != OutcomeNotALock {
			t.Errorf("two of three are free: %v, %v", s.State, s.Nodes[0].Err)
		}
	})
}

// TestHolderIsNamedInStatusAndErrors: a lock says whose it is, since when, and of which trace: in Inspect, in the error of those who ask for
// it, whatever its kind, and after it was waited for.
func TestHolderIsNamedInStatusAndErrors(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes := redistest.NewBubble(t, 3)
		type key struct{}
		locker := func(owner string) *Locker {
			lk, err := New(nodes.Clients(), &Options{Owner: owner, Separator: "/", Hooks: &Hooks{Trace: &redlocktrace.Trace{
				Start: func(ctx context.Context, op redlocktrace.Operation) context.Context {
					return context.WithValue(ctx, key{}, owner+"'s "+op.Op)
				},
				ID: func(ctx context.Context) string { return ctx.Value(key{}).(string) },
			}}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { lk.Close() })
			return lk
		}
		one, two := locker("db-1, nightly"), locker("db-2")
		if err := one.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		began := time.Now()
		l := acquired(t, one, "a/b")
		pass(4 * time.Second)
		s, want := inspected(t, two, "a/b"), Identity{Owner: "db-1, nightly", Since: began, Trace: "db-1, nightly's try-acquire"}
		if !reflect.DeepEqual(s.By, want) || !reflect.DeepEqual(Identify(l.Token()), want) {
			t.Errorf("%+v, want %+v", s.By, want)
		}
		if s := inspected(t, two, "a"); len(s.Holders) != 1 || !reflect.DeepEqual(s.Holders[0].By, want) {
			t.Errorf("the folder: %+v", s.Holders)
		}
		_, err := two.TryAcquire(t.Context(), "a/b")
		if text := "held by db-1, nightly (token " + l.Token()[:8] + "…) for "; !errors.Is(err, ErrHeld) || strings.Count(err.Error(), text) < 2 {
			t.Errorf("%v, want %q", err, text)
		}

		several := acquired(t, one, "c", Also("d", "e/f", "c"))
		if got := inspected(t, two, "d").By.Names; !slices.Equal(got, []string{"c", "d", "e/f"}) {
			t.Errorf("a lock on several names says that they are %q", got)
		}
		if err := several.Release(t.Context()); err != nil {
			t.Error(err)
		}

		got := make(chan *Lock)
		go func() {
			l, err := two.Acquire(t.Context(), "a/b")
			if err != nil {
				t.Error(err)
			}
			got <- l
		}()
		pass(time.Second)
		if s := inspected(t, one, "a/b"); len(s.Waiting) != 1 || s.Waiting[0].Owner != "db-2" || s.Waiting[0].Trace != "db-2's acquire" {
			t.Errorf("who waits: %+v", s.Waiting)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if l = <-got; l == nil {
			return
		}
		defer l.Release(t.Context())
		s = inspected(t, one, "a/b")
		if since := time.Since(s.By.Since); s.By.Owner != "db-2" || s.By.Trace != "db-2's acquire" || since < 0 || since > 100*time.Millisecond {
			t.Errorf("waited for: %+v, %v ago", s.By, since)
		}
	})
}

// TestWatchYieldsEachChange: who has the lock, when it is free, who waits, and that too few nodes answer.
func TestWatchYieldsEachChange(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, lk, _ := aFleet(t, 3, Options{Owner: "a"})
		other, _ := f.open(Options{})
		var got []string
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for s, err := range other.Watch(ctx, "leader", 0) {
				if err != nil {
					t.Error(err)
				}
				got = append(got, fmt.Sprint(s.State, len(s.Waiting), s.Token != "" && s.By.Since.IsZero(), voting(s)))
			}
		}()
		pass(3 * time.Second)
		l := acquired(t, lk, "leader", AutoRenew())
		pass(20 * time.Second)
		go func() {
			_ = other.Do(t.Context(), "leader", func(context.Context, *Lock) error { pause(5 * time.Second); return nil })
		}()
		pass(3 * time.Second)
		_ = l.Release(t.Context())
		pass(10 * time.Second)
		f.nodes[0].Kill()
		pass(3 * time.Second)
		f.nodes[1].Kill()
		pass(3 * time.Second)
		cancel()
		<-ended
		want := []string{"free 0 false 3", "held 0 false 3", "held 1 false 3", "held 0 false 3", "free 0 false 3", "free 0 false 2", "unknown 0 false 1"}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// voting counts the nodes with a vote.
func voting(s *Status) (n int) {
	for _, node := range s.Nodes {
		if node.Err == nil {
			n++
		}
	}
	return n
}

func pause(d time.Duration) { time.Sleep(d) }

// TestWatchEnds: with its loop, with a name that cannot be, and with the Locker.
func TestWatchEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, lk, _ := aFleet(t, 3, Options{})
		for range lk.Watch(t.Context(), "a", time.Second) {
			break
		}
		for _, err := range lk.Watch(t.Context(), "", time.Second) {
			if err == nil {
				t.Error("a lock without a name was watched")
			}
		}
		var last error
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for _, last = range lk.Watch(t.Context(), "a", time.Hour) {
			}
		}()
		pass(time.Second)
		lk.Shutdown(t.Context())
		<-ended
		if !errors.Is(last, ErrClosed) {
			t.Errorf("the Locker was closed, and Watch says %v", last)
		}
	})
}
