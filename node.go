package redlock

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/dial"
	"github.com/quorumlock/redlock/internal/facts"
	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/nodeurl"
	"github.com/quorumlock/redlock/internal/redisnode"
	"github.com/quorumlock/redlock/internal/renew"
	"github.com/quorumlock/redlock/internal/set"
	"github.com/quorumlock/redlock/internal/vote"
	"github.com/quorumlock/redlock/internal/waitlist"
	"github.com/quorumlock/redlock/internal/wire"
	"github.com/redis/go-redis/v9"
)

// New returns a Locker over the servers that the caller's clients speak to, one client for each node: standalone or
// failover clients; Cluster and Ring are refused. It takes the clients' settings (address, dialer, TLS, credentials,
// database, OnConnect) and makes a connection of its own to each node, tuned for locking; hooks that were added to a
// client are not called. The clients stay the caller's: New does not use, change or close them.
//
// New waits for the nodes to say what they are, at most a second or Options.NodeTimeout, whichever is longer (to
// connect takes several round trips); when a quorum has said so, it gives the others only a few times as long. It
// refuses what would break a lock: the same server twice, a replica, a cluster node, one that may evict locks, one
// whose scripts reach other processes (Redis before 7.0, KeyDB) or that is not supported (Dragonfly, Garnet, Kvrocks).
// A node that does not answer yet is no error: it has no vote until it does, and is checked then.
func New[C redis.UniversalClient](nodes []C, opts *Options) (*Locker, error) {
	origins := make([]origin, len(nodes))
	for i, client := range nodes {
		c, ok := any(client).(interface{ Options() *redis.Options })
		if null, isClient := any(client).(*redis.Client); isClient && null == nil {
			return nil, fmt.Errorf("redlock: node %d: the *redis.Client is nil", i)
		}
		if !ok {
			return nil, fmt.Errorf("redlock: node %d: a %T is no client of one Redis server; give a *redis.Client for each node", i, client)
		}
		if c.Options().MaxRetries < -1 { // go-redis makes no attempt at all: redismock's clients are so
			return nil, fmt.Errorf("redlock: node %d: the %T has MaxRetries %d, with which it sends nothing, so it is a mock; a Locker would not use it but connect to %s: test with package redlocktest", i, client, c.Options().MaxRetries, c.Options().Addr)
		}
		origins[i] = originOf(c.Options())
	}
	return open(origins, opts)
}

// Connect returns a Locker over the servers at these URLs, one for each node: redis://user:password@host:port/db,
// rediss:// for TLS, or unix://user:password@/path/to/socket?db=0. In a password, @ : / ? # and % are percent-encoded.
// Errors quote nothing of a URL. Otherwise it is like [New].
func Connect(urls []string, opts *Options) (*Locker, error) {
	origins := make([]origin, len(urls))
	for i, url := range urls {
		o, err := nodeurl.Parse(url)
		if err != nil {
			return nil, fmt.Errorf("redlock: node %d is no URL of a Redis server: %w", i, err)
		}
		client := redis.NewClient(o)
		origins[i] = originOf(client.Options()) // with go-redis's defaults filled in
		client.Close()
	}
	return open(origins, opts)
}

// An origin has the client settings by which a node is reached.
type origin struct {
	network, addr string
	options       *redis.Options
}

// at returns a copy of o with another address, name: that of a node that became a member later. All other settings are o's.
func (o origin) at(name string) origin {
	options := *o.options
	options.Addr, options.Network = name, "tcp"
	if strings.HasPrefix(name, "/") {
		options.Network = "unix"
	}
	return origin{network: options.Network, addr: name, options: &options}
}

// originOf makes an origin of a copy of a client's settings. If the client dials in go-redis's own way, the origin's dialer
// also reaches other members. With TLS, the certificate of each must be for its own host; or for the ServerName that the
// settings demand, if that is not this node's host.
func originOf(given *redis.Options) origin {
	o := *given
	if dial.IsDefault(o.Dialer) {
		o.Dialer = dial.Plain(o.DialTimeout)
		if settings := o.TLSConfig; settings != nil {
			if settings.ServerName == dial.Host(o.Addr) {
				settings = settings.Clone()
				settings.ServerName = "" // that of the host that is dialed
			}
			o.Dialer = dial.Secure(o.DialTimeout, func() (*tls.Config, error) { return settings, nil })
		}
	}
	return origin{network: o.Network, addr: o.Addr, options: &o}
}

