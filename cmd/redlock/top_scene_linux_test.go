package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
	"github.com/quorumlock/redlock/internal/wire"
)

// A topScene is nodes, and the locks that they are to have. It does not change while a test looks at it.
type topScene struct {
	*testing.T
	nodes *memredis.Cluster
	names []string // of all locks
	asks  *redlock.Locker
	said  map[string]*redlock.Status
}

// sceneOf is what the nodes have of these locks.
func sceneOf(t *testing.T, nodes *memredis.Cluster, names ...string) *topScene {
	t.Helper()
	slices.Sort(names)
	return &topScene{T: t, nodes: nodes, names: names, asks: lockerOf(t, nodes, "asks")}
}

// A behind is the clock of a host that is behind: a lock that it takes looks as old as that.
type behind time.Duration

func (b behind) Now() time.Time { return time.Now().Add(-time.Duration(b)) }

// pictured is the scene that the pictures in the documentation show: locks of all kinds, some with waiters, one
// that is left over, and a node that was restarted without its data. Names, owners and ages are always the same.
func pictured(t *testing.T) *topScene {
	t.Helper()
	nodes := started(t, 3)
	names := make(map[string]bool)
	ctx, cancel := context.WithCancel(t.Context())
	asks, released := 0, make(chan struct{})
	take := func(owner string, age time.Duration, waits bool, name string, options ...redlock.AcquireOption) {
		t.Helper()
		names[name] = true
		lk := lockerWith(t, nodes, &redlock.Options{Owner: owner, TTL: longTTL, Clock: behind(age)})
		if !waits {
			l, err := lk.Acquire(ctx, name, options...)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Release(context.Background()) })
			return
		}
		asks++
		go func() {
			if l, err := lk.Acquire(ctx, name, options...); err == nil {
				_ = l.Release(context.Background())
			}
			released <- struct{}{}
		}()
	}
	const holds, waits = false, true
	take("web-1:4242", 42*time.Minute, holds, "jobs/nightly")
	take("scheduler-2:7", 26*time.Hour, holds, "leader/scheduler")
	take("reader-1:311", 6*time.Minute, holds, "reports/monthly", redlock.Shared())
	take("reader-2:314", 2*time.Minute, holds, "reports/monthly", redlock.Shared())
	for i := range 3 {
		take(fmt.Sprintf("mailer-%d:90", i+1), time.Duration(8-i)*time.Second, holds, "mail/send", redlock.Slots(3))
	}
	take("bank-1:1871", 3*time.Second, holds, "accounts/alice", redlock.Also("accounts/bob"))
	take("ci-7:88", 95*time.Second, holds, "deploy/eu-west")
	take("ci-4:85", 11*time.Minute, holds, "deploy/us-east")
	take("shop-3:5150", 2*time.Second, holds, "orders/4711")
	take("shop-1:5148", 9*time.Second, holds, "orders/4712")
	take("import-1:66", 17*time.Minute, holds, "imports/products")
	t.Cleanup(func() {
		cancel()
		for range asks {
			<-released
		}
	})

	names["accounts/bob"], names["jobs/cleanup"] = true, true
	late := nodes.Nodes[2]
	if err := late.Restart(false); err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: late.Addr()})
	defer rdb.Close()
	token := wire.Sign("b41d6a58-2c1f-4f0e-9a57-3d2f8c6e7a10", time.Now().Add(-4*time.Second), "", "", wire.Label("web-4:1209"))
	if err := rdb.Set(t.Context(), "jobs/cleanup", token, longTTL-3*time.Second).Err(); err != nil {
		t.Fatal(err)
	}
	// Now, so that this node knows of them, too.
	take("web-2:977", 0, waits, "jobs/nightly")
	take("web-3:1203", 0, waits, "jobs/nightly")
	take("ci-8:89", 0, waits, "deploy/eu-west")
	s := sceneOf(t, nodes, slices.Collect(maps.Keys(names))...)
	wait := func(name string, processes int) bool {
		waiting := s.says(name).Waiting
		return len(waiting) == processes && !slices.ContainsFunc(waiting, func(w redlock.Waiter) bool { return w.Nodes != len(nodes.Nodes) })
	}
	if !within(patience, func() bool { return wait("jobs/nightly", 2) && wait("deploy/eu-west", 1) }) {
		t.Fatalf("nobody waits: %+v", s.says("jobs/nightly"))
	}
	if *update { // a reader should see that they wait
		within(patience, func() bool { return s.says("jobs/nightly").Waiting[0].For > 12*time.Second })
	}
	return s
}

