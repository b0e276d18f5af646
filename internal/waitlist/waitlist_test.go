package waitlist

import (
	"slices"
	"testing"
	"testing/synctest"
)

// TestReplace: a call that turns out to want something else keeps its place among those that wait for that, and the next
// one of those that it leaves becomes active. Nothing comes before an active waiter.
func TestReplace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := waiting(t, 3)
		a, b := &Want{Queue: "a"}, &Want{Queue: "b"}
		a1, a2, a3, b4, b5 := l.Enter(a), l.Enter(a), l.Enter(a), l.Enter(b), l.Enter(b)
		line := []*Waiter{b4, l.Replace(a1, b), l.Replace(a2, b), l.Replace(a3, b), b5}
		for i, w := range line {
			if got := l.queues["b"].waiters; !slices.Equal(got, line[i:]) {
				t.Fatalf("after %d have left: %v, want %v", i, got, line[i:])
			}
			if turn := w.Turn(); i > 0 {
				select {
				case <-turn:
				default:
					t.Errorf("waiter %d is not active", i)
				}
			}
			l.Leave(w)
		}
		if len(l.queues) > 0 {
			t.Errorf("left are %v", l.queues)
		}
		for i, w := range []*Waiter{a2, a3} {
			select {
			case <-w.Turn():
			default:
				t.Errorf("waiter %d of the queue that they have left was not active", i)
			}
		}
	})
}
