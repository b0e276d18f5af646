package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/redlocktrace"
)

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

// TestStuckHook: a hook that never returns costs its Locker the hooks, bounded memory, and a second in New and Close.
func TestStuckHook(t *testing.T) {
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

// TestHookCallsLocker: a hook may use the Locker, and even close it.
func TestHookCallsLocker(t *testing.T) {
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

// TestStartPanics: Start is called on the caller's goroutine, which may recover; nothing is left locked.
func TestStartPanics(t *testing.T) {
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
