//go:build unix

package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
)

// managed are the services of docs/servers.md, with what their documents said in November 2026.
var managed = []struct {
	name, page string
	refuses    string // commands; those of a service without such a list are empty
	evicts     string // its maxmemory-policy unless the user changes that
	cluster    bool   // there is nothing else
}{
	{
		name: "ElastiCache, node-based", page: "https://docs.aws.amazon.com/AmazonElastiCache/latest/dg/ClientConfig.RestrictedCommands.html",
		refuses: "bgrewriteaof bgsave config debug migrate replicaof save slaveof shutdown sync",
		evicts:  "volatile-lru",
	},
	{
		name: "MemoryDB", page: "https://docs.aws.amazon.com/memorydb/latest/devguide/restrictedcommands.html",
		refuses: "acl|deluser acl|load acl|save acl|setuser bgrewriteaof bgsave cluster|addslots cluster|delslots cluster|setslot config debug migrate module psync replicaof save shutdown slaveof sync",
		cluster: true,
	},
	{
		name: "Memorystore for Redis", page: "https://docs.cloud.google.com/memorystore/docs/redis/product-constraints",
		refuses: "acl bgrewriteaof bgsave client cluster command config debug lastsave migrate monitor object shutdown replicaof save",
		evicts:  "volatile-lru",
	},
	{
		name: "Azure Cache for Redis", page: "https://learn.microsoft.com/azure/azure-cache-for-redis/cache-configure",
		refuses: "bgrewriteaof bgsave config debug migrate save shutdown slaveof cluster|addslots cluster|delslots cluster|failover cluster|forget cluster|meet cluster|replicate cluster|reset cluster|setslot",
		evicts:  "volatile-lru",
	},
	{
		name: "Redis Cloud", page: "https://redis.io/docs/latest/operate/rs/references/compatibility/commands/",
		refuses: "acl|deluser acl|genpass acl|load acl|log acl|save acl|setuser config|resetstat debug shutdown swapdb module|help module|load module|loadex module|unload " +
			"latency|doctor latency|graph latency|help latency|history latency|latest latency|reset memory|doctor memory|malloc-stats memory|purge memory|stats " +
			"bgrewriteaof bgsave lastsave save failover migrate psync replconf replicaof restore-asking role slaveof sync script|debug " +
			"client|caching client|getredir client|no-evict client|pause client|reply client|tracking client|trackinginfo client|unpause select " +
			"asking cluster|addslots cluster|addslotsrange cluster|bumpepoch cluster|delslots cluster|delslotsrange cluster|failover cluster|forget cluster|meet cluster|reset cluster|setslot",
		evicts: "volatile-lru",
	},
	{
		name: "Aiven for Valkey", page: "https://aiven.io/docs/products/valkey/reference/restricted-commands",
		refuses: "bgrewriteaof cluster command debug failover migrate slaveof acl bgsave config lastsave monitor replicaof save shutdown",
		evicts:  "noeviction",
	},
	{name: "Azure Managed Redis", page: "https://learn.microsoft.com/en-us/azure/redis/choose-clustering-policy"}, // the commands of Redis Cloud
	{name: "Upstash", page: "https://upstash.com/docs/redis/commands/server/info"},                                // no list of what it refuses
}

