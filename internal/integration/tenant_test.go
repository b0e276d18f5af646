package integration_test

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
	"github.com/quorumlock/redlock/internal/wire"
	"github.com/redis/go-redis/v9"
)

// rights returns the rights of docs/operations.md: of the user for locks, and its keys if it has a prefix.
func rights(t *testing.T) (user []string, prefixed string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	rule := regexp.MustCompile(`(?m)^user locks on >PASSWORD (.*)$`).FindStringSubmatch(string(page))
	keys := regexp.MustCompile("(?m)^\\| `(~PREFIX\\* [^`]*)` in the place of `~\\*` ").FindStringSubmatch(string(page))
	if rule == nil || keys == nil || !strings.HasPrefix(rule[1], "~* ") {
		t.Fatal("docs/operations.md has no user for locks, or does not say what a prefix needs")
	}
	return strings.Fields(strings.TrimPrefix(rule[1], "~* ")), keys[1]
}

// tenants starts servers with two users that have the rights of docs/operations.md, with the prefixes a: and b:.
func tenants(t *testing.T) []*redisproc.Server {
	t.Helper()
	servers := redistest.Servers(t, 3, "--enable-debug-command", "yes", "--enable-module-command", "yes")
	user, keys := rights(t)
	for _, name := range []string{"a", "b"} {
		for _, s := range servers {
			rule := []any{"ACL", "SETUSER", name, "reset", "on", ">secret of " + name}
			for _, right := range append(strings.Fields(strings.ReplaceAll(keys, "PREFIX", name+":")), user...) {
				rule = append(rule, right)
			}
			ask(t, s, rule...)
		}
	}
	return servers
}

// tenant returns a Locker of a user.
func tenant(t *testing.T, servers []*redisproc.Server, name string) *redlock.Locker {
	t.Helper()
	var clients []*redis.Client
	for _, s := range servers {
		clients = append(clients, raw(t, s, name))
	}
	return open(t, clients, &redlock.Options{TTL: 3 * time.Second, NodeTimeout: time.Second, MaxTTL: 3 * time.Second, Prefix: name + ":"})
}

func raw(t *testing.T, s *redisproc.Server, name string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: s.Addr, Username: name, Password: "secret of " + name, DisableIdentity: true, MaxRetries: -1, Protocol: 2})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestTenantsRights: with the rights of docs/operations.md each kind of lock works, and each of the commands is one that
// the scripts or the client use.
func TestTenantsRights(t *testing.T) {
	leaks.Check(t)
	servers := tenants(t)
	lk := tenant(t, servers, "b")
	allVote(t, lk)
	for _, options := range [][]redlock.AcquireOption{nil, {redlock.Shared()}, {redlock.Slots(2)}, {redlock.Also("c")}} {
		l := acquired(t, lk, "held", options...)
		if err := l.Extend(t.Context()); err != nil {
			t.Error(err)
		}
		got := make(chan error, 1)
		go func() {
			next, err := lk.Acquire(t.Context(), "held")
			if err == nil {
				err = next.Release(t.Context())
			}
			got <- err
		}()
		released(t, l)
		if err := <-got; err != nil {
			t.Error(err)
		}
	}
	for _, s := range servers {
		for _, entry := range ask(t, s, "ACL", "LOG").([]any) {
			if said := fmt.Sprint(entry); !strings.Contains(said, "delex") && !strings.Contains(said, "delifeq") {
				t.Errorf("%s has refused %s", s.Addr, said)
			}
		}
	}

	used := map[string]bool{ // by the client itself
		"ping": true, "info": true, "client|info": true, "script|load": true, "script|exists": true, "eval": true, "evalsha": true,
		"subscribe": true,
	}
	for _, command := range calledBy(append(script.All(""), script.New(script.Join), script.New(script.Probe), script.New(script.Choose), script.New(script.Merge), script.New(script.Wake), script.New(script.Break))) {
		used[command] = true
	}
	user, _ := rights(t)
	for _, right := range user {
		if command, ok := strings.CutPrefix(right, "+"); ok && !used[command] {
			t.Errorf("nothing uses %s", command)
		}
	}
}

