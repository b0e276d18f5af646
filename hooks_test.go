package redlock

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
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

// TestHooksFollowOperations: each operation is told when it begins and when it ends, once. A call that sends nothing
// to the nodes is no operation.
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

// TestHooksTellAnswers: Trace.Node is called once for each node of an operation. An answer that comes after the
// operation was decided is told as late.
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
			want := redlocktrace.Reply{Step: "acquire", Name: "a", Node: ms[i].Name, Outcome: "granted"}
			switch i {
			case 0:
				why := a.Err.(*NodeError)
				if why.Outcome != OutcomeUnreachable || why.Err != syscall.ECONNREFUSED || why.Node != ms[i].Name {
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

// TestHooksThatAreOffCostNothing: a Locker without hooks for operations has no cost for them.
func TestHooksThatAreOffCostNothing(t *testing.T) {
	clock := &countingClock{}
	lk := new(Locker)
	lk.inForce.Store(&settings{Options: Options{Clock: clock}, callbacks: newCallbacks(LogHooks(slog.New(slog.DiscardHandler)))})
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

// TestJoinHooksCallsBoth: JoinHooks calls each hook there is of both Hooks, and leaves out those that are nil.
func TestJoinHooksCallsBoth(t *testing.T) {
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

// everyHook returns hooks and a trace of which each callback calls f with its name first. New callbacks are in
// it, too.
func everyHook(f func(name string)) *Hooks {
	h := &Hooks{Trace: new(redlocktrace.Trace)}
	for prefix, callbacks := range map[string]reflect.Value{"Hooks.": reflect.ValueOf(h).Elem(), "Trace.": reflect.ValueOf(h.Trace).Elem()} {
		for i := range callbacks.NumField() {
			field := callbacks.Type().Field(i)
			if field.Type.Kind() != reflect.Func {
				continue
			}
			callbacks.Field(i).Set(reflect.MakeFunc(field.Type, func(args []reflect.Value) []reflect.Value {
				f(prefix + field.Name)
				switch field.Name {
				case "Start":
					return args[:1]
				case "ID":
					return []reflect.Value{reflect.ValueOf("")}
				}
				return nil
			}))
		}
	}
	return h
}

// TestSlowHooks: hooks that sleep for five TTLs lose no lock, and nothing that the library promises takes longer.
// What a caller waits for is Trace.Start alone, and only before it has a lock.
func TestSlowHooks(t *testing.T) {
	for _, which := range []string{"", "Hooks.NodeDown", "Hooks.NodeUp", "Hooks.RenewalFailed", "Hooks.RenewalRecovered"} {
		t.Run(cmp.Or(which, "all"), func(t *testing.T) { slowHooks(t, which) })
	}
}

// slowHooks has one callback sleep, or all of them.
func slowHooks(t *testing.T, which string) {
	bubble(t, func(t *testing.T) {
		const ttl = 3 * time.Second
		var slow atomic.Bool
		var slept atomic.Int32
		ms := newModels(3)
		lk := ms.locker(t, &Options{TTL: ttl, Hooks: everyHook(func(name string) {
			if slow.Load() && (which == "" || which == name) {
				slept.Add(1)
				time.Sleep(5 * ttl)
			}
		})})
		var locks []*Lock
		for i := range 100 {
			l, err := lk.Acquire(t.Context(), fmt.Sprint("kept ", i), AutoRenew())
			if err != nil {
				t.Fatal(err)
			}
			locks = append(locks, l)
		}
		brief, other := acquired(t, lk, "brief"), acquired(t, lk, "other")
		end := brief.Context(t.Context())
		synctest.Wait()
		slow.Store(true)

		// A quorum is away for half of the TTL, from just before all locks are renewed: so renewals fail, the node whose
		// connections break is told to be down, and both come back.
		time.Sleep(ttl * 3 / 10)
		ms[0].hang()
		ms[1].kill()
		time.Sleep(ttl * 5 / 10)
		ms[0].resume()
		ms[1].revive()
		time.Sleep(time.Until(brief.Until()))
		if synctest.Wait(); end.Err() == nil {
			t.Error("the context of a lock that was not extended has not ended in time")
		}
		if err := other.Release(t.Context()); !errors.Is(err, ErrLost) {
			t.Errorf("released after its end: %v", err)
		}
		time.Sleep(10 * ttl)
		if slept.Load() == 0 {
			t.Error("the hook was not called, and this tests nothing")
		}
		for _, l := range locks {
			if err := l.why(); err != nil {
				t.Fatalf("lost: %v", err)
			}
		}
		begin := time.Now()
		if err := locks[0].Extend(t.Context()); err != nil {
			t.Error(err)
		}
		for _, l := range locks[:50] {
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(begin); took > 0 {
			t.Errorf("an extension and 50 releases took %v", took)
		}
		begin = time.Now()
		err := lk.Close()
		if took := time.Since(begin); took > 2*lk.settings().NodeTimeout+time.Second {
			t.Errorf("Close took %v", took)
		}
		if once := strings.HasPrefix(which, "Hooks.Node"); once != (err == nil) || !once && !strings.Contains(err.Error(), " has not returned, and ") {
			t.Errorf("Close: %v", err)
		}
		time.Sleep(5 * ttl) // until the last hook has returned; then no goroutine is left
	})
}

// TestHookThatNeverReturnsCostsABoundedAmount: a hook that never returns costs its Locker the hooks, bounded memory, and a second in New and Close.
func TestHookThatNeverReturnsCostsABoundedAmount(t *testing.T) {
	bubble(t, func(t *testing.T) {
		stuck := make(chan struct{})
		begin := time.Now()
		lk := newModels(3).locker(t, &Options{Hooks: everyHook(func(name string) {
			if strings.HasPrefix(name, "Hooks.") || name == "Trace.End" || name == "Trace.Node" {
				<-stuck
			}
		})})
		if took := time.Since(begin); took != time.Second {
			t.Errorf("New took %v", took)
		}
		begin = time.Now()
		for range 5000 {
			l := acquired(t, lk, "a")
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("the locks took %v", took)
		}
		begin = time.Now()
		err := lk.Close()
		if took := time.Since(begin); took != time.Second || err == nil {
			t.Errorf("Close took %v: %v", took, err)
		}
		close(stuck)
	})
}

// TestHookMayUseAndCloseTheLocker: a hook may use the Locker, and even close it.
func TestHookMayUseAndCloseTheLocker(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var lk *Locker
		var again *Lock
		ms := newModels(3)
		hooks := &Hooks{Lost: func(l *Lock, _ error) {
			again, _ = lk.TryAcquire(context.Background(), l.Name())
			if err := lk.Close(); err == nil || !strings.Contains(err.Error(), "Hooks.Lost has not returned") {
				t.Errorf("closed by a hook: %v", err)
			}
		}}
		lk = ms.locker(t, &Options{Hooks: hooks})
		l := acquired(t, lk, "a")
		<-l.Context(t.Context()).Done()
		if pass(2 * time.Second); again == nil {
			t.Error("the hook has not got the lock")
		}
	})
}

// TestHooksAreCopied: what is changed in the hooks, or in the trace, after New has no effect.
func TestHooksAreCopied(t *testing.T) {
	bubble(t, func(t *testing.T) {
		hooks := &Hooks{Trace: new(redlocktrace.Trace)}
		lk := newModels(3).locker(t, &Options{Hooks: hooks})
		hooks.Lost = func(*Lock, error) { t.Error("called") }
		hooks.Trace.End = func(context.Context, redlocktrace.Operation) { t.Error("called") }
		<-acquired(t, lk, "a").Context(t.Context()).Done()
		synctest.Wait()
	})
}

// TestPanicOfStartReachesTheCaller: Start is called on the caller's goroutine, which may recover; nothing is left locked.
func TestPanicOfStartReachesTheCaller(t *testing.T) {
	bubble(t, func(t *testing.T) {
		panics := false
		lk := newModels(3).locker(t, &Options{Hooks: &Hooks{Trace: &redlocktrace.Trace{Start: func(ctx context.Context, _ redlocktrace.Operation) context.Context {
			if panics {
				panic("start")
			}
			return ctx
		}}}})
		l := acquired(t, lk, "b")
		h, err := l.Detach()
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		panics = true
		for what, call := range map[string]func(){
			"TryAcquire": func() { lk.TryAcquire(t.Context(), "a") },
			"Acquire":    func() { lk.Acquire(t.Context(), "a") },
			"Attach":     func() { lk.Attach(t.Context(), h) },
			"Break":      func() { lk.Break(t.Context(), "b", h.Token) },
		} {
			func() {
				defer func() {
					if recover() != "start" {
						t.Errorf("%s has not panicked", what)
					}
				}()
				call()
			}()
		}
		panics = false
		acquired(t, lk, "a")
		begin := time.Now()
		if err := lk.Close(); err != nil || time.Since(begin) > 0 {
			t.Errorf("Close took %v: %v", time.Since(begin), err)
		}
	})
}
