package integration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
	"github.com/redis/go-redis/v9"
)

// Which locks go together, by their meaning and without regard to keys: a lock is a few claims,
// each to a name and all that lies below it.
type claim struct {
	path  []string
	mode  string // "alone", "shared" or "slot"
	slots int
}

// mayHave reports whether a lock may be acquired together with those that are held.
func mayHave(held [][]claim, wanted []claim) bool {
	for _, want := range wanted {
		taken := 0
		for _, has := range slices.Concat(held...) {
			n := min(len(want.path), len(has.path))
			switch {
			case !slices.Equal(want.path[:n], has.path[:n]):
			case want.mode == "shared" && has.mode == "shared":
			case want.mode == "slot" && has.mode == "slot" && len(want.path) == len(has.path):
				if taken++; taken >= want.slots {
					return false
				}
			default:
				return false
			}
		}
	}
	return true
}

// A kindOfLock has a row and a column in the matrix. The name is the one that has a relation to
// that of the other lock; beside is unrelated to it.
type kindOfLock struct {
	what    string
	times   int // how many are wanted at once
	options func(name, beside string) (string, []redlock.AcquireOption)
	claims  func(name, beside string) map[string]string // modes by name
}

var kindsOfLock = []kindOfLock{
	{"alone", 1, func(name, _ string) (string, []redlock.AcquireOption) {
		return name, nil
	}, func(name, _ string) map[string]string { return map[string]string{name: "alone"} }},
	{"shared", 1, func(name, _ string) (string, []redlock.AcquireOption) {
		return name, []redlock.AcquireOption{redlock.Shared()}
	}, func(name, _ string) map[string]string { return map[string]string{name: "shared"} }},
	{"a slot", 1, slotOfTwo, func(name, _ string) map[string]string { return map[string]string{name: "slot"} }},
	{"both slots", 2, slotOfTwo, func(name, _ string) map[string]string { return map[string]string{name: "slot"} }},
	{"alone, and another", 1, func(name, beside string) (string, []redlock.AcquireOption) {
		return name, []redlock.AcquireOption{redlock.Also(beside)}
	}, func(name, beside string) map[string]string { return map[string]string{name: "alone", beside: "alone"} }},
	{"shared, and another", 1, func(name, beside string) (string, []redlock.AcquireOption) {
		return name, []redlock.AcquireOption{redlock.Shared(), redlock.Also(beside)}
	}, func(name, beside string) map[string]string {
		return map[string]string{name: "shared", beside: "shared"}
	}},
	{"another, and alone", 1, func(name, beside string) (string, []redlock.AcquireOption) {
		return beside, []redlock.AcquireOption{redlock.Also(name)}
	}, func(name, beside string) map[string]string { return map[string]string{name: "alone", beside: "alone"} }},
	{"another, and shared", 1, func(name, beside string) (string, []redlock.AcquireOption) {
		return beside, []redlock.AcquireOption{redlock.Also(name), redlock.Shared()}
	}, func(name, beside string) map[string]string {
		return map[string]string{name: "shared", beside: "shared"}
	}},
}

func slotOfTwo(name, _ string) (string, []redlock.AcquireOption) {
	return name, []redlock.AcquireOption{redlock.Slots(2)}
}

// mean gives the claims of a lock of this kind, with names that are paths or are not.
func (k *kindOfLock) mean(separator, name, beside string) (all []claim) {
	for name, mode := range k.claims(name, beside) {
		path := []string{name}
		if separator != "" {
			path = strings.Split(name, separator)
		}
		all = append(all, claim{path, mode, 2})
	}
	return all
}

// relations are those of a second name to the first, which is p/A in a folder of its own.
var relations = []struct{ what, first, second string }{
	{"the same", "p/A", "p/A"},
	{"the folder", "p/A", "p"},
	{"the folder's folder", "p/A", ""},
	{"in the folder", "p/A", "p/A/x"},
	{"deep in the folder", "p/A", "p/A/x/y/z"},
	{"side by side", "p/A", "p/B"},
	{"a longer name", "p/A", "p/A1"},
	{"a shorter name", "p/A1", "p/A"},
	{"like a folder, but longer", "p/A", "p1"},
	{"elsewhere", "p/A", "q/A"},
}

