package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/explain"
	"github.com/quorumlock/redlock/cmd/redlock/internal/peek"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
	"github.com/quorumlock/redlock/internal/facts"
	"github.com/quorumlock/redlock/internal/printable"
	lua "github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
)

// A finding is something that is wrong, or may be, with one node, with several, or with the set.
type finding struct {
	must  bool // it has to change; false: the operator may intend it
	nodes []string
	what  string
	todo  string
}

// A diagnosis collects the findings.
type diagnosis struct {
	*examination
	cfg          *reach.Flags
	ttl, timeout time.Duration // of the clients: --ttl, and NodeTimeout at that TTL
	quarantine   bool
	clocks       []time.Duration // of the members, sorted
	later        []string        // the members that keep a later description than programs go by (ahead)
	stuck        bool            // these leave no quorum
	all          []finding
}

func (d *diagnosis) must(p *patient, what, todo string) {
	d.all = append(d.all, finding{true, []string{p.name}, what, todo})
}

// bars adds a finding that has to change, and for which the vote of the node p counts for nothing.
func (d *diagnosis) bars(p *patient, what, todo string) {
	p.barred = cmp.Or(p.barred, what)
	d.must(p, what, todo)
}

func (d *diagnosis) think(p *patient, what, todo string) {
	d.all = append(d.all, finding{false, []string{p.name}, what, todo})
}

// findings returns what is wrong, or may be, by what the nodes have answered.
func findings(x *examination, cfg *reach.Flags, quarantine bool) []finding {
	d := &diagnosis{examination: x, cfg: cfg, ttl: cfg.TTL, timeout: reach.NodeTimeout(cfg.TTL), quarantine: quarantine}
	for _, p := range x.members() {
		if p.err == nil {
			d.clocks = append(d.clocks, p.Clock)
		}
	}
	slices.Sort(d.clocks)
	d.later, d.stuck = d.ahead()
	servers := make(map[string]string)
	for _, p := range x.patients {
		if p.err != nil && !p.member {
			d.bars(p, "it does not answer, and is no member of the set of the others", "leave it out")
			continue
		}
		if p.err != nil {
			d.bars(p, unanswered(p.err), remedyFor(p.err))
			continue
		}
		if first, again := servers[p.info["run_id"]]; again && p.info["run_id"] != "" {
			d.bars(p, "it is the same server as "+first+", and would vote twice", "name independent servers, each one once")
			continue
		}
		servers[p.info["run_id"]] = p.name
		d.independence(p)
		d.persistence(p)
		d.version(p)
		d.clock(p)
		d.speed(p)
		d.refusals(p)
		d.votes(p)
	}
	d.apart()
	d.together()
	d.membership()
	d.settings()
	return d.all
}

// unanswered returns, in words, in which way a node does not answer: err is that of the request.
func unanswered(err error) string {
	var op *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "it takes connections, and does not answer: it hangs, is overloaded or is stopped, or the port is not that of a Redis server"
	case errors.As(err, &op):
		return fmt.Sprintf("it does not answer: %s: %v", op.Op, op.Err)
	case facts.Code(err.Error()) == strings.ToUpper(facts.Code(err.Error())): // the server's own words
		return "it refuses to answer: " + err.Error()
	case strings.HasPrefix(err.Error(), "it "): // facts.Trouble has explained it
		return err.Error()
	}
	return "it does not answer: " + err.Error()
}

// ahead returns the members that keep a later description of the set than the one by which a program goes that starts now.
// stuck is true if they leave no quorum by that one: too few members keep it, or an earlier one.
func (d *diagnosis) ahead() (later []string, stuck bool) {
	known := d.set.Set
	if known == nil {
		return nil, false
	}
	have := 0
	for _, p := range d.members() {
		switch told := p.keeping.Told; {
		case p.err != nil || told.Description == nil || told.Set != known.Set:
		case told.Epoch > known.Epoch:
			later = append(later, p.name)
		default:
			have++
		}
	}
	return later, len(later) > 0 && have < known.Needs()
}

// restores is what to do where members keep a later description than programs go by.
const restores = "if no change is under way: redlock members restore"

