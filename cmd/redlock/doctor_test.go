//go:build unix

package main

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
	lua "github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// A ward is the servers of one situation that doctor is called to.
type ward struct {
	*testing.T
	servers []*redisproc.Server
	env     []string
}

// redlock runs the command in this process.
func (w *ward) redlock(args ...string) (code int, stdout, stderr string) {
	var out, errs strings.Builder
	code = main1(args, w.env, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

// must runs the command, which has to succeed.
func (w *ward) must(args ...string) {
	w.Helper()
	if code, stdout, stderr := w.redlock(args...); code != 0 {
		w.Fatalf("redlock %q: exit status %d\n%s%s", args, code, stdout, stderr)
	}
}

// give names the nodes that the command is given: those servers.
func (w *ward) give(nodes ...int) {
	var urls []string
	for _, i := range nodes {
		urls = append(urls, w.servers[i].URL())
	}
	w.env = []string{reach.ConfigVariable + "=" + os.DevNull, reach.NodesVariable + "=" + strings.Join(urls, ",")}
}

// at sends a command to servers.
func (w *ward) at(command string, nodes ...int) {
	w.Helper()
	for _, i := range nodes {
		rdb := redis.NewClient(&redis.Options{Addr: w.servers[i].Addr})
		words := []any{}
		for _, word := range strings.Fields(command) {
			words = append(words, word)
		}
		err := rdb.Do(context.Background(), words...).Err()
		_ = rdb.Close()
		if err != nil {
			w.Fatalf("%s: %s: %v", w.servers[i].Addr, command, err)
		}
	}
}

func (w *ward) check(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *ward) kill(nodes ...int) {
	for _, i := range nodes {
		w.servers[i].Kill()
	}
}

func (w *ward) restart(nodes ...int) {
	w.Helper()
	for _, i := range nodes {
		w.check(w.servers[i].Restart())
	}
}

// described makes the first n servers a set: a lock was taken there.
func (w *ward) described(n int, flags ...string) {
	w.Helper()
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	w.give(all...)
	w.must(append(append([]string{"run", "k", "-q"}, flags...), "--", "true")...)
}

// A situation is what doctor is called to, and what it must say.
type situation struct {
	name    string
	alerts  string // those that send people to doctor in it, with spaces between them
	servers int
	args    string // of each server
	keep    bool   // they keep their data
	clocks  bool   // their clocks can be set
	make    func(w *ward)
	flags   string
	first   string // a pattern of the first line; N0, N1 ... are the addresses
	finds   string // a pattern of another line
	code    int
	well    []int // the nodes that it must not blame
}

var situations = []situation{
	{name: "all is well", servers: 3, make: func(w *ward) { w.described(3) },
		alerts: "RedlockLockLost RedlockRenewalsFailing RedlockWaitOverdue RedlockClockStep", // it is over
		first:  `locks can be acquired: 3 of 3 nodes vote, and 2 must`, finds: `nothing has to change`, well: []int{0, 1, 2}},
	{name: "new nodes", servers: 3, make: func(w *ward) { w.restart(0, 1, 2); w.give(0, 1, 2) }, code: 1,
		first: `no lock can be acquired on new nodes for 10\.1s: 0 of 3 nodes vote, and 2 must\. N0, N1, N2: in quarantine`, finds: `  redlock prepare begins that time`},
	{name: "a majority was restarted", alerts: "RedlockNoQuorum RedlockNodeQuarantined", servers: 3, keep: true, code: 1,
		make:  func(w *ward) { w.described(3); w.restart(0, 1) },
		first: `no lock can be acquired until 20\S+Z?, in \d+\.?\d?s: 1 of 3 nodes votes, and 2 must\. N0, N1: in quarantine, .*longest TTL is 10s`,
		finds: `\? N0: it has no vote for another \d+\.?\d?s, .*\(the longest TTL is 10s\): it was restarted, or is another server now`, well: []int{2}},
	{name: "a majority was emptied", alerts: "RedlockNoQuorum RedlockNodeLosesData", servers: 3, code: 1,
		make:  func(w *ward) { w.described(3); w.at("flushall", 0, 1) },
		first: `no lock can be acquired until 20\S+Z?, in \d+\.?\d?s: 1 of 3 nodes votes`, finds: `\? N1: it has no vote for another \d+\.?\d?s, .*: it is new, or has lost its data`, well: []int{2}},
	{name: "one node was restarted", alerts: "RedlockNodeQuarantined RedlockNoVoteToSpare RedlockNodeLosesData", servers: 3,
		make:  func(w *ward) { w.described(3); w.restart(2) },
		first: `locks can be acquired: 2 of 3 nodes vote, and 2 must\. The next failure ends that\. Without a vote: N2: in quarantine`, well: []int{0, 1}},
	{name: "a long TTL is allowed", alerts: "RedlockNodeQuarantined", servers: 3, keep: true, code: 1,
		make:  func(w *ward) { w.described(3, "--ttl", "1h"); w.restart(0, 1) },
		first: `no lock can be acquired until 20\S+Z?, in 1h\S*s: 1 of 3 nodes votes, and 2 must\. N0, N1: .*longest TTL is 1h`,
		finds: `\? the set: its longest TTL is 1h: .*\n  .*redlock members set max-ttl 10s`, well: []int{2}},
	{name: "a long TTL is allowed, and all nodes vote", servers: 3,
		make:  func(w *ward) { w.described(3, "--ttl", "1h") },
		first: `locks can be acquired: 3 of 3`, finds: `\? the set: its longest TTL is 1h`},
	{name: "dead members that were not given", alerts: "RedlockNoQuorum RedlockNodeDown", servers: 5, code: 1,
		make:  func(w *ward) { w.described(5); w.kill(2, 3, 4); w.give(0, 1) },
		first: `no lock can be acquired: 2 of 5 nodes vote, and 3 must\. N2, N3, N4: it does not answer: .*connection refused`,
		finds: `! N3: it does not answer: .*\n  does it run`, well: []int{0, 1}},
	{name: "one dead member that was not given", alerts: "RedlockNodeDown RedlockNoVoteToSpare RedlockWarning", servers: 3, code: 1,
		make:  func(w *ward) { w.described(3); w.kill(2); w.give(0, 1) },
		first: `locks can be acquired: 2 of 3 nodes vote, and 2 must\. The next failure ends that\. Without a vote: N2: it does not answer`,
		finds: `\? N2: it is a member of the set, and was not given`, well: []int{0, 1}},
	{name: "a majority hangs", alerts: "RedlockNoQuorum RedlockNodeDown RedlockRenewalsFailing RedlockLockLost", servers: 3, code: 1,
		make:  func(w *ward) { w.described(3); w.check(w.servers[1].Hang()); w.check(w.servers[2].Hang()) },
		first: `no lock can be acquired: 1 of 3 nodes votes, and 2 must\. N1, N2: it takes connections, and does not answer`,
		finds: `! N1: it takes connections, and does not answer: it hangs.*\n  `, well: []int{0}},
	{name: "a majority hangs, of members that were not all given", alerts: "RedlockNoQuorum", servers: 5, code: 1,
		make: func(w *ward) {
			w.described(5)
			w.give(0, 1, 2)
			w.check(w.servers[1].Hang())
			w.check(w.servers[2].Hang())
		},
		first: `no lock can be acquired: 1 of 3 nodes votes, and 2 must\. N1, N2: it takes connections, and does not answer`,
		finds: `\? N0: it belongs to the set of N0, N1, N2, N3, N4, and too few of the given nodes answer to say so, too`},
	{name: "one node hangs", alerts: "RedlockNodeDown RedlockNoVoteToSpare", servers: 3, code: 1,
		make:  func(w *ward) { w.described(3); w.check(w.servers[0].Hang()) },
		first: `locks can be acquired: 2 of 3 nodes vote, and 2 must\. The next failure ends that`, finds: `! N0: it takes connections, and does not answer`, well: []int{1, 2}},
	{name: "the wrong password", alerts: "RedlockNoQuorum RedlockNodeDown", servers: 3, code: 1,
		make:  func(w *ward) { w.described(3); w.at("config set requirepass secret", 0, 1, 2) },
		first: `no lock can be acquired: 0 of 3 nodes vote, and 2 must\. N0, N1, N2: it refuses to answer: NOAUTH`, finds: `  look at user and password in the URL`},
	{name: "the wrong password at a majority", alerts: "RedlockNoQuorum", servers: 3, code: 1,
		make:  func(w *ward) { w.described(3); w.at("config set requirepass secret", 0, 1) },
		first: `no lock can be acquired: 1 of 3 nodes votes, and 2 must\. N0, N1: it refuses to answer: NOAUTH`, well: []int{2}},
	{name: "an ACL that is too narrow at a majority", alerts: "RedlockNoQuorum RedlockRenewalsFailing", servers: 3, code: 1,
		make:  func(w *ward) { w.described(3); w.at("acl setuser default -zadd", 0, 1) },
		first: `no lock can be acquired: 1 of 3 nodes votes, and 2 must\. N0, N1: it rejects locking and releasing a key: .*ZADD`, finds: `  look at the user's ACL`, well: []int{2}},
	{name: "a majority is full", alerts: "RedlockNoQuorum RedlockRenewalsFailing RedlockLockLost", servers: 3, code: 1,
		make:  func(w *ward) { w.described(3); w.at("config set maxmemory 1", 0, 1) },
		first: `no lock can be acquired: 1 of 3 nodes votes, and 2 must\. N0, N1: it rejects locking and releasing a key: .*OOM`, finds: `  give it more memory`, well: []int{2}},
	{name: "a majority is down", alerts: "RedlockNoQuorum RedlockNodeDown", servers: 3, code: 1,
		make:  func(w *ward) { w.described(3); w.kill(0, 2) },
		first: `no lock can be acquired: 1 of 3 nodes votes, and 2 must\. N0, N2: it does not answer: .*refused`, finds: `  does it run`, well: []int{1}},
	{name: "all are down", alerts: "RedlockNoQuorum", servers: 3, code: 1,
		make: func(w *ward) { w.described(3); w.kill(0, 1, 2) }, first: `no lock can be acquired: 0 of 3 nodes vote, and 2 must`},
	{name: "an old list", alerts: "RedlockWarning RedlockNodeIneligible", servers: 4, code: 1, flags: "--ttl 2s",
		make: func(w *ward) {
			w.described(3, "--ttl", "2s", "--max-ttl", "2s")
			w.must("members", "add", w.servers[3].URL(), "-q")
			w.must("members", "remove", w.servers[0].Addr, "-q")
			w.give(0, 1, 2)
		},
		first: `locks can be acquired: 3 of 3 nodes vote, and 2 must`, finds: `\? N3: it is a member of the set, and was not given`, well: []int{1, 2}},
	{name: "a clock that differs", alerts: "RedlockNodeIneligible RedlockWarning RedlockClockStep", servers: 3, clocks: true, code: 1,
		make:  func(w *ward) { w.described(3); w.check(w.servers[1].StepClock(60e9)) },
		first: `locks can be acquired: 2 of 3 nodes vote, and 2 must\. The next failure ends that`, finds: `! N1: its clock is \S+ ahead of the others'`, well: []int{0, 2}},
	{name: "clocks that all differ", alerts: "RedlockNodeIneligible RedlockNoQuorum", servers: 3, clocks: true, code: 1,
		make: func(w *ward) {
			w.described(3)
			w.check(w.servers[1].StepClock(60e9))
			w.check(w.servers[2].StepClock(120e9))
		},
		first: `no lock can be acquired: 1 of 3 nodes votes, and 2 must`, finds: `! N0, N1, N2: their clocks are up to 2m0s apart, and no majority of them agrees`},
	{name: "a replica", alerts: "RedlockNodeIneligible", servers: 3, code: 1,
		make: func(w *ward) {
			w.described(3)
			_, port, _ := strings.Cut(w.servers[0].Addr, ":")
			w.at("replicaof 127.0.0.1 "+port, 2)
		},
		first: `no lock can be acquired by a program that starts now \(2 of 3 nodes vote, and 2 must\): node N2: .*slave`, finds: `! N2: it is a replica of N0`},
	{name: "eviction", alerts: "RedlockNodeIneligible RedlockLockLost", servers: 3, code: 1,
		make: func(w *ward) {
			w.described(3)
			w.at("config set maxmemory 100mb", 1)
			w.at("config set maxmemory-policy allkeys-lru", 1)
		},
		first: `no lock can be acquired by a program that starts now \(2 of 3 nodes vote, and 2 must\): node N1: .*allkeys-lru`, finds: `! N1: its maxmemory-policy is allkeys-lru`, well: []int{0, 2}},
	{name: "copies of the data of another set's nodes", servers: 6, code: 1,
		make: func(w *ward) {
			w.described(3)
			for i := range 2 {
				from, to := redis.NewClient(&redis.Options{Addr: w.servers[i].Addr}), redis.NewClient(&redis.Options{Addr: w.servers[3+i].Addr})
				for _, key := range []string{lua.Told, lua.Marker} {
					value, err := from.Get(w.Context(), key).Result()
					w.check(err)
					w.check(to.Set(w.Context(), key, value, 0).Err())
				}
				w.check(from.Close())
				w.check(to.Close())
			}
			w.give(3, 4, 5)
		},
		first: `no lock can be acquired: [01] of 3 nodes votes?, and 2 must\. N3: it says that it is N0, where another server answers: it has a copy of its data; N4: `,
		finds: `  make it forget that: redlock members forget N3`},
	{name: "a node of another set", alerts: "RedlockNodeIneligible RedlockWarning", servers: 6, code: 1,
		make: func(w *ward) {
			w.described(3)
			w.give(3, 4, 5)
			w.must("run", "k", "-q", "--", "true")
			w.give(0, 1, 3)
		},
		first: `locks can be acquired: 3 of 3 nodes vote, and 2 must`, finds: `! N3: it belongs to another set`, well: []int{0, 1}},
	{name: "nodes of two sets", alerts: "RedlockNoQuorum", servers: 4, code: 1,
		make: func(w *ward) {
			w.described(2)
			w.give(2, 3)
			w.must("run", "k", "-q", "--", "true")
			w.give(0, 1, 2, 3)
		},
		first: `no lock can be acquired: 0 of 4 nodes vote, and 3 must\. N0, N1: it belongs to the set of N0, N1, and too few of the others do`, finds: `! N2: it belongs to the set of N2, N3, and too few of the others do`},
	{name: "a port without TLS", alerts: "RedlockNoQuorum", servers: 3, code: 1,
		make:  func(w *ward) { w.give(0, 1, 2); w.env[1] = strings.ReplaceAll(w.env[1], "redis://", "rediss://") },
		first: `no lock can be acquired: 0 of 3 nodes vote, and 2 must\. N0, N1, N2: it answers a TLS handshake in plain text`, finds: `  write redis:// for a port without TLS`},
	{name: "SCRIPT renamed away", alerts: "RedlockNoQuorum", servers: 3, code: 1, args: "--rename-command SCRIPT unused",
		make:  func(w *ward) { w.give(0, 1, 2) },
		first: `no lock can be acquired: 0 of 3 nodes vote, and 2 must\. N0, N1, N2: it rejects locking and releasing a key: ERR unknown command 'script': this server does not have SCRIPT`, finds: `  give SCRIPT its name back`},
	{name: "a command of the scripts renamed", alerts: "RedlockNoQuorum", servers: 3, code: 1, args: "--rename-command ZADD other",
		make:  func(w *ward) { w.give(0, 1, 2) },
		first: `no lock can be acquired: 0 of 3 nodes vote, and 2 must\. N0, N1, N2: ERR unknown command 'zadd': this server does not have ZADD`, finds: `  give ZADD its name back`},
	{name: "another separator", alerts: "RedlockWarning", servers: 3, code: 1, flags: "--prefix two: --separator :",
		make:  func(w *ward) { w.described(3, "--prefix", "one:", "--separator", "/") },
		first: `no lock can be acquired by a program that starts now \(3 of 3 nodes vote, and 2 must\): its separator is "/", and this program has ":": a set has one separator`, finds: `  leave --separator out .*, of its own$`, well: []int{0, 1, 2}},
	{name: "a longer TTL than the set's", servers: 3, code: 1, flags: "--ttl 1h",
		make:  func(w *ward) { w.described(3, "--max-ttl", "20s") },
		first: `no lock can be acquired by a program that starts now \(3 of 3 nodes vote, and 2 must\): its longest TTL is 20s, and this program has --ttl 1h0m0s`, finds: `  give 20s or less`, well: []int{0, 1, 2}},
	{name: "a longer MaxTTL than the set's", servers: 3, flags: "--max-ttl 1h",
		make:  func(w *ward) { w.described(3, "--max-ttl", "20s") },
		first: `locks can be acquired: 3 of 3 nodes vote`, finds: `\? the set: its longest TTL is 20s, and this program has --max-ttl 1h0m0s\n  give 20s or less`, well: []int{0, 1, 2}},
}

// Whatever has happened to the nodes, doctor's first line says whether a lock can be acquired, its exit status says
// it to scripts, and it names the nodes that are at fault and no other.
func TestDoctor(t *testing.T) {
	need.Servers(t, redisproc.Available)
	for _, s := range situations {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			w := &ward{T: t}
			args := strings.Fields(s.args)
			if s.keep {
				args = append(args, "--appendonly", "yes")
			}
			if s.clocks {
				w.servers = redistest.ClockServers(t, s.servers, args...)
			} else {
				w.servers = redistest.Servers(t, s.servers, args...)
			}
			w.give(0)
			s.make(w)
			code, text, stderr := w.redlock(append([]string{"doctor"}, strings.Fields(s.flags)...)...)
			names := func(pattern string) string {
				return regexp.MustCompile(`N\d`).ReplaceAllStringFunc(pattern, func(n string) string {
					return regexp.QuoteMeta(w.servers[n[1]-'0'].Addr)
				})
			}
			switch {
			case code != s.code || stderr != "":
				t.Errorf("exit status %d, and not %d; stderr %q", code, s.code, stderr)
			case !regexp.MustCompile(`\A` + names(s.first)).MatchString(text):
				t.Errorf("the first line does not match %s", s.first)
			case !regexp.MustCompile(`(?m)^` + names(s.finds)).MatchString(text):
				t.Errorf("no line matches %s", s.finds)
			}
			for _, i := range s.well {
				if regexp.MustCompile(`(?m)^! [^:]*` + names("N"+string(rune('0'+i)))).MatchString(text) {
					t.Errorf("it blames node %d", i)
				}
			}
			if t.Failed() {
				t.Log(text)
			}
		})
	}
}