// A scene has two processes over some nodes, and names that were never locked.
type scene struct {
	*testing.T
	separator  string
	one, other *redlock.Locker
	clients    []*redis.Client
	left       func() []string // the keys on the nodes, when everything is released
	at         int
}

// place gives the names of a relation, in a new folder each time, and for each a name beside it
// that has no relation to the others, except through the common folder.
func (s *scene) place(first, second string) (root string, names [4]string) {
	s.at++
	root = fmt.Sprint("place", s.at)
	in := func(name string) string { return strings.TrimSuffix(root+"/"+name, "/") }
	return root, [4]string{in(first), in("beside/1"), in(second), in("beside/2")}
}

// try wants a lock, and checks that it is acquired or refused as it must be.
func (s *scene) try(lk *redlock.Locker, name string, options []redlock.AcquireOption, want bool, what string) *redlock.Lock {
	s.Helper()
	l, err := lk.TryAcquire(s.Context(), name, options...)
	switch {
	case want && err != nil:
		s.Errorf("%s: %v", what, err)
	case !want && err == nil:
		s.Errorf("%s: both are held", what)
	case !want && !errors.Is(err, redlock.ErrHeld):
		s.Errorf("%s: refused with %v, want %v", what, err, redlock.ErrHeld)
	}
	return l
}

// wait acquires a lock that is about to be free: a release is over when a quorum of nodes has
// confirmed it, and for two releases these may be different nodes.
func (s *scene) wait(lk *redlock.Locker, name string, options []redlock.AcquireOption, what string) *redlock.Lock {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), settleWithin)
	defer cancel()
	l, err := lk.Acquire(ctx, name, options...)
	if err != nil {
		s.Errorf("%s: %v", what, err)
	}
	return l
}

// pair holds a lock of one kind, and wants one of another.
func (s *scene) pair(one, other *kindOfLock, relation, first, second string) {
	s.Helper()
	_, names := s.place(first, second)
	what := fmt.Sprintf("separator %q, %s, then %s, %s (%s)", s.separator, one.what, other.what, relation, names[2])
	name, options := one.options(names[0], names[1])
	var held [][]claim
	var locks, later []*redlock.Lock
	for range one.times {
		locks = append(locks, s.try(s.one, name, options, true, what+": the first"))
		held = append(held, one.mean(s.separator, names[0], names[1]))
	}
	name, options = other.options(names[2], names[3])
	refused := 0
	for range other.times {
		wanted := other.mean(s.separator, names[2], names[3])
		may := mayHave(held, wanted)
		if l := s.try(s.other, name, options, may, what); l != nil {
			later = append(later, l)
		}
		if may {
			held = append(held, wanted)
		} else {
			refused++
		}
	}
	if s.Failed() {
		s.FailNow()
	}
	for _, l := range locks {
		released(s.T, l)
	}
	for range refused {
		later = append(later, s.wait(s.other, name, options, what+", after the first was released"))
	}
	for _, l := range later {
		if l == nil {
			s.FailNow()
		}
		if err := l.Extend(s.Context()); err != nil {
			s.Errorf("%s: extended after the first was released: %v", what, err)
		}
		released(s.T, l)
	}
}

// all goes through the matrix. Names that are no paths need no relations. A quick run takes a fifth
// of each relation: every kind still meets every other one, and is in every relation.
func (s *scene) all() {
	every, laid := need.Sized(5, 1, 1), 0
	for at, r := range relations {
		if s.separator == "" && at%3 > 0 {
			continue
		}
		laid++
		for i := range kindsOfLock {
			for j := range kindsOfLock {
				if (laid+i+j)%every > 0 {
					continue
				}
				s.pair(&kindsOfLock[i], &kindsOfLock[j], r.what, r.first, r.second)
			}
		}
	}
	if left := s.left(); len(left) > 0 {
		s.Errorf("left on the nodes: %q", left)
	}
}