// says is what the nodes say of a lock.
func (s *topScene) says(name string) *redlock.Status {
	s.Helper()
	status, err := s.asks.Inspect(s.Context(), name)
	if err != nil {
		s.Fatal(err)
	}
	return status
}

// waits is the longest wait for a lock.
func (s *topScene) waits(name string) (longest time.Duration) {
	for _, w := range s.said[name].Waiting {
		longest = max(longest, w.For)
	}
	return longest
}

// compare compares the rows of both tables, without their headings, with what the nodes say. It asks the nodes
// once.
func (s *topScene) compare(nodes, locks [][]string) {
	s.Helper()
	row := make(map[string][]string)
	for _, cells := range locks {
		note := cells[6]
		row[cells[0]] = cells
		if _, also, found := strings.Cut(note, "also "); found {
			for _, name := range strings.Split(also, ", ") {
				row[name] = cells
			}
		}
	}
	if shown := slices.Sorted(maps.Keys(row)); !slices.Equal(shown, s.names) {
		s.Errorf("the names are %q, want %q", shown, s.names)
	}
	if s.said == nil {
		s.said = make(map[string]*redlock.Status)
		for _, name := range s.names {
			s.said[name] = s.says(name)
		}
	}
	var votes []redlock.NodeStatus
	for _, name := range s.names {
		status := s.said[name]
		votes = status.Nodes
		mode, owner := "exclusive", status.By.Owner
		switch holders := status.Holders; {
		case len(holders) > 0:
			oldest := slices.MinFunc(holders, func(a, b redlock.Holder) int { return a.By.Since.Compare(b.By.Since) })
			mode, owner = string(oldest.Mode), oldest.By.Owner
			if len(holders) > 1 {
				owner += fmt.Sprintf(" +%d", len(holders)-1)
			}
		case status.State != redlock.StateHeld: // what it shows is what one node has
			at := slices.IndexFunc(status.Nodes, func(n redlock.NodeStatus) bool { return n.Token != "" })
			if at < 0 {
				s.Errorf("%q is not held, and the nodes say %+v", name, status)
				continue
			}
			owner = redlock.Identify(status.Nodes[at].Token).Owner
		}
		waiting := "-"
		if len(status.Waiting) > 0 {
			waiting = fmt.Sprintf("%d, ", len(status.Waiting))
		}
		switch cells := row[name]; {
		case len(cells) != 7:
			s.Errorf("%q: the cells are %q", name, cells)
		case cells[1] != mode || cells[2] != owner:
			s.Errorf("%q is %s, of %q, and the nodes say %s, of %q", name, cells[1], cells[2], mode, owner)
		case !strings.HasPrefix(cells[5], waiting):
			s.Errorf("%q: %q wait, and the nodes say %q", name, cells[5], waiting)
		case strings.Contains(cells[6], "leftover") != (status.State != redlock.StateHeld):
			s.Errorf("%q: the note is %q, and the nodes say %v", name, cells[6], status.State)
		}
	}

	for _, n := range votes {
		at := slices.IndexFunc(nodes, func(cells []string) bool { return cells[0] == n.Node })
		if at < 0 {
			s.Errorf("node %s is not shown", n.Node)
			continue
		}
		vote, why := "yes", regexp.MustCompile(`^$`)
		if n.Err != nil {
			vote, why = "no", regexp.MustCompile(`^`+n.Err.Outcome.String())
		}
		if cells := nodes[at]; cells[1] != vote || !why.MatchString(cells[5]) || (cells[3] == "-") == (n.Err != nil) {
			s.Errorf("node %s is shown as %q, and says %v", n.Node, cells, n.Err)
		}
	}
	if len(nodes) != len(votes) {
		s.Errorf("%d nodes are shown, and there are %d", len(nodes), len(votes))
	}
}

// mostOfPicture is how large a picture may be, which everybody loads who reads the documentation.
const mostOfPicture = 150_000

// writePicture writes a picture for the documentation.
func writePicture(t *testing.T, file string, picture []byte) {
	t.Helper()
	if len(picture) > mostOfPicture {
		t.Errorf("%s would have %d bytes", file, len(picture))
	}
	if err := os.WriteFile(filepath.Join("..", "..", "docs", file), picture, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("docs/%s is written anew: look at it", file)
}
