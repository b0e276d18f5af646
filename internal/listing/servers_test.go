package listing_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/listing"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
)

// TestServersAgree: forty owners with locks of all kinds on five servers, of which two go down, one loses
// its data, and one has lost half of what a lock has.
func TestServersAgree(t *testing.T) {
	servers := redistest.Servers(t, 5)
	clients := redistest.Clients(t, servers)
	s := on(t, clients)
	random := rand.New(rand.NewPCG(1, 0))
	names, locks := s.populate(40, random)
	if len(locks) < 20 {
		t.Fatalf("only %d locks", len(locks))
	}
	s.agrees(names)

	for _, c := range clients[:2] {
		if err := c.Del(t.Context(), locks[0].Name()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := servers[2].Forget(); err != nil {
		t.Fatal(err)
	}
	s.agrees(names)
	servers[3].Kill()
	s.agrees(names)
	servers[4].Kill()
	s.agrees(names)

	l, _ := s.find(listing.Query{})
	for i, n := range l.Nodes() {
		if walked := i < 3; n.Walked() != walked {
			t.Errorf("node %d: %v", i, n.Err)
		}
	}
}

// TestServersCount: each of 10,000 locks that are held all the time is listed once, while a third as many
// keys again come and go, so that the servers resize their tables.
func TestServersCount(t *testing.T) {
	const locks, others = 10_000, 30_000
	clients := redistest.Clients(t, redistest.Servers(t, 5))
	s := on(t, clients)
	fill := func(c *redis.Client, prefix string, n int) {
		for from := 0; from < n; from += 1000 {
			if _, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
				for i := from; i < from+1000; i++ {
					p.Set(t.Context(), fmt.Sprint(prefix, i), fmt.Sprint("tok", i), time.Minute)
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
		}
	}
	for _, c := range clients {
		fill(c, "lock", locks)
	}
	for _, c := range clients {
		s.waiting.Go(func() {
			fill(c, "other", others)
			for from := 0; from < others; from += 1000 {
				var keys []string
				for i := from; i < from+1000; i++ {
					keys = append(keys, fmt.Sprint("other", i))
				}
				if err := c.Del(t.Context(), keys...).Err(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	_, got := s.find(listing.Query{Pattern: "lock*"})
	if len(got) != locks {
		t.Errorf("%d are listed, want %d", len(got), locks)
	}
	for i := range locks {
		name, token := fmt.Sprint("lock", i), fmt.Sprint("tok", i)
		if l := got[name]; l == nil || l.State != redlock.StateHeld || l.Token != token || slices.ContainsFunc(l.Nodes, func(n redlock.NodeStatus) bool { return n.Token != token }) {
			t.Fatalf("%s: %+v", name, l)
		}
	}
	s.waiting.Wait()
}

// TestServersPattern: a pattern matches the names that it matches in Redis.
func TestServersPattern(t *testing.T) {
	client := redistest.Clients(t, redistest.Servers(t, 1))[0]
	node := []listing.Node{{Name: "n", Options: client.Options()}}
	random := rand.New(rand.NewPCG(2, 0))
	draw := func(from string, n int) string {
		b := make([]byte, random.IntN(n)+1)
		for i := range b {
			b[i] = from[random.IntN(len(from))]
		}
		return string(b)
	}
	for range 60 {
		if err := client.Set(t.Context(), draw("abc]-^", 5), "tok", time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
	}
	some := 0
	for range 150 {
		pattern := draw(`aabc**??[[]]--^\`, 8)
		want, err := client.Keys(t.Context(), pattern).Result()
		if err != nil {
			t.Fatal(err)
		}
		l, err := listing.Find(t.Context(), node, listing.Query{Pattern: pattern, Quorum: 1})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for s := range l.All() {
			got = append(got, s.Name)
		}
		slices.Sort(want)
		want = slices.DeleteFunc(want, script.Lasting) // the marker
		if !slices.Equal(got, want) {
			t.Errorf("%q matches %d names, and %d in Redis", pattern, len(got), len(want))
		}
		if len(got) > 0 {
			some++
		}
	}
	if some < 15 {
		t.Errorf("only %d patterns have matched anything", some)
	}
}
