package redlock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/wire"
	"github.com/quorumlock/redlock/redlocktrace"
)

// A follower writes down what it is told of operations. Every hook looks at the lock
// that it is given, as a logger would, which takes the lock's mutex.
type follower struct {
	mu      sync.Mutex
	told    []string // all but the answers
	answers []redlocktrace.Reply
	ends    []redlocktrace.Operation
	strays  int // calls that did not get Start's context
}

type followed struct{ op string }

func (f *follower) hooks() *Hooks {
	return &Hooks{
		Lost: func(l *Lock, cause error) { f.tell("lost: %v", kindOf(cause)); _ = l.LogValue() },
		Trace: &redlocktrace.Trace{Start: func(ctx context.Context, op redlocktrace.Operation) context.Context {
			from, _ := ctx.Value(followed{}).(*followed)
			if from != nil {
				f.tell("start %s in %s", op.Op, from.op)
			} else {
				f.tell("start %s", op.Op)
			}
			if op.Lock != nil {
				_ = op.Lock.(*Lock).LogValue()
			}
			return context.WithValue(ctx, followed{}, &followed{op: op.Op})
		},
			Wait: func(ctx context.Context, op redlocktrace.Operation) {
				f.check(ctx, op.Op)
				f.tell("wait %s, %d tries: %v", op.Op, op.Tries, kindOf(op.Err))
			},
			Node: func(ctx context.Context, a redlocktrace.Reply) {
				f.check(ctx, "")
				f.mu.Lock()
				defer f.mu.Unlock()
				f.answers = append(f.answers, a)
			},
			End: func(ctx context.Context, op redlocktrace.Operation) {
				f.check(ctx, op.Op)
				f.tell("end %s, %d tries: %v", op.Op, op.Tries, kindOf(op.Err))
				if op.Lock != nil {
					_ = op.Lock.(*Lock).LogValue()
				}
				f.mu.Lock()
				defer f.mu.Unlock()
				f.ends = append(f.ends, op)
			}}}
}

func kindOf(err error) error {
	for _, kind := range []error{ErrHeld, ErrNoQuorum, ErrClosed, ErrLost} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	return err
}

func (f *follower) check(ctx context.Context, op string) {
	if got, _ := ctx.Value(followed{}).(*followed); got == nil || op != "" && got.op != op {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.strays++
	}
}

func (f *follower) tell(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = append(f.told, fmt.Sprintf(format, args...))
}

// want checks what was told since it was last asked.
func (f *follower) want(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Equal(f.told, want) {
		t.Errorf("told\n\t%s\nwant\n\t%s", strings.Join(f.told, "\n\t"), strings.Join(want, "\n\t"))
	}
	if f.strays > 0 {
		t.Errorf("%d calls did not get the context that Start has returned", f.strays)
	}
	f.told, f.strays = nil, 0
}

// last is the last operation that ended.
func (f *follower) last() redlocktrace.Operation {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ends[len(f.ends)-1]
}

// TestHooksFollowOperations: each of them begins and ends once, and what puts nothing on
// the wire is none.
func TestHooksFollowOperations(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var f follower
		ms := newModels(3)
		lk := ms.locker(t, &Options{Hooks: f.hooks()})
		ctx := t.Context()

		l, err := lk.TryAcquire(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		f.want(t, "start try-acquire", "end try-acquire, 1 tries: <nil>")
		if op := f.last(); op.Lock != l || op.Name != "a" || op.Waited != 0 {
			t.Errorf("got %+v, and not the lock", op)
		}
		j, err := lk.Acquire(l.Context(ctx), "a", Reentrant())
		if err != nil {
			t.Fatal(err)
		}
		j.Release(ctx)
		f.want(t)
		time.Sleep(time.Second)
		l.Extend(ctx)
		if held := time.Since(l.Since()); held != time.Second {
			t.Errorf("had since %v, which is %v ago", l.Since(), held)
		}
		f.want(t, "start extend", "end extend, 0 tries: <nil>")
		if _, err := lk.TryAcquire(ctx, "a"); !errors.Is(err, ErrHeld) {
			t.Error(err)
		}
		f.want(t, "start try-acquire", "end try-acquire, 1 tries: held by another")
		l.Release(ctx)
		l.Release(ctx)
		f.want(t, "start release", "end release, 0 tries: <nil>")

		l = acquired(t, lk, "b")
		<-l.Context(ctx).Done()
		l.Release(ctx)
		f.want(t, "start try-acquire", "end try-acquire, 1 tries: <nil>", "lost: lock lost")
	})
}

// TestHooksFollowRenewals: they have no caller, whose context may have ended, but what
// Start has put into it is there; and those under way when the Locker is closed end.
func TestHooksFollowRenewals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var f follower
		ms := newModels(3)
		lk := ms.locker(t, &Options{Hooks: f.hooks()})
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := lk.Acquire(ctx, "a", AutoRenew()); err != nil {
			t.Fatal(err)
		}
		cancel()
		f.want(t, "start acquire", "end acquire, 1 tries: <nil>")
		pass(lk.settings().TTL / 3)
		f.want(t, "start renew in acquire", "end renew, 0 tries: <nil>")
		ms[0].hang()
		ms[1].hang()
		pass(lk.settings().TTL / 3)
		f.want(t, "start renew in acquire")
		lk.Close()
		f.want(t, "lost: redlock: closed", "end renew, 0 tries: redlock: closed")
	})
}

