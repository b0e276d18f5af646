package operate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/explain"
	"github.com/quorumlock/redlock/cmd/redlock/internal/peek"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
	"github.com/quorumlock/redlock/internal/printable"
	"github.com/quorumlock/redlock/internal/wire"
)

// An examination is what doctor knows of the given nodes, and of the members that were not given.
type examination struct {
	patients []*patient // the given ones come first
	set      *peek.View
	need, of int           // how many votes are a quorum, of how many nodes
	ttl      time.Duration // of the programs: --ttl
	refused  string        // why a program that starts now gets no Locker; "": it would get one
	remedy   string        // what to do about refused
}

// examineSet examines the given nodes, and the other members of their set. It dials a member that was not given only
// if a majority of the given nodes names it: until then, the address is the word of one node.
func examineSet(servers []*redis.Options, cfg *reach.Flags, quarantine bool) *examination {
	x := &examination{patients: examineAll(servers), ttl: cfg.TTL}
	for _, p := range x.patients {
		p.given = true
	}
	x.set = setOf(x.patients)
	if x.set.Set != nil {
		others := examineAll(x.set.Missing(servers))
		x.patients = append(x.patients, others...)
		x.set.Add(keepings(others))
	}
	x.count()
	x.ask(cfg, quarantine)
	return x
}

// count finds the nodes that count for a quorum: the members, or without a description the given nodes, as for the
// first program that locks.
func (x *examination) count() {
	d := x.described()
	if d == nil {
		for _, p := range x.patients {
			p.member = true
		}
		x.of = len(x.patients)
		x.need = x.of/2 + 1
		return
	}
	x.need, x.of = d.Needs(), len(d.Members)
	for _, member := range d.Members {
		if p := x.patientOf(member); p != nil {
			p.member = true
		}
	}
}

// described returns the description by which nodes count, or nil. If too few given nodes answer to tell their set, it
// is the one that those name that do, provided that all its members were given.
func (x *examination) described() *wire.Description {
	if x.set.Set != nil {
		return x.set.Set
	}
	var found *wire.Description
	for _, k := range x.set.Given {
		d := k.Told.Description
		switch {
		case d == nil:
			continue
		case found != nil && found.Set != d.Set:
			return nil
		case slices.ContainsFunc(d.Members, func(m string) bool { return x.patientOf(m) == nil }):
			return nil
		case found == nil || d.Epoch > found.Epoch:
			found = d
		}
	}
	return found
}

// patientOf returns the node that is this member: by what it keeps, or else by its address. nil if it was not examined.
func (x *examination) patientOf(member string) *patient {
	for _, p := range x.patients {
		if t := p.keeping.Told; t.Description != nil && t.Self == member && (x.set.Set == nil || t.Set == x.set.Set.Set) {
			return p
		}
	}
	for _, p := range x.patients {
		if p.name == member {
			return p
		}
	}
	return nil
}

// longest returns how long a lock may live unless it is extended.
func (x *examination) longest() time.Duration {
	return cmp.Or(x.set.Longest(), x.ttl)
}

// members returns the nodes that count.
func (x *examination) members() []*patient {
	return slices.DeleteFunc(slices.Clone(x.patients), func(p *patient) bool { return !p.member })
}

// ask finds out which members can vote, through a Locker, which joins them. If no member has a marker, it does not:
// their quarantine has not begun, and redlock prepare --fresh must find them untouched.
func (x *examination) ask(cfg *reach.Flags, quarantine bool) {
	marked := false
	for _, p := range x.members() {
		if p.err != nil {
			p.vote = &redlock.NodeError{Node: p.name, Outcome: redlock.OutcomeUnreachable, Err: p.err}
			continue
		}
		marked = marked || p.keeping.Marked || p.keeping.Told.Description != nil
	}
	opts := cfg.LookOptions(x.set)
	opts.Separator = "" // that of the set
	switch {
	case !quarantine:
		opts.Quarantine = -1
	case !marked:
		for _, p := range x.members() {
			if p.err == nil {
				p.vote = &redlock.NodeError{Node: p.name, Outcome: redlock.OutcomeQuarantined, TTL: reach.Quarantine(opts), Err: errors.New("it is new, or has lost its data")}
			}
		}
		return
	}
	locker, err := x.open(opts)
	if err != nil {
		x.refused = phrase.Plain(err)
		if locker, err = x.open(opts); err != nil { // now without the nodes that were refused
			return
		}
	}
	defer locker.Close()
	examined := func(n redlock.NodeStatus) *patient {
		if p := x.patientAt(n.Node); p != nil && p.err == nil {
			return p
		}
		return nil
	}
	status := settled(locker, func(n redlock.NodeStatus) bool {
		return examined(n) != nil && n.Err != nil && (n.Err.Outcome == redlock.OutcomeTimeout || n.Err.Outcome == redlock.OutcomeQuarantined && n.Err.TTL == 0)
	})
	for _, n := range status.Nodes {
		if p := examined(n); p != nil {
			p.vote = n.Err
		}
	}
}

