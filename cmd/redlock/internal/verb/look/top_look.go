package look

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/locks"
	"github.com/quorumlock/redlock/cmd/redlock/internal/peek"
	"github.com/quorumlock/redlock/cmd/redlock/internal/screen"
	"github.com/quorumlock/redlock/internal/listing"
)

// measurements is how often one look asks each node for its time.
const measurements = 3

// looks makes pictures of all locks and nodes, one after another.
type looks struct {
	locker  *redlock.Locker
	servers []*redis.Options
	cfg     *listFlags
	clients map[string]*redis.Client // by node, for its Pace

	holding map[string]bool // what was held at the last look; nil: unknown
	at      time.Time
}

func newLooks(locker *redlock.Locker, servers []*redis.Options, cfg *listFlags) *looks {
	return &looks{locker: locker, servers: servers, cfg: cfg, clients: make(map[string]*redis.Client)}
}

func (l *looks) close() {
	for _, rdb := range l.clients {
		_ = rdb.Close()
	}
}

// picture takes the next look. It fails only if ctx ends.
func (l *looks) picture(ctx context.Context) (*screen.Picture, error) {
	p, _, err := l.next(ctx)
	return p, err
}

// next takes the next look, as picture does, and also returns the list of locks behind it.
func (l *looks) next(ctx context.Context) (*screen.Picture, *peek.List, error) {
	list, err := peek.Locks(ctx, l.locker, l.servers, l.cfg.query(), l.cfg.all)
	if err != nil {
		return nil, nil, err
	}
	p := &screen.Picture{At: list.At, Members: list.Members, Rows: list.Rows, Switches: -1}
	for i, n := range list.Nodes {
		one := screen.Node{Name: n.Name, Err: list.Votes[i]}
		if !n.Walked() {
			one.Unlisted = n.Err
		}
		p.Nodes = append(p.Nodes, one)
	}
	if p.Members.Epoch == 0 {
		p.Members = peek.Members(l.locker, l.servers)
	}
	l.measure(ctx, list, p.Nodes)
	l.count(list, p)
	return p, list, context.Cause(ctx)
}

// count counts the locks that changed hands since the last look. Both looks must have listed a quorum.
func (l *looks) count(list *peek.List, p *screen.Picture) {
	var now map[string]bool
	if _, listed := p.Votes(); listed >= p.Members.Quorum {
		now = locks.Holding(list.Found)
	}
	if took := p.At.Sub(l.at); now != nil && l.holding != nil && took > 0 {
		p.Switches = float64(locks.Switches(l.holding, now)) / took.Seconds()
	}
	l.holding, l.at = now, p.At
}

// measure sets round trip and clock of all nodes that have answered, by asking them at once.
func (l *looks) measure(ctx context.Context, list *peek.List, nodes []screen.Node) {
	ctx, cancel := context.WithTimeout(ctx, peek.Patience)
	defer cancel()
	var group sync.WaitGroup
	for i := range list.Nodes {
		n := &list.Nodes[i]
		if !n.Walked() {
			continue
		}
		rdb := l.clients[n.Name]
		if rdb == nil {
			rdb = listing.Client(n.Options, peek.Patience)
			l.clients[n.Name] = rdb
		}
		group.Go(func() {
			if m, err := peek.Measure(ctx, rdb, measurements); err == nil {
				one := &nodes[i]
				one.Measured, one.RoundTrip, one.Clock, one.Within = true, m.RoundTrip, m.Clock, m.Fastest/2
			}
		})
	}
	group.Wait()
}
