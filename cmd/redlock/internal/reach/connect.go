package reach

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/explain"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/internal/facts"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
	"github.com/quorumlock/redlock/redlocktrace"
)

// Connect opens a Locker whose hooks report to the operator what happens to its nodes. Each adapt may change the hooks.
func Connect(c *console.Console, servers []*redis.Options, opts *redlock.Options, adapt ...func(*redlock.Hooks)) (*redlock.Locker, *Quarantines, error) {
	nodes := &Quarantines{say: c.Note}
	opts.Hooks = hooks(c, nodes)
	for _, change := range adapt {
		change(opts.Hooks)
	}
	locker, err := Open(servers, opts)
	if err != nil {
		return nil, nil, NotConnected(err)
	}
	nodes.set = locker.Members // the members vote on locks, not the nodes that were given
	return locker, nodes, nil
}

// Open opens a Locker over servers.
func Open(servers []*redis.Options, opts *redlock.Options) (*redlock.Locker, error) {
	clients := make([]*redis.Client, len(servers))
	for i, o := range servers {
		clients[i] = redis.NewClient(o)
		defer clients[i].Close() // the Locker makes its own connections
	}
	return redlock.New(clients, opts)
}

// NotConnected returns the failure for an error of Open: it says what to do. The flags were checked before, so the
// cause is at the nodes.
func NotConnected(err error) error {
	if node := new(redlock.NodeError); errors.As(err, &node) {
		hint := "change that setting, or use another server; redlock doctor examines all of them"
		if facts.Todo(node) != "" { // the error itself says what to do
			hint = "redlock doctor examines all of them"
		}
		return exit.Fail(exit.NoQuorum, hint, "%v", err)
	}
	if explain.ForOperator(err) {
		return exit.Fail(exit.NoQuorum, "redlock members shows what each of the nodes keeps", "%v", err)
	}
	if strings.Contains(err.Error(), "redlock members set") {
		return exit.Fail(exit.Usage, "redlock members shows what the set has. Services that share its servers share that, and a prefix does not divide it: leave out --separator or what else differs, or name another database of the servers, redis://HOST:PORT/1, for a set of its own", "%v", err)
	}
	return exit.Fail(exit.Usage, "name each Redis server once", "%v", err)
}

// hooks returns the hooks that report to the operator. They do not report a lost lock: the verb does, and says what
// follows. They do not report a clock that was set: the quarantine that follows is reported with this reason.
func hooks(c *console.Console, nodes *Quarantines) *redlock.Hooks {
	return &redlock.Hooks{
		Warning:  func(err error) { c.Note("warning: %s", phrase.Plain(err)) },
		NodeDown: func(e *redlock.NodeError) { c.Note("node down: %v", e) },
		NodeUp: func(node string, down time.Duration) {
			c.Note("node up: %s, after %v", node, phrase.Short(down))
		},
		Members: func(m redlock.Members) {
			if nodes.follows(m) {
				c.Note("the set has changed: epoch %d, members %s, quorum %d", m.Epoch, strings.Join(m.Nodes, ", "), m.Quorum)
			}
		},
		Trace:       trace(c),
		Quarantined: nodes.found,
		Votes:       nodes.votes,
		RenewalFailed: func(l *redlock.Lock, left time.Duration, err error) {
			c.Note("renewal failed: %q is valid for another %v: %s", l.Name(), phrase.Short(left), phrase.Plain(err))
		},
		RenewalRecovered: func(l *redlock.Lock, failed int) {
			c.Note("renewal recovered: %q, after %s", l.Name(), phrase.Count(failed, "failed renewal"))
		},
		Unreleased: func(l *redlock.Lock, err error) {
			if errors.Is(err, redlock.ErrLost) {
				return // the verb reports it
			}
			c.Note("lock not released: %q may stay locked until its TTL is over: %s", l.Name(), phrase.Plain(err))
		},
	}
}

var traceID = regexp.MustCompile("^[0-9a-f]{32}$")

// trace returns callbacks with which locks carry the trace id of this process, which TRACEPARENT has in the format of
// W3C Trace Context. It returns nil if that has no trace id.
func trace(c *console.Console) *redlocktrace.Trace {
	parent, _ := console.Lookup(c.Env, "TRACEPARENT")
	part := strings.Split(parent, "-")
	if len(part) < 4 || !traceID.MatchString(part[1]) || strings.Trim(part[1], "0") == "" {
		return nil
	}
	return &redlocktrace.Trace{ID: func(context.Context) string { return part[1] }}
}

// startEmbedded starts nodes inside this process, and tells the user.
func startEmbedded(c *console.Console) (*memredis.Cluster, error) {
	cluster, err := memredis.Start(EmbeddedNodes)
	if err != nil {
		return nil, exit.Fail(exit.NoQuorum, "name real ones with --node redis://HOST:PORT", "could not start nodes inside this process: %v", err)
	}
	c.Note("started %d nodes inside this process: the lock excludes no other process", EmbeddedNodes)
	return cluster, nil
}
