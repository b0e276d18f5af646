package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/facts"
	"github.com/quorumlock/redlock/internal/nodeurl"
	"github.com/quorumlock/redlock/internal/printable"
	lua "github.com/quorumlock/redlock/internal/script"
)

// checkup bounds what a node gets to answer all questions.
const checkup = 5 * time.Second

// A patient is a node that is examined.
type patient struct {
	name string // its address
	opts *redis.Options
	err  error // it did not answer

	info      facts.Facts
	fsync     string // CONFIG appendfsync; "": it does not say
	fastest   time.Duration
	clock     time.Duration // how far its clock is ahead, within half of fastest
	roundTrip time.Duration // the usual one
	keyError  error         // of the key that was locked and released
	callError error         // of calling those who wait
	older     bool          // clients are about, or were, that have a counter for each name
	number    int64         // the largest of its fences
	now       int64         // its time, in microseconds
}

// A finding is what is to be said of nodes.
type finding struct {
	must  bool // it has to change, or else should be thought about
	nodes []string
	what  string
	todo  string
}

// doctor is redlock doctor.
func (c *command) doctor(args []string) (code int, err error) {
	cfg := noFlags
	voteless := false
	values := cfg.values()
	delete(values, "--timeout")
	_, rest, err := scan("doctor", args, values, map[string]*bool{"--no-quarantine": &voteless})
	switch {
	case errors.Is(err, errHelp):
		return 0, c.help([]string{"doctor"})
	case err != nil:
		return 0, err
	case len(rest) > 0:
		return 0, fail(exitUsage, "see redlock help doctor", "doctor takes flags only, and was given %q", rest[0])
	}
	urls, err := c.realNodes(cfg.nodes, "examine")
	if err != nil {
		return 0, err
	}
	patients := make([]*patient, len(urls))
	var examined sync.WaitGroup
	for i, u := range urls {
		examined.Go(func() { patients[i] = examine(u) })
	}
	examined.Wait()

	found := findings(patients, cfg.ttl, !voteless)
	for _, line := range kinds(patients) {
		fmt.Fprintln(c.stdout, printable.Text(line))
	}
	must := 0
	for _, f := range found {
		mark := "?"
		if f.must {
			mark, must = "!", must+1
		}
		fmt.Fprintf(c.stdout, "%s %s: %s\n  %s\n", mark, strings.Join(f.nodes, ", "), printable.Text(f.what), printable.Text(f.todo))
	}
	var well []string
	for _, p := range patients {
		if !slices.ContainsFunc(found, func(f finding) bool { return slices.Contains(f.nodes, p.name) }) {
			well = append(well, p.name)
		}
	}
	if len(well) > 0 {
		fmt.Fprintf(c.stdout, "%s: nothing to say\n", strings.Join(well, ", "))
	}
	if must > 0 {
		change := "things have"
		if must == 1 {
			change = "thing has"
		}
		fmt.Fprintf(c.stdout, "%d %s to change\n", must, change)
		return exitSick, nil
	}
	fmt.Fprintln(c.stdout, "nothing has to change")
	return 0, nil
}

// examine asks a node all that can be asked.
func examine(u string) *patient {
	p := &patient{info: make(facts.Facts)}
	if p.opts, p.err = nodeurl.Parse(u); p.err != nil {
		return p // it was parsed before
	}
	p.name = p.opts.Addr
	p.opts.MaxRetries, p.opts.DialTimeout, p.opts.DisableIdentity = -1, checkup/2, true
	rdb := redis.NewClient(p.opts)
	defer rdb.Close()
	ctx, cancel := context.WithTimeout(context.Background(), checkup)
	defer cancel()
	info, err := rdb.Info(ctx).Result()
	if p.err = facts.Discreet(err); err != nil {
		return p
	}
	p.info.Add(info)
	p.info.Probed(rdb.Eval(ctx, lua.Probe, []string{lua.ProbeKey}).Result())
	if config, err := rdb.ConfigGet(ctx, "appendfsync").Result(); err == nil { // an ACL may forbid it
		p.fsync = config["appendfsync"]
	}
	var trips []time.Duration
	for range 9 {
		sent := time.Now()
		at, err := rdb.Time(ctx).Result()
		trip := time.Since(sent)
		if err != nil {
			p.err = err
			return p
		}
		if trips = append(trips, trip); p.fastest == 0 || trip < p.fastest {
			p.fastest, p.clock = trip, at.Sub(sent.Add(trip/2))
		}
	}
	slices.Sort(trips)
	p.roundTrip = trips[len(trips)/2]
	if !p.info.Replica() {
		p.keyError = rdb.Eval(ctx, "redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', 1000) return redis.call('DEL', KEYS[1])", []string{"redlock:doctor"}, "x").Err()
	}
	p.older = rdb.Exists(ctx, lua.OldMarker).Val() > 0
	p.number, p.now = largest(ctx, rdb), time.Now().Add(p.clock).UnixMicro()
	if p.callError = rdb.Publish(ctx, lua.WakeChannel+"doctor", "").Err(); p.callError == nil {
		ear := rdb.Subscribe(ctx, lua.WakeChannel+"doctor")
		defer ear.Close()
		_, p.callError = ear.Receive(ctx)
	}
	return p
}

