package main

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	lua "github.com/quorumlock/redlock/internal/script"
)

// A finding is something that is wrong with nodes, or may be.
type finding struct {
	must  bool // it has to change; false: it may be intended
	nodes []string
	what  string
	todo  string
}

// A diagnosis collects the findings.
type diagnosis struct {
	ttl, timeout time.Duration // the clients' TTL, and how long a node has to answer
	quarantine   bool
	clocks       []time.Duration
	all          []finding
}

func (d *diagnosis) must(p *patient, what, todo string) {
	d.all = append(d.all, finding{true, []string{p.name}, what, todo})
}

func (d *diagnosis) think(p *patient, what, todo string) {
	d.all = append(d.all, finding{false, []string{p.name}, what, todo})
}

// findings judges the answers of the nodes.
func findings(patients []*patient, ttl time.Duration, quarantine bool) []finding {
	d := &diagnosis{ttl: ttl, timeout: nodeTimeout(ttl), quarantine: quarantine}
	for _, p := range patients {
		if p.err == nil {
			d.clocks = append(d.clocks, p.clock)
		}
	}
	slices.Sort(d.clocks)
	servers, hosts := make(map[string]string), make(map[string][]string)
	for _, p := range patients {
		if p.err != nil {
			d.must(p, "it does not answer: "+p.err.Error(), remedyFor(p.err))
			continue
		}
		if first, again := servers[p.info["run_id"]]; again && p.info["run_id"] != "" {
			d.must(p, "it is the same server as "+first+", and would vote twice", "name independent servers, each one once")
			continue
		}
		servers[p.info["run_id"]] = p.name
		if host, _, err := net.SplitHostPort(p.opts.Addr); err == nil {
			hosts[host] = append(hosts[host], p.name)
		}
		d.independence(p)
		d.persistence(p)
		d.version(p)
		d.clock(p)
		d.speed(p)
		d.refusals(p)
	}
	d.together(patients, hosts)
	d.membership(patients)
	return d.all
}

// setOf is the set of the nodes; its description is nil if they keep none, or are not of one set.
func setOf(patients []*patient) *described {
	set := &described{}
	for _, p := range patients {
		k := p.keeping
		k.node, k.err = p.name, cmp.Or(k.err, p.err)
		set.given = append(set.given, k)
	}
	set.judge()
	return set
}

// membership: the nodes that are given should be the members of one set.
func (d *diagnosis) membership(patients []*patient) {
	set := setOf(patients)
	for i, k := range set.given {
		p, members := patients[i], ""
		if set.set != nil {
			members = strings.Join(set.set.Members, ", ")
		}
		switch told := k.told; {
		case k.err != nil:
		case set.set == nil && told.Description != nil:
			d.must(p, "it belongs to the set of "+strings.Join(told.Members, ", ")+", and too few of the others do", "give the members of one set")
		case set.set == nil:
		case told.Description != nil && told.Set != set.set.Set:
			d.must(p, "it belongs to another set, with the members "+strings.Join(told.Members, ", "), "give the members of one set: "+members)
		case !set.isMember(&k):
			d.must(p, "it is no member of the set of the others, so that it has no vote", "leave it out, or make it a member: redlock members add "+p.name)
		case told.Description == nil:
			d.think(p, "it keeps no description of its set, which the others keep: it is new, or has lost its data", "programs tell it again; redlock members shows whether it keeps one")
		case told.Epoch < set.set.Epoch:
			d.think(p, fmt.Sprintf("it keeps an earlier description of its set (epoch %d) than others (%d)", told.Epoch, set.set.Epoch), "programs tell it; redlock members does so, too")
		}
	}
	if set.set == nil {
		return
	}
	for _, member := range set.set.Members {
		if set.keeping(member) == nil {
			d.all = append(d.all, finding{false, []string{member}, "it is a member of the set, and was not given", "give all members: " + strings.Join(set.set.Members, ", ")})
		}
	}
}

// independence: a vote must be the node's own.
func (d *diagnosis) independence(p *patient) {
	if p.info.Replica() {
		d.must(p, "it is a replica of "+p.info.Master()+", which may grant a lock that its master does not know of", "name its master, or make it independent: "+p.at()+" replicaof no one")
	}
	if p.info.Cluster() {
		d.must(p, "it is a node of a Redis Cluster, where keys move and replicas take over", "use independent servers, with cluster-enabled no")
	}
}

