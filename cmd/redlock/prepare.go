package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/quorumlock/redlock"
)

// nobodys is the name of a lock about which the nodes are asked when it is they
// that are of interest.
const nobodys = "redlock:prepare"

// prepare is redlock prepare.
func (c *command) prepare(args []string) (code int, err error) {
	cfg, err := parsePrepare(args)
	if errors.Is(err, errHelp) {
		return 0, c.help([]string{"prepare"})
	}
	if err != nil {
		return 0, err
	}
	urls, err := c.realNodes(cfg.nodes, "prepare")
	if err != nil {
		return 0, err
	}
	opts, err := cfg.options(c.env)
	if err != nil {
		return 0, err
	}

	fences, err := newReset(cfg.reset, urls, opts)
	if err != nil {
		return 0, err
	}
	defer fences.close()
	if len(cfg.reset) > 0 {
		if err := fences.refuse(urls); err != nil {
			return 0, err
		}
		if err := fences.forget(context.Background()); err != nil {
			return 0, err
		}
	}

	signals, restore := catchSignals()
	defer restore()
	locker, nodes, err := c.connect(urls, opts)
	if err != nil {
		return 0, err
	}
	defer locker.Close()

	// To connect is what has the markers written. The rest is waiting.
	absent := voteless(locker)
	nodes.tell("", "")
	if cfg.noWait {
		return 0, c.marked(len(urls), absent)
	}
	if len(absent) > 0 && cfg.timeout != 0 {
		if absent, err = waitForVotes(locker, cfg, signals, len(urls)); err != nil {
			return 0, err
		}
	}
	if len(absent) > 0 {
		within := ""
		if cfg.timeout > 0 {
			within = fmt.Sprintf(" within --timeout %v", cfg.timeout)
		}
		return 0, fail(exitNoQuorum, remedyForAll(absent, len(urls)), "not prepared%s: %s", within, without("vote", absent, len(urls)))
	}
	fmt.Fprintf(c.stdout, "%s\n", allVote(len(urls)))
	said, err := fences.drop(context.Background())
	fmt.Fprint(c.stdout, said)
	return 0, err
}

// voteless asks the nodes, and gives those that have no vote.
func voteless(locker *redlock.Locker) []*redlock.NodeError {
	return absent(asked(context.Background(), locker))
}

// asked is what the nodes say of themselves.
func asked(ctx context.Context, locker *redlock.Locker) *redlock.Status {
	status, err := locker.Inspect(ctx, nobodys)
	if err != nil {
		panic(err) // neither the name nor the Locker is at fault
	}
	return status
}

// waitForVotes waits until all nodes vote, or gives those that do not when the
// time is up.
func waitForVotes(locker *redlock.Locker, cfg *prepareConfig, signals <-chan os.Signal, n int) ([]*redlock.NodeError, error) {
	watched, stop := untilSignal(signals)
	ctx, cancel := watched, context.CancelFunc(func() {})
	if cfg.timeout > 0 {
		ctx, cancel = context.WithTimeout(watched, cfg.timeout)
	}
	err := locker.Prepare(ctx)
	cancel()
	stop()
	if err == nil {
		return nil, nil
	}
	// Its error has the nodes, too, but what it says of them may be a second old.
	absent := voteless(locker)
	var by interrupted
	if len(absent) > 0 && errors.As(context.Cause(watched), &by) {
		return nil, fail(by.code(), remedyForAll(absent, n), "%v ended the waiting: %s", by, without("vote", absent, n))
	}
	return absent, nil
}

// marked is the end of prepare --no-wait.
func (c *command) marked(n int, absent []*redlock.NodeError) error {
	var unreached []*redlock.NodeError
	var rest time.Duration
	for _, e := range absent {
		if e.Outcome != redlock.Quarantined {
			unreached = append(unreached, e)
		}
		rest = max(rest, e.TTL)
	}
	switch {
	case len(unreached) > 0:
		return fail(exitNoQuorum, remedyForAll(unreached, n), "not prepared: %s", without("marker", unreached, n))
	case len(absent) > 0:
		at := time.Now().Add(rest + time.Second - 1).Truncate(time.Second) // not a moment too early
		fmt.Fprintf(c.stdout, "%s from %s on, in %v\n", allVote(n), at.Format(time.RFC3339), tenths(rest))
	default:
		fmt.Fprintf(c.stdout, "%s\n", allVote(n))
	}
	return nil
}

func allVote(n int) string {
	if n == 1 {
		return "the node votes"
	}
	return fmt.Sprintf("all %d nodes vote", n)
}

// without says which nodes have none of what they need, and why.
func without(what string, absent []*redlock.NodeError, n int) string {
	var each []string
	for _, e := range absent {
		each = append(each, e.Error())
	}
	return fmt.Sprintf("%d of %s without a %s: %s", len(absent), count(n, "node"), what, strings.Join(each, "; "))
}

// remedyForAll says what can be done about nodes without a vote, where all are
// wanted.
func remedyForAll(absent []*redlock.NodeError, n int) string {
	var rest time.Duration
	for _, e := range absent {
		if e.Outcome != redlock.Quarantined {
			return remedy(absent, n)
		}
		rest = max(rest, e.TTL)
	}
	return fmt.Sprintf("their time runs on, whether anybody waits or not: %s in %v", allVote(n), tenths(rest))
}