// commandsOf lists all commands of a server, subcommands included ("client|kill"), with the least number of their words.
func commandsOf(t *testing.T, s *redisproc.Server) map[string]int {
	t.Helper()
	words := make(map[string]int)
	var add func(list []any)
	add = func(list []any) {
		for _, each := range list {
			c := each.([]any)
			n := int(c[1].(int64))
			if words[c[0].(string)] = max(n, -n); len(c) > 9 {
				add(c[9].([]any))
			}
		}
	}
	add(ask(t, s, "COMMAND").([]any))
	return words
}

// TestHostileTenant: a client with the rights of docs/operations.md for one prefix tries every command on the keys of
// another tenant, by itself and from a script, and changes nothing of these.
func TestHostileTenant(t *testing.T) {
	leaks.Check(t)
	need.Servers(t, redisproc.Available)
	servers := tenants(t)
	victim := tenant(t, servers, "b")
	allVote(t, victim)
	locks := []*redlock.Lock{acquired(t, victim, "alone"), acquired(t, victim, "shared", redlock.Shared()), acquired(t, victim, "slots", redlock.Slots(2))}
	s := servers[0]
	ask(t, s, "ZADD", "b:alone:queue", "1", "someone")
	theirs := []string{"b:alone", "b:shared", "b:slots", "b:alone:queue", "b:new"}
	state := func() string {
		var all []any
		for _, key := range theirs {
			all = append(all, ask(t, s, "DUMP", key))
		}
		return fmt.Sprintf("%q", all)
	}
	before := state()

	hostile := raw(t, s, "a")
	user, _ := rights(t)
	granted := map[string]bool{"auth": true, "hello": true, "quit": true, "reset": true} // those that nobody is denied
	for _, right := range user {
		if command, ok := strings.CutPrefix(right, "+"); ok {
			granted[command] = true
		}
	}
	words := commandsOf(t, s)
	if len(words) < 300 {
		t.Fatalf("only %d commands", len(words))
	}
	keyless := strings.Fields("auth hello quit reset ping info client|info script|load script|exists eval evalsha subscribe publish time")
	for _, name := range slices.Sorted(maps.Keys(words)) {
		container := slices.ContainsFunc(slices.Collect(maps.Keys(words)), func(other string) bool { return strings.HasPrefix(other, name+"|") })
		if container || granted[name] && slices.Contains(keyless, name) {
			continue
		}
		for _, key := range theirs {
			var args []any
			for word := range strings.SplitSeq(name, "|") {
				args = append(args, word)
			}
			for len(args) < words[name] {
				args = append(args, key)
			}
			_, err := hostile.Do(t.Context(), args...).Result()
			if said := fmt.Sprint(err); !strings.Contains(said, "NOPERM") || granted[name] == strings.Contains(said, " permissions to run ") {
				t.Errorf("%v: %v", args, err)
			}
			_, err = hostile.Eval(t.Context(), "return redis.call(unpack(ARGV))", nil, args...).Result()
			if said := fmt.Sprint(err); err == nil || !strings.Contains(said, "ACL failure in script") && !strings.Contains(said, "can't run this command") && !strings.Contains(said, "can't access at least one of the keys") && !strings.Contains(said, "not allowed from script") {
				t.Errorf("%v in a script: %v", args, err)
			}
		}
	}
	for _, err := range []error{
		hostile.Eval(t.Context(), "return 1", theirs[:1]).Err(),
		hostile.Set(t.Context(), script.Broken+locks[0].Token(), "1", 0).Err(), // the lock would count as broken
		hostile.Publish(t.Context(), "news", "x").Err(),
		hostile.Do(t.Context(), "subscribe", "news").Err(),
	} {
		if !strings.HasPrefix(fmt.Sprint(err), "NOPERM") {
			t.Errorf("got %v", err)
		}
	}
	if after := state(); after != before {
		t.Errorf("of the other tenant there was\n%s\nand is\n%s", before, after)
	}
	ask(t, s, "DEL", "b:alone:queue")
	for _, l := range locks {
		released(t, l)
	}
}

