package redlock

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	arena "github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/wire"
)

// minority has a node keep something else than the others do, while a client uses the set, and renews a lock. The node
// costs its own vote, and is named in a warning; the client goes on, and so does one that is started now.
func minority(t *testing.T, warning string, spoil func(f *fleet, n *arena.Node, d *wire.Description)) {
	t.Helper()
	onNodes(t, 5, func(f *fleet) {
		var mu sync.Mutex
		var warned []string
		hooks := &Hooks{Warning: func(err error) {
			mu.Lock()
			defer mu.Unlock()
			warned = append(warned, err.Error())
		}}
		lk := f.locker(Options{Hooks: hooks}, f.nodes[:3]...)
		l := acquired(f.T, lk, "held", AutoRenew())
		pass(time.Second)
		d := f.agrees(f.nodes[:3]...)
		spoil(f, f.nodes[0], d)
		f.nodes[0].Reset()
		for range 5 {
			f.locks(lk, true)
			pass(10 * time.Second)
		}
		if err := l.Context(f.Context()).Err(); err != nil {
			t.Errorf("the lock was lost: %v", context.Cause(l.Context(f.Context())))
		}
		if m := lk.Members(); m.Epoch != 1 || m.Set != d.Set {
			t.Errorf("it goes by %+v", m)
		}
		if n := len(lk.lanes.View().Lanes); n != 3 || len(lk.lanes.Weigh()) != 3 {
			t.Errorf("it has %d members, and %d lanes", n, len(lk.lanes.Weigh()))
		}
		mu.Lock()
		if len(warned) != 1 || !strings.Contains(warned[0], "node0") || !strings.Contains(warned[0], warning) || !strings.Contains(warned[0], "redlock members forget") {
			t.Errorf("it has warned of %q", warned)
		}
		mu.Unlock()
		second := f.locker(Options{}, f.nodes[:3]...)
		f.locks(second, true)
		f.agrees(f.nodes[1:3]...)
		f.nodes[1].Kill() // the other vote is missing
		f.locks(second, false)
		f.nodes[1].Restart(true)
		pass(20 * time.Second)
		f.nodes[0].Forget() // as redlock members forget does
		_, _ = lk.TryAcquire(f.Context(), "found out")
		pass(20 * time.Second)
		f.agrees(f.nodes[:3]...)
		f.nodes[1].Kill()
		_, _ = lk.TryAcquire(f.Context(), "found out")
		pass(time.Second)
		f.locks(lk, true)
	})
}

// TestMinorityKeepsAnother: one node of three keeps what the others do not.
func TestMinorityKeepsAnother(t *testing.T) {
	t.Run("a later description of the set", func(t *testing.T) {
		minority(t, "keeps a later description of the set (epoch 5", func(f *fleet, n *arena.Node, d *wire.Description) {
			later := d.Next()
			later.Epoch, later.Members = 5, []string{"node0", "node3", "node4"}
			f.tell(n, later)
		})
	})
	t.Run("one that asks for no other vote", func(t *testing.T) {
		minority(t, "keeps what cannot be the description of a set (the quorum is 1", func(f *fleet, n *arena.Node, d *wire.Description) {
			later := d.Next()
			later.Quorum = 1
			n.Keep("node0\n" + later.Text())
		})
	})
	t.Run("damaged", func(t *testing.T) {
		minority(t, "keeps what cannot be the description of a set", func(f *fleet, n *arena.Node, d *wire.Description) { n.Keep("node0\n" + d.Text()[:40]) })
	})
	t.Run("a snapshot of an earlier set", func(t *testing.T) {
		minority(t, "keeps the description of another set", func(f *fleet, n *arena.Node, d *wire.Description) {
			n.Keep("node0\n" + (&wire.Description{MaxTTL: 10_000, Epoch: 5, Set: "earlier", Members: []string{"node0", "node3", "node4"}}).Text())
		})
	})
	t.Run("a copy of another member", func(t *testing.T) {
		minority(t, "that address answers as another server", func(f *fleet, n *arena.Node, d *wire.Description) {
			n.Keep("node1\n" + d.Text())
		})
	})
}

// TestCopiesOfAnotherSet: two of three nodes have a copy of the data of two of another set's. The third node of that set
// hears nothing, and a program that was given the copies is refused with an error that says what to do; then they are a
// set of their own.
func TestCopiesOfAnotherSet(t *testing.T) {
	onNodes(t, 6, func(f *fleet) {
		production := f.locker(Options{}, f.nodes[:3]...)
		l := acquired(f.T, production, "name", AutoRenew())
		pass(time.Second)
		d := f.agrees(f.nodes[:3]...)
		f.tellAs(f.nodes[3], "node0", d)
		f.tellAs(f.nodes[4], "node1", d)
		lk, _, err := f.over(Options{}, f.nodes[3:]...)
		if err == nil {
			pass(time.Second)
			err = f.locks(lk, false)
		}
		for _, want := range []string{"node3 has that of node0", "node4 has that of node1", "redlock members forget node3 node4"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
		if lk != nil {
			if n := len(lk.lanes.Weigh()); n != 3 {
				t.Errorf("it has made %d lanes", n)
			}
		}
		f.nodes[3].Forget()
		f.nodes[4].Forget()
		staging := f.locker(Options{}, f.nodes[3:]...)
		_, _ = staging.TryAcquire(f.Context(), "name")
		pass(20 * time.Second)
		s := acquired(f.T, staging, "name")
		if m := staging.Members(); m.Set == d.Set || m.Epoch != 1 {
			t.Errorf("staging is %+v", m)
		}
		_ = s.Release(f.Context())
		_ = l.Release(f.Context())
	})
}

// TestOperatorDiesHalfWay: an operator has told half of four members, and has died. The others have taken the
// description, so that no quorum is left by either; the clients that are there finish it. What one node keeps that none
// has taken, they do not.
func TestOperatorDiesHalfWay(t *testing.T) {
	for _, taken := range []bool{true, false} {
		onNodes(t, 4, func(f *fleet) {
			lk := f.locker(Options{}, f.nodes...)
			l := acquired(f.T, lk, "held", AutoRenew())
			pass(time.Second)
			next := f.agrees(f.nodes...).Next()
			next.MaxTTL = time.Minute.Milliseconds()
			told := 1
			if taken {
				told = 2
				f.choose(f.nodes[2], "000000000000000800000000", next)
			} else {
				f.nodes[3].Kill() // one more may be missing
			}
			for _, n := range f.nodes[:told] {
				f.tell(n, next)
			}
			pass(20 * time.Second)
			if err := l.Context(f.Context()).Err(); (err == nil) != taken {
				t.Errorf("taken: %v; the lock: %v", taken, err)
			}
			f.locks(lk, taken)
			if m := lk.Members(); (m.Epoch == 2) != taken {
				t.Errorf("taken: %v; it goes by %+v", taken, m)
			}
		})
	}
}

// TestSetHasANonce: a set that is made anew of the same nodes is another set.
func TestSetHasANonce(t *testing.T) {
	onNodes(t, 3, func(f *fleet) {
		lk, _ := f.described()
		first := f.agrees(f.nodes...)
		lk.Close()
		for _, n := range f.nodes {
			n.Flush()
		}
		anew := f.locker(Options{}, f.nodes...)
		_, _ = anew.TryAcquire(f.Context(), "found out")
		pass(20 * time.Second)
		f.locks(anew, true)
		if second := f.agrees(f.nodes...); second.Set == first.Set {
			t.Errorf("both are %s", first.Set)
		}
	})
}
