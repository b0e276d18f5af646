// Package trial has the verbs that try redlock out: bench measures it, demo shows it, and chaos searches it for faults.
package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/explain"
	"github.com/quorumlock/redlock/cmd/redlock/internal/load"
	"github.com/quorumlock/redlock/cmd/redlock/internal/peek"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/cmd/redlock/internal/proc"
	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
)

// A bench is one run of redlock bench.
type bench struct {
	*console.Console
	cfg     *benchConfig
	servers []*redis.Options
	locker  *redlock.Locker      // of the callers; its hooks report what happens to nodes
	silent  []*redlock.NodeError // the nodes that could not vote at the beginning
	report  benchReport
	faults  []error // of each measurement without a success, the last error
}

// Bench is redlock bench: it measures locks on the nodes.
func Bench(c *console.Console, _ string, args []string) (code int, err error) {
	cfg, err := parseBench(args)
	if err != nil {
		return 0, err
	}

	signals, restore := proc.CatchSignals()
	defer restore()
	servers, end, err := reach.RealOrEmbedded(c, &cfg.Flags, cfg.embedded, "measure")
	if err != nil {
		return 0, err
	}
	defer end()
	switch {
	case cfg.callers != nil:
	case cfg.embedded:
		cfg.callers, _ = parseCallers(easyCallers)
	default:
		cfg.callers, _ = parseCallers(defaultCallers)
	}
	locker, nodes, err := reach.Connect(c, servers, &redlock.Options{TTL: cfg.TTL, Prefix: *cfg.Prefix}, func(hooks *redlock.Hooks) {
		hooks.Unreleased = nil // nobody else uses these locks, and the report counts them
	})
	if err != nil {
		return 0, err
	}
	defer locker.Close()
	ctx, stop := proc.UntilSignal(signals)
	defer stop()

	b := &bench{Console: c, cfg: cfg, servers: servers, locker: locker, report: benchReport{
		Embedded: cfg.embedded, Key: cfg.key, Quorum: len(servers)/2 + 1,
		TTL: load.Millis(cfg.TTL), NodeTimeout: load.Millis(reach.NodeTimeout(cfg.TTL)), Length: load.Millis(cfg.length),
		Nodes: []nodeFigures{}, Callers: []callersFigures{},
	}}
	if err := b.awaitVotes(ctx, nodes); err != nil {
		return 0, err
	}
	if err := b.measure(ctx); err != nil {
		return 0, err
	}
	return b.conclude(ctx)
}

// awaitVotes waits until quarantines are over, for --timeout at most. Nodes that do not answer are measured as they
// are, provided that the others are a quorum.
func (b *bench) awaitVotes(ctx context.Context, nodes *reach.Quarantines) error {
	patience := peek.Checkup
	if b.cfg.Timeout >= 0 {
		patience = min(patience, b.cfg.Timeout)
	}
	for begin := time.Now(); ; {
		absent := explain.Absent(b.connected(ctx, b.locker, patience))
		if by := (proc.Interrupted{}); errors.As(context.Cause(ctx), &by) {
			return exit.Fail(by.Code(), "", "%v while waiting for votes: nothing was measured", by)
		}
		rest := time.Duration(0)
		for _, e := range absent {
			rest = max(rest, e.TTL) // only a quarantine has a TTL here
		}
		b.silent = absent
		if rest == 0 || b.cfg.Timeout >= 0 && time.Since(begin)+rest > b.cfg.Timeout {
			nodes.Tell("", "")
			return b.enough(absent, rest)
		}
		nodes.Tell(", and the measurement begins then", " (redlock prepare, run once when nodes are deployed, avoids this)")
		select {
		case <-time.After(min(rest+reach.Stragglers, reach.AskAgain)):
		case <-ctx.Done():
		}
	}
}

// connected asks the nodes, and waits for those that are still being connected to: over a far link this takes some
// round trips, longer than an answer may take, and a Locker does not wait for its last nodes. It does not wait for
// nodes in b.silent.
func (b *bench) connected(ctx context.Context, locker *redlock.Locker, patience time.Duration) *redlock.Status {
	for begin := time.Now(); ; time.Sleep(load.Breather) {
		status := peek.Status(ctx, locker)
		if time.Since(begin) >= patience || ctx.Err() != nil || !slices.ContainsFunc(explain.Absent(status), func(e *redlock.NodeError) bool {
			return e.Outcome == redlock.OutcomeTimeout && !slices.ContainsFunc(b.silent, func(s *redlock.NodeError) bool { return s.Node == e.Node })
		}) {
			return status
		}
	}
}

// enough returns an error if the nodes that are not absent are fewer than a quorum. rest is the longest quarantine
// among the absent.
func (b *bench) enough(absent []*redlock.NodeError, rest time.Duration) error {
	n, never := len(b.servers), 0
	for _, e := range absent {
		if e.Outcome != redlock.OutcomeQuarantined {
			never++
		}
	}
	if n-len(absent) >= b.report.Quorum {
		return nil
	}
	within, hint := "", explain.Remedy(absent, b.report.Quorum)
	if b.cfg.Timeout > 0 {
		within = fmt.Sprintf(" within --timeout %v", b.cfg.Timeout)
	}
	if n-never >= b.report.Quorum {
		hint = fmt.Sprintf("leave --timeout out, or give more than %v", phrase.Tenths(rest))
	}
	return exit.Fail(exit.NoQuorum, hint, "no quorum to measure%s: %s", within, explain.Voteless(absent, n))
}

// measure makes the measurements one after another, and prints each when it is done.
func (b *bench) measure(ctx context.Context) error {
	if err := b.show(b.heading()); err != nil {
		return err
	}
	if err := b.measureNodes(ctx); err != nil {
		return err
	}
	if err := b.show(b.report.nodesTable()); err != nil {
		return err
	}
	for _, n := range b.cfg.callers {
		b.measureCallers(ctx, n)
	}
	if err := b.show(b.report.callersTable()); err != nil {
		return err
	}
	if err := b.measureHandOver(ctx); err != nil {
		return err
	}
	return b.show(b.report.handOverTable())
}

// show prints a part of the result as text. Its error ends the measurements.
func (b *bench) show(text string) error {
	if b.cfg.json || text == "" {
		return nil
	}
	if _, err := fmt.Fprintln(b.Stdout, text); err != nil {
		return exit.Fail(exit.CannotWrite, "", "stdout: %v", err)
	}
	return nil
}

// conclude prints the advice, and returns the exit code.
func (b *bench) conclude(ctx context.Context) (code int, err error) {
	var by proc.Interrupted
	stopped := errors.As(context.Cause(ctx), &by)
	b.report.Interrupted, b.report.Advice = stopped, b.report.advice()
	switch {
	case b.cfg.json:
		if err := b.PrintJSON(b.report); err != nil {
			return 0, err
		}
	case len(b.report.Advice) > 0:
		fmt.Fprint(b.Stdout, "what it means\n\n"+items(b.report.Advice))
	}
	var why *redlock.QuorumError
	switch {
	case stopped:
		if !b.cfg.json {
			fmt.Fprintf(b.Stdout, "\nended early by %v\n", by)
		}
		return by.Code(), nil
	case len(b.faults) == 0:
		return 0, nil
	case errors.As(b.faults[0], &why):
		return 0, exit.Fail(exit.NoQuorum, explain.Remedy(why.Nodes(), why.Need), "a measurement got no lock at all: %s", explain.Reason(why))
	}
	return 0, exit.Fail(exit.NoQuorum, "", "a measurement got no lock at all: %s", phrase.Plain(b.faults[0]))
}