// Each alert rule that sends people to doctor has a situation above: what it promises of doctor is tried.
func TestEachAlertOfDoctorIsTried(t *testing.T) {
	text, err := os.ReadFile("../../adapters/otel/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	var tried []string
	for _, s := range situations {
		tried = append(tried, strings.Fields(s.alerts)...)
	}
	found := 0
	for _, rule := range strings.Split(string(text), "- alert: ")[1:] {
		name, about, _ := strings.Cut(rule, "\n")
		if strings.Contains(about, "redlock doctor`") {
			if found++; !slices.Contains(tried, name) {
				t.Errorf("%s sends people to redlock doctor, and no situation has it", name)
			}
		}
	}
	if found == 0 {
		t.Error("no alert sends people to redlock doctor")
	}
}

// A look creates nothing: prepare --fresh finds the nodes as they were.
func TestDoctorLeavesNewNodesAlone(t *testing.T) {
	w := &ward{T: t, servers: redistest.NewServers(t, 3)}
	w.give(0, 1, 2)
	if code, text, _ := w.redlock("doctor"); code != 1 || !strings.HasPrefix(text, "no lock can be acquired on new nodes for 10.1s: ") {
		t.Errorf("exit status %d\n%s", code, text)
	}
	if keys := redistest.Keys(t, w.servers); len(slices.Concat(keys[w.servers[0].Addr], keys[w.servers[1].Addr], keys[w.servers[2].Addr])) > 0 {
		t.Errorf("it has written %v", keys)
	}
	w.must("prepare", "--fresh", "--timeout", "0s")
	if code, text, _ := w.redlock("doctor"); code != 0 || !strings.HasPrefix(text, "locks can be acquired: 3 of 3 nodes vote") {
		t.Errorf("exit status %d\n%s", code, text)
	}
}

// document is a page of the documents.
func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
