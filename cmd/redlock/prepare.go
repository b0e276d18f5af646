package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/explain"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/cmd/redlock/internal/proc"
)

// prepareConfig is what the command line of redlock prepare says.
type prepareConfig struct {
	lockFlags
	noWait bool
	reset  []string // the nodes whose fences are ahead of the time
}

// parsePrepare reads the arguments of redlock prepare.
func parsePrepare(args []string) (*prepareConfig, error) {
	cfg := &prepareConfig{lockFlags: noFlags}
	f := newFlags("prepare")
	cfg.addNodes(f)
	cfg.addTTL(f)
	cfg.addMaxTTL(f)
	cfg.addTimeout(f)
	f.toggle("no-wait", "", &cfg.noWait)
	f.value("reset-fences", "", func(value string) error {
		cfg.reset = append(cfg.reset, strings.Split(value, ",")...)
		return nil
	})
	rest, err := f.parse(args)
	switch {
	case err != nil:
		return nil, err
	case len(rest) > 0:
		return nil, exit.Fail(exit.Usage, "see redlock help prepare", "prepare takes flags only, and was given %q", rest[0])
	case cfg.noWait && f.Changed("timeout"):
		return nil, exit.Fail(exit.Usage, "--timeout 0s asks once whether all nodes vote", "--no-wait and --timeout do not go together")
	case cfg.noWait && f.Changed("reset-fences"):
		return nil, exit.Fail(exit.Usage, "the fences are reset when the nodes vote again", "--no-wait and --reset-fences do not go together")
	}
	return cfg, nil
}

// prepare is redlock prepare.
func (c *command) prepare(_ string, args []string) (code int, err error) {
	cfg, err := parsePrepare(args)
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

	signals, restore := proc.CatchSignals()
	defer restore()
	locker, nodes, err := c.connect(urls, opts)
	if err != nil {
		return 0, err
	}
	defer locker.Close()

	// Connecting writes the markers. The rest is waiting.
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
		return 0, exit.Fail(exit.NoQuorum, explain.RemedyForAll(absent, len(urls)), "not prepared%s: %s", within, explain.Without("cannot vote", absent, len(urls)))
	}
	fmt.Fprintf(c.stdout, "%s\n", explain.AllVote(len(urls)))
	said, err := fences.drop(context.Background())
	fmt.Fprint(c.stdout, said)
	return 0, err
}

// voteless asks the nodes, and returns those that cannot vote.
func voteless(locker *redlock.Locker) []*redlock.NodeError {
	return explain.Absent(asked(context.Background(), locker))
}

// waitForVotes waits until all nodes vote, or returns those that cannot when the time is up.
func waitForVotes(locker *redlock.Locker, cfg *prepareConfig, signals <-chan os.Signal, n int) ([]*redlock.NodeError, error) {
	watched, stop := proc.UntilSignal(signals)
	ctx, cancel := watched, context.CancelFunc(func() {})
	if cfg.timeout > 0 {
		ctx, cancel = context.WithTimeout(watched, cfg.timeout)
	}
	err := locker.WaitReady(ctx)
	cancel()
	stop()
	if err == nil {
		return nil, nil
	}
	// The error has the nodes, too, but their state in it may be a second old.
	absent := voteless(locker)
	var by proc.Interrupted
	if len(absent) > 0 && errors.As(context.Cause(watched), &by) {
		return nil, exit.Fail(by.Code(), explain.RemedyForAll(absent, n), "%v while waiting for votes: %s", by, explain.Without("cannot vote", absent, n))
	}
	return absent, nil
}

// marked is the end of prepare --no-wait.
func (c *command) marked(n int, absent []*redlock.NodeError) error {
	var unreached []*redlock.NodeError
	var rest time.Duration
	for _, e := range absent {
		if e.Outcome != redlock.OutcomeQuarantined {
			unreached = append(unreached, e)
		}
		rest = max(rest, e.TTL)
	}
	switch {
	case len(unreached) > 0:
		return exit.Fail(exit.NoQuorum, explain.RemedyForAll(unreached, n), "not prepared: %s", explain.Without("without a marker", unreached, n))
	case len(absent) > 0:
		at := time.Now().Add(rest + time.Second - 1).Truncate(time.Second) // not a moment too early
		fmt.Fprintf(c.stdout, "%s from %s on, in %v\n", explain.AllVote(n), at.Format(time.RFC3339), phrase.Tenths(rest))
	default:
		fmt.Fprintf(c.stdout, "%s\n", explain.AllVote(n))
	}
	return nil
}
