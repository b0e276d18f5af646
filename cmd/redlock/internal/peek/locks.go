package peek

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/locks"
	"github.com/quorumlock/redlock/internal/listing"
)

// A List has the locks that the nodes know, and what is known of the nodes.
type List struct {
	At      time.Time
	Members redlock.Members
	Votes   []*redlock.NodeError // for each of Nodes, why it cannot vote; nil: it votes
	Nodes   []listing.Node
	Found   []*redlock.Status // by name
	Rows    []*locks.Row
}

// Locks lists the locks that match q, by name. It fails only if ctx ends. The Locker says which nodes vote. With all,
// it also lists folders that are held only because something below them is locked.
func Locks(ctx context.Context, locker *redlock.Locker, servers []*redis.Options, q listing.Query, all bool) (*List, error) {
	l := &List{Members: locker.Members()}
	var nodes []listing.Node
	for _, n := range Status(ctx, locker).Nodes {
		l.Votes = append(l.Votes, n.Err)
		nodes = append(nodes, listing.Node{Name: n.Node, Options: OptionsOf(servers, n.Node), Err: n.Err})
	}
	q.Quorum, q.Patience = l.Members.Quorum, Patience
	found, err := listing.Find(ctx, nodes, q)
	if err != nil {
		return nil, err
	}
	l.At, l.Nodes = time.Now(), found.Nodes()
	l.Found = slices.Collect(found.All())
	l.Rows = locks.RowsOf(slices.Values(l.Found), all)
	return l, nil
}

// Members returns the members of the set: those that the Locker knows, or those of a later description that a
// majority of the followed nodes keeps. A Locker that only inspects notices neither the first description nor, while
// it asks nothing, a change.
func Members(locker *redlock.Locker, followed []*redis.Options) redlock.Members {
	m := locker.Members()
	if d := Read(followed, true).Set; d != nil && (d.Set != m.Set || d.Epoch > m.Epoch) {
		m.Set, m.Epoch, m.Nodes, m.Quorum = d.Set, d.Epoch, d.Members, d.Needs()
	}
	return m
}

// OptionsOf returns the connection settings of a member: those of the given server with its address, if there is one,
// and OptionsAt otherwise.
func OptionsOf(servers []*redis.Options, member string) *redis.Options {
	if at := slices.IndexFunc(servers, func(o *redis.Options) bool { return o.Addr == member }); at >= 0 {
		return servers[at]
	}
	return OptionsAt(servers[0], member)
}

// Absent returns the nodes that could not be listed, and those that were listed and are in quarantine.
func (l *List) Absent() (unlisted, quarantined []*redlock.NodeError) {
	for _, n := range l.Nodes {
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
