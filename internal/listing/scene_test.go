package listing_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/listing"
)

// A scene is a set of nodes with owners that lock, and a Locker that looks.
type scene struct {
	*testing.T
	clients []*redis.Client
	eye     *redlock.Locker
	waiting sync.WaitGroup
	stop    context.CancelFunc
	ctx     context.Context
}

// on makes a scene on the nodes that these clients reach.
func on(t *testing.T, clients []*redis.Client) *scene {
	t.Helper()
	s := &scene{T: t, clients: clients}
	s.ctx, s.stop = context.WithCancel(t.Context())
	s.eye = s.locker("eye")
	t.Cleanup(func() {
		s.stop()
		s.waiting.Wait()
	})
	return s
}

func (s *scene) locker(owner string) *redlock.Locker {
	s.Helper()
	lk, err := redlock.New(s.clients, &redlock.Options{TTL: time.Minute, Owner: owner, Separator: "/", NodeTimeout: 2 * time.Second})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = lk.Close() })
	return lk
}

// lock acquires a lock for an owner of its own, or says who has it.
func (s *scene) lock(owner, name string, options ...redlock.AcquireOption) *redlock.Lock {
	s.Helper()
	l, err := s.locker(owner).TryAcquire(s.Context(), name, options...)
	if err != nil && !errors.Is(err, redlock.ErrHeld) {
		s.Fatal(err)
	}
	return l
}

// wait has an owner wait for a lock until the test ends.
func (s *scene) wait(owner, name string, options ...redlock.AcquireOption) {
	lk := s.locker(owner)
	s.waiting.Go(func() {
		if l, err := lk.Acquire(s.ctx, name, options...); err == nil {
			<-s.ctx.Done()
			_ = l.Release(context.Background())
		}
	})
}

// nodes are the nodes as the command gives them to Find.
func (s *scene) nodes() (nodes []listing.Node, quorum int) {
	s.Helper()
	about, err := s.eye.Inspect(s.Context(), "nobody's")
	if err != nil {
		s.Fatal(err)
	}
	for i, n := range about.Nodes {
		nodes = append(nodes, listing.Node{Name: n.Node, Options: s.clients[i].Options(), Err: n.Err})
	}
	return nodes, s.eye.Members().Quorum
}

// find lists the locks.
func (s *scene) find(q listing.Query) (*listing.Locks, map[string]*redlock.Status) {
	s.Helper()
	nodes, quorum := s.nodes()
	q.Quorum = quorum
	l, err := listing.Find(s.Context(), nodes, q)
	if err != nil {
		s.Fatal(err)
	}
	return l, byName(s.T, l)
}

func byName(t *testing.T, l *listing.Locks) map[string]*redlock.Status {
	t.Helper()
	all, last := make(map[string]*redlock.Status), ""
	for s := range l.All() {
		if s.Name <= last {
			t.Errorf("%q comes after %q", s.Name, last)
		}
		all[s.Name], last = s, s.Name
	}
	return all
}

// said is all of a status that does not change from one moment to the next, and that a listing has.
func said(s *redlock.Status) string {
	var b strings.Builder
	holders := func(of []redlock.Holder) {
		var each []string
		for _, h := range of {
			each = append(each, fmt.Sprintf("  %s %s by %q on %d\n", h.Mode, h.Token, h.By.Owner, h.Nodes))
		}
		slices.Sort(each)
		b.WriteString(strings.Join(each, ""))
	}
	waiting := func(of []redlock.Waiter) {
		for _, w := range of {
			fmt.Fprintf(&b, "  waits: %s %s known to %d\n", w.Waiter, w.Owner, w.Nodes)
		}
	}
	fmt.Fprintf(&b, "%q %v %s %+v ttl %t\n", s.Name, s.State, s.Token, s.By, s.TTL > 0)
	holders(s.Holders)
	waiting(s.Waiting)
	for _, n := range s.Nodes {
		fmt.Fprintf(&b, " %s %s\n", n.Node, n.Token)
		if n.Err != nil {
			fmt.Fprintf(&b, "  %v\n", n.Err.Outcome)
		}
		holders(n.Holders)
		waiting(n.Waiting)
	}
	return b.String()
}

// agrees compares the list with what Inspect says of each of these names.
func (s *scene) agrees(names []string) {
	s.Helper()
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	// Waiters ask again from time to time, and a place in a queue ends and begins anew: two looks
	// that differ are taken once more.
	for try := 0; ; try++ {
		var differ []string
		_, listed := s.find(listing.Query{})
		for _, name := range names {
			want, err := s.eye.Inspect(s.Context(), name)
			if err != nil {
				s.Fatal(err)
			}
			got := listed[name]
			there := len(want.Holders)+len(want.Waiting) > 0
			for _, n := range want.Nodes {
				there = there || n.Token != ""
			}
			switch {
			case got == nil && there:
				differ = append(differ, fmt.Sprintf("not listed: %s", said(want)))
			case got != nil && said(got) != said(want):
				differ = append(differ, fmt.Sprintf("listed: %sinspected: %s", said(got), said(want)))
			}
			delete(listed, name)
		}
		for name := range listed {
			differ = append(differ, fmt.Sprintf("listed, and nobody has locked it: %q", name))
		}
		if len(differ) == 0 {
			return
		}
		if try == 4 {
			s.Fatal(strings.Join(differ, "\n"))
		}
	}
}

// populate has many owners take locks of all kinds, some of which exclude each other, and wait for some.
// It returns the names that may be locked.
func (s *scene) populate(owners int, random *rand.Rand) (names []string, locks []*redlock.Lock) {
	s.Helper()
	name := func() string {
		return fmt.Sprintf("%c/%d", 'a'+random.IntN(4), random.IntN(owners))
	}
	for i := range owners {
		owner := fmt.Sprintf("owner-%d", i)
		var of []string
		var options []redlock.AcquireOption
		switch i % 5 {
		case 0:
			of = []string{name()}
		case 1:
			of = []string{fmt.Sprintf("s/%d", random.IntN(3))}
			options = append(options, redlock.Shared())
		case 2:
			of = []string{"slots/x"}
			options = append(options, redlock.Slots(owners/8+1))
		case 3:
			of = []string{name() + "/deep/x", name(), "z"}
			options = append(options, redlock.Also(of[1:]...))
		case 4:
			of = []string{fmt.Sprintf("w/%d", i%3)}
			s.wait(owner+"'s waiter", of[0])
		}
		for _, n := range of {
			for at, b := range n {
				if b == '/' {
					names = append(names, n[:at])
				}
			}
			names = append(names, n)
		}
		if l := s.lock(owner, of[0], options...); l != nil {
			locks = append(locks, l)
		}
	}
	return names, locks
}