// votes adds a finding if the node p answers, and cannot vote for a reason that the other checks do not report.
func (d *diagnosis) votes(p *patient) {
	switch e := p.vote; {
	case e == nil || !p.member:
	case slices.Contains(d.later, p.name):
		d.bars(p, fmt.Sprintf("it keeps a later description of its set (epoch %d) than programs go by (%d), and has no vote", p.keeping.Told.Epoch, d.set.Set.Epoch), restores)
	case d.stuck && p.keeping.Told.Description == nil && p.keeping.Told.Damage == nil:
		d.bars(p, "it keeps no description of its set, and no program tells it one, since "+strings.Join(d.later, ", ")+" may keep the last one", restores)
	case p.barred != "":
	case e.Outcome == redlock.OutcomeQuarantined && !d.begun():
		d.think(p, "it is new, or has lost its data: it has no vote for "+phrase.Tenths(e.TTL).String()+" from the moment on at which a program or redlock prepare first reaches it", "redlock prepare; --fresh skips the wait where nobody can hold a lock yet")
	case e.Outcome == redlock.OutcomeQuarantined:
		d.think(p, fmt.Sprintf("it has no vote for another %v, in which the locks end that it may have forgotten (the longest TTL is %v): %v", phrase.Tenths(e.TTL), printable.Duration(d.longest()), e.Err), "nothing: it ends by itself")
	case e.Outcome == redlock.OutcomeIneligible:
		d.must(p, "it must not vote: "+e.Err.Error(), "change that, or put another server in its place: redlock members replace "+p.name+" URL")
	default:
		d.must(p, "it has no vote: "+explain.What(e), "run redlock doctor again: it answered a moment ago")
	}
}

// settings adds findings if settings of the set do not allow what this program was given.
func (d *diagnosis) settings() {
	set := d.set.Set
	if set == nil {
		return
	}
	all := func(must bool, what, todo string) { d.all = append(d.all, finding{must: must, what: what, todo: todo}) }
	refuse := func(what, todo string) {
		all(true, what, todo)
		d.refused, d.remedy = cmp.Or(d.refused, what), cmp.Or(d.remedy, todo)
	}
	if own := d.cfg.Separator; own != "" && own != set.Separator {
		is := "none"
		if set.Separator != "" {
			is = fmt.Sprintf("%q", set.Separator)
		}
		refuse(fmt.Sprintf("its separator is %s, and this program has %q: a set has one separator, for the programs of all prefixes", is, own),
			"leave --separator out (also separator in the configuration file); a service that needs another one takes servers, or a database (redis://HOST:PORT/1), of its own")
	}
	most := wire.Milliseconds(set.MaxTTL)
	longer := func(source string, ttl time.Duration) (what, todo string) {
		return fmt.Sprintf("its longest TTL is %v, and this program has %s %v", most, source, ttl),
			fmt.Sprintf("give %v or less, or the set a longer one: redlock members set max-ttl %v", most, ttl)
	}
	if d.ttl > most {
		refuse(longer("--ttl", d.ttl))
	}
	if d.cfg.MaxTTL > most {
		what, todo := longer(d.cfg.MaxTTLFrom, d.cfg.MaxTTL)
		all(false, what, todo)
	}
	switch intended := max(d.ttl, d.cfg.MaxTTL); {
	case set.Other > 0:
		all(false, fmt.Sprintf("its longest TTL is %v, and quarantines last for %v, since a change from one to the other is half done: a node that was restarted has no vote for so long", most, printable.Duration(set.Longest())),
			fmt.Sprintf("finish it: redlock members set max-ttl %v, or %v for the longer one", most, printable.Duration(set.Longest())))
	case most > max(intended, reach.LongWait):
		all(false, fmt.Sprintf("its longest TTL is %v: a node that was restarted has no vote for as long", printable.Duration(most)),
			fmt.Sprintf("if that is not intended, make it shorter: redlock members set max-ttl %v", intended))
	}
}

// setOf returns the set of the nodes. Its description is nil if no majority of them keeps one.
func setOf(patients []*patient) *peek.View {
	set := &peek.View{Given: keepings(patients)}
	var servers []*redis.Options
	for _, p := range patients {
		servers = append(servers, p.opts)
	}
	peek.FindCopies(servers, set.Given)
	for i, p := range patients {
		p.keeping.Copy = set.Given[i].Copy
	}
	set.Judge()
	return set
}

// keepings returns what the nodes keep of their set.
func keepings(patients []*patient) (all []peek.Node) {
	for _, p := range patients {
		k := p.keeping
		k.Addr, k.Err = p.name, cmp.Or(k.Err, p.err)
		all = append(all, k)
	}
	return all
}