// open starts a Locker over the nodes that the program was given, or returns an error if two of them have the same address.
func open(nodes []origin, opts *Options) (*Locker, error) {
	names := make([]string, len(nodes))
	if len(nodes) == 0 {
		return nil, errNoNodes
	}
	for i, o := range nodes {
		if names[i] = o.addr; o.addr == failoverAddr {
			names[i] = fmt.Sprintf("%s#%d", failoverAddr, i)
		}
		for j, other := range nodes[:i] {
			if o.network == other.network && o.addr == other.addr && o.addr != failoverAddr {
				return nil, fmt.Errorf("redlock: nodes %d and %d are both %s: each needs a server of its own", j, i, o.addr)
			}
		}
	}
	return start(names, opts, func(o *settings) func(int, string, lane.Session) lane.Server {
		registry := redisnode.NewRegistry(o.callbacks.warning)
		return func(i int, name string, session lane.Session) lane.Server {
			n := nodes[0]
			if i < len(nodes) {
				n = nodes[i]
			} else {
				n = n.at(name)
			}
			if o.parts.Open != nil {
				return o.parts.Open(n.addr, patience(o.NodeTimeout), session)
			}
			admit := func(about facts.Facts) error { return registry.Admit(i, name, about) }
			return redisnode.New(n.options, o.NodeTimeout, patience(o.NodeTimeout), admit, func() { registry.Retire(i) }, session)
		}
	}, nodes[0].identify)
}

var errNoNodes = errors.New("redlock: no nodes given")

// patience is how long a lane (the client's queue and connection for one node) waits for a reply before it gives up the
// connection. Callers of the lane wait less. As long as the connection stands, the node carries out late requests in order:
// so if nobody waits for an acquire any more, its release comes right after it.
func patience(nodeTimeout time.Duration) time.Duration { return max(4*nodeTimeout, time.Second) }

// start makes a Locker over the nodes of these names. servers is called once, with the settings. The function that it
// returns connects a lane (its Session) to node number i, by name. identify asks the server at an address for its run_id,
// for patience at most; nil: a node's word is taken for its address (vote.Alias).
func start(names []string, opts *Options, servers func(*settings) func(int, string, lane.Session) lane.Server, identify func(ctx context.Context, address string, patience time.Duration) (string, error)) (*Locker, error) {
	n := len(names)
	switch {
	case n == 0:
		return nil, errNoNodes
	case n > wire.MaxMembers:
		return nil, fmt.Errorf("redlock: %d nodes were given, and a set can have %d", n, wire.MaxMembers)
	}
	o, err := opts.withDefaults(n)
	if err != nil {
		return nil, err
	}
	if n%2 == 0 {
		o.callbacks.warning(fmt.Errorf("redlock: %d nodes: an even number survives no more failures than %d would, and costs one more", n, n-1))
	}
	o.callbacks.joined(Members{Nodes: slices.Clone(names), Quorum: o.Quorum})
	lk := &Locker{parts: o.parts, closing: make(chan struct{})}
	lk.inForce.Store(o)
	countOpened(o.callbacks.warning)
	tried := make(chan int, n)
	cfg := lk.laneConfig()
	switch {
	case lk.parts.RunID != nil:
		cfg.Identify = func(_ context.Context, address string) (string, error) { return lk.parts.RunID(address) }
	case identify != nil:
		cfg.Identify = func(ctx context.Context, address string) (string, error) {
			return identify(ctx, address, patience(o.NodeTimeout))
		}
	}
	lk.lanes = set.Open(cfg, names, servers(lk.settings()), tried)
	lk.renewals = renew.New(renew.Config{
		Now: o.Clock.Now, Left: func(until time.Time) time.Duration { return left(until, o.Clock.Now()) },
		Host: lk.parts.Host, Soon: o.TTL / 100, Look: o.lookEvery(),
	})
	lk.waiting = waitlist.New(waitlist.Config{Lanes: lk.lanes, NodeTimeout: o.NodeTimeout, Clock: o.Clock, Host: lk.parts.Host})
	if lk.parts.Weigh != nil {
		lk.parts.Weigh(lk.lanes.Weigh)
	}

	if err := lk.meet(names, tried); err != nil {
		lk.Close()
		return nil, err
	}
	o.callbacks.wait(lk.tellingTime())
	return lk, nil
}