// at is how somebody reaches the node with redis-cli.
func (p *patient) at() string {
	host, port, err := net.SplitHostPort(p.opts.Addr)
	if err != nil {
		return "redis-cli -s " + p.opts.Addr
	}
	return "redis-cli -h " + host + " -p " + port
}

// nodeTimeout is how long a node has to answer with this TTL: the library's default.
func nodeTimeout(ttl time.Duration) time.Duration {
	return max(min(ttl/10, 500*time.Millisecond), min(50*time.Millisecond, ttl/2))
}

// several is how many round trips to a node have to fit in its time to answer: one for
// the step, and the rest for a bad moment of the network or the node.
const several = 4

// findings judges what was found.
func findings(patients []*patient, ttl time.Duration, quarantine bool) (all []finding) {
	must := func(p *patient, what, todo string) { all = append(all, finding{true, []string{p.name}, what, todo}) }
	think := func(p *patient, what, todo string) { all = append(all, finding{false, []string{p.name}, what, todo}) }
	timeout := nodeTimeout(ttl)
	servers, hosts := make(map[string]string), make(map[string][]string)
	var clocks []time.Duration
	for _, p := range patients {
		if p.err == nil {
			clocks = append(clocks, p.clock)
		}
	}
	slices.Sort(clocks)
	for _, p := range patients {
		if p.err != nil {
			must(p, "it does not answer: "+p.err.Error(), remedyFor(p.err))
			continue
		}
		if first, again := servers[p.info["run_id"]]; again && p.info["run_id"] != "" {
			must(p, "it is the same server as "+first+", and would have two votes", "give independent servers, each one once")
			continue
		}
		servers[p.info["run_id"]] = p.name
		if host, _, err := net.SplitHostPort(p.opts.Addr); err == nil {
			hosts[host] = append(hosts[host], p.name)
		}
		if p.info.Replica() {
			must(p, "it is a replica of "+p.info.Master()+", which may promise what the other has not heard of", "give its master, or make it independent: "+p.at()+" replicaof no one")
		}
		if p.info.Cluster() {
			must(p, "it is a node of a Redis Cluster, where keys move and replicas take over", "give independent servers, with cluster-enabled no")
		}
		if p.info.Evicts() {
			policy, todo := p.info["maxmemory_policy"], p.at()+" config set maxmemory-policy noeviction, and in its redis.conf"
			if p.info.Limited() {
				must(p, "its maxmemory-policy is "+policy+", so it may drop locks", todo)
			} else {
				think(p, "its maxmemory-policy is "+policy+", so it may drop locks once maxmemory is set", todo)
			}
		}
		if n, _ := strconv.Atoi(p.info["connected_slaves"]); n > 0 {
			think(p, count(n, "replica")+" would take its place without all of its locks", "switch automatic failover off, or have the replica prepared (redlock prepare) before it gets requests")
		}
		if !quarantine && (p.info["aof_enabled"] != "1" || p.fsync != "" && p.fsync != "always") {
			must(p, "it does not write each lock to disk (appendonly yes and appendfsync always), forgets some when it is restarted, and no quarantine makes up for that",
				"leave Options.Quarantine on, or: "+p.at()+" config set appendonly yes appendfsync always, and in its redis.conf")
		}
		if why, todo := p.info.Unsupported(); why != "" {
			must(p, "it is "+p.info.Server()+", "+why, todo)
		} else if _, known := p.info.KeepsScripts(); !known {
			think(p, "it says neither its version nor whether its scripts stay in one process", "allow the user INFO, and EVAL with the key "+lua.ProbeKey)
		}
		if apart := p.clock - clocks[len(clocks)/2]; apart.Abs() > 500*time.Millisecond+p.fastest {
			must(p, fmt.Sprintf("its clock is %v %s the others'", apart.Abs().Round(time.Millisecond), ahead(apart)), "have all nodes' clocks set by NTP, slewing and not stepping")
		} else if p.clock.Abs() > 500*time.Millisecond+p.fastest {
			think(p, fmt.Sprintf("its clock is %v %s ours: each lock costs a second round trip, for its fence", p.clock.Abs().Round(time.Millisecond), ahead(p.clock)), "have the clocks of clients and nodes set by NTP")
		}
		if ahead := time.Duration(p.number-p.now) * time.Microsecond; ahead >= farthest(&redlock.Options{TTL: ttl})+2*clamp {
			must(p, fmt.Sprintf("it numbers locks %v ahead of the time, since its clock was wrong once: such a grant is no vote", ahead.Round(time.Millisecond)), "when its clock is right: redlock prepare --reset-fences "+p.name)
		}
		if p.older {
			think(p, "older clients, which have a counter for each name, are about, or were: each lock is numbered for them, too", "when the last of them is gone: "+p.at()+" del "+lua.OldMarker)
		}
		switch {
		case p.roundTrip > timeout:
			must(p, fmt.Sprintf("a round trip takes %v, and with a TTL of %v a node has %v to answer", p.roundTrip.Round(time.Microsecond), ttl, timeout), fmt.Sprintf("take a node that is nearer, or a --ttl of %v", (20*p.roundTrip).Round(time.Second)+time.Second))
		case p.roundTrip > timeout/several:
			think(p, fmt.Sprintf("a round trip takes %v, which is much of the %v that a node has to answer with a TTL of %v", p.roundTrip.Round(time.Microsecond), timeout, ttl), "take a node that is nearer, or a longer --ttl")
		}
		if p.keyError != nil {
			must(p, "it refuses to lock and release a key: "+p.keyError.Error(), remedyFor(p.keyError))
		}
		if p.callError != nil {
			think(p, "nobody who waits can be called there, and looks for himself, up to a second late: "+p.callError.Error(), remedyFor(p.callError))
		}
	}
	for host, names := range hosts {
		if len(names) > 1 && len(names) > len(patients)-len(patients)/2-1 {
			slices.Sort(names)
			all = append(all, finding{false, names, "they are on one host, " + host + ", and fail with it: no majority is left then", "have each node on a host of its own"})
		}
	}
	var names []string
	for _, p := range patients {
		names = append(names, p.name)
	}
	switch n := len(patients); {
	case n < 3:
		all = append(all, finding{false, names, "with " + count(n, "node") + " none may fail", "3 nodes go on without any one of them, 5 without any two"})
	case n%2 == 0:
		all = append(all, finding{false, names, fmt.Sprintf("%d nodes survive no more failures than %d do", n, n-1), "take an odd number"})
	}
	return all
}