// TestHooksFollowWaiters: a waiter reports that it waits, and how long it has waited when it gets
// the lock.
func TestHooksFollowWaiters(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var f follower
		ms := newModels(3)
		l := acquired(t, ms.locker(t, nil), "a")
		lk := ms.locker(t, &Options{Hooks: f.hooks()})
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				l, err := lk.Acquire(t.Context(), "a")
				if err != nil {
					t.Error(err)
					return
				}
				l.Release(t.Context())
			})
			pass(time.Millisecond)
		}
		f.mu.Lock()
		// The beginning of a subscription is taken for a call, so there is a second try.
		f.told = slices.DeleteFunc(f.told, func(s string) bool { return strings.Contains(s, "2 tries") })
		f.mu.Unlock()
		f.want(t, "start acquire", "wait acquire, 1 tries: held by another", "start acquire", "wait acquire, 0 tries: <nil>")
		time.Sleep(98 * time.Millisecond)
		l.Release(t.Context())
		wg.Wait()
		synctest.Wait() // callbacks run a moment later
		f.mu.Lock()
		defer f.mu.Unlock()
		var waited []time.Duration
		for _, op := range f.ends {
			if op.Op == "acquire" {
				waited = append(waited, op.Waited)
			}
		}
		if want := []time.Duration{100 * time.Millisecond, 99 * time.Millisecond}; !slices.Equal(waited, want) {
			t.Errorf("waited %v, want %v", waited, want)
		}
	})
}

// TestHooksTellAnswers: one for each node, late if the others have decided.
func TestHooksTellAnswers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var f follower
		ms := newModels(5)
		lk := ms.locker(t, &Options{Hooks: f.hooks()})
		ms[0].kill()
		ms[4].slow(10 * time.Millisecond) // and as much back
		acquired(t, lk, "z").Release(t.Context())
		pass(time.Second) // by now node0 is known to be down, and answers at once
		f.mu.Lock()
		f.answers = nil
		f.mu.Unlock()
		l := acquired(t, lk, "a")
		pass(time.Second)
		f.mu.Lock()
		defer f.mu.Unlock()
		slices.SortFunc(f.answers, func(a, b redlocktrace.Reply) int { return strings.Compare(a.Node, b.Node) })
		if len(f.answers) != 5 {
			t.Fatalf("got %v", f.answers)
		}
		for i, a := range f.answers {
			want := redlocktrace.Reply{Step: "acquire", Name: "a", Node: ms[i].name, Outcome: "granted"}
			switch i {
			case 0:
				why := a.Err.(*NodeError)
				if why.Outcome != OutcomeUnreachable || why.Err != errCut || why.Node != ms[i].name {
					t.Errorf("got %+v", why)
				}
				want.Outcome, want.Err = "unreachable", why
			case 4:
				want.Elapsed, want.Late = 20*time.Millisecond, true
			}
			want.At = l.Since().Add(want.Elapsed)
			if a != want {
				t.Errorf("got %+v, want %+v", a, want)
			}
		}
		if n := ms.held("a", l.Token()); n != 4 {
			t.Errorf("held on %d", n)
		}
	})
}

// TestHooksOff: a Locker without hooks for operations has no cost for them.
func TestHooksOff(t *testing.T) {
	clock := &countingClock{}
	lk := new(Locker)
	lk.inForce.Store(&settings{Options: Options{Clock: clock}, told: newCallbacks(LogHooks(slog.New(slog.DiscardHandler)))})
	r := &round{op: wire.Acquire, lock: &Lock{}}
	why := &QuorumError{Kind: ErrHeld}
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		c := lk.begins(ctx, "acquire", "a", nil)
		c.tries()
		c.wait(why)
		c.answer(r, nil, nil, true)
		_ = c.renewing()
		c.ends(nil, nil)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if n := clock.Load(); n != 0 {
		t.Errorf("looked at the clock %d times", n)
	}
}

type countingClock struct{ atomic.Int64 }

func (c *countingClock) Now() time.Time { c.Add(1); return time.Now() }

// TestJoinHooks: every hook there is, and of both.
func TestJoinHooks(t *testing.T) {
	var calls []string
	record := func(who string) *Hooks {
		h := new(Hooks)
		v := reflect.ValueOf(h).Elem()
		for i := range v.NumField() {
			hook := v.Type().Field(i)
			if hook.Type.Kind() != reflect.Func {
				continue // the Trace, which redlocktrace joins
			}
			v.Field(i).Set(reflect.MakeFunc(hook.Type, func(args []reflect.Value) []reflect.Value {
				calls = append(calls, hook.Name+" "+who)
				return args[:hook.Type.NumOut()] // Start's context
			}))
		}
		return h
	}
	joined := reflect.ValueOf(*JoinHooks(record("one"), nil, new(Hooks), record("two")))
	for i := range joined.NumField() {
		hook := joined.Type().Field(i)
		if hook.Type.Kind() != reflect.Func {
			continue
		}
		args := make([]reflect.Value, hook.Type.NumIn())
		for j := range args {
			args[j] = reflect.Zero(hook.Type.In(j))
		}
		calls = nil
		joined.Field(i).Call(args)
		if want := []string{hook.Name + " one", hook.Name + " two"}; !slices.Equal(calls, want) {
			t.Errorf("called %q, want %q", calls, want)
		}
	}
	if JoinHooks(new(Hooks), LogHooks(slog.New(slog.DiscardHandler))).Trace != nil {
		t.Error("joined hooks follow operations although neither of them does")
	}
}

// TestLogHooksDebug: operations are logged at debug level.
func TestLogHooksDebug(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
		lk := newModels(3).locker(t, &Options{Hooks: LogHooks(log)})
		acquired(t, lk, "a").Release(t.Context())
		synctest.Wait()
		for _, want := range []string{`msg="redlock: try-acquire" name=a tries=1`, `msg="redlock: release" name=a`} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("no %s in %s", want, out.String())
			}
		}
	})
}