// persistence: a node must keep what it has granted.
func (d *diagnosis) persistence(p *patient) {
	if p.info.Evicts() {
		policy, todo := p.info["maxmemory_policy"], p.at()+" config set maxmemory-policy noeviction, and in its redis.conf"
		if p.info.Limited() {
			d.must(p, "its maxmemory-policy is "+policy+", so it may drop locks", todo)
		} else {
			d.think(p, "its maxmemory-policy is "+policy+", so it may drop locks once maxmemory is set", todo)
		}
	}
	if n, _ := strconv.Atoi(p.info["connected_slaves"]); n > 0 {
		d.think(p, phrase.Count(n, "replica")+" would take its place without all of its locks", "switch automatic failover off, or run redlock prepare on the replica before clients use it")
	}
	if !d.quarantine && (p.info["aof_enabled"] != "1" || p.fsync != "" && p.fsync != "always") {
		d.must(p, "it does not write each lock to disk (appendonly yes and appendfsync always), forgets some when it is restarted, and no quarantine makes up for that",
			"leave Options.Quarantine on, or: "+p.at()+" config set appendonly yes appendfsync always, and in its redis.conf")
	}
}

// version: scripts must stay in one process.
func (d *diagnosis) version(p *patient) {
	if why, todo := p.info.Unsupported(); why != "" {
		d.must(p, "it is "+p.info.Server()+", "+why, todo)
	} else if _, known := p.info.KeepsScripts(); !known {
		d.think(p, "it says neither its version nor whether its scripts stay in one process", "allow the user INFO, and EVAL with the key "+lua.ProbeKey)
	}
}

// clock: the nodes must agree about the time, and number locks by it.
func (d *diagnosis) clock(p *patient) {
	if apart := p.clock - d.clocks[len(d.clocks)/2]; apart.Abs() > 500*time.Millisecond+p.fastest {
		d.must(p, fmt.Sprintf("its clock is %v %s the others'", apart.Abs().Round(time.Millisecond), ahead(apart)), "synchronize the clocks of all nodes by NTP, with slewing and not stepping")
	} else if p.clock.Abs() > 500*time.Millisecond+p.fastest {
		d.think(p, fmt.Sprintf("its clock is %v %s ours: each lock costs a second round trip, for its fence", p.clock.Abs().Round(time.Millisecond), ahead(p.clock)), "synchronize the clocks of clients and nodes by NTP")
	}
	if ahead := time.Duration(p.number-p.now) * time.Microsecond; ahead >= farthest(&redlock.Options{TTL: d.ttl})+2*clamp {
		d.must(p, fmt.Sprintf("its fences are %v ahead of the time, since its clock was wrong once: its grants do not count", ahead.Round(time.Millisecond)), "when its clock is right: redlock prepare --reset-fences "+p.name)
	}
	if p.older {
		d.think(p, "older clients, which have a counter for each name, use the node, or did: each lock is numbered for them, too", "when the last of them is gone: "+p.at()+" del "+lua.OldMarker)
	}
}

// speed: a node must answer in time.
func (d *diagnosis) speed(p *patient) {
	switch {
	case p.roundTrip > d.timeout:
		d.must(p, fmt.Sprintf("a round trip takes %v, and with a TTL of %v a node has %v to answer", p.roundTrip.Round(time.Microsecond), d.ttl, d.timeout), fmt.Sprintf("use a node that is nearer, or a --ttl of %v", (20*p.roundTrip).Round(time.Second)+time.Second))
	case p.roundTrip > d.timeout/several:
		d.think(p, fmt.Sprintf("a round trip takes %v, which is much of the %v that a node has to answer with a TTL of %v", p.roundTrip.Round(time.Microsecond), d.timeout, d.ttl), "use a node that is nearer, or a longer --ttl")
	}
}

// refusals are what the node does not allow.
func (d *diagnosis) refusals(p *patient) {
	if p.keyError != nil {
		d.must(p, "it rejects locking and releasing a key: "+p.keyError.Error(), remedyFor(p.keyError))
	}
	if p.callError != nil {
		d.think(p, "it cannot wake waiting clients, which notice a release up to a second late: "+p.callError.Error(), remedyFor(p.callError))
	}
}

// together judges the nodes as a set.
func (d *diagnosis) together(patients []*patient, hosts map[string][]string) {
	for host, names := range hosts {
		if len(names) > 1 && len(names) > len(patients)-len(patients)/2-1 {
			slices.Sort(names)
			d.all = append(d.all, finding{false, names, "they are on one host, " + host + ", and fail with it: no majority is left then", "run each node on a host of its own"})
		}
	}
	var names []string
	for _, p := range patients {
		names = append(names, p.name)
	}
	switch n := len(patients); {
	case n < 3:
		d.all = append(d.all, finding{false, names, "with " + phrase.Count(n, "node") + " none may fail", "of 3 nodes any one may fail, of 5 any two"})
	case n%2 == 0:
		d.all = append(d.all, finding{false, names, fmt.Sprintf("%d nodes survive no more failures than %d do", n, n-1), "use an odd number"})
	}
}
