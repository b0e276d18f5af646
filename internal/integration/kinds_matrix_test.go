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
	"github.com/quorumlock/redlock/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// What goes together, by the meaning of locks and with no thought of keys: a lock is a
// few claims, each to a name and all that lies below it.
type claim struct {
	path  []string
	way   string // "alone", "shared" or "slot"
	slots int
}

// mayHave reports whether a lock may be had beside those that are held.
func mayHave(held [][]claim, wanted []claim) bool {
	for _, want := range wanted {
		taken := 0
		for _, has := range slices.Concat(held...) {
			n := min(len(want.path), len(has.path))
			switch {
			case !slices.Equal(want.path[:n], has.path[:n]):
			case want.way == "shared" && has.way == "shared":
			case want.way == "slot" && has.way == "slot" && len(want.path) == len(has.path):
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

// A kindOfLock is one that the matrix has a row and a column for. The name is the one that
// stands in a relation to that of the other lock; beside has nothing to do with it.
type kindOfLock struct {
	what    string
	times   int // so many are wanted at once
	options func(name, beside string) (string, []redlock.AcquireOption)
	claims  func(name, beside string) map[string]string // ways by name
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

// mean is what a lock of this kind means where names are paths, or are not.
func (k *kindOfLock) mean(separator, name, beside string) (all []claim) {
	for name, way := range k.claims(name, beside) {
		path := []string{name}
		if separator != "" {
			path = strings.Split(name, separator)
		}
		all = append(all, claim{path, way, 2})
	}
	return all
}

// relations are of a second name to the first, which is p/A in a place of its own.
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

// A scene has two processes over some nodes, and names that nobody has had.
type scene struct {
	*testing.T
	separator  string
	one, other *redlock.Locker
	clients    []*redis.Client
	left       func() []string // on the nodes, when all has come to rest
	at         int
}

// place gives the names of a relation somewhere else each time, and one beside each of
// them that nothing else has to do with, but for the folder of all.
func (s *scene) place(first, second string) (root string, names [4]string) {
	s.at++
	root = fmt.Sprint("place", s.at)
	in := func(name string) string { return strings.TrimSuffix(root+"/"+name, "/") }
	return root, [4]string{in(first), in("beside/1"), in(second), in("beside/2")}
}

// try wants a lock, and checks that it is had or refused as is right.
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

// wait has what is about to be free: a release is over when a quorum of nodes has confirmed
// it, and of two releases these may be different nodes.
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

// pair has a lock of one kind held, and wants one of another.
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

// all goes through the matrix. Names that are no paths need not be laid in each relation.
func (s *scene) all() {
	for at, r := range relations {
		if s.separator == "" && at%3 > 0 {
			continue
		}
		for i := range kindsOfLock {
			for j := range kindsOfLock {
				s.pair(&kindsOfLock[i], &kindsOfLock[j], r.what, r.first, r.second)
			}
		}
	}
	if left := s.left(); len(left) > 0 {
		s.Errorf("left on the nodes: %q", left)
	}
}

// TestKindsMatrix: who has a lock keeps those out, and nobody else, with whom it cannot be
// shared, whatever the kinds and wherever the names lie.
func TestKindsMatrix(t *testing.T) {
	for _, separator := range []string{"/", ""} {
		t.Run(fmt.Sprintf("separator %q", separator), func(t *testing.T) {
			inScene(t, separator, (*scene).all)
		})
	}
}

// TestKindsBesidePlainRedlock: the same of another Redlock client and ours, either first.
func TestKindsBesidePlainRedlock(t *testing.T) {
	inScene(t, "/", (*scene).beside)
}

// inScene has one node, since it is a node that says what goes together. There are three
// in inRealScene, where a script takes a tenth of the time.
func inScene(t *testing.T, separator string, f func(*scene)) {
	synctest.Test(t, func(t *testing.T) {
		redistest.NoLeaks(t)
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

// beside is the matrix of ours and of a client that knows nothing of kinds, and so has one
// key alone. What it has in a folder is not to be seen at the folder, so we say nothing of
// that; the other way round our marks on a folder keep it out.
func (s *scene) beside() {
	for _, r := range relations {
		for i := range kindsOfLock {
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

// plain is what Redlock clients do for a lock, and reports whether they have it.
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

// unset is what they do to give it back.
func (s *scene) unset(key string) {
	s.Helper()
	for _, c := range s.clients {
		got, err := c.Get(s.Context(), key).Result()
		if err == nil && got == plainToken {
			c.Del(s.Context(), key)
		}
	}
}
