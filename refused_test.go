package redlock

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

type serverError string

func (e serverError) Error() string { return string(e) }
func (serverError) RedisError()     {}

// TestWhatCanNeverWork: a majority of nodes that refuse this client for good end a wait after some seconds, with the
// reason; all waiters of a Locker share the time. A minority does not, nor do nodes that may be back any moment.
func TestWhatCanNeverWork(t *testing.T) {
	for _, tt := range []struct {
		name  string
		err   error
		nodes int
		ends  bool
	}{
		{"a wrong password", serverError("WRONGPASS invalid username-password pair or user is disabled."), 2, true},
		{"no password", serverError("NOAUTH Authentication required."), 3, true},
		{"a missing right", serverError("NOPERM this user has no permissions to run the 'eval' command"), 2, true},
		{"a renamed command", serverError("ERR unknown command 'evalsha', with args beginning with: 'x'"), 2, true},
		{"an unknown CA", x509.UnknownAuthorityError{}, 2, true},
		{"an unknown name", &net.DNSError{Err: "no such host", Name: "a.invalid", IsNotFound: true}, 2, true},
		{"a wrong password at one node", serverError("WRONGPASS invalid username-password pair or user is disabled."), 1, false},
		{"it loads its data", serverError("LOADING Redis is loading the dataset in memory"), 3, false},
		{"it has too many clients", serverError("ERR max number of clients reached"), 3, false},
		{"it does not run", errCut, 3, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ms := newModels(3)
				lk := ms.locker(t, nil)
				if !tt.ends { // a minority that refuses must not give the lock
					defer acquired(t, ms.locker(t, nil), "a", AutoRenew()).Release(t.Context())
				}
				pass(time.Second)
				refuse := func(err error) {
					for _, m := range ms[:tt.nodes] {
						m.set(func(m *model) { m.fails = err })
					}
				}
				refuse(tt.err)
				var wg sync.WaitGroup
				ended := make(chan error, 3)
				begin := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				for range 3 { // in one local queue
					wg.Go(func() {
						_, err := lk.Acquire(ctx, "a")
						ended <- err
					})
				}
				if tt.ends {
					wg.Wait()
					if took := time.Since(begin); took < 5*time.Second || took > 7*time.Second {
						t.Errorf("it took %v", took)
					}
					if err := <-ended; !errors.Is(err, ErrNoQuorum) || !errors.Is(err, errRefused) || errors.Is(err, ErrHeld) {
						t.Error(err)
					}
					return
				}
				pass(20 * time.Second)
				select {
				case err := <-ended:
					t.Errorf("after %v: %v", time.Since(begin), err)
				default:
				}
				cancel()
				wg.Wait()
			})
		})
	}
}

// TestForbiddenName: a majority that refuses one name to this client ends a wait for it after as long, although the
// others, which answer first, say that it is held, and although the client gets other locks meanwhile.
func TestForbiddenName(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		lk := ms.locker(t, nil)
		ms[0].put("forbidden", "another's", time.Hour)
		for i, m := range ms[1:] {
			m.slow(time.Duration(10*i) * time.Millisecond)
			m.set(func(m *model) {
				m.fails, m.only = serverError("NOPERM No permissions to access a key"), "forbidden"
			})
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 20 {
				if err := acquired(t, lk, "allowed").Release(t.Context()); err != nil {
					t.Error(err)
				}
				time.Sleep(500 * time.Millisecond)
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		begin := time.Now()
		for range 3 {
			wg.Go(func() {
				_, err := lk.Acquire(ctx, "forbidden")
				if !errors.Is(err, errRefused) || !errors.Is(err, ErrNoQuorum) || errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), "node2: denied: NOPERM") {
					t.Error(err)
				}
				if took := time.Since(begin); took < 5*time.Second || took > 7*time.Second {
					t.Errorf("it took %v", took)
				}
			})
		}
		wg.Wait()
		<-done
		if len(lk.shut.of) > 0 {
			t.Errorf("it remembers %d names", len(lk.shut.of))
		}
	})
}

// TestRotation: a password that is wrong for less than the bound ends no wait, however often that happens.
func TestRotation(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ms := newModels(3)
		other, lk := ms.locker(t, nil), ms.locker(t, nil)
		l := acquired(t, other, "a", AutoRenew())
		ended := make(chan error, 1)
		go func() {
			l, err := lk.Acquire(t.Context(), "a")
			if err == nil {
				err = l.Release(t.Context())
			}
			ended <- err
		}()
		for range 4 {
			pass(10 * time.Second)
			for _, m := range ms {
				m.set(func(m *model) { m.fails = serverError("WRONGPASS") })
			}
			pass(3 * time.Second)
			for _, m := range ms {
				m.set(func(m *model) { m.fails = nil })
			}
		}
		pass(5 * time.Second)
		_ = l.Release(t.Context())
		if err := <-ended; err != nil && !strings.Contains(err.Error(), "lost") {
			t.Error(err)
		}
	})
}