func ahead(d time.Duration) string {
	if d > 0 {
		return "ahead of"
	}
	return "behind"
}

// kinds says what the nodes are.
func kinds(patients []*patient) (lines []string) {
	names := make(map[string][]string)
	for _, p := range patients {
		if p.err != nil {
			continue
		}
		what := p.info.Server()
		if why, _ := p.info.Unsupported(); why == "" {
			if _, known := p.info.KeepsScripts(); known {
				what += "; scripts stay in one process"
			} else {
				what += "; nothing says whether scripts stay in one process"
			}
		}
		names[what] = append(names[what], p.name)
	}
	for _, what := range slices.Sorted(maps.Keys(names)) {
		lines = append(lines, strings.Join(names[what], ", ")+": "+what)
	}
	return lines
}

// remedyFor says what can be done about an error.
func remedyFor(err error) string {
	switch facts.Code(err.Error()) {
	case "NOAUTH", "WRONGPASS":
		return "look at user and password in the URL: redis://user:password@host:port"
	case "NOPERM":
		return "look at the user's ACL: docs/operations.md says what it has to allow"
	case "OOM":
		return "give it more memory (maxmemory), or less to keep"
	case "READONLY":
		return "it is a replica, or was one: give its master"
	case "MISCONF":
		return "it cannot write to its disk, and takes no writes: make room there"
	case "NOREPLICAS":
		return "it takes no writes without replicas, and locks need none: set min-replicas-to-write 0"
	case "BUSY":
		return "somebody's script runs and does not end: redis-cli script kill; give locks servers of their own"
	case "LOADING", "MASTERDOWN":
		return "it reads its data, or waits for its master's: ask again later"
	}
	return "does it run, and can it be reached from here? Locks go on as long as a majority does"
}
