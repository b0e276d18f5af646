package lane

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/wire"
)

// A stub is a server that takes a while to answer, and refuses only to acquire what another token
// holds. For so many batches it does not know the script for what is about an unknown key.
type stub struct {
	rtt     time.Duration
	replies chan []answer
	batch   []*Request    // to be sent: nobody answers it meanwhile
	gate    chan struct{} // if not nil, each write waits until it is closed

	mu      *sync.Mutex
	seen    *[]string
	taken   bool
	keeps   bool   // it has one key, and says what becomes of it
	token   string // the key's; empty: it is not there
	unknown map[string]int
	joins   int
	writes  int
}

type answer struct {
	at   time.Time
	says wire.Reply
}

func (s *stub) Connect(context.Context) error { return nil }

func (s *stub) Join() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joins++
	return nil
}

func (s *stub) Refresh(context.Context) error { return nil }
func (s *stub) Outdated() bool                { return false }
func (s *stub) Interrupt()                    {}

func (s *stub) Subscribe(context.Context, string, func(), func(string)) error { return errCut }

func (s *stub) Encode(batch []*Request) { s.batch = batch }

func (s *stub) Send() error {
	if s.gate != nil {
		<-s.gate
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []answer
	for _, q := range s.batch {
		*s.seen = append(*s.seen, q.Step().String()+" "+q.Claim.Key)
		r := wire.Reply{Status: wire.Granted, Mark: q.Mark}
		switch {
		case s.unknown[q.Claim.Key] > 0:
			r = wire.Reply{Status: wire.Failed, Err: errNoScript}
		case s.keeps:
			r = s.carryOut(q)
		case !s.taken || q.Op == wire.Leave:
		case q.Op == wire.Acquire:
			r = wire.Reply{Status: wire.Held, Holder: "another's", TTL: time.Minute}
		default:
			r = wire.Reply{Status: wire.Stolen, Holder: "another's", TTL: time.Minute}
		}
		all = append(all, answer{time.Now().Add(s.rtt), r})
	}
	for _, q := range s.batch {
		s.unknown[q.Claim.Key]--
	}
	s.writes++
	s.replies <- all
	return nil
}

// carryOut is for a server that keeps one key.
func (s *stub) carryOut(q *Request) wire.Reply {
	switch {
	case q.Op == wire.Acquire && s.token == "":
		s.token = q.Claim.Token
	case s.token != q.Claim.Token:
		return wire.Reply{Status: wire.Expired}
	case q.Op == wire.Release:
		s.token = ""
	}
	return wire.Reply{Status: wire.Granted, Mark: q.Mark}
}

func (s *stub) Receive(batch []*Request, _ time.Duration) ([]*Request, error) {
	for i, a := range <-s.replies {
		time.Sleep(time.Until(a.at))
		batch[i].Reply = a.says
	}
	return nil, nil
}

// An eager node has every request sent, and believes every reply.
type eager struct{}

func (eager) Refuses(*Request, time.Time) (error, bool)  { return nil, false }
func (eager) Bind([]*Request, time.Time) (before Before) { return before }
func (eager) Judge([]*Request, time.Time, Before)        {}
func (eager) Down(*Failure)                              {}
func (eager) Up(time.Duration)                           {}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

// open gives the lane to a stub, and a record of the stub's requests.
func open(t *testing.T, rtt time.Duration, taken bool) (*Lane, func() []string) {
	var mu sync.Mutex
	var seen []string
	tried := make(chan int, 1)
	srv := &stub{rtt: rtt, replies: make(chan []answer, 10_000), mu: &mu, seen: &seen, taken: taken, unknown: make(map[string]int)}
	n := New(0, "stub", srv, eager{}, &Config{NodeTimeout: 500 * time.Millisecond, Clock: systemClock{}, Host: sim.Chance{}}, tried)
	<-tried
	t.Cleanup(func() { ends(n) })
	return n, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
}

// ends ends a lane, and gives it a second for what it still has to send.
func ends(n *Lane) {
	if n.Retire() {
		n.Close()
	}
	limit := time.AfterFunc(time.Second, n.Force)
	defer limit.Stop()
	n.Wait()
}

// claimOf gives a claim to one key.
func claimOf(key, token, modes string) *Claim {
	c := &Claim{Key: key, Keys: []string{key}, Modes: modes, Token: token, TTL: time.Second}
	c.Span(1)
	return c
}

// TestNothingUnderWay: what is sent to a far node takes one round trip, whatever is under way, and the lane keeps no
// request when all have been answered.
func TestNothingUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rtt = 5 * time.Millisecond
		n, seen := open(t, rtt, false)
		var claims []*Claim
		done := make(answered, 1000)
		for i := range 200 {
			claims = append(claims, claimOf(fmt.Sprint(i%20), fmt.Sprint(i), "x"))
		}
		for _, step := range []wire.Op{wire.Acquire, wire.Release} {
			for i, c := range claims {
				n.Submit(&Request{Op: step, Claim: c, To: done}, time.Now())
				began := time.Now()
				go func() {
					if took := (<-done).Sub(began); took > rtt {
						t.Errorf("%v %d took %v", step, i, took)
					}
				}()
				if i%10 == 0 {
					time.Sleep(time.Millisecond)
				}
			}
			time.Sleep(time.Second)
		}
		synctest.Wait()
		n.mu.Lock()
		defer n.mu.Unlock()
		if len(n.owed)+n.flying+len(n.queue)+len(n.pendingReleases) > 0 {
			t.Errorf("%d writes and %d requests under way, %d queued, %d owed", len(n.owed), n.flying, len(n.queue), len(n.pendingReleases))
		}
		if did := len(seen()); did != 2*len(claims) {
			t.Errorf("%d requests were sent", did)
		}
	})
}