// TestWhatATenantCanHarm: what the tenants of a set have in common, each of them can spoil. SECURITY.md says so.
func TestWhatATenantCanHarm(t *testing.T) {
	leaks.Check(t)
	need.Servers(t, redisproc.Available)
	// each does something on a majority of nodes, and returns what the operator does about it.
	for name, harm := range map[string]struct {
		does func(t *testing.T, s *redisproc.Server, hostile *redis.Client) error
		mend func(t *testing.T, s *redisproc.Server)
		want string // what the error of the other tenant has
	}{
		"deletes the marker": {
			does: func(t *testing.T, s *redisproc.Server, c *redis.Client) error {
				return c.Del(t.Context(), script.Marker).Err()
			},
			mend: func(*testing.T, *redisproc.Server) {}, // it takes a quarantine
			want: "quarantine",
		},
		"deletes the description": {
			does: func(t *testing.T, s *redisproc.Server, c *redis.Client) error {
				return c.Del(t.Context(), script.Told).Err()
			},
			want: "", // it heals by itself
		},
		"fills the memory": {
			does: func(t *testing.T, s *redisproc.Server, c *redis.Client) error {
				ask(t, s, "CONFIG", "SET", "maxmemory", "20mb")
				fill := func(size int) (err error) {
					for i := 0; err == nil; i++ {
						err = c.Set(t.Context(), fmt.Sprint("a:", size, ":", i), strings.Repeat("x", size), 0).Err()
					}
					return err
				}
				if err := fill(50 << 10); !strings.HasPrefix(err.Error(), "OOM") {
					return err
				}
				go func() { // the buffers of clients take memory, too, and give it back
					for t.Context().Err() == nil {
						_ = fill(100)
					}
				}()
				return nil
			},
			mend: func(t *testing.T, s *redisproc.Server) { ask(t, s, "CONFIG", "SET", "maxmemory", "0") },
			want: "OOM",
		},
		"runs a script without end": {
			does: func(t *testing.T, s *redisproc.Server, c *redis.Client) error {
				ask(t, s, "CONFIG", "SET", "busy-reply-threshold", "10")
				go func() { _ = c.Eval(context.WithoutCancel(t.Context()), "while true do end", nil).Err() }()
				eventually(t, 5*time.Second, "a busy server", func() bool {
					err := raw(t, s, "b").Get(t.Context(), "b:x").Err()
					return strings.HasPrefix(fmt.Sprint(err), "BUSY")
				})
				return nil
			},
			mend: func(t *testing.T, s *redisproc.Server) { ask(t, s, "SCRIPT", "KILL") },
			want: "BUSY",
		},
	} {
		t.Run(name, func(t *testing.T) {
			servers := tenants(t)
			victim := tenant(t, servers, "b")
			allVote(t, victim)
			for _, s := range servers[:2] {
				if err := harm.does(t, s, raw(t, s, "a")); err != nil {
					t.Fatal(err)
				}
			}
			if harm.want != "" {
				eventually(t, 10*time.Second, "an error with "+harm.want, func() bool {
					l, err := victim.TryAcquire(t.Context(), "x")
					if err == nil {
						_ = l.Release(t.Context())
					}
					return strings.Contains(fmt.Sprint(err), harm.want)
				})
				for _, s := range servers[:2] {
					harm.mend(t, s)
				}
			}
			eventually(t, 10*time.Second, "a lock", func() bool {
				l, err := victim.TryAcquire(t.Context(), "y")
				return err == nil && l.Release(t.Context()) == nil
			})
		})
	}

	t.Run("raises the fences", func(t *testing.T) {
		servers := tenants(t)
		victim := tenant(t, servers, "b")
		allVote(t, victim)
		before := acquired(t, victim, "x")
		released(t, before)
		ahead := time.Now().AddDate(10, 0, 0).UnixMicro()
		for _, s := range servers {
			if err := raw(t, s, "a").ZAdd(t.Context(), script.Fences, redis.Z{Score: float64(ahead), Member: *script.Bucket("b:x")}).Err(); err != nil {
				t.Fatal(err)
			}
		}
		var after *redlock.Lock
		eventually(t, 10*time.Second, "a lock", func() bool {
			l, err := victim.TryAcquire(t.Context(), "x")
			after = l
			return err == nil
		})
		if after.Fence() <= ahead {
			t.Errorf("the fence is %d, and was raised to %d", after.Fence(), ahead)
		}
		released(t, after)
	})

	t.Run("adds a member that gets the passwords", func(t *testing.T) {
		servers := tenants(t)
		victim := tenant(t, servers, "b")
		allVote(t, victim)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		heard := make(chan string, 1)
		go func() {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			var said strings.Builder
			for lines := bufio.NewScanner(conn); lines.Scan() && !strings.Contains(said.String(), "secret"); {
				said.WriteString(lines.Text())
			}
			heard <- said.String()
		}()
		for _, s := range servers {
			c := raw(t, s, "a")
			kept := wire.ParseKept(c.Get(t.Context(), script.Told).Val())
			next := kept.Description.Next()
			next.Members = append(slices.Clone(kept.Description.Members), listener.Addr().String())
			if err := c.Set(t.Context(), script.Told, kept.Self+"\n"+next.Text(), 0).Err(); err != nil {
				t.Fatal(err)
			}
			marker := c.Get(t.Context(), script.Marker).Val()
			marker = marker[:strings.LastIndexByte(marker, ':')] + ":2"
			if err := c.Set(t.Context(), script.Marker, marker, 0).Err(); err != nil {
				t.Fatal(err)
			}
		}
		_ = tenant(t, servers, "b")
		select {
		case said := <-heard:
			if !strings.Contains(said, "secret of b") {
				t.Errorf("it heard %q", said)
			}
		case <-time.After(10 * time.Second):
			t.Error("no client comes")
		}
	})
}

