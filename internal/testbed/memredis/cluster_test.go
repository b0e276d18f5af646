package memredis_test

import (
	"context"
	"errors"
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/sockerr"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
)

func start(t *testing.T, n int) *memredis.Cluster {
	t.Helper()
	c, err := memredis.Start(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func dialURL(t *testing.T, url string) *redis.Client {
	t.Helper()
	opts, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(opts)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// within polls a condition that becomes true in its own time.
func within(t *testing.T, d time.Duration, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(d); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", d, what)
		}
	}
}

// TestNodesAreApart: each node has an address and data of its own.
func TestNodesAreApart(t *testing.T) {
	c, ctx := start(t, 3), context.Background()
	urls := c.URLs()
	if len(urls) != 3 || len(slices.Compact(slices.Sorted(slices.Values(urls)))) != 3 {
		t.Fatalf("want three addresses, have %q", urls)
	}
	if err := dialURL(t, urls[1]).Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{0, 1, 0} {
		if got := c.Nodes[i].Keys(); len(got) != want {
			t.Errorf("node %d has keys %q", i, got)
		}
	}
}

// TestKeysExpireByThemselves: a key is gone when its TTL is over, though nobody asks for it.
func TestKeysExpireByThemselves(t *testing.T) {
	c, ctx := start(t, 1), context.Background()
	if err := dialURL(t, c.Nodes[0].URL()).Set(ctx, "k", "v", 30*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	within(t, 5*time.Second, "the key expires", func() bool { return len(c.Nodes[0].Keys()) == 0 })
}

// TestKillAndRestart: a killed node refuses connections and keeps its port. It comes back with its data or without,
// as a new process: with another run_id and without scripts.
func TestKillAndRestart(t *testing.T) {
	for _, keep := range []bool{true, false} {
		c, ctx := start(t, 1), context.Background()
		node := c.Nodes[0]
		rdb := dialURL(t, node.URL())
		if err := rdb.Set(ctx, "k", "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
		sha := rdb.ScriptLoad(ctx, "return 7").Val()
		before := info(t, rdb)["run_id"]

		node.Kill()
		node.Kill()
		if _, err := net.Dial("tcp", node.Addr()); !sockerr.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("connecting to a killed node: %v", err)
		}
		if udp, err := net.ListenPacket("udp", node.Addr()); err == nil {
			udp.Close()
			t.Error("another node can be given the port of one that is killed")
		}
		if got := node.Keys(); len(got) != 1 {
			t.Errorf("a killed node shows keys %q", got)
		}
		if err := node.Restart(keep); err != nil {
			t.Fatal(err)
		}
		var want int64
		if keep {
			want = 1
		}
		if got, err := rdb.Exists(ctx, "k").Result(); got != want || err != nil {
			t.Errorf("keepData %v: EXISTS = %d, %v", keep, got, err)
		}
		if after := info(t, rdb)["run_id"]; after == before {
			t.Error("the run_id has survived the restart")
		}
		if err := rdb.EvalSha(ctx, sha, nil).Err(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
			t.Errorf("the script has survived the restart: %v", err)
		}
		// Close has cancelled miniredis' context; a blocking command would end at once.
		if err := rdb.Do(ctx, "BLPOP", "list", "0.01").Err(); !errors.Is(err, redis.Nil) {
			t.Errorf("BLPOP after a restart: %v", err)
		}
	}
}

// TestRestartOfARunningNode: Restart kills a node that runs.
func TestRestartOfARunningNode(t *testing.T) {
	c, ctx := start(t, 1), context.Background()
	rdb := dialURL(t, c.Nodes[0].URL())
	if err := rdb.Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.Nodes[0].Restart(false); err != nil {
		t.Fatal(err)
	}
	if n, err := rdb.DBSize(ctx).Result(); n != 0 || err != nil {
		t.Errorf("DBSIZE = %d, %v", n, err)
	}
}

// TestInfo: INFO has the fields that the library looks at, by section, as real servers have them, in scripts, too.
func TestInfo(t *testing.T) {
	c, ctx := start(t, 2), context.Background()
	rdb := dialURL(t, c.Nodes[0].URL())
	all := info(t, rdb)
	if !regexp.MustCompile(`^[0-9a-f]{40}$`).MatchString(all["run_id"]) {
		t.Errorf("run_id is %q", all["run_id"])
	}
	if want := c.Nodes[0].Addr(); !strings.HasSuffix(want, ":"+all["tcp_port"]) {
		t.Errorf("tcp_port is %s at %s", all["tcp_port"], want)
	}
	for field, want := range map[string]string{
		"redis_mode": "standalone", "role": "master", "maxmemory": "0",
		"maxmemory_policy": "noeviction", "cluster_enabled": "0", "uptime_in_seconds": "0",
	} {
		if all[field] != want {
			t.Errorf("%s is %q, want %q", field, all[field], want)
		}
	}
	if other := info(t, dialURL(t, c.Nodes[1].URL())); other["run_id"] == all["run_id"] {
		t.Error("two nodes have one run_id")
	}

	memory := slices.Sorted(maps.Keys(info(t, rdb, "MEMORY")))
	if want := []string{"maxmemory", "maxmemory_policy"}; !slices.Equal(memory, want) {
		t.Errorf("INFO MEMORY has %q", memory)
	}
	if got := info(t, rdb, "nonsense"); len(got) != 0 {
		t.Errorf("INFO nonsense has %q", got)
	}
	two := info(t, rdb, "server", "replication")
	if _, more := two["maxmemory"]; two["role"] == "" || two["run_id"] == "" || more {
		t.Errorf("INFO server replication has %q", two)
	}

	// A script sees the same, as on a real server.
	text, err := rdb.Eval(ctx, "return redis.call('INFO', 'server')", nil).Text()
	if err != nil || !strings.Contains(text, "run_id:"+all["run_id"]) {
		t.Errorf("INFO in a script: %q, %v", text, err)
	}
}

// TestSetInfo: an overridden field outlasts a restart, until the override is taken away.
func TestSetInfo(t *testing.T) {
	c := start(t, 1)
	node, rdb := c.Nodes[0], dialURL(t, c.Nodes[0].URL())
	node.SetInfo("role", "slave")
	node.SetInfo("master_link_status", "up")
	if err := node.Restart(true); err != nil {
		t.Fatal(err)
	}
	got := info(t, rdb, "replication")
	if got["role"] != "slave" || got["master_link_status"] != "up" {
		t.Errorf("overridden fields are %q", got)
	}
	node.SetInfo("role", "")
	node.SetInfo("master_link_status", "")
	got = info(t, rdb, "replication")
	if _, there := got["master_link_status"]; got["role"] != "master" || there {
		t.Errorf("after the overrides: %q", got)
	}
}

// TestStartRefusesNothing: a cluster of no nodes is an error.
func TestStartRefusesNothing(t *testing.T) {
	if _, err := memredis.Start(0); err == nil {
		t.Error("no nodes, no error")
	}
}

func info(t *testing.T, rdb *redis.Client, sections ...string) map[string]string {
	t.Helper()
	args := []any{"INFO"}
	for _, s := range sections {
		args = append(args, s)
	}
	text, err := rdb.Do(context.Background(), args...).Text()
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]string{}
	for line := range strings.SplitSeq(text, "\r\n") {
		if name, value, ok := strings.Cut(line, ":"); ok {
			fields[name] = value
		}
	}
	return fields
}
