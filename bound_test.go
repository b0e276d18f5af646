package redlock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/wire"
)

// TestToward: from any bounds the steps lead to a MaxTTL, and each step is one that two clients may be on both sides of:
// no lock by the one is longer than the quarantine by the other, and neither bound goes past the other.
func TestToward(t *testing.T) {
	ttls := []int64{1, 2, 3, 4}
	for _, most := range ttls {
		for _, maxTTL := range ttls {
			for _, other := range append(ttls, 0) {
				if other > 0 && other <= maxTTL {
					continue
				}
				d, steps := wire.Description{MaxTTL: maxTTL, Other: other}, 0
				for d.MaxTTL != most || d.Other != 0 {
					next := d
					next.MaxTTL, next.Other = d.Toward(most)
					long := func(d wire.Description) int64 { return max(d.MaxTTL, d.Other) }
					if next.MaxTTL > long(d) || d.MaxTTL > long(next) || next.Other != 0 && next.Other <= next.MaxTTL {
						t.Errorf("from %d, %d to %d: %d, %d comes after %d, %d", maxTTL, other, most, next.MaxTTL, next.Other, d.MaxTTL, d.Other)
					}
					if d = next; steps == 2 {
						t.Fatalf("from %d, %d to %d there are more than two steps", maxTTL, other, most)
					}
					steps++
				}
			}
		}
	}
}

