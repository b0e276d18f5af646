package integration_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/redistest"
	"github.com/quorumlock/redlock/internal/redistest/leaks"
	"github.com/quorumlock/redlock/internal/redistest/need"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/redis/go-redis/v9"
)

// While programs are upgraded, clients with a counter for each name and clients with a table lock
// the same names. A generation is what the ones or the others send to nodes.
type generation struct {
	name                    string
	acquire, raise, release string
	bucketed                bool
}

// generations has the older scripts, which testdata keeps unchanged, and the present ones.
func generations(t *testing.T) (all []generation) {
	t.Helper()
	older := func(names ...string) string {
		var all strings.Builder
		for _, name := range names {
			source, err := os.ReadFile(filepath.Join("testdata", "older", name+".lua"))
			if err != nil {
				t.Fatal(err)
			}
			all.Write(source)
		}
		return all.String()
	}
	return []generation{
		{"older", older("acquire_usual", "kinds", "queue", "acquire"), older("kinds", "raise"), older("release_usual", "kinds", "queue", "give", "release"), false},
		{"newer", script.Acquire("", 0).Source, script.Raise.Source, script.Release("", 0).Source, true},
	}
}

// A wish is a lock that is wanted.
type mixedWish struct {
	keys  []string
	modes string
}

func (g *generation) run(t *testing.T, c *redis.Client, source string, w mixedWish, args ...any) any {
	t.Helper()
	for _, key := range w.keys {
		if g.bucketed {
			args = append(args, script.Bucket(key))
		}
	}
	v, err := c.Eval(t.Context(), source, w.keys, args...).Result()
	if err != nil {
		t.Fatalf("%s: %v", g.name, err)
	}
	return v
}

// lock asks the nodes one after another, where the library would ask all at once, and gives the fence.
func (g *generation) lock(t *testing.T, nodes []*redis.Client, w mixedWish, token string, proposed int64) int64 {
	t.Helper()
	numbers, same := make([]int64, len(nodes)), 0
	for i, c := range nodes {
		switch v := g.run(t, c, g.acquire, w, token, 60_000, proposed, 0, "", 0, "", 0, "", w.modes, 0, 0).(type) {
		case int64:
			numbers[i] = proposed
		case []any:
			if len(v) != 2 {
				t.Fatalf("%s is refused %v: %v", g.name, w, v)
			}
			numbers[i] = v[0].(int64)
		}
	}
	fence := slices.Max(numbers)
	for i, c := range nodes {
		if numbers[i] == fence || g.run(t, c, g.raise, w, token, fence, w.modes) == int64(1) {
			same++
		}
	}
	if same < 2 {
		return 0 // unfenced: it has failed
	}
	return fence
}

func (g *generation) unlock(t *testing.T, nodes []*redis.Client, w mixedWish, token string) {
	for _, c := range nodes {
		g.run(t, c, g.release, w, token, w.modes, 0, 0)
	}
}

