package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/facts"
	lua "github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
)

// A keeping is what a node keeps of its set. It is read, and the node is not joined: so a look creates
// nothing, neither a marker nor a description.
type keeping struct {
	node   string // its address, as it was given
	err    error  // it does not answer, or does not say
	text   string // what it keeps, as it is
	told   wire.Told
	next   *wire.Description // what it has taken in the choice of the next description; nil: nothing
	runID  string            // of its process; "": it does not say
	copy   bool              // it has the data of another server: see lookElsewhere
	marked bool              // it has a marker: a client has joined it since it lost its data
}

// keeps asks a node what it keeps.
func keeps(ctx context.Context, rdb *redis.Client) keeping {
	k := keeping{node: rdb.Options().Addr}
	values, err := rdb.MGet(ctx, lua.Told, lua.Marker).Result()
	if err != nil {
		k.err = facts.Explain(facts.Discreet(err))
		return k
	}
	text := func(v any) string { s, _ := v.(string); return s }
	k.text = text(values[0])
	k.told = wire.ParseTold(k.text)
	k.runID, _ = runID(ctx, rdb)
	_, k.marked = wire.ParseMarker(text(values[1]))
	if taken, err := rdb.HGet(ctx, lua.Choice, "description").Result(); err == nil {
		k.next = wire.ParseDescription(taken)
	}
	return k
}

// answers reports whether a server refuses to say what it keeps: it runs.
func (k keeping) answers() bool { return k.err != nil && wire.IsReply(k.err) }

// same reports whether a node keeps the same as it did at another look.
func (k keeping) same(o keeping) bool {
	return k.node == o.node && k.text == o.text && k.copy == o.copy && (k.err == nil) == (o.err == nil)
}

// A described is what is known of a set without joining it.
type described struct {
	given []keeping         // of the nodes that were given
	more  []keeping         // of members that were not
	set   *wire.Description // nil: the given nodes keep none, or no majority of them keeps that of one set
}

// readSet asks the nodes that were given what they keep, for patientLook at most. Hasty: it is enough that a
// majority has answered, and keeps the same. The first answers alone would not do: a member that has not been told of the
// last change, and is the nearest, would hide it each time.
func readSet(servers []*redis.Options, hasty bool) *described {
	d := &described{}
	d.given = askKeeping(servers, hasty)
	d.judge()
	return d
}

// askKeeping asks nodes what they keep.
func askKeeping(servers []*redis.Options, hasty bool) []keeping {
	ctx, cancel := context.WithTimeout(context.Background(), patientLook)
	type answer struct {
		node int
		is   keeping
	}
	answers := make(chan answer, len(servers))
	for i, o := range servers {
		go func() {
			own := *o
			own.ContextTimeoutEnabled = true
			rdb := clientOf(&own)
			defer rdb.Close()
			answers <- answer{i, keeps(ctx, rdb)}
		}()
	}
	all := make([]keeping, len(servers))
	for i, o := range servers {
		all[i] = keeping{node: o.Addr, err: context.DeadlineExceeded}
	}
	for range servers {
		a := <-answers
		all[a.node] = a.is
		alike := 0
		for _, k := range all {
			if k.err == nil && a.is.err == nil && k.told.Same(a.is.told.Description) {
				alike++
			}
		}
		if hasty && alike > len(servers)/2 {
			break
		}
	}
	cancel()
	lookElsewhere(servers, all)
	return all
}

// judge finds which set it is, by the library's rule (wire.Believed): no node decides alone. Only nodes that were given
// count, and those of them that have a copy of another server's data do not.
func (d *described) judge() { d.set = believed(d.given, nil) }

// believed is the description by which the nodes go that are asked.
func believed(nodes []keeping, known *wire.Description) *wire.Description {
	var witnesses []wire.Witness
	for _, k := range nodes {
		w := wire.Witness{Name: k.node, Told: k.told, Met: k.err == nil}
		if k.copy {
			w.Told, w.Met = wire.Told{}, false
		}
		witnesses = append(witnesses, w)
	}
	return wire.Believed(witnesses, known)
}

// lookElsewhere finds the nodes that say that they are members at other addresses, where other servers answer: these
// have a copy of their data.
func lookElsewhere(servers []*redis.Options, nodes []keeping) {
	var all sync.WaitGroup
	for i := range nodes {
		k := &nodes[i]
		if k.told.Description == nil || k.told.Self == k.node || strings.HasPrefix(k.told.Self, wire.AnyAddress) || k.runID == "" {
			continue
		}
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			o := optionsAt(servers[i], k.told.Self)
			o.ContextTimeoutEnabled = true
			rdb := clientOf(o)
			defer rdb.Close()
			id, err := runID(ctx, rdb)
			k.copy = id != "" && id != k.runID || err != nil && wire.IsReply(err) && refusesUser(err)
		})
	}
	all.Wait()
}

// refusesUser reports whether a server does not let a user in that another one has let in.
func refusesUser(err error) bool {
	code := facts.Code(err.Error())
	return code == "NOAUTH" || code == "WRONGPASS" || code == "NOPERM"
}

// runID is the name of a server's process; "": it does not say.
func runID(ctx context.Context, rdb *redis.Client) (string, error) {
	text, err := rdb.Info(ctx, "server").Result()
	about := make(facts.Facts)
	about.Add(text)
	return about["run_id"], err
}

// complete asks the members that were not given, too.
func (d *described) complete(servers []*redis.Options) {
	d.add(askKeeping(d.missing(servers), false))
}

// missing are the members that were not given. They are reached as the first node is.
func (d *described) missing(servers []*redis.Options) (more []*redis.Options) {
	for _, member := range d.set.Members {
		if d.keeping(member) == nil {
			more = append(more, optionsAt(servers[0], member))
		}
	}
	return more
}

// add takes in what members keep that were not given, and goes on to the description for which they vouch.
func (d *described) add(more []keeping) {
	d.more = append(d.more, more...)
	for { // step by step, to later epochs
		var members []keeping
		for _, member := range d.set.Members {
			if k := d.keeping(member); k != nil {
				members = append(members, *k)
			} else {
				members = append(members, keeping{node: member, err: errNotAsked})
			}
		}
		next := believed(members, d.set)
		if next == nil || next.Set != d.set.Set || next.Epoch <= d.set.Epoch {
			return
		}
		d.set = next
	}
}

var errNotAsked = errors.New("it was not asked")

// isMember reports whether a node is a member, by its own word or by its address.
func (d *described) isMember(k *keeping) bool {
	switch {
	case k.told.Description == nil:
		return d.set.Has(k.node)
	case k.told.Set != d.set.Set:
		return false
	}
	return d.set.Has(k.told.Self)
}

// keeping is what a member keeps, as far as it was asked; nil: it was not.
func (d *described) keeping(member string) *keeping {
	all := append(slices.Clone(d.given), d.more...)
	for i, k := range all {
		if k.told.Description != nil && k.told.Set == d.set.Set && k.told.Self == member {
			return &all[i]
		}
	}
	for i, k := range all {
		if k.node == member {
			return &all[i]
		}
	}
	return nil
}

// longest is for how long a lock may live, by the description of the set; 0: it is not known.
func (d *described) longest() time.Duration {
	if d.set == nil {
		return 0
	}
	return d.set.Longest()
}

// optionsAt are those of a member that was not given: it is reached as the library does it.
func optionsAt(first *redis.Options, addr string) *redis.Options {
	o := *first
	o.Addr, o.Network = addr, "tcp"
	if strings.HasPrefix(addr, "/") {
		o.Network = "unix"
	}
	return &o
}
