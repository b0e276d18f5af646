package lane

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/wire"
)

// A recipient is a function that gets a request when it has been answered.
type recipient func(n *Lane, q *Request)

func (r recipient) Deliver(n *Lane, q *Request) { r(n, q) }

// rest lets time go by, and everything that it sets going come to rest.
func rest(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// submits puts a request into a lane, and lets a millisecond go by, so that it is written before what comes next.
func submits(n *Lane, op wire.Op, c *Claim, to Recipient) *Request {
	q := &Request{Op: op, Claim: c, To: to}
	n.Submit(q, time.Now())
	rest(time.Millisecond)
	return q
}

// TestOneWrite: what is in the queue leaves in one write, also while replies are owed.
func TestOneWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, seen := open(t, time.Hour, false)
		for _, sent := range []int{100, 200} {
			n.mu.Lock() // the writer cannot take any of them
			for i := range 100 {
				n.queue = append(n.queue, &Request{Op: wire.Inspect, Claim: claimOf(fmt.Sprint(i), "", "x"), To: Nobody{}})
			}
			n.nudge()
			n.mu.Unlock()
			synctest.Wait()
			if writes := n.srv.(*stub).writes; len(seen()) != sent || writes != sent/100 {
				t.Errorf("%d requests left in %d writes", len(seen()), writes)
			}
		}
	})
}

// TestUnknownScript: what a server could not carry out, since it did not know the script, is sent again when it has been
// joined: once, in the order in which it was asked for, and before what came later. An acquire is not sent again if it
// was released meanwhile, and one of plain commands never is.
func TestUnknownScript(t *testing.T) {
	plain := func(c *Claim) *Claim { c.Plain = true; return c }
	for _, tt := range []struct {
		name     string
		claims   []*Claim
		unknown  string
		released bool // while the acquires are under way
		want     []string
	}{
		{"an acquire", []*Claim{claimOf("a", "1", "x")}, "a", false, []string{"acquire a", "acquire a"}},
		{"one of two", []*Claim{claimOf("a", "1", "x"), claimOf("b", "2", "x")}, "a", false, []string{"acquire a", "acquire b", "acquire a"}},
		{"a release came behind it", []*Claim{claimOf("a", "1", "x")}, "a", true, []string{"acquire a", "release a"}},
		{"plain commands", []*Claim{plain(claimOf("a", "1", "x"))}, "a", false, []string{"plain a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, seen := open(t, 10*time.Millisecond, false)
				srv := n.srv.(*stub)
				srv.unknown[tt.unknown] = 1
				for _, c := range tt.claims {
					n.Submit(&Request{Op: wire.Acquire, Claim: c, To: Nobody{}}, time.Now())
				}
				time.Sleep(time.Millisecond)
				if tt.released {
					n.Submit(&Request{Op: wire.Release, Claim: tt.claims[0], To: Nobody{}}, time.Now())
				}
				rest(time.Second)
				if got := seen(); !slices.Equal(got, tt.want) || srv.joins != 1 {
					t.Errorf("it sent %q, want %q, and joined the node %d times", got, tt.want, srv.joins)
				}
			})
		})
	}
}

// TestScriptsAreUnknownForEver: a request is sent again a few times, and then answered.
func TestScriptsAreUnknownForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, seen := open(t, time.Millisecond, false)
		done := make(answered, 1)
		q := &Request{Op: wire.Inspect, Claim: claimOf("a", "", "x"), To: done}
		n.srv.(*stub).unknown["a"] = 1000
		n.Submit(q, time.Now())
		<-done
		if sent := len(seen()); sent != maxReloads+1 || q.Reply.Err != errNoScript {
			t.Errorf("it was sent %d times, and answered %v", sent, q.Reply)
		}
	})
}

// TestPutBackInOrder: what is sent again keeps its order, whichever writes it was in, and goes before what has not left
// yet.
func TestPutBackInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, seen := open(t, 10*time.Millisecond, false)
		srv, first, second := n.srv.(*stub), claimOf("a", "1", "x"), claimOf("a", "2", "x")
		srv.keeps = true
		submits(n, wire.Acquire, first, Nobody{})
		rest(20 * time.Millisecond)
		srv.unknown["a"] = 2
		submits(n, wire.Release, first, Nobody{})
		acquire := submits(n, wire.Acquire, second, Nobody{})
		rest(8500 * time.Microsecond) // the first reply is here, and the second is not
		submits(n, wire.Inspect, claimOf("b", "", "x"), Nobody{})
		rest(time.Second)
		want := []string{"acquire a", "release a", "acquire a", "release a", "acquire a", "inspect b"}
		if got := seen(); !slices.Equal(got, want) || acquire.Reply.Status != wire.Granted {
			t.Errorf("it sent %q, want %q; the acquire: %v", got, want, acquire.Reply.Status)
		}
	})
}

// TestPutBackInParts: what is sent again keeps its order also where there is no room for all of it in one write.
func TestPutBackInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, _ := open(t, time.Millisecond, false)
		n.mu.Lock()
		defer n.mu.Unlock()
		for range 300 {
			n.queue = append(n.queue, &Request{Op: wire.Inspect, Claim: claimOf("a", "", "x"), To: Nobody{}})
		}
		n.back, n.flying = 250, maxOwed-100
		f, _ := n.take()
		if len(f.batch) != 100 || len(n.queue) != 200 || n.back != 150 {
			t.Errorf("it takes %d, and leaves %d of which %d were put back", len(f.batch), len(n.queue), n.back)
		}
		n.queue, n.flying = nil, 0
	})
}

