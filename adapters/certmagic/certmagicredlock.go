// Package certmagicredlock has CertMagic lock with redlock, and keep its certificates
// where it did: it wraps a [certmagic.Storage], and replaces the locks of that, which
// are only as good as what they are made of (files on a network file system, say, whose
// age is compared with the clock of whoever looks).
//
//	storage := certmagicredlock.New(&certmagic.FileStorage{Path: "/shared"}, locker)
//	config := certmagic.New(cache, certmagic.Config{Storage: storage})
//
// A lock is renewed for as long as it is held, so its TTL is how long the others wait for
// an instance that died, and not how long an ACME challenge may take. If it is lost
// nevertheless (too few nodes answered for a TTL), [Storage.RenewLockLease] says so,
// which CertMagic asks before each attempt to get a certificate, and [Storage.Unlock]
// does. In between CertMagic is not told: it gives no context to the work, and counts on
// work being done twice now and then. Hooks.Lost of the Locker's tells the operator.
//
// The names of locks are CertMagic's ("issue_cert_example.com"). Where the nodes have
// other locks, too, give the Locker an Options.Prefix; all instances must have the same.
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

// A Storage is another one with locks of its own.
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

// A hold is a name that somebody in this process has, or tries for. CertMagic's Unlock
// has a name and nothing else to say whose lock it is. So here a name is somebody's until
// he unlocks it, even if the lock has been lost by then: else the next one in this
// process would have his lock unlocked by the one who lost it.
type hold struct {
	lock *redlock.Lock // nil: he still tries for it
	over chan struct{} // closed when the name is free again
}

// New returns a Storage that keeps what is to be kept in storage, and locks with locker.
// The options are for each lock; all of them are [redlock.AutoRenew]. The Locker stays the
// caller's, who closes it last.
func New(storage certmagic.Storage, locker *redlock.Locker, options ...redlock.AcquireOption) *Storage {
	return &Storage{
		Storage: storage,
		locker:  locker,
		options: append(slices.Clone(options), redlock.AutoRenew()),
		held:    make(map[string]*hold),
	}
}

// Lock waits until it has the lock, or ctx ends; nothing else bounds it. First come,
// first served.
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

// TryLock asks once. Of those who ask in the same instant, it may be that none has it.
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

// Unlock gives the lock back, and nobody's but the one of this process. The error is
// redlock.ErrLost if it had ended before, and redlock.ErrNoQuorum if too few nodes have
// confirmed it; then the TTL is the net. Either way it is not held any more.
func (s *Storage) Unlock(ctx context.Context, name string) error {
	h := s.lookup(name)
	if h == nil {
		return notHeld("unlock", name)
	}
	// Only then is the name free here: whoever is next in this process finds it free
	// at the nodes, too.
	defer s.forget(name, h)
	return h.lock.Release(ctx)
}

// RenewLockLease says whether the lock still is held. It is renewed anyway, whatever
// the duration, so an error is for one that has been lost; nodes that do not answer just
// now are none while it is valid.
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

// claim makes a name the caller's, unless it is somebody's in this process.
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

// lookup gives the hold on a name that has been locked, or nil.
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
	if s.held[name] == h { // else he has unlocked it twice, at once
		delete(s.held, name)
		close(h.over)
	}
}

func notHeld(what, name string) error {
	return fmt.Errorf("certmagicredlock: %s %q: not locked here", what, name)
}
