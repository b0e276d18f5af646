package trial

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/flags"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
)

const (
	demoKey = "report"

	// demoTTL is longer than the demo: a key that is gone at the end was released, not expired.
	demoTTL = 10 * time.Second

	// soon bounds what happens by itself, such as noticing that a node is back. It is well below demoTTL.
	soon = 3 * time.Second

	casualties = 2 // of reach.EmbeddedNodes: as many as may fail
)

// Beat is the pause after each step, in which its line can be read. Tests make it shorter.
var Beat = 700 * time.Millisecond

// Demo is redlock demo: a lock changes hands while nodes die and come back.
func Demo(c *console.Console, _ string, args []string) (int, error) {
	asJSON, err := flags.OnlyJSON("demo", args)
	if err != nil {
		return 0, err
	}
	s := &story{Console: c, start: time.Now(), json: asJSON}
	if s.nodes, err = memredis.Start(reach.EmbeddedNodes); err != nil {
		return 0, exit.Fail(exit.Found, "", "could not start the nodes: %v", err)
	}
	defer s.nodes.Close()
	for _, n := range s.nodes.Nodes {
		r := redis.NewClient(&redis.Options{Addr: n.Addr(), MaxRetries: -1, DialerRetries: 1})
		defer r.Close()
		s.readers = append(s.readers, r)
	}
	ctx, cancel := context.WithTimeout(context.Background(), demoTTL)
	defer cancel()
	if err := s.play(ctx); err != nil {
		return 0, exit.Fail(exit.Found, "on a very busy machine try again; otherwise please report this as a bug", "the demo failed: %v", err)
	}
	return 0, nil
}

// play runs the steps.
func (s *story) play(ctx context.Context) error {
	var addrs []string
	for _, n := range s.nodes.Nodes {
		addrs = append(addrs, n.Addr())
	}
	s.tell("", "%d independent nodes started: %s", len(addrs), strings.Join(addrs, " "))
	a, err := s.worker("A")
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := s.worker("B")
	if err != nil {
		return err
	}
	defer b.Close()

	held, err := s.take(ctx, a)
	if err != nil {
		return err
	}
	s.killTwo()
	next, err := s.queue(ctx, b, held)
	if err != nil {
		return err
	}
	if err := s.extend(ctx, held, next); err != nil {
		return err
	}
	second, err := s.handOver(ctx, held, next)
	if err != nil {
		return err
	}
	if err := s.bringBack(held); err != nil {
		return err
	}
	return s.finish(ctx, second)
}

// worker opens a Locker, as another process would. Its NodeTimeout is long, for busy machines; a node that is down
// refuses the connection at once.
func (s *story) worker(name string) (*redlock.Locker, error) {
	return redlock.Connect(s.nodes.URLs(), &redlock.Options{TTL: demoTTL, NodeTimeout: soon, Hooks: &redlock.Hooks{
		NodeDown: func(e *redlock.NodeError) { s.tell(name, "finds a node down: %v", e) },
		NodeUp: func(node string, down time.Duration) {
			s.tell(name, "finds node up: %s, after %s", node, figure(down))
		},
		Quarantined: func(node string, d time.Duration, _ error) {
			s.tell(name, "does not count %s for %s: it was restarted, and may have forgotten a lock", node, figure(d))
		},
		Lost: func(_ *redlock.Lock, cause error) { s.tell(name, "has lost the lock: %v", cause) },
	}})
}

// take: A acquires the lock, with the votes of all nodes.
func (s *story) take(ctx context.Context, a *redlock.Locker) (*redlock.Lock, error) {
	asked := time.Now()
	lock, err := a.Acquire(ctx, demoKey)
	if err != nil {
		return nil, err
	}
	took, valid := time.Since(asked), time.Until(lock.Until())
	// The third vote makes the lock; the others arrive a moment later.
	votes := 0
	if !within(soon, func() bool { votes = s.holding(lock); return votes == len(s.readers) }) {
		return nil, fmt.Errorf("only %d of %d nodes have A's token", votes, len(s.readers))
	}
	s.tell("A", "has locked %q in %s: token %s, fence %d, %d of %d votes, valid for %s of its TTL of %v",
		demoKey, figure(took), short(lock.Token()), lock.Fence(), votes, len(s.readers), figure(valid), demoTTL)
	time.Sleep(Beat)
	return lock, nil
}

func (s *story) killTwo() {
	var killed []string
	for _, n := range s.nodes.Nodes[:casualties] {
		n.Kill()
		killed = append(killed, n.Addr())
	}
	s.tell("", "%d nodes killed: %s", casualties, strings.Join(killed, " "))
	time.Sleep(Beat)
}

// A turn is what came of a worker's wait: the lock and when it got it, or an error.
type turn struct {
	lock *redlock.Lock
	at   time.Time
	err  error
}

