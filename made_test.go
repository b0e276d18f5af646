package redlock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestZeroValues: no method of a Locker or a Lock that is nil or zero panics, and each that can return an error does.
func TestZeroValues(t *testing.T) {
	failure := reflect.TypeFor[error]()
	for _, value := range []any{(*Locker)(nil), new(Locker), (*Lock)(nil), new(Lock)} {
		v := reflect.ValueOf(value)
		for i := range v.NumMethod() {
			method := v.Type().Method(i)
			if method.Name == "Format" { // of fmt
				_ = fmt.Sprintf("%v %+v", value, value)
				continue
			}
			var args []reflect.Value
			for j := 1; j < method.Type.NumIn(); j++ {
				switch in := method.Type.In(j); {
				case in == reflect.TypeFor[context.Context]():
					args = append(args, reflect.ValueOf(t.Context()))
				case method.Type.IsVariadic() && j == method.Type.NumIn()-1:
				default:
					args = append(args, reflect.Zero(in))
				}
			}
			results := v.Method(i).Call(args)
			if n := len(results); n > 0 && method.Type.Out(n-1) == failure && results[n-1].IsNil() {
				t.Errorf("%T.%s returns no error", value, method.Name)
			}
		}
	}
	if cause := context.Cause((*Lock)(nil).Context(t.Context())); cause != errNoLock {
		t.Errorf("the context of a nil Lock ends with %v", cause)
	}
	for v := range State(100) {
		_ = v.String()
	}
	if d := new(QuorumError).RetryAfter(); d != 0 {
		t.Errorf("a zero QuorumError says to wait for %v", d)
	}
}

// TestNilOption: an option that is nil is named, and not called.
func TestNilOption(t *testing.T) {
	bubble(t, func(t *testing.T) {
		lk := newModels(3).locker(t, nil)
		if _, err := lk.Acquire(t.Context(), "a", AutoRenew(), nil); message(err) != `redlock: acquire "a": option 1 is nil` {
			t.Error(err)
		}
		h, err := acquired(t, lk, "a").Detach()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := lk.Attach(t.Context(), h, nil); message(err) != `redlock: attach "a": option 0 is nil` {
			t.Error(err)
		}
	})
}

// TestMock: a client that sends nothing is a mock. Without a word the Locker would connect to a real server.
func TestMock(t *testing.T) {
	mock := redis.NewClient(&redis.Options{Addr: "10.0.0.1:6379", MaxRetries: -2}) // as redismock makes them
	defer mock.Close()
	if _, err := New([]*redis.Client{mock}, nil); err == nil || !strings.Contains(err.Error(), "it is a mock") {
		t.Errorf("New: %v", err)
	}
}

// TestManyLockers: a program that makes Lockers and never closes them is told, once.
func TestManyLockers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		before, told := openLockers.Swap(0), toldLockers.Swap(false)
		defer func() {
			openLockers.Store(before)
			toldLockers.Store(told)
		}()
		var warned []string
		open := func() *Locker {
			return newModels(1).locker(t, &Options{Hooks: &Hooks{Warning: func(err error) { warned = append(warned, err.Error()) }}})
		}
		for range 2 * manyLockers {
			open().Close()
		}
		if len(warned) > 0 {
			t.Errorf("warned although all are closed: %q", warned)
		}
		var all []*Locker
		for range manyLockers + 20 {
			all = append(all, open())
		}
		for _, lk := range all {
			lk.Close()
		}
		if len(warned) != 1 || !strings.HasPrefix(warned[0], "redlock: this process has 100 open Lockers") {
			t.Errorf("warned %q", warned)
		}
		if n := openLockers.Load(); n != 0 {
			t.Errorf("%d are counted as open", n)
		}
	})
}

// TestNodeDeadlines: an error is that of a context only if the caller's has ended.
func TestNodeDeadlines(t *testing.T) {
	for _, err := range []error{context.DeadlineExceeded, fmt.Errorf("reading: %w", context.Canceled), &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}} {
		e := &QuorumError{Kind: ErrNoQuorum}
		e.note(&NodeError{Node: "a", Outcome: OutcomeTimeout, Err: err})
		if errors.Is(e, context.DeadlineExceeded) || errors.Is(e, context.Canceled) {
			t.Errorf("%v is a context's error", e)
		}
		if e.Cause = context.Canceled; !errors.Is(e, context.Canceled) || errors.Is(e, context.DeadlineExceeded) {
			t.Errorf("%v is not the caller's own", e)
		}
		if why := (*NodeError)(nil); !errors.As(e, &why) || why.Err != err {
			t.Errorf("%v does not have the node's error", e)
		}
	}
	e := &QuorumError{Kind: ErrNoQuorum}
	if e.note(&NodeError{Node: "a", Err: io.EOF}); !errors.Is(e, io.EOF) {
		t.Errorf("%v hides the node's error", e)
	}
}

// TestTamperedHandle: a handle whose fence no lock can have is refused before anything is sent.
func TestTamperedHandle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk := ms.locker(t, nil)
		h, err := acquired(t, lk, "a").Detach()
		if err != nil {
			t.Fatal(err)
		}
		for _, fence := range []int64{-1, 0, 1 << 53, 1<<63 - 1} {
			bad := h
			bad.Fence = fence
			if _, err := lk.Attach(t.Context(), bad); err == nil || errors.Is(err, ErrNoQuorum) || !strings.Contains(err.Error(), fmt.Sprint("fence ", fence, " ")) {
				t.Errorf("fence %d: %v", fence, err)
			}
		}
		for what, option := range map[string]AcquireOption{"TTL": TTL(time.Second), "MaxHold": MaxHold(time.Second), "Reentrant": Reentrant(), "Shared": Shared(), "Also": Also("b"), "Slots": Slots(2)} {
			if _, err := lk.Attach(t.Context(), h, AutoRenew(), option); err == nil || !strings.Contains(err.Error(), "the only option is AutoRenew") {
				t.Errorf("with %s: %v", what, err)
			}
		}
		if _, err := lk.Attach(t.Context(), h, AutoRenew()); err != nil {
			t.Error(err)
		}
	})
}

// TestCloseEndsBreak: Close does not wait for a Break that waits for nodes.
func TestCloseEndsBreak(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(5)
		l := acquired(t, ms.locker(t, &Options{TTL: 10 * time.Second}), "a")
		ms[4].forget() // it may never have had the token: Break waits for a NodeTimeout
		ms[3].forget()
		lk := ms.locker(t, &Options{TTL: 10 * time.Second})
		ms[2].hang()
		done := make(chan error, 1)
		go func() { done <- lk.Break(t.Context(), "a", l.Token()) }()
		time.Sleep(300 * time.Millisecond)
		begin := time.Now()
		lk.Close()
		if took := time.Since(begin); took > 2*lk.settings().NodeTimeout {
			t.Errorf("Close took %v", took)
		}
		if err := <-done; !errors.Is(err, ErrClosed) || errors.Is(err, context.Canceled) {
			t.Errorf("Break: %v", err)
		}
		ms[2].resume()
	})
}
