package recipes

import (
	"errors"
	"fmt"
	"testing"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/redlocktest"
)

// TestSpread: each set has its share of the names, and another set takes its own share and moves nothing else.
func TestSpread(t *testing.T) {
	const names = 10_000
	before := Spread{Sets: map[string]*redlock.Locker{"a": nil, "b": nil, "c": nil, "d": nil}}
	after := Spread{Sets: map[string]*redlock.Locker{"a": nil, "b": nil, "c": nil, "d": nil, "e": nil}}
	share, moved := make(map[string]int), 0
	for i := range names {
		name := fmt.Sprint("orders/", i)
		was, is := before.set(name), after.set(name)
		share[was]++
		if was != is {
			moved++
			if is != "e" {
				t.Errorf("%s moved from %s to %s", name, was, is)
			}
		}
	}
	for set, n := range share {
		if n < names/4*9/10 || n > names/4*11/10 {
			t.Errorf("%s has %d of %d names", set, n, names)
		}
	}
	if moved < names/5*9/10 || moved > names/5*11/10 {
		t.Errorf("%d of %d names moved to the fifth set", moved, names)
	}
}

// TestSpreadLocks: programs with the same sets exclude each other, also on folders; a set that is down takes away only
// its own names; and a lock is at one set.
func TestSpreadLocks(t *testing.T) {
	leaks.Check(t)
	sets := map[string]*redlocktest.Nodes{"a": redlocktest.New(t), "b": redlocktest.New(t)}
	spread := func() Spread {
		s := Spread{Sets: make(map[string]*redlock.Locker), Separator: "/"}
		for set, nodes := range sets {
			s.Sets[set] = nodes.Locker(&redlock.Options{Separator: "/"})
		}
		return s
	}
	try := func(s Spread, name string, also ...string) error {
		locker, err := s.Locker(name, also...)
		if err != nil {
			return err
		}
		_, err = locker.TryAcquire(t.Context(), name, redlock.Also(also...))
		return err
	}
	mine, yours := spread(), spread()
	of := make(map[string]string) // a project of each set
	for i := 0; len(of) < len(sets); i++ {
		name := fmt.Sprint("project", i)
		of[mine.set(name)] = name
	}
	a, b := of["a"], of["b"]
	for _, name := range []string{a + "/x", b + "/x"} {
		if err := try(mine, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{a, a + "/x", "/" + a + "/x/y", b} {
		if err := try(yours, name); !errors.Is(err, redlock.ErrHeld) {
			t.Errorf("%s, which another program has: %v", name, err)
		}
	}
	if err := try(yours, a+"/y", a+"/z"); err != nil {
		t.Errorf("two names of one folder: %v", err)
	}
	if err := try(yours, a+"/v", b+"/v"); err == nil || errors.Is(err, redlock.ErrHeld) {
		t.Errorf("two names of two sets: %v", err)
	}
	for i := range sets["a"].Len() {
		sets["a"].Kill(i)
	}
	if err := try(yours, a+"/w"); !errors.Is(err, redlock.ErrNoQuorum) {
		t.Errorf("a name whose set is down: %v", err)
	}
	if err := try(yours, b+"/w"); err != nil {
		t.Errorf("a name of the other set: %v", err)
	}
	if _, err := (Spread{}).Locker("a"); err == nil {
		t.Error("no sets, and no error")
	}
}