// queue: B is refused, learns which token holds the lock, and waits for it.
func (s *story) queue(ctx context.Context, b *redlock.Locker, held *redlock.Lock) (<-chan turn, error) {
	lock, err := b.TryAcquire(ctx, demoKey)
	var why *redlock.QuorumError
	switch {
	case lock != nil:
		return nil, errors.New("worker B has acquired the lock that A holds")
	case !errors.Is(err, redlock.ErrHeld) || !errors.As(err, &why):
		return nil, fmt.Errorf("worker B should be told that the lock is held, and is told: %w", err)
	}
	said := 0
	for _, n := range why.Nodes() {
		if n.Outcome == redlock.OutcomeHeld && n.Holder == held.Token() {
			said++
		}
	}
	s.tell("B", "asks for %q: %v, %s on %s; waits", demoKey, why.Kind, short(held.Token()), phrase.Count(said, "node"))
	next := make(chan turn, 1)
	go func() {
		lock, err := b.Acquire(ctx, demoKey)
		next <- turn{lock, time.Now(), err}
	}()
	time.Sleep(Beat)
	return next, nil
}

// extend: three of five nodes are enough to extend the lock, and B goes on waiting.
func (s *story) extend(ctx context.Context, held *redlock.Lock, next <-chan turn) error {
	before, had := s.remaining(held), time.Until(held.Until())
	if err := held.Extend(ctx); err != nil {
		return err
	}
	valid, renewed := time.Until(held.Until()), 0
	if !within(soon, func() bool {
		renewed = 0
		for i, ttl := range s.remaining(held) {
			if ttl > before[i] {
				renewed++
			}
		}
		return renewed == len(s.readers)-casualties
	}) {
		return fmt.Errorf("%d nodes have renewed A's lock, not the %d that are up", renewed, len(s.readers)-casualties)
	}
	s.tell("A", "extends the lock: %d of %d nodes renewed it, valid for %s again, from %s",
		renewed, len(s.readers), figure(valid), figure(had))
	if valid <= had {
		return errors.New("the lock is not valid for longer after it was extended")
	}
	time.Sleep(Beat)
	select {
	case t := <-next:
		return fmt.Errorf("worker B has not waited: %v", t.err)
	default:
	}
	s.tell("B", "still waits")
	return nil
}

// handOver: A releases, and B acquires.
func (s *story) handOver(ctx context.Context, held *redlock.Lock, next <-chan turn) (*redlock.Lock, error) {
	released := time.Now()
	if err := held.Release(ctx); err != nil {
		return nil, err
	}
	s.tell("A", "has released in %s", figure(time.Since(released)))
	t := <-next // ctx ends the waiting
	if t.err != nil {
		return nil, t.err
	}
	if t.at.Before(released) {
		return nil, errors.New("worker B had the lock before A released it")
	}
	s.tell("B", "has locked it %s after A's release: token %s, fence %d, %d of %d votes",
		figure(t.at.Sub(released)), short(t.lock.Token()), t.lock.Fence(), s.holding(t.lock), len(s.readers))
	if t.lock.Fence() <= held.Fence() {
		return nil, errors.New("the fence of B's lock is not larger than that of A's")
	}
	time.Sleep(Beat)
	return t.lock, nil
}

// bringBack: the killed nodes restart with A's token on their disks, where it would block other clients for the rest
// of its TTL. A's Locker sends them the release that it owes them.
func (s *story) bringBack(held *redlock.Lock) error {
	for _, n := range s.nodes.Nodes[:casualties] {
		if err := n.Restart(true); err != nil {
			return err
		}
	}
	back := time.Now()
	s.tell("", "%d nodes restarted with their data: A's token is on %d of them", casualties, s.holding(held))
	if !within(soon, func() bool { return s.holding(held) == 0 }) {
		return errors.New("the release of A's lock has not reached the nodes that are back")
	}
	s.tell("A", "has released there, too, %s after the restart", figure(time.Since(back)))
	time.Sleep(Beat)
	return nil
}

// finish: B releases, and no key of a lock is left on any node.
func (s *story) finish(ctx context.Context, lock *redlock.Lock) error {
	if err := lock.Release(ctx); err != nil {
		return err
	}
	s.tell("B", "has released")
	var left []string
	if !within(soon, func() bool {
		left = left[:0]
		for _, n := range s.nodes.Nodes {
			for _, key := range n.Keys() {
				left = append(left, n.Addr()+" "+key)
			}
		}
		return len(left) == 0
	}) {
		return fmt.Errorf("keys are left on the nodes: %s", strings.Join(left, ", "))
	}
	s.conclude("no lock left on any node: %d keys on %d nodes, apart from each node's marker and the lock's counter", len(left), len(s.nodes.Nodes))
	return nil
}