// membership adds findings about the set: given nodes that are not of it, or do not know it, and members not given.
func (d *diagnosis) membership() {
	set := d.set
	known := d.described()
	for _, p := range d.patients {
		k := keepings([]*patient{p})[0]
		switch told := k.Told; {
		case k.Err != nil:
		case k.Copy:
			d.bars(p, "it says that it is "+told.Self+", where another server answers: it has a copy of its data", "make it forget that: redlock members forget "+k.Addr)
		case told.Damage != nil:
			d.bars(p, "it keeps what cannot be the description of a set ("+told.Damage.Error()+")", "make it forget that: redlock members forget "+k.Addr)
		case known == nil && told.Description != nil && d.contradicted(told.Description):
			d.bars(p, "it belongs to the set of "+strings.Join(told.Members, ", ")+", and too few of the others do", "give the members of one set")
		case known == nil && told.Description != nil:
			d.think(p, "it belongs to the set of "+strings.Join(told.Members, ", ")+", and too few of the given nodes answer to say so, too", "give the members of that set, if it is the one: redlock doctor --node "+strings.Join(urlsOf(told.Members), ","))
		case known == nil || set.Set == nil:
		case told.Description != nil && told.Set != known.Set:
			d.bars(p, "it belongs to another set, with the members "+strings.Join(told.Members, ", "), "give the members of one set: "+strings.Join(known.Members, ", "))
		case !set.IsMember(&k):
			d.must(p, "it is no member of the set of the others, so that it has no vote", "leave it out, or make it a member: redlock members add "+p.name)
		case told.Description == nil && d.stuck && p.vote != nil: // votes has said it
		case told.Description == nil:
			d.think(p, "it keeps no description of its set, which the others keep: it is new, or has lost its data", "programs tell it again; redlock members shows whether it keeps one")
		case told.Epoch < known.Epoch:
			d.think(p, fmt.Sprintf("it keeps an earlier description of its set (epoch %d) than others (%d)", told.Epoch, known.Epoch), "programs tell it; redlock members does so, too")
		}
	}
	if set.Set == nil {
		return
	}
	var unlisted []string
	for _, p := range d.members() {
		if !p.given {
			unlisted = append(unlisted, p.name)
		}
	}
	if len(unlisted) > 0 {
		d.all = append(d.all, finding{false, unlisted, phrase.Verb(len(unlisted), "it is a member of the set, and was", "they are members of the set, and were") + " not given", "give all members: " + strings.Join(known.Members, ", ")})
	}
}

// contradicted reports whether so many given nodes say something else that a majority of them cannot belong to this
// set, even if all do that did not answer.
func (d *diagnosis) contradicted(by *wire.Description) bool {
	others := 0
	for _, k := range d.set.Given {
		if k.Err == nil && (k.Told.Description == nil && !by.Has(k.Addr) || k.Told.Description != nil && k.Told.Set != by.Set) {
			others++
		}
	}
	return 2*(len(d.set.Given)-others) <= len(d.set.Given)
}

// independence adds findings if the vote of the node p is not its own: it is a replica, or part of a cluster.
func (d *diagnosis) independence(p *patient) {
	if p.info.Replica() {
		d.bars(p, "it is a replica of "+p.info.Master()+", which may grant a lock that its master does not know of", "name its master, or make it independent: "+p.at()+" replicaof no one")
	}
	if p.info.Cluster() {
		d.bars(p, "it is a node of a Redis Cluster, where keys move and replicas take over", "use independent servers, with cluster-enabled no")
	}
}