// TestBoundOfWhatIsUnderWay: to a node that does not answer, no more is sent than maxOwed requests. An acquire that waits
// behind them for longer than its deadline is not sent, and neither is its release.
func TestBoundOfWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, seen := open(t, time.Second, false)
		for range maxOwed {
			n.Submit(&Request{Op: wire.Inspect, Claim: claimOf("a", "", "x"), To: Nobody{}}, time.Now())
		}
		c := claimOf("b", "t", "x")
		n.Submit(&Request{Op: wire.Acquire, Claim: c, Deadline: time.Now().Add(100 * time.Millisecond), To: Nobody{}}, time.Now())
		n.Submit(&Request{Op: wire.Inspect, Claim: claimOf("c", "", "x"), To: Nobody{}}, time.Now())
		synctest.Wait()
		if did := len(seen()); did != maxOwed {
			t.Errorf("%d requests were sent", did)
		}
		n.Submit(&Request{Op: wire.Release, Claim: c, To: Nobody{}}, time.Now())
		time.Sleep(2 * time.Second)
		if later := seen()[maxOwed:]; !slices.Equal(later, []string{"inspect c"}) {
			t.Errorf("then it sent %q", later)
		}
	})
}

// TestUnsentAcquire: an acquire that is still in the lane when its lock is released is never sent. If
// the client waited, its place in the queue is given up, since an earlier attempt may have got it.
func TestUnsentAcquire(t *testing.T) {
	for waiter, want := range map[string][]string{"": nil, "w": {"leave a"}} {
		synctest.Test(t, func(t *testing.T) {
			n, seen := open(t, 0, true)
			c := claimOf("a", "t", "x")
			c.Waiter = waiter
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
		gate := make(chan struct{})
		n.srv.(*stub).gate = gate
		n.Submit(&Request{Op: wire.Acquire, Claim: claimOf("first", "0", "x"), To: Nobody{}}, time.Now())
		synctest.Wait() // the writer is busy, so the next ones stay in the queue
		var before *Claim
		for _, token := range []string{"1", "2", "3"} { // they are of one key, which the stub would not tell apart
			c := claimOf("a", token, "s")
			c.Key, c.Waiter, c.Before = token, "w", before
			n.Submit(&Request{Op: wire.Acquire, Claim: c, To: Nobody{}}, time.Now())
			before = c
		}
		close(gate)
		synctest.Wait()
		if seen, want := seen(), []string{"acquire first", "acquire 3"}; !slices.Equal(seen, want) {
			t.Errorf("the node saw %q, and not %q", seen, want)
		}
	})
}

// An answered is told when a request is answered.
type answered chan time.Time

func (a answered) Deliver(*Lane, *Request) { a <- time.Now() }
