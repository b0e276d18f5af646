package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/facts"
	lua "github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
)

// A keeping is what a node keeps of its set. It is read, and the node is not joined: so a look creates
// nothing, neither a marker nor a description.
type keeping struct {
	node    string // its address, as it was given
	err     error  // it does not answer, or does not say
	told    wire.Told
	next    *wire.Description // what it has taken in the choice of the next description; nil: nothing
	longest time.Duration     // the longest TTL that was announced there
	marked  bool              // it has a marker: a client has joined it since it lost its data
}

// keeps asks a node what it keeps.
func keeps(ctx context.Context, rdb *redis.Client) keeping {
	k := keeping{node: rdb.Options().Addr}
	values, err := rdb.MGet(ctx, lua.Told, lua.LaterMarker, lua.Marker).Result()
	if err != nil {
		k.err = facts.Explain(facts.Discreet(err))
		return k
	}
	text := func(v any) string { s, _ := v.(string); return s }
	k.told = wire.ParseTold(text(values[0]))
	for _, v := range values[1:] {
		if m, ok := wire.ParseMarker(text(v)); ok {
			k.longest, k.marked = max(k.longest, m.Longest), true
		}
	}
	if taken, err := rdb.HGet(ctx, lua.Choice, "description").Result(); err == nil {
		k.next = wire.ParseDescription(taken)
	}
	return k
}

// A described is what is known of a set without joining it.
type described struct {
	given []keeping         // of the nodes that were given
	more  []keeping         // of members that were not
	set   *wire.Description // nil: the given nodes keep none, or no majority of them keeps that of one set
}

// readSet asks the nodes that were given what they keep, for patientLook at most. Hasty: it is enough that a
// majority has answered.
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
		keeping
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
	told := 0
	for range servers {
		a := <-answers
		all[a.node] = a.keeping
		if a.err == nil {
			told++
		}
		if hasty && told > len(servers)/2 {
			break
		}
	}
	cancel()
	return all
}

// judge finds which set it is: the library's rule (internal/lane). Only nodes that were given count.
func (d *described) judge() {
	for _, k := range d.given {
		if k.told.Description == nil || d.set != nil && d.set.Set == k.told.Set && d.set.Epoch >= k.told.Epoch {
			continue
		}
		of := 0
		for _, other := range d.given {
			if other.told.Description != nil && other.told.Set == k.told.Set || other.err == nil && other.told.Description == nil && k.told.Has(other.node) {
				of++
			}
		}
		if of > len(d.given)/2 {
			d.set = k.told.Description
		}
	}
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

// add takes in what members keep that were not given.
func (d *described) add(more []keeping) {
	d.more = append(d.more, more...)
	for _, k := range d.more {
		if k.told.Description != nil && k.told.Set == d.set.Set && k.told.Epoch > d.set.Epoch {
			d.set = k.told.Description
		}
	}
}

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

// longest is the longest TTL that locks may have, as the nodes know it; 0: they do not.
func (d *described) longest() (longest time.Duration) {
	for _, k := range d.given {
		longest = max(longest, k.longest)
	}
	if d.set != nil && d.set.MaxTTL > 0 {
		longest = wire.Milliseconds(d.set.MaxTTL)
	}
	return longest
}

// announced is the longest TTL that a node has heard of; 0: none says.
func (d *described) announced() (longest time.Duration) {
	for _, k := range append(slices.Clone(d.given), d.more...) {
		longest = max(longest, k.longest)
	}
	return longest
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
