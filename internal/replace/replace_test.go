package replace_test

import (
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/replace"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
)

func TestMain(m *testing.M) { os.Exit(leaks.Main(m)) }

// TestPartsAreUsed: a Locker that is made with Parts takes its tokens from their Host and its nodes from Open, tells Held and
// Ended of each lock at once, and gives Weigh the number of its lanes. Options without them are not changed.
func TestPartsAreUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leaks.Check(t)
		var nodes []*model.Node
		for _, name := range []string{"node0", "node1", "node2"} {
			nodes = append(nodes, model.NewNode(sim.Seed(1), name, time.Millisecond))
		}
		parts := model.NewHost(sim.Seed(1), "p1").Parts(func(addr string) *model.Node { return model.Named(nodes, addr) })
		var held, ended []any
		var lanes func() []int
		parts.Held, parts.Ended = func(l any) { held = append(held, l) }, func(l any) { ended = append(ended, l) }
		parts.Weigh = func(f func() []int) { lanes = f }
		opts := &redlock.Options{Quarantine: -1}
		replace.In(opts, parts)
		lk, err := redlock.New(model.Clients([]string{"node0", "node1", "node2"}), opts)
		if err != nil {
			t.Fatal(err)
		}
		defer lk.Close()
		l, err := lk.Acquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(held, []any{l}) || len(ended) != 0 {
			t.Errorf("acquired: held %v, ended %v", held, ended)
		}
		if name := l.Token()[:3]; name != "p1." {
			t.Errorf("the token is %q, not one of this host", l.Token())
		}
		found := 0
		for _, n := range nodes {
			for key, token := range n.Tokens() {
				if key == "a" && token == l.Token() {
					found++
				}
			}
		}
		if found < 2 {
			t.Errorf("the lock is on %d of the nodes that Open gave", found)
		}
		if lanes == nil || len(lanes()) != len(nodes) {
			t.Error("Weigh does not know a lane for each node")
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(ended, []any{l}) {
			t.Errorf("released: ended %v", ended)
		}
	})
}
