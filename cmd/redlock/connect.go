package main

import (
	"context"
	"errors"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/internal/memredis"
)

// connect opens a Locker that tells of its nodes.
func (c *command) connect(urls []string, opts *redlock.Options) (*redlock.Locker, *quarantines, error) {
	nodes := &quarantines{say: c.say, nodes: len(urls)}
	opts.Hooks = c.hooks(nodes)
	locker, err := redlock.Connect(urls, opts)
	if err != nil {
		return nil, nil, notConnected(err)
	}
	return locker, nodes, nil
}

// notConnected says why there is no Locker. It is about the nodes: the flags have been
// checked.
func notConnected(err error) error {
	if node := new(redlock.NodeError); errors.As(err, &node) {
		return exit.Fail(exit.NoQuorum, "change what is said of it, or give another server; redlock doctor examines all of them", "%v", err)
	}
	return exit.Fail(exit.Usage, "give each Redis server once", "%v", err)
}

// hooks tell an operator in words what happens to the nodes. Not among them are
// that the lock is lost, which run tells, with what it does about it; and that a
// node's clock was set, which is why it has no vote then, and told as that.
func (c *command) hooks(nodes *quarantines) *redlock.Hooks {
	return &redlock.Hooks{
		Warning:  func(err error) { c.say("warning: %s", phrase.Plain(err)) },
		NodeDown: func(e *redlock.NodeError) { c.say("node down: %v", e) },
		NodeUp: func(node string, down time.Duration) {
			c.say("node up again: %s, after %v", node, down.Round(time.Millisecond))
		},
		Quarantined: nodes.found,
		Unreleased: func(l *redlock.Lock, err error) {
			c.say("%q may stay locked until its TTL is over: %s", l.Name(), phrase.Plain(err))
		},
	}
}

// startEmbedded starts nodes of our own, and says so.
func (c *command) startEmbedded() (*memredis.Cluster, error) {
	cluster, err := memredis.Start(embeddedNodes)
	if err != nil {
		return nil, exit.Fail(exit.NoQuorum, "give real ones with --node redis://HOST:PORT", "could not start nodes inside this process: %v", err)
	}
	c.say("started %d nodes inside this process: the lock excludes no other process", embeddedNodes)
	return cluster, nil
}

// nobodys is the name of a lock about which the nodes are asked when it is they
// that are of interest.
const nobodys = "redlock:prepare"

// asked is what the nodes say of themselves.
func asked(ctx context.Context, locker *redlock.Locker) *redlock.Status {
	status, err := locker.Inspect(ctx, nobodys)
	if err != nil {
		panic(err) // neither the name nor the Locker is at fault
	}
	return status
}