// TestWhatOtherRightsGiveAway: what a user has who is given the further rights of docs/operations.md. SECURITY.md says so.
func TestWhatOtherRightsGiveAway(t *testing.T) {
	leaks.Check(t)
	need.Servers(t, redisproc.Available)
	s := tenants(t)[0]
	ask(t, s, "SET", "b:held", "token")
	ask(t, s, "CONFIG", "SET", "masterauth", "of the default user")
	for right, tries := range map[string]struct {
		args []any
		want string
	}{
		"+scan":       {[]any{"scan", 0, "match", "b:*", "count", 1000}, "b:held"},
		"+config|get": {[]any{"config", "get", "*auth*"}, "of the default user"},
		"+select":     {[]any{"select", 1}, "OK"},
	} {
		c := raw(t, s, "a") // SELECT changes its connection
		if err := c.Do(t.Context(), tries.args...).Err(); !strings.HasPrefix(fmt.Sprint(err), "NOPERM") {
			t.Errorf("without %s: %v", right, err)
		}
		ask(t, s, "ACL", "SETUSER", "a", right)
		got, err := c.Do(t.Context(), tries.args...).Result()
		if err != nil || !strings.Contains(fmt.Sprint(got), tries.want) {
			t.Errorf("with %s: %v, %v", right, got, err)
		}
		if err := c.Get(t.Context(), "b:held").Err(); !strings.HasPrefix(fmt.Sprint(err), "NOPERM") {
			t.Errorf("with %s: %v", right, err)
		}
	}
}
