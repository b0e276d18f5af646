package main

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/internal/facts"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
	"github.com/quorumlock/redlock/redlocktrace"
)

// connect opens a Locker that reports what happens to its nodes. Each of adapt may change what it reports.
func (c *command) connect(servers []*redis.Options, opts *redlock.Options, adapt ...func(*redlock.Hooks)) (*redlock.Locker, *quarantines, error) {
	nodes := &quarantines{say: c.note}
	opts.Hooks = c.hooks(nodes)
	for _, change := range adapt {
		change(opts.Hooks)
	}
	locker, err := open(servers, opts)
	if err != nil {
		return nil, nil, notConnected(err)
	}
	nodes.set = locker.Members // not those that were given: the lock is that of the members
	return locker, nodes, nil
}

// open opens a Locker.
func open(servers []*redis.Options, opts *redlock.Options) (*redlock.Locker, error) {
	clients := make([]*redis.Client, len(servers))
	for i, o := range servers {
		clients[i] = redis.NewClient(o)
		defer clients[i].Close() // the Locker has connections of its own
	}
	return redlock.New(clients, opts)
}

// notConnected says why there is no Locker. The reason is with the nodes: the flags have been
// checked.
func notConnected(err error) error {
	if node := new(redlock.NodeError); errors.As(err, &node) {
		hint := "change that setting, or use another server; redlock doctor examines all of them"
		if facts.Todo(node) != "" { // the error says it
			hint = "redlock doctor examines all of them"
		}
		return exit.Fail(exit.NoQuorum, hint, "%v", err)
	}
	if isForOperator(err) {
		return exit.Fail(exit.NoQuorum, "redlock members shows what each of the nodes keeps", "%v", err)
	}
	if strings.Contains(err.Error(), "redlock members set") {
		return exit.Fail(exit.Usage, "redlock members shows what the set has. Services that share its servers share that, and a prefix does not divide it: leave out --separator or what else differs, or name another database of the servers, redis://HOST:PORT/1, for a set of its own", "%v", err)
	}
	return exit.Fail(exit.Usage, "name each Redis server once", "%v", err)
}

// isForOperator reports whether an error says what an operator has to do with nodes.
func isForOperator(err error) bool {
	text := err.Error()
	return strings.Contains(text, "redlock members forget") || strings.Contains(text, "redlock members restore")
}

// hooks report to the operator what happens to the nodes. They do not report that the lock is
// lost: run does, and says what it does about it. Nor that a node's clock was set: the node is
// in quarantine for it, which is reported with its reason.
func (c *command) hooks(nodes *quarantines) *redlock.Hooks {
	return &redlock.Hooks{
		Warning:  func(err error) { c.note("warning: %s", phrase.Plain(err)) },
		NodeDown: func(e *redlock.NodeError) { c.note("node down: %v", e) },
		NodeUp: func(node string, down time.Duration) {
			c.note("node up: %s, after %v", node, phrase.Short(down))
		},
		Members: func(m redlock.Members) {
			if nodes.follows(m) {
				c.note("the set has changed: epoch %d, members %s, quorum %d", m.Epoch, strings.Join(m.Nodes, ", "), m.Quorum)
			}
		},
		Trace:       c.trace(),
		Quarantined: nodes.found,
		Votes:       nodes.votes,
		RenewalFailed: func(l *redlock.Lock, left time.Duration, err error) {
			c.note("renewal failed: %q is valid for another %v: %s", l.Name(), phrase.Short(left), phrase.Plain(err))
		},
		RenewalRecovered: func(l *redlock.Lock, failed int) {
			c.note("renewal recovered: %q, after %s", l.Name(), phrase.Count(failed, "failed renewal"))
		},
		Unreleased: func(l *redlock.Lock, err error) {
			if errors.Is(err, redlock.ErrLost) {
				return // the verb says it
			}
			c.note("lock not released: %q may stay locked until its TTL is over: %s", l.Name(), phrase.Plain(err))
		},
	}
}

var traceID = regexp.MustCompile("^[0-9a-f]{32}$")

// trace makes locks carry the id of the trace that this process was started in. TRACEPARENT says which, in the form
// of W3C Trace Context.
func (c *command) trace() *redlocktrace.Trace {
	parent, _ := lookup(c.env, "TRACEPARENT")
	part := strings.Split(parent, "-")
	if len(part) < 4 || !traceID.MatchString(part[1]) || strings.Trim(part[1], "0") == "" {
		return nil
	}
	return &redlocktrace.Trace{ID: func(context.Context) string { return part[1] }}
}

// startEmbedded starts nodes inside this process, and says so.
func (c *command) startEmbedded() (*memredis.Cluster, error) {
	cluster, err := memredis.Start(embeddedNodes)
	if err != nil {
		return nil, exit.Fail(exit.NoQuorum, "name real ones with --node redis://HOST:PORT", "could not start nodes inside this process: %v", err)
	}
	c.note("started %d nodes inside this process: the lock excludes no other process", embeddedNodes)
	return cluster, nil
}