// persistence adds findings if the node p may lose what it has granted: by eviction, failover or a restart.
func (d *diagnosis) persistence(p *patient) {
	if p.info.Evicts() {
		policy, todo := p.info["maxmemory_policy"], p.at()+" config set maxmemory-policy noeviction, and in its redis.conf"
		if p.info.Limited() {
			d.bars(p, "its maxmemory-policy is "+policy+", so it may drop locks", todo)
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

// version adds a finding if locks are not safe on a server of this kind, or that is not known.
func (d *diagnosis) version(p *patient) {
	if why, todo := p.info.Unsupported(); why != "" {
		d.bars(p, "it is "+p.info.Server()+", "+why, todo)
	} else if _, known := p.info.KeepsScripts(); !known {
		d.think(p, "it says neither its version nor whether its scripts stay in one process", "allow the user INFO, and EVAL with the key "+lua.ProbeKey)
	}
}

// clock adds findings if the time of the node p, by which it numbers locks, is far from that of the others or ours, or
// its fences are ahead of it.
func (d *diagnosis) clock(p *patient) {
	if apart := p.Clock - d.middle(); d.agree() && apart.Abs() > maxApart+p.Fastest {
		d.must(p, fmt.Sprintf("its clock is %v %s the others'", apart.Abs().Round(time.Millisecond), ahead(apart)), "synchronize the clocks of all nodes by NTP, with slewing and not stepping")
	} else if d.agree() && p.Clock.Abs() > maxApart+p.Fastest {
		d.think(p, fmt.Sprintf("its clock is %v %s ours: each lock costs a second round trip, for its fence", p.Clock.Abs().Round(time.Millisecond), ahead(p.Clock)), "synchronize the clocks of clients and nodes by NTP")
	}
	if ahead := time.Duration(p.number-p.now) * time.Microsecond; ahead >= farthest(&redlock.Options{TTL: max(d.ttl, d.set.Longest())})+2*clamp {
		d.bars(p, fmt.Sprintf("its fences are %v ahead of the time, since its clock was wrong once: its grants do not count", ahead.Round(time.Millisecond)), "when its clock is right: redlock prepare --reset-fences "+p.name)
	}
}

// maxApart is how far apart two clocks may be without a finding.
const maxApart = 500 * time.Millisecond

// middle returns the lower median of the clocks, as the library takes it; 0: there are none.
func (d *diagnosis) middle() time.Duration {
	if len(d.clocks) == 0 {
		return 0
	}
	return d.clocks[(len(d.clocks)-1)/2]
}

// agree reports whether a majority of the clocks is near the median, so that a clock far from it is the wrong one.
func (d *diagnosis) agree() bool {
	near := 0
	for _, clock := range d.clocks {
		if (clock - d.middle()).Abs() <= maxApart {
			near++
		}
	}
	return 2*near > len(d.clocks)
}

// apart adds a finding if no majority of the clocks agrees: nobody can say which of them are wrong.
func (d *diagnosis) apart() {
	if len(d.clocks) < 2 || d.agree() {
		return
	}
	var names []string
	for _, p := range d.members() {
		if p.err == nil {
			names = append(names, p.name)
		}
	}
	d.all = append(d.all, finding{true, names, fmt.Sprintf("their clocks are up to %v apart, and no majority of them agrees", (d.clocks[len(d.clocks)-1] - d.clocks[0]).Round(time.Millisecond)), "synchronize the clocks of all nodes by NTP, with slewing and not stepping"})
}

// speed adds a finding if a round trip to the node p takes longer than a node has to answer, or much of that time.
func (d *diagnosis) speed(p *patient) {
	switch {
	case p.RoundTrip > d.timeout:
		d.bars(p, fmt.Sprintf("a round trip takes %v, and with a TTL of %v a node has %v to answer", p.RoundTrip.Round(time.Microsecond), d.ttl, d.timeout), fmt.Sprintf("use a node that is nearer, or a --ttl of %v", (20*p.RoundTrip).Round(time.Second)+time.Second))
	case p.RoundTrip > d.timeout/reach.RoundTrips:
		d.think(p, fmt.Sprintf("a round trip takes %v, which is much of the %v that a node has to answer with a TTL of %v", p.RoundTrip.Round(time.Microsecond), d.timeout, d.ttl), "use a node that is nearer, or a longer --ttl")
	}
}

// refusals adds a finding for each thing that locks need and the node p does not allow.
func (d *diagnosis) refusals(p *patient) {
	if err := p.info.Lacks(); err != nil {
		d.bars(p, facts.Explain(err).Error(), remedyFor(err))
	}
	if p.keyError != nil {
		d.bars(p, "it rejects locking and releasing a key: "+p.keyError.Error(), remedyFor(p.keyError))
	}
	if p.callError != nil {
		d.think(p, "it cannot wake waiting clients, which notice a release up to a second late: "+p.callError.Error(), remedyFor(p.callError))
	}
}

// together adds findings about the nodes as a whole: several on one host, fewer than three, an even number.
func (d *diagnosis) together() {
	var names []string
	hosts := make(map[string][]string)
	for _, p := range d.members() {
		names = append(names, p.name)
		if host, _, err := net.SplitHostPort(p.opts.Addr); err == nil && p.barred == "" {
			hosts[host] = append(hosts[host], p.name)
		}
	}
	n := d.of
	for host, on := range hosts {
		if len(on) > 1 && len(on) > n-n/2-1 {
			slices.Sort(on)
			d.all = append(d.all, finding{false, on, "they are on one host, " + host + ", and fail with it: no majority is left then", "run each node on a host of its own"})
		}
	}
	switch {
	case n < 3:
		d.all = append(d.all, finding{false, names, "with " + phrase.Count(n, "node") + " none may fail", "of 3 nodes any one may fail, of 5 any two"})
	case n%2 == 0:
		d.all = append(d.all, finding{false, names, fmt.Sprintf("%d nodes survive no more failures than %d do", n, n-1), "use an odd number"})
	}
}