// TestNothingBehindARelease: as long as a node owes a release, it is not asked for what would count and be undone by it;
// nor for a refill when one is under way.
func TestNothingBehindARelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, _ := open(t, 10*time.Millisecond, false)
		srv, c := n.srv.(*stub), claimOf("a", "1", "x")
		srv.keeps = true
		refused := func(when string, want bool, asked ...*Request) {
			t.Helper()
			for _, q := range asked {
				q.Claim, q.To = c, Nobody{}
				if at := n.Submit(q, time.Now()); at != want || at && q.Reply.Status != wire.Expired {
					t.Errorf("%s: %v is answered at once: %v, %v", when, q.Op, at, q.Reply.Status)
				}
			}
		}
		submits(n, wire.Acquire, c, Nobody{})
		rest(20 * time.Millisecond)
		srv.unknown["a"] = 1
		submits(n, wire.Release, c, Nobody{})
		for range 2 { // under way; and again, when the node has been joined
			refused("a release is owed", true, &Request{Op: wire.Extend}, &Request{Op: wire.Raise}, &Request{Op: wire.Acquire, Ticket: Ours})
			rest(10 * time.Millisecond)
		}
		rest(time.Second)
		refused("it is settled", false, &Request{Op: wire.Acquire, Ticket: Ours})
		rest(time.Millisecond)
		refused("a refill is under way", true, &Request{Op: wire.Acquire, Ticket: Ours})
		rest(time.Second)
		refused("it has been answered", false, &Request{Op: wire.Extend})
		rest(time.Second)
	})
}

// TestReleaseAfterRefill: that the token was gone when an extension came says nothing about an acquire that was written
// behind it.
func TestReleaseAfterRefill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, _ := open(t, 10*time.Millisecond, false)
		srv, c := n.srv.(*stub), claimOf("a", "1", "x")
		srv.keeps = true
		submits(n, wire.Acquire, c, Nobody{})
		rest(20 * time.Millisecond)
		srv.token = "" // the node has lost it
		submits(n, wire.Extend, c, recipient(func(n *Lane, q *Request) {
			n.Submit(&Request{Op: wire.Acquire, Ticket: Ours, Claim: c, To: Nobody{}}, time.Now())
		}))
		rest(8500 * time.Microsecond)
		submits(n, wire.Extend, c, Nobody{}) // under way when the refill leaves
		rest(100 * time.Millisecond)
		submits(n, wire.Release, c, Nobody{})
		rest(100 * time.Millisecond)
		if srv.token != "" {
			t.Error("the node still has the token")
		}
	})
}

// TestLateGrantAtClose: while a lane ends, what gives a grant back that has just arrived is still sent, however long
// those take that get other replies of the same write.
func TestLateGrantAtClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, seen := open(t, 10*time.Millisecond, false)
		c := claimOf("a", "1", "x")
		n.Submit(&Request{Op: wire.Inspect, Claim: claimOf("b", "", "x"), To: recipient(func(*Lane, *Request) { time.Sleep(time.Millisecond) })}, time.Now())
		submits(n, wire.Acquire, c, recipient(func(n *Lane, q *Request) {
			n.Submit(&Request{Op: wire.Release, Claim: c, To: Nobody{}}, time.Now())
		}))
		ends(n)
		if got := seen(); !slices.Contains(got, "release a") {
			t.Errorf("it sent %q", got)
		}
	})
}

// TestSlowRecipient: the time that a recipient takes does not make the node one that is silent.
func TestSlowRecipient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, _ := open(t, time.Millisecond, false)
		submits(n, wire.Inspect, claimOf("a", "", "x"), recipient(func(*Lane, *Request) { time.Sleep(3 * n.timeout) }))
		submits(n, wire.Inspect, claimOf("b", "", "x"), Nobody{})
		time.Sleep(2 * n.timeout)
		if q := (&Request{Op: wire.Inspect, Claim: claimOf("c", "", "x"), To: Nobody{}}); n.Submit(q, time.Now()) {
			t.Error(q.Reply.Err)
		}
		time.Sleep(2 * n.timeout)
	})
}

// A hasty server is one whose connection has ended: it answers before the write has left.
type hasty struct{ *stub }

func (s *hasty) Encode(batch []*Request) {
	for _, q := range batch {
		time.Sleep(time.Microsecond) // the reader does all that it can
		_ = q.Step()
	}
}

func (s *hasty) Send() error                                                   { return errCut }
func (s *hasty) Receive(batch []*Request, _ time.Duration) ([]*Request, error) { return batch, errCut }

// TestEndsWhileItIsSent: a connection that ends while a batch is sent over it answers all of its requests, once.
func TestEndsWhileItIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, _ := open(t, 0, false)
		n.srv = &hasty{stub: n.srv.(*stub)}
		answers := 0
		for range 10 {
			n.Submit(&Request{Op: wire.Inspect, Claim: claimOf("a", "", "x"), To: recipient(func(_ *Lane, q *Request) {
				if answers++; q.Reply.Err != errCut {
					t.Error(q.Reply)
				}
			})}, time.Now())
		}
		rest(time.Second)
		if answers != 10 {
			t.Errorf("%d answers", answers)
		}
	})
}