// mixed makes older and newer clients lock some conflicting names, each time at another majority of
// three nodes, and checks that fences rise.
func mixed(t *testing.T, nodes []*redis.Client, now func() time.Time, seed uint64, gap func(*rand.Rand)) {
	for _, c := range nodes {
		c.Set(t.Context(), script.OldMarker, "id:1", 0)
	}
	gens := generations(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	wishes := []mixedWish{
		{[]string{"a"}, "x"}, {[]string{"a"}, "x"}, {[]string{"a"}, "s"}, {[]string{"a", "a/b"}, "wx"}, {[]string{"a", "b"}, "xx"}, {[]string{"a", "a/b"}, "rs"},
	}
	last, by, at, took, failed := int64(0), "", now(), map[string]int{}, 0
	for n := range 120 {
		gap(rng)
		g, w := gens[rng.IntN(2)], wishes[rng.IntN(len(wishes))]
		token := fmt.Sprint("token.", n)
		asked := slices.Clone(nodes)
		if out := rng.IntN(len(nodes) + 1); out < len(nodes) {
			asked = slices.Delete(asked, out, out+1)
		}
		reads := strings.HasSuffix(w.modes, "s")
		proposed := now().Add(time.Duration(rng.IntN(800)-400) * time.Millisecond).UnixMicro()
		if reads && g.bucketed {
			proposed = 0
		}
		fence := g.lock(t, asked, w, token, proposed)
		g.unlock(t, nodes, w, token)
		switch {
		case fence == 0:
			failed++
			continue
		case reads && fence >= last:
		case reads && now().Sub(at) > 25*time.Hour: // the counters of older clients have expired
		case fence <= last:
			t.Fatalf("seed %d, %d: %s has %v with %d, after %d of %s", seed, n, g.name, w, fence, last, by)
		}
		took[g.name]++
		if !reads {
			last, by, at = fence, g.name, now()
		}
	}
	if took["older"] < 30 || took["newer"] < 30 || failed > 10 {
		t.Errorf("seed %d: %v, and %d failed", seed, took, failed)
	}
}

// TestOlderAndNewerClients: fences rise for clients of both generations, over any time; those of
// readers over a day, as they did before.
func TestOlderAndNewerClients(t *testing.T) {
	need.Full(t)
	for seed := range need.Sized[uint64](3, 3, 100) {
		synctest.Test(t, func(t *testing.T) {
			b := redistest.NewBubble(t, 3)
			mixed(t, b.Clients(), time.Now, seed, func(rng *rand.Rand) {
				time.Sleep([]time.Duration{0, time.Millisecond, time.Second, 59 * time.Second, 61 * time.Second, 26 * time.Hour}[rng.IntN(6)])
			})
		})
	}
}

// TestOlderAndNewerClientsOnRedis: the same on real servers, without waits.
func TestOlderAndNewerClientsOnRedis(t *testing.T) {
	leaks.Check(t)
	nodes := redistest.Clients(t, redistest.Servers(t, 3))
	for seed := range uint64(3) {
		mixed(t, nodes, time.Now, seed, func(*rand.Rand) {})
	}
}

// TestOlderClientsHaveGone: only where the older marker exists are older counters written beside
// the table, with the same life as before.
func TestOlderClientsHaveGone(t *testing.T) {
	leaks.Check(t)
	c := redistest.Clients(t, redistest.Servers(t, 1))[0]
	one, gens := []*redis.Client{c, c}, generations(t)
	older, newer := gens[0], gens[1]
	a, path := mixedWish{[]string{"a"}, "x"}, mixedWish{[]string{"f", "f/b"}, "wx"}
	lock := func(g generation, w mixedWish) {
		t.Helper()
		g.lock(t, one[:1], w, "token", nodeTime(t, c))
		g.unlock(t, one[:1], w, "token")
	}
	c.FlushAll(t.Context())
	lock(newer, a)
	lock(newer, path)
	wantKeys(t, c, "no old clients", script.Belows, script.Fences)
	c.Set(t.Context(), script.OldMarker, "id:1", 0)
	lock(newer, a)
	lock(newer, path)
	wantKeys(t, c, "old clients", "a:fence", "f/b:fence", "f:below", script.Belows, script.Fences, script.OldMarker)
	for _, key := range []string{"a:fence", "f/b:fence", "f:below"} {
		if ttl := c.PTTL(t.Context(), key).Val(); ttl > 25*time.Hour || ttl < 24*time.Hour {
			t.Errorf("%s lives for %v", key, ttl)
		}
	}
	lock(older, a)
	lock(newer, a)
	if theirs, ours := c.Get(t.Context(), "a:fence").Val(), counter(t, c, "a"); theirs != ours {
		t.Errorf("theirs says %s, the table %s", theirs, ours)
	}

	// Then a release does not hand the lock over: the waiter makes an attempt, and its fence is
	// counted in both.
	newer.lock(t, one[:1], a, "token", nodeTime(t, c))
	newer.run(t, c, newer.acquire, a, "another", 60_000, nodeTime(t, c), 0, "", 1, "process.1", 3_000, "me", "x", 0, 9)
	newer.run(t, c, newer.release, a, "token", "x", 0, nodeTime(t, c))
	if n := c.Exists(t.Context(), "a").Val(); n != 0 {
		t.Error("it was handed over")
	}
}