// open opens a Locker over the members that may vote. Its error names those that must not: open notes it in their
// votes, and the next call leaves them out.
func (x *examination) open(opts *redlock.Options) (*redlock.Locker, error) {
	var servers []*redis.Options
	for _, p := range x.members() {
		if p.vote == nil || p.vote.Outcome != redlock.OutcomeIneligible {
			servers = append(servers, p.opts)
		}
	}
	locker, err := reach.Open(servers, opts)
	for _, why := range nodeErrors(err) {
		if p := x.patientAt(why.Node); p != nil {
			p.vote = why
		}
	}
	return locker, err
}

func (x *examination) patientAt(addr string) *patient {
	if i := slices.IndexFunc(x.patients, func(p *patient) bool { return p.name == addr }); i >= 0 {
		return x.patients[i]
	}
	return nil
}

// nodeErrors returns the errors of nodes that err wraps.
func nodeErrors(err error) (all []*redlock.NodeError) {
	var node *redlock.NodeError
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range several.Unwrap() {
			all = append(all, nodeErrors(one)...)
		}
	} else if errors.As(err, &node) {
		all = append(all, node)
	}
	return all
}

// A verdict says whether anybody can acquire a lock now.
type verdict struct {
	can   bool
	votes int
	until time.Time // when enough nodes vote by themselves; zero: they will not
	text  string    // the answer, and why
	todo  string    // "": nothing
}

// judge returns whether locks can be acquired, and why. findings must have run: they say which nodes cannot grant one.
func (x *examination) judge(found []finding, now time.Time) *verdict {
	v := &verdict{}
	var rests []time.Duration                                  // of the quarantines
	reasons, order := make(map[string][]string), []string(nil) // nodes by the reason why they do not vote, and the reasons in order of appearance
	note := func(why, node string) {
		if reasons[why] == nil {
			order = append(order, why)
		}
		reasons[why] = append(reasons[why], node)
	}
	for _, p := range x.members() {
		switch {
		case p.barred != "":
			note(p.barred, p.name)
		case p.vote == nil:
			v.votes++
		default:
			why := "it " + strings.TrimPrefix(explain.What(p.vote), "it ")
			if p.vote.Outcome == redlock.OutcomeQuarantined {
				rests, why = append(rests, p.vote.TTL), fmt.Sprintf("in quarantine, until every lock has ended that may be forgotten (the longest TTL is %v)", printable.Duration(x.longest()))
			}
			note(why, p.name)
		}
	}
	if absent := x.of - len(x.members()); absent > 0 {
		note("not examined", phrase.Count(absent, "member"))
	}
	slices.Sort(rests)
	tally := fmt.Sprintf("%d of %s %s, and %d must", v.votes, phrase.Count(x.of, "node"), phrase.Verb(v.votes, "votes", "vote"), x.need)
	var whys []string
	for _, why := range order {
		whys = append(whys, strings.Join(reasons[why], ", ")+": "+why)
	}
	missing := x.need - v.votes
	switch {
	case x.refused != "" && missing <= 0:
		v.text, v.todo = fmt.Sprintf("no lock can be acquired by a program that starts now (%s): %s", tally, x.refused), cmp.Or(x.remedy, x.advice(found))
	case missing <= 0:
		v.can, v.text = true, "locks can be acquired: "+tally
		if missing == 0 && v.votes < x.of {
			v.text, v.todo = v.text+". The next failure ends that. Without a vote: "+strings.Join(whys, "; "), "see below"
		}
		return v
	case len(rests) >= missing:
		rest := rests[missing-1]
		v.until = now.Add(rest + time.Second - 1).Truncate(time.Second) // not a moment too early
		v.text = fmt.Sprintf("no lock can be acquired until %s, in %v: %s. %s", v.until.Format(time.RFC3339), phrase.Tenths(rest), tally, strings.Join(whys, "; "))
		v.todo = "nothing: it ends by itself"
		if !x.begun() {
			v.text = fmt.Sprintf("no lock can be acquired on new nodes for %v: %s. %s", phrase.Tenths(rest), tally, strings.Join(whys, "; "))
			v.until, v.todo = time.Time{}, "redlock prepare begins that time and waits for its end, and so does the first lock"
		}
	default:
		v.text = fmt.Sprintf("no lock can be acquired: %s. %s", tally, strings.Join(whys, "; "))
		v.todo = x.advice(found)
	}
	return v
}

// begun reports whether the quarantine of a node that counts has begun: a client has joined it.
func (x *examination) begun() bool {
	return slices.ContainsFunc(x.members(), func(p *patient) bool { return p.keeping.Marked || p.keeping.Told.Description != nil })
}

// advice returns what to do about nodes that do not vote: what the findings about them say, each once.
func (x *examination) advice(found []finding) string {
	var all []string
	for _, f := range found {
		of := slices.ContainsFunc(x.members(), func(p *patient) bool {
			return slices.Contains(f.nodes, p.name) && (p.barred != "" || p.vote != nil)
		})
		if f.must && of && !slices.Contains(all, f.todo) {
			all = append(all, f.todo)
		}
	}
	if len(all) == 0 {
		return "see below"
	}
	return strings.Join(all, "; ")
}
