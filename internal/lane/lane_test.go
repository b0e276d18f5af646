package lane

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
)

// A stub is a server that takes a while to answer, and refuses only to acquire what another token
// holds.
type stub struct {
	session Session
	rtt     time.Duration

	mu    *sync.Mutex
	seen  *[]string
	taken bool
}

func (s *stub) Connect(context.Context) (time.Duration, error) {
	mark := script.Settled("stub", time.Now())
	s.session.Joined(wire.Mark{Value: mark, Before: mark, Now: time.Now().UnixMicro()}, time.Now())
	return s.rtt, nil
}

func (s *stub) Join() error  { return nil }
func (s *stub) Interrupt()   {}
func (s *stub) Fork() Server { f := *s; return &f }

func (s *stub) Subscribe(context.Context, string, func(), func(string)) error { return errCut }

func (s *stub) Exec(batch []*Request) error {
	time.Sleep(s.rtt)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range batch {
		*s.seen = append(*s.seen, q.Step().String()+" "+q.Claim.Key)
		q.Reply = wire.Reply{Status: wire.Granted, Mark: q.Mark}
		switch {
		case !s.taken || q.Op == wire.Leave:
		case q.Op == wire.Acquire:
			q.Reply = wire.Reply{Status: wire.Held, Holder: "another's", TTL: time.Minute}
		default:
			q.Reply = wire.Reply{Status: wire.Stolen, Holder: "another's", TTL: time.Minute}
		}
	}
	return nil
}

// open gives the lane to a stub, and a record of the stub's requests.
func open(t *testing.T, rtt time.Duration, taken bool) (*Lane, func() []string) {
	var mu sync.Mutex
	var seen []string
	tried := make(chan int, 1)
	set := Open(testConfig(), []string{"stub"}, func(_ int, _ string, s Session) Server {
		return &stub{session: s, rtt: rtt, mu: &mu, seen: &seen, taken: taken}
	}, tried)
	<-tried
	t.Cleanup(func() { set.Close(time.Second) })
	return set.Lane(0), func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
}

// TestNothingUnderWay: a lane to a far node sends over several connections, and keeps no request
// when all have been answered.
func TestNothingUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, seen := open(t, 5*time.Millisecond, false)
		var claims []*Claim
		for i := range 200 {
			key := fmt.Sprint(i % 20)
			c := &Claim{Key: key, Keys: []string{key}, Modes: "x", Token: fmt.Sprint(i), TTL: time.Second}
			c.Span(1)
			claims = append(claims, c)
		}
		for _, step := range []wire.Op{wire.Acquire, wire.Release} {
			for i, c := range claims {
				n.Submit(&Request{Op: step, Claim: c, To: Nobody{}}, time.Now())
				if i%10 == 0 {
					time.Sleep(time.Millisecond)
				}
			}
			time.Sleep(time.Second)
		}
		synctest.Wait()
		n.mu.Lock()
		defer n.mu.Unlock()
		if len(n.conns) != farConns {
			t.Errorf("%d connections", len(n.conns))
		}
		if n.inFlight == nil || len(n.inFlight)+len(n.queue)+len(n.pendingReleases) > 0 {
			t.Errorf("%v under way, %d queued, %d owed", n.inFlight, len(n.queue), len(n.pendingReleases))
		}
		if did := len(seen()); did != 2*len(claims) {
			t.Errorf("%d requests were sent", did)
		}
	})
}

// TestUnsentAcquire: an acquire that is still in the lane when its lock is released is never sent. If
// the client waited, its place in the queue is given up, since an earlier attempt may have got it.
func TestUnsentAcquire(t *testing.T) {
	for waiter, want := range map[string][]string{"": nil, "w": {"leave a"}} {
		synctest.Test(t, func(t *testing.T) {
			n, seen := open(t, 0, true)
			c := &Claim{Key: "a", Keys: []string{"a"}, Modes: "x", Token: "t", Waiter: waiter, TTL: time.Second}
			c.Span(1)
			for _, step := range []wire.Op{wire.Acquire, wire.Release} { // before the lane's goroutine gets to the first
				n.Submit(&Request{Op: step, Claim: c, To: Nobody{}}, time.Now())
			}
			synctest.Wait()
			if seen := seen(); !slices.Equal(seen, want) {
				t.Errorf("waiter %q: the node saw %q", waiter, seen)
			}
		})
	}
}

// TestUnsentAttempt: an attempt of a waiter that is still in the lane when the next one comes is not sent. Of a shared lock
// both would be granted, and giving back the first one would leave the waiter in the queue, although it has the lock.
func TestUnsentAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, seen := open(t, 0, true)
		var before *Claim
		for _, token := range []string{"1", "2", "3"} { // they are of one key, which the stub would not tell apart
			c := &Claim{Key: token, Keys: []string{"a"}, Modes: "s", Token: token, Waiter: "w", TTL: time.Second, Before: before}
			c.Span(1)
			n.Submit(&Request{Op: wire.Acquire, Claim: c, To: Nobody{}}, time.Now())
			before = c
		}
		synctest.Wait()
		if seen, want := seen(), []string{"acquire 3"}; !slices.Equal(seen, want) {
			t.Errorf("the node saw %q, and not %q", seen, want)
		}
	})
}

// An answered is told when a request is answered.
type answered chan time.Time

func (a answered) Deliver(*Lane, *Request) { a <- time.Now() }

// TestGiveBackHoldsUpNothing: over a far link the next attempt of a waiter does not wait until the node has confirmed that it
// has back what it granted to the one before. What a client of the name asks for after an ordinary release waits; and so does
// the next attempt at a shared lock, which the node would grant beside the one before.
func TestGiveBackHoldsUpNothing(t *testing.T) {
	const rtt, pause = 100 * time.Millisecond, 10 * time.Millisecond
	for _, tt := range []struct {
		modes string
		keeps bool
		want  time.Duration
	}{{"x", true, rtt}, {"x", false, 2*rtt - pause}, {"s", true, 2*rtt - pause}} {
		synctest.Test(t, func(t *testing.T) {
			n, _ := open(t, rtt, false)
			first := &Claim{Key: "a", Keys: []string{"a"}, Modes: tt.modes, Token: "1", Waiter: "w", TTL: time.Minute}
			next := &Claim{Key: "a", Keys: []string{"a"}, Modes: tt.modes, Token: "2", Waiter: "w", TTL: time.Minute}
			first.Span(1)
			next.Span(1)
			done := make(answered, 1)
			n.Submit(&Request{Op: wire.Acquire, Claim: first, To: done}, time.Now())
			<-done
			first.KeepPlace = tt.keeps
			n.Submit(&Request{Op: wire.Release, Claim: first, To: Nobody{}}, time.Now())
			time.Sleep(pause)
			began := time.Now()
			n.Submit(&Request{Op: wire.Acquire, Claim: next, To: done}, began)
			if took := (<-done).Sub(began); took != tt.want {
				t.Errorf("%s, keeps its place: %v: the next attempt took %v, and not %v", tt.modes, tt.keeps, took, tt.want)
			}
			n.Submit(&Request{Op: wire.Release, Claim: next, To: done}, time.Now())
			<-done
		})
	}
}
