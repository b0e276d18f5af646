package lane

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/wire"
)

// An answered is told when a request is answered.
type answered chan time.Time

func (a answered) Deliver(*Lane, *Request) { a <- time.Now() }

// TestGiveBackHoldsUpNothing: over a far link the next attempt of a waiter does not wait until the node has confirmed that it
// has back what it granted to the one before. What a client of the name asks for after an ordinary release waits.
func TestGiveBackHoldsUpNothing(t *testing.T) {
	const rtt, pause = 100 * time.Millisecond, 10 * time.Millisecond
	for keeps, want := range map[bool]time.Duration{true: rtt, false: 2*rtt - pause} {
		synctest.Test(t, func(t *testing.T) {
			n, _ := open(t, rtt, false)
			first := &Claim{Key: "a", Keys: []string{"a"}, Modes: "x", Token: "1", Waiter: "w", TTL: time.Minute}
			next := &Claim{Key: "a", Keys: []string{"a"}, Modes: "x", Token: "2", Waiter: "w", TTL: time.Minute}
			first.Span(1)
			next.Span(1)
			done := make(answered, 1)
			n.Submit(&Request{Op: wire.Acquire, Claim: first, To: done}, time.Now())
			<-done
			first.KeepPlace = keeps
			n.Submit(&Request{Op: wire.Release, Claim: first, To: Nobody{}}, time.Now())
			time.Sleep(pause)
			began := time.Now()
			n.Submit(&Request{Op: wire.Acquire, Claim: next, To: done}, began)
			if took := (<-done).Sub(began); took != want {
				t.Errorf("keeps its place: %v: the next attempt took %v, and not %v", keeps, took, want)
			}
			n.Submit(&Request{Op: wire.Release, Claim: next, To: done}, time.Now())
			<-done
		})
	}
}