// meet waits until the nodes have been asked what they are, and returns an error if the program cannot use them. names are
// the nodes' names; tried gets the index of a node when the node has been asked once. Once a quorum has answered, the others
// get four times as long as that took. A node that has not answered by the end is checked when it does.
func (lk *Locker) meet(names []string, tried <-chan int) error {
	o := lk.settings()
	begin := time.Now()
	longest := max(o.NodeTimeout, time.Second)
	limit := time.NewTimer(longest)
	defer limit.Stop()
	unfit := make(map[int]*NodeError)
	for asked, fit := len(names), 0; asked > 0; {
		select {
		case node := <-tried:
			asked--
			switch why := lk.lanes.Lane(node).Away(); { // the members may be others by now
			case why == nil:
				if fit++; fit == o.Quorum {
					limit.Reset(min(max(4*time.Since(begin), 50*time.Millisecond), longest-time.Since(begin)))
				}
			case why.Status == wire.Unfit:
				unfit[node] = &NodeError{Node: names[node], Outcome: Outcome(why.Status), Err: why.Err}
			}
		case <-limit.C:
			asked = 0
		}
	}
	var errs []error
	var refusing []*NodeError
	for i := range names {
		// A given node that is no member of the set does no harm; nor does another address of a member.
		if view := lk.lanes.View(); unfit[i] != nil && (view.Description == nil || slices.Contains(view.Lanes, lk.lanes.Lane(i))) {
			errs = append(errs, fmt.Errorf("redlock: node %w", unfit[i]))
			refusing = append(refusing, unfit[i])
		}
	}
	for _, todo := range todos(refusing) {
		errs = append(errs, errors.New("redlock: "+todo))
	}
	if refused := lk.lanes.Refused(o.NodeTimeout); refused != nil {
		errs = append(errs, refused)
	}
	return errors.Join(errs...)
}

// laneConfig makes the configuration of package set from the options.
func (lk *Locker) laneConfig() set.Config {
	o := lk.settings()
	return set.Config{
		Config: vote.Config{
			Config: lane.Config{NodeTimeout: o.NodeTimeout, Clock: o.Clock, Host: lk.parts.Host},
			TTL:    o.TTL, MaxTTL: o.MaxTTL, Drift: o.Drift, DriftOf: o.drift,
			Quarantine: o.Quarantine, MaxNodeSkew: o.MaxNodeSkew, Described: o.Quarantine > 0, WatchVotes: o.Hooks.Votes != nil,
		},
		Quorum: o.Quorum, Accept: lk.accepts, Events: events{o.callbacks},
	}
}

// accepts returns why this program cannot use a set with the description d. nil: it can, and accepts has put the separator
// and the MaxTTL of d into the settings. Package set calls it under its mutex.
func (lk *Locker) accepts(d *wire.Description) error {
	o, err := lk.settings().with(d)
	if err != nil {
		return err
	}
	if now := lk.settings(); o.Separator != now.Separator || o.most != now.most {
		lk.inForce.Store(o)
	}
	return nil
}

// identify asks the server at an address for its run_id, over a new connection, and stores nothing there. The caller
// compares it with that of a node. "?", unlike any: the server refuses this program, which the node does not, so it is
// another server. An error: none answers.
func (o origin) identify(ctx context.Context, address string, patience time.Duration) (string, error) {
	at := o.at(address)
	id := ""
	server := redisnode.New(at.options, patience, patience, func(about facts.Facts) error {
		id = about["run_id"]
		return errSeen
	}, func() {}, passing{})
	defer server.Interrupt()
	switch err := server.Connect(ctx); {
	case id != "":
		return id, nil
	case wire.Forbids(err) || refusesUs(err):
		return "?", nil
	default:
		return "", err
	}
}

// errSeen ends the connection of identify when the run_id is known.
var errSeen = errors.New("it was seen")

// refusesUs reports whether a server refuses this program's user or password.
func refusesUs(err error) bool {
	if !wire.IsReply(err) {
		return false
	}
	code := facts.Code(err.Error())
	return code == "NOAUTH" || code == "WRONGPASS"
}

// passing is the session of identify's connection, which keeps nothing.
type passing struct{}

var _ lane.Session = passing{}

func (passing) Now() time.Time              { return time.Now() }
func (passing) Hello() wire.Hello           { return wire.Hello{} }
func (passing) Joined(wire.Mark, time.Time) {}
