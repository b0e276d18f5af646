package main

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/locks"
	"github.com/quorumlock/redlock/internal/listing"
)

// A lockList is the locks that were found, and what is known of the nodes.
type lockList struct {
	at      time.Time
	members redlock.Members
	votes   []*redlock.NodeError // of each node, why it has none; nil: it has one
	nodes   []listing.Node
	found   []*redlock.Status // by name
	rows    []*locks.Row
}

// list finds the locks, in the order of their names. It fails only if ctx ends. Which nodes have a vote, the
// Locker knows. all has folders listed, too, of which only something below is locked.
func list(ctx context.Context, locker *redlock.Locker, servers []*redis.Options, q listing.Query, all bool) (*lockList, error) {
	l := &lockList{members: locker.Members()}
	var nodes []listing.Node
	for _, n := range asked(ctx, locker).Nodes {
		l.votes = append(l.votes, n.Err)
		nodes = append(nodes, listing.Node{Name: n.Node, Options: optionsOf(servers, n.Node), Err: n.Err})
	}
	q.Quorum, q.Patience = l.members.Quorum, patientLook
	found, err := listing.Find(ctx, nodes, q)
	if err != nil {
		return nil, err
	}
	l.at, l.nodes = time.Now(), found.Nodes()
	l.found = slices.Collect(found.All())
	l.rows = locks.RowsOf(slices.Values(l.found), all)
	return l, nil
}

// membersOf are the members of the set, as the Locker knows it, or as a majority of the nodes says that are followed so
// far: a Locker that only looks notices neither the first description nor, if it asks nothing, a change.
func membersOf(locker *redlock.Locker, followed []*redis.Options) redlock.Members {
	m := locker.Members()
	if d := readSet(followed, true).set; d != nil && (d.Set != m.Set || d.Epoch > m.Epoch) {
		m.Set, m.Epoch, m.Nodes, m.Quorum = d.Set, d.Epoch, d.Members, d.Needs()
	}
	return m
}

// optionsOf are those of a member, which may be one of the servers that were given.
func optionsOf(servers []*redis.Options, member string) *redis.Options {
	if at := slices.IndexFunc(servers, func(o *redis.Options) bool { return o.Addr == member }); at >= 0 {
		return servers[at]
	}
	return optionsAt(servers[0], member)
}

// absent are the nodes that could not be listed, and those that were, and are in quarantine.
func (l *lockList) absent() (unlisted, quarantined []*redlock.NodeError) {
	for _, n := range l.nodes {
		switch {
		case n.Err == nil:
		case n.Walked():
			quarantined = append(quarantined, n.Err)
		default:
			unlisted = append(unlisted, n.Err)
		}
	}
	return unlisted, quarantined
}