// TestManagedServices: servers that refuse what a service refuses, and evict as it does by default, are refused as long as
// they evict, or are nodes of a cluster. Otherwise locks, fences, waiting, changes of the set and doctor work.
func TestManagedServices(t *testing.T) {
	page := document(t, "servers.md")
	for _, service := range managed {
		t.Run(service.name, func(t *testing.T) {
			row := regexp.MustCompile(`(?m)^\| \[` + regexp.QuoteMeta(service.name) + `\]\(([^)]*)\)`).FindStringSubmatch(page)
			if row == nil || row[1] != service.page {
				t.Fatalf("docs/servers.md has no row for it with %s: %q", service.page, row)
			}
			if service.refuses == "" {
				return // there is no list to try
			}
			t.Parallel()
			args := []string{"--maxmemory", "100mb", "--enable-debug-command", "yes", "--enable-module-command", "yes"}
			if service.evicts != "" {
				args = append(args, "--maxmemory-policy", service.evicts)
			}
			if service.cluster {
				args = append(args, "--cluster-enabled", "yes")
			}
			w := &ward{T: t, servers: redistest.NewServers(t, 4, args...)}
			rule := "acl setuser managed on >p ~* &* +@all"
			for command := range strings.FieldsSeq(service.refuses) {
				rule += " -" + command
			}
			w.at(rule, 0, 1, 2, 3)
			w.give(0, 1, 2)
			w.env[1] = strings.ReplaceAll(w.env[1], "redis://", "redis://managed:p@")
			urls := strings.Split(strings.TrimPrefix(w.env[1], "REDLOCK_NODES="), ",")
			for command := range strings.FieldsSeq(service.refuses) {
				refused(t, urls[0], command)
			}
			opts := func() *redlock.Options {
				return &redlock.Options{TTL: 5 * time.Second, NodeTimeout: 2 * time.Second}
			}

			why := ""
			switch {
			case service.cluster:
				why = "it is a node of a Redis Cluster"
			case service.evicts != "noeviction":
				why = "its maxmemory-policy " + service.evicts + " may evict locks"
			}
			if why != "" {
				_, err := redlock.Connect(urls, opts())
				if err == nil || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), w.servers[0].Addr) {
					t.Fatalf("Connect: %v, want %q", err, why)
				}
				if code, stdout, _ := w.redlock("doctor"); code == 0 || !strings.Contains(stdout, why) && !strings.Contains(stdout, "noeviction") && !strings.Contains(stdout, "Cluster") {
					t.Errorf("doctor: exit status %d, %s", code, stdout)
				}
				if service.cluster {
					return
				}
				w.at("config set maxmemory-policy noeviction", 0, 1, 2, 3)
			}

			redistest.Settle(t, w.servers)
			lk, err := redlock.Connect(urls, opts())
			if err != nil {
				t.Fatal(err)
			}
			defer lk.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			first, err := lk.Acquire(ctx, "a")
			if err != nil {
				t.Fatal(err)
			}
			w.check(first.Extend(ctx))
			next := make(chan *redlock.Lock)
			go func() {
				l, err := lk.Acquire(ctx, "a", redlock.Also("b"))
				if err != nil {
					t.Error(err)
				}
				next <- l
			}()
			for {
				s, err := lk.Inspect(ctx, "a")
				w.check(err)
				if len(s.Waiting) == 1 {
					break
				}
			}
			w.check(first.Release(ctx))
			if second := <-next; second != nil {
				if second.Fence() <= first.Fence() {
					t.Errorf("fence %d after %d", second.Fence(), first.Fence())
				}
				w.check(second.Release(ctx))
			}
			slot, err := lk.TryAcquire(ctx, "c", redlock.Slots(2))
			w.check(err)
			w.check(slot.Release(ctx))

			w.must("run", "--key", "k", "--", "true")
			w.must("ls")
			w.must("members", "add", "redis://"+w.servers[3].Addr)
			if code, stdout, stderr := w.redlock("members"); code != 0 || !strings.Contains(stdout, w.servers[3].Addr) {
				t.Errorf("members: exit status %d, %s%s", code, stdout, stderr)
			}
			if code, stdout, stderr := w.redlock("doctor"); code != 0 || !strings.HasPrefix(stdout, "locks can be acquired: 4 of 4 nodes vote") {
				t.Errorf("doctor: exit status %d, %s%s", code, stdout, stderr)
			}
		})
	}
}

// refused checks that a server refuses a command.
func refused(t *testing.T, url, command string) {
	t.Helper()
	options, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	options.Protocol, options.DisableIdentity = 2, true
	rdb := redis.NewClient(options)
	defer rdb.Close()
	var words []any
	for word := range strings.SplitSeq(command, "|") {
		words = append(words, word)
	}
	tries := [][]any{words, append(slices.Clone(words), "help")} // the server looks at subcommands and at the number of arguments first
	for n := range 5 {
		tries = append(tries, append(slices.Clone(words), []any{"1", "1", "1", "1", "1"}[:n+1]...))
	}
	if !slices.ContainsFunc(tries, func(words []any) bool {
		return strings.HasPrefix(fmt.Sprint(rdb.Do(t.Context(), words...).Err()), "NOPERM")
	}) {
		t.Errorf("%s is not refused", command)
	}
}
