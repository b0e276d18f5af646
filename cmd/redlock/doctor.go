package main

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/internal/printable"
	lua "github.com/quorumlock/redlock/internal/script"
)

// A finding is what is to be said of nodes.
type finding struct {
	must  bool // it has to change, or else should be thought about
	nodes []string
	what  string
	todo  string
}

// doctor is redlock doctor.
func (c *command) doctor(_ string, args []string) (code int, err error) {
	cfg := noFlags
	voteless := false
	values := cfg.values()
	delete(values, "--timeout")
	_, rest, err := scan("doctor", args, values, map[string]*bool{"--no-quarantine": &voteless})
	switch {
	case err != nil:
		return 0, err
	case len(rest) > 0:
		return 0, exit.Fail(exit.Usage, "see redlock help doctor", "doctor takes flags only, and was given %q", rest[0])
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
		return exit.Found, nil
	}
	fmt.Fprintln(c.stdout, "nothing has to change")
	return 0, nil
}

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
			think(p, phrase.Count(n, "replica")+" would take its place without all of its locks", "switch automatic failover off, or have the replica prepared (redlock prepare) before it gets requests")
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
		all = append(all, finding{false, names, "with " + phrase.Count(n, "node") + " none may fail", "3 nodes go on without any one of them, 5 without any two"})
	case n%2 == 0:
		all = append(all, finding{false, names, fmt.Sprintf("%d nodes survive no more failures than %d do", n, n-1), "take an odd number"})
	}
	return all
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