// TestKindsMatrix: a held lock refuses exactly the conflicting ones, for all kinds and all
// relations of the names.
func TestKindsMatrix(t *testing.T) {
	for _, separator := range []string{"/", ""} {
		t.Run(fmt.Sprintf("separator %q", separator), func(t *testing.T) {
			inScene(t, separator, (*scene).all)
		})
	}
}

// TestKindsBesidePlainRedlock: the same with a client of another Redlock library, either first.
func TestKindsBesidePlainRedlock(t *testing.T) {
	inScene(t, "/", (*scene).beside)
}

// inScene has one node, since each node decides by itself what goes together. inRealScene has
// three: there a script takes a tenth of the time.
func inScene(t *testing.T, separator string, f func(*scene)) {
	synctest.Test(t, func(t *testing.T) {
		leaks.Check(t)
		b := redistest.NewBubble(t, 1)
		opts := patient()
		opts.Separator = separator
		f(&scene{
			T: t, separator: separator, one: open(t, b.Clients(), opts), other: open(t, b.Clients(), opts), clients: b.Clients(),
			left: func() (all []string) {
				synctest.Wait()
				for i := range b.Len() {
					all = append(all, b.Keys(i)...)
				}
				return all
			},
		})
	})
}

// beside is the matrix of locks of this library and of a client that knows no kinds, and holds one
// key exclusively. What that client holds in a folder does not show at the folder, so the test does
// not check it; the other way round, the library's marks on a folder keep that client out.
func (s *scene) beside() {
	for at, r := range relations {
		for i := range kindsOfLock {
			if !need.Sample(at+i, 3) {
				continue
			}
			k := &kindsOfLock[i]
			_, names := s.place(r.first, r.second)
			what := fmt.Sprintf("%s, and a plain client %s (%s)", k.what, r.what, names[2])
			above := names[2] == names[0] || strings.HasPrefix(names[0], names[2]+"/")
			name, options := k.options(names[0], names[1])

			var locks []*redlock.Lock
			for range k.times {
				locks = append(locks, s.try(s.one, name, options, true, what+": the first"))
			}
			if s.Failed() {
				return
			}
			if got := s.plain(names[2]); got != !above {
				s.Errorf("%s: it has the lock: %v", what, got)
			}
			s.unset(names[2])
			for _, l := range locks {
				released(s.T, l)
			}

			if !s.plain(names[2]) {
				s.Errorf("%s: it does not get what was released", what)
			}
			if !strings.HasPrefix(names[2], names[0]+"/") {
				for n := range k.times {
					if l := s.try(s.one, name, options, !above, what+", which came first"); l != nil {
						released(s.T, l)
					} else if n > 0 {
						break
					}
				}
			}
			s.unset(names[2])
			released(s.T, s.try(s.one, name, options, true, what+", which has left"))
		}
	}
	if left := s.left(); len(left) > 0 {
		s.Errorf("left on the nodes: %q", left)
	}
}

const plainToken = "b5a2c96250612366ea272ffac6d9744aaf4b45aa"

// plain locks as other Redlock clients do, and reports whether it has the lock.
func (s *scene) plain(key string) bool {
	s.Helper()
	votes := 0
	for _, c := range s.clients {
		err := c.Do(s.Context(), "SET", key, plainToken, "NX", "PX", 60000).Err()
		if err == nil {
			votes++
		} else if !errors.Is(err, redis.Nil) {
			s.Fatal(err)
		}
	}
	return votes > len(s.clients)/2
}

// unset releases as they do.
func (s *scene) unset(key string) {
	s.Helper()
	for _, c := range s.clients {
		got, err := c.Get(s.Context(), key).Result()
		if err == nil && got == plainToken {
			c.Del(s.Context(), key)
		}
	}
}
