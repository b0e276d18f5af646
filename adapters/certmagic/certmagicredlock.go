// Package certmagicredlock makes CertMagic lock with redlock, and keeps its certificates where
// they are: it wraps a [certmagic.Storage], and replaces that storage's locks, which may be weak
// (files on a network file system, say, whose age is compared with the clock of another machine).
//
//	storage := certmagicredlock.New(&certmagic.FileStorage{Path: "/shared"}, locker)
//	config := certmagic.New(cache, certmagic.Config{Storage: storage})
//
// A lock is renewed for as long as it is held, so its TTL is how long the others wait for an
// instance that died, and not how long an ACME challenge may take. If it is lost nevertheless (too
// few nodes answered for a TTL), [Storage.RenewLockLease], which CertMagic calls before each attempt
// to get a certificate, returns an error, and so does [Storage.Unlock]. In between CertMagic is not
// told: it gives no context to the work, and tolerates that work is done twice now and then. The
// Locker's Hooks.Lost tells the operator.
//
// The names of locks are CertMagic's ("issue_cert_example.com"). If the nodes have other locks, too,
// give the Locker an Options.Prefix; all instances must have the same.
package certmagicredlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/quorumlock/redlock"
)

// A Storage wraps another Storage, with locks of its own.
type Storage struct {
	certmagic.Storage

	locker  *redlock.Locker
	options []redlock.AcquireOption

	mu   sync.Mutex
	held map[string]*hold
}

var (
	_ certmagic.Storage          = (*Storage)(nil)
	_ certmagic.TryLocker        = (*Storage)(nil)
	_ certmagic.LockLeaseRenewer = (*Storage)(nil)
)

// A hold is a name that a goroutine of this process holds, or tries to lock. CertMagic's Unlock gets
// only a name. So here a name belongs to its goroutine until that unlocks it, even if the lock was lost
// before: otherwise the goroutine that lost it would unlock the lock of the next one in this process.
type hold struct {
	lock *redlock.Lock // nil: it is still being acquired
	over chan struct{} // closed when the name is free again
}

// New returns a Storage that keeps everything in storage, and locks with locker. The options are for
// each lock; all locks are [redlock.AutoRenew]. The caller closes the Locker, after the last use.
func New(storage certmagic.Storage, locker *redlock.Locker, options ...redlock.AcquireOption) *Storage {
	return &Storage{
		Storage: storage,
		locker:  locker,
		options: append(slices.Clone(options), redlock.AutoRenew()),
		held:    make(map[string]*hold),
	}
}

// Lock waits until it has the lock, or ctx ends. Instances are served first come, first served. The
// goroutines of one instance that wait for one name share one place in that queue, which one of them
// takes at a time, in no order.
func (s *Storage) Lock(ctx context.Context, name string) error {
	for {
		h, mine := s.claim(name)
		if mine {
			return s.acquire(ctx, name, h, s.locker.Acquire)
		}
		select {
		case <-h.over:
		case <-ctx.Done():
			return fmt.Errorf("certmagicredlock: lock %q: %w in this process: %w", name, redlock.ErrHeld, ctx.Err())
		}
	}
}

// TryLock asks once. If several instances ask in the same instant, it may be that none gets the lock.
func (s *Storage) TryLock(ctx context.Context, name string) (bool, error) {
	h, mine := s.claim(name)
	if !mine {
		return false, nil
	}
	err := s.acquire(ctx, name, h, s.locker.TryAcquire)
	if errors.Is(err, redlock.ErrHeld) && ctx.Err() == nil {
		return false, nil
	}
	return err == nil, err
}

// Unlock releases the lock of this process, and no other. The error is redlock.ErrLost if the lock had
// ended before, and redlock.ErrNoQuorum if too few nodes have confirmed the release; then the TTL is
// the backstop. Either way the lock is not held any more.
func (s *Storage) Unlock(ctx context.Context, name string) error {
	h := s.lookup(name)
	if h == nil {
		return notHeld("unlock", name)
	}
	// The name is free here only afterwards: so the next goroutine of this process finds it
	// free at the nodes, too.
	defer s.forget(name, h)
	return h.lock.Release(ctx)
}

// RenewLockLease returns an error if the lock is no longer held. The lock is renewed anyway, whatever
// the duration, so an error means that it was lost; nodes that do not answer at the moment are no error
// while it is valid.
func (s *Storage) RenewLockLease(ctx context.Context, name string, _ time.Duration) error {
	h := s.lookup(name)
	if h == nil {
		return notHeld("renew", name)
	}
	if err := h.lock.Extend(ctx); err != nil && (errors.Is(err, redlock.ErrLost) || errors.Is(err, redlock.ErrClosed)) {
		return err
	}
	return nil
}

func (s *Storage) acquire(ctx context.Context, name string, h *hold, verb func(context.Context, string, ...redlock.AcquireOption) (*redlock.Lock, error)) error {
	l, err := verb(ctx, name, s.options...)
	if err != nil {
		s.forget(name, h)
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h.lock = l
	return nil
}

// claim reserves a name for the caller, unless another goroutine of this process has it.
func (s *Storage) claim(name string) (h *hold, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.held[name]; h != nil {
		return h, false
	}
	h = &hold{over: make(chan struct{})}
	s.held[name] = h
	return h, true
}

// lookup returns the hold on a locked name, or nil.
func (s *Storage) lookup(name string) *hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.held[name]; h != nil && h.lock != nil {
		return h
	}
	return nil
}

func (s *Storage) forget(name string, h *hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[name] == h { // otherwise it was unlocked twice at once
		delete(s.held, name)
		close(h.over)
	}
}

func notHeld(what, name string) error {
	return fmt.Errorf("certmagicredlock: %s %q: not locked here", what, name)
}