// TestMaxTTLChanges: it is made longer and shorter while locks are held. Whatever nodes lose their data meanwhile, no lock gets
// a second holder.
func TestMaxTTLChanges(t *testing.T) {
	short, long := 2*time.Second, time.Minute
	onNodes(t, 3, func(f *fleet) {
		lk, idle := f.locker(Options{TTL: short, MaxTTL: short}, f.nodes...), f.locker(Options{TTL: short, MaxTTL: short}, f.nodes...)
		f.locks(lk, true)
		f.locks(idle, true)
		began := time.Now()
		if m, err := lk.Change(f.Context(), Change{MaxTTL: &long}, nil); err != nil || m.MaxTTL != long || m.LongerTTL != 0 || m.Epoch != 3 {
			t.Fatalf("%+v, %v", m, err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v", took)
		}
		acquired(f.T, idle, "other", TTL(long)) // it asks whether what it knows is still so
		l := acquired(f.T, lk, "long", TTL(long))
		for _, n := range f.nodes[:2] { // the second one when the first one has been told the description again
			n.Flush()
			_, _ = lk.TryAcquire(f.Context(), "found out")
			pass(100 * time.Millisecond)
		}
		f.alone(l, same(idle), same(lk))
	})
	onNodes(t, 3, func(f *fleet) {
		lk, idle := f.locker(Options{TTL: short, MaxTTL: long}, f.nodes...), f.locker(Options{TTL: short, MaxTTL: short}, f.nodes...)
		f.locks(lk, true)
		f.locks(idle, true)
		lk.Close()
		lk = f.locker(Options{TTL: short}, f.nodes...)
		l := acquired(f.T, lk, "long", TTL(long))
		began := time.Now()
		change := func(over bool) Members {
			m, err := lk.Change(f.Context(), Change{MaxTTL: &short, LongerOver: over}, nil)
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		op := f.locker(Options{TTL: time.Second, MaxTTL: short}, f.nodes...)
		lk, op = op, lk
		if m := change(false); m.MaxTTL != short || m.LongerTTL != long {
			t.Fatalf("%+v", m)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("new locks are bounded after %v", took)
		}
		if _, err := op.TryAcquire(f.Context(), "other", TTL(long)); err == nil || !strings.Contains(err.Error(), "and the set allows 2s") {
			t.Errorf("a longer lock: %v", err)
		}
		if err := l.Extend(f.Context()); err == nil || errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "the lock's TTL is 1m0s, and the set allows 2s") {
			t.Errorf("a longer lock is extended: %v", err)
		}
		for _, n := range f.nodes[:2] { // the second one when the first one has been told the description again
			n.Flush()
			_, _ = lk.TryAcquire(f.Context(), "found out")
			pass(100 * time.Millisecond)
		}
		f.alone(l, same(lk), same(idle)) // which waits for its end
		if m := change(false); m.LongerTTL != 0 || time.Since(began) < 2*long {
			t.Errorf("after %v: %+v", time.Since(began), m)
		}
		f.nodes[2].Flush()
		f.locks(lk, true)
		pass(3 * time.Second)
		f.nodes[0].Kill()
		f.locks(lk, true) // a quarantine is short now
	})
}

// TestMaxTTLEndsItsQuarantine: nodes are new, and the first program has locks of a day. The operator knows that none is held.
func TestMaxTTLEndsItsQuarantine(t *testing.T) {
	onNodes(t, 3, func(f *fleet) {
		for _, n := range f.nodes {
			n.Flush()
		}
		ctx, cancel := context.WithTimeout(f.Context(), 5*time.Second)
		defer cancel()
		if _, err := f.locker(Options{TTL: 24 * time.Hour}, f.nodes...).Acquire(ctx, "a"); !errors.Is(err, ErrNoQuorum) {
			t.Fatal(err)
		}
		lk, most := f.locker(Options{TTL: 2 * time.Second, MaxTTL: 2 * time.Second}, f.nodes...), 2*time.Second
		for i, over := range []bool{false, true} {
			if m, err := lk.Change(f.Context(), Change{MaxTTL: &most, LongerOver: over}, nil); err != nil || m.MaxTTL != most || (m.LongerTTL == 0) != over {
				t.Errorf("%d: %+v, %v", i, m, err)
			}
		}
		f.locks(lk, true)
	})
}

// TestMaxTTLIsAskedFor: a client to which nothing was said since hears of a longer MaxTTL when it needs one: for a lock,
// for a handle, and for the renewals of a lock that were refused meanwhile.
func TestMaxTTLIsAskedFor(t *testing.T) {
	short, long := 2*time.Second, 4*time.Second
	onNodes(t, 3, func(f *fleet) {
		op := f.locker(Options{TTL: short, MaxTTL: long}, f.nodes...)
		change := func(to time.Duration) {
			t.Helper()
			if _, err := op.Change(f.Context(), Change{MaxTTL: &to}, nil); err != nil {
				t.Fatal(err)
			}
		}
		f.locks(op, true)
		holder := f.locker(Options{TTL: long}, f.nodes...)
		l := acquired(f.T, holder, "long", AutoRenew())
		change(short)
		pass(long / 2) // renewals are refused
		if err := l.Extend(f.Context()); err == nil || errors.Is(err, ErrLost) {
			t.Errorf("it is extended: %v", err)
		}
		if j, err := holder.TryAcquire(l.Context(f.Context()), "long", Reentrant()); err != nil || j.Release(f.Context()) != nil {
			t.Errorf("a call joins the lock, which needs no TTL of its own: %v", err)
		}
		idle, other := f.locker(Options{TTL: short}, f.nodes...), f.locker(Options{TTL: short}, f.nodes...)
		f.locks(idle, true)
		f.locks(other, true)
		change(long)
		pass(3 * long)
		if err := l.why(); err != nil {
			t.Errorf("the lock ended although it may be extended again: %v", err)
		}
		acquired(f.T, idle, "another", TTL(long))
		h, err := acquired(f.T, op, "a handle", TTL(long)).Detach()
		if err == nil {
			_, err = other.Attach(f.Context(), h)
		}
		if err != nil {
			t.Error(err)
		}
	})
	onNodes(t, 3, func(f *fleet) {
		lk, began := f.locker(Options{TTL: short, Quarantine: -1}, f.nodes...), time.Now()
		if _, err := lk.TryAcquire(f.Context(), "a", TTL(time.Minute)); err == nil || time.Since(began) > 0 {
			t.Errorf("a TTL over MaxTTL: %v after %v", err, time.Since(began))
		}
	})
}
