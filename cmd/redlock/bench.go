package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/quorumlock/redlock"
)

// A bench is one call of redlock bench.
type bench struct {
	*command
	cfg    *benchConfig
	urls   []string
	locker *redlock.Locker      // that of the crowd, and the one that tells of the nodes
	silent []*redlock.NodeError // nodes that had no vote when it began
	report benchReport
	faults []error // of each measurement that had nothing but failures, the last
}

// bench is redlock bench.
func (c *command) bench(args []string) (code int, err error) {
	cfg, err := parseBench(args)
	if errors.Is(err, errHelp) {
		return 0, c.help([]string{"bench"})
	}
	if err != nil {
		return 0, err
	}

	signals, restore := catchSignals()
	defer restore()
	urls, end, err := c.lockNodes(cfg.nodes, cfg.embedded, "measure")
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
	nodes := &quarantines{say: c.say, nodes: len(urls)}
	hooks := c.hooks(nodes)
	hooks.Unreleased = nil // they are nobody's locks, and counted
	locker, err := redlock.Connect(urls, &redlock.Options{TTL: cfg.ttl, Hooks: hooks})
	if err != nil {
		return 0, notConnected(err)
	}
	defer locker.Close()
	ctx, stop := untilSignal(signals)
	defer stop()

	b := &bench{command: c, cfg: cfg, urls: urls, locker: locker, report: benchReport{
		Embedded: cfg.embedded, Key: cfg.key, Quorum: len(urls)/2 + 1,
		TTL: millis(cfg.ttl), NodeTimeout: millis(nodeTimeout(cfg.ttl)), Length: millis(cfg.length),
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

// awaitVotes waits for nodes that are in quarantine, or as long as --timeout says. The
// others, which do not answer, are part of what there is to measure, as long as they
// leave a quorum.
func (b *bench) awaitVotes(ctx context.Context, nodes *quarantines) error {
	patience := checkup
	if b.cfg.timeout >= 0 {
		patience = min(patience, b.cfg.timeout)
	}
	for begin := time.Now(); ; {
		absent := absent(b.connected(ctx, b.locker, patience))
		if by := (interrupted{}); errors.As(context.Cause(ctx), &by) {
			return fail(by.code(), "", "%v ended the waiting for votes; nothing was measured", by)
		}
		rest := time.Duration(0)
		for _, e := range absent {
			rest = max(rest, e.TTL) // only a quarantine has one here
		}
		b.silent = absent
		if rest == 0 || b.cfg.timeout >= 0 && time.Since(begin)+rest > b.cfg.timeout {
			nodes.tell("", "")
			return b.enough(absent, rest)
		}
		nodes.tell(", and it is measured when they have one", " (redlock prepare, run once when nodes are deployed, avoids this)")
		select {
		case <-time.After(rest + stragglers):
		case <-ctx.Done():
		}
	}
}

// connected asks the nodes, and waits for those that are still being connected to. Over a
// far link that takes some round trips, longer than an answer may take, and a Locker does
// not wait for the last nodes. One that has kept silent to another Locker is not waited
// for.
func (b *bench) connected(ctx context.Context, locker *redlock.Locker, patience time.Duration) *redlock.Status {
	for begin := time.Now(); ; time.Sleep(breather) {
		status := asked(ctx, locker)
		if time.Since(begin) >= patience || ctx.Err() != nil || !slices.ContainsFunc(absent(status), func(e *redlock.NodeError) bool {
			return e.Outcome == redlock.Timeout && !slices.ContainsFunc(b.silent, func(s *redlock.NodeError) bool { return s.Node == e.Node })
		}) {
			return status
		}
	}
}

// enough says that there is no quorum without these nodes, or nothing. In so much time
// those of them have votes that are in quarantine.
func (b *bench) enough(absent []*redlock.NodeError, rest time.Duration) error {
	n, never := len(b.urls), 0
	for _, e := range absent {
		if e.Outcome != redlock.Quarantined {
			never++
		}
	}
	if n-len(absent) >= b.report.Quorum {
		return nil
	}
	within, hint := "", remedy(absent, b.report.Quorum)
	if b.cfg.timeout > 0 {
		within = fmt.Sprintf(" within --timeout %v", b.cfg.timeout)
	}
	if n-never >= b.report.Quorum {
		hint = fmt.Sprintf("leave --timeout out, or give more than %v", tenths(rest))
	}
	return fail(exitNoQuorum, hint, "no quorum to measure%s: %s", within, without("vote", absent, n))
}

// measure does one measurement after the other, and shows each as it comes.
func (b *bench) measure(ctx context.Context) error {
	if err := b.show(b.heading()); err != nil {
		return err
	}
	if err := b.visit(ctx); err != nil {
		return err
	}
	if err := b.show(b.report.nodesTable()); err != nil {
		return err
	}
	for _, n := range b.cfg.callers {
		b.crowd(ctx, n)
	}
	if err := b.show(b.report.callersTable()); err != nil {
		return err
	}
	if err := b.queue(ctx); err != nil {
		return err
	}
	return b.show(b.report.handOverTable())
}

// show prints a part of the result for people. If nobody reads it any more, there is no
// use in the rest.
func (b *bench) show(text string) error {
	if b.cfg.json || text == "" {
		return nil
	}
	if _, err := fmt.Fprintln(b.stdout, text); err != nil {
		return fail(exitCannotWrite, "", "stdout: %v", err)
	}
	return nil
}

// warmed runs a load for a tenth of its time, so that connections are made, scripts are
// loaded and names are known, and then for all of it. The last figures are those that
// count.
func (b *bench) warmed(ctx context.Context, load func(context.Context)) {
	for _, d := range []time.Duration{b.cfg.length / 10, b.cfg.length} {
		part, cancel := context.WithTimeout(ctx, d)
		load(part)
		cancel()
	}
}

// visit measures the way to each node.
func (b *bench) visit(ctx context.Context) error {
	locker, err := redlock.Connect(b.urls, &redlock.Options{TTL: b.cfg.ttl, Hooks: &redlock.Hooks{Node: heard}})
	if err != nil {
		return notConnected(err)
	}
	defer locker.Close()
	status := b.connected(ctx, locker, checkup)
	var s *survey
	b.warmed(ctx, func(ctx context.Context) {
		s = &survey{locker: locker, timeout: nodeTimeout(b.cfg.ttl)}
		for _, n := range status.Nodes {
			s.nodes = append(s.nodes, &visited{name: n.Node, failed: make(tally)})
		}
		s.run(ctx, ownNames(b.cfg.key, 1)[0])
	})
	for _, v := range s.nodes {
		figures := nodeFigures{Node: v.name, spread: v.trips.spread(), Failed: v.failed}
		if v.trips.count > 0 {
			figures.InMajority = math.Round(1000*float64(v.counts)/float64(v.trips.count)) / 1000
		}
		if v.steps() > 0 {
			b.report.Nodes = append(b.report.Nodes, figures)
		}
	}
	return nil
}

// crowd measures what a lock costs while so many callers lock.
func (b *bench) crowd(ctx context.Context, callers int) {
	var c *crowd
	b.warmed(ctx, func(ctx context.Context) {
		c = &crowd{locker: b.locker, names: ownNames(b.cfg.key, callers)}
		c.run(ctx)
	})
	figures := callersFigures{Callers: callers, PerSecond: rate(c.cycles.count, c.took), spread: c.cycles.spread(), troubles: b.troubles(&c.faults)}
	if figures.Count > 0 || c.last != nil {
		b.report.Callers = append(b.report.Callers, figures)
	}
	if figures.Count == 0 && c.last != nil {
		b.faults = append(b.faults, c.last)
	}
}

// queue measures how a lock changes hands.
func (b *bench) queue(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	first := new(line)
	defer func() { first.close() }()
	n := waiters
	if b.report.Embedded {
		n = easyWaiters
	}
	if err := first.open(n, b.urls, redlock.Options{TTL: b.cfg.ttl}); err != nil {
		return notConnected(err)
	}
	first.settle(ctx, ownNames(b.cfg.key, n))
	var l *line
	b.warmed(ctx, func(ctx context.Context) {
		l = &line{lockers: first.lockers, name: b.cfg.key + ":one-for-all"}
		l.run(ctx)
	})
	if l.waits.count > 0 || ctx.Err() == nil {
		b.report.HandOver = &handOverFigures{Waiters: n, PerSecond: rate(l.waits.count, l.took), HandOver: l.handOvers.spread(), Wait: l.waits.spread(), troubles: b.troubles(&l.faults)}
	}
	if l.waits.count == 0 && l.last != nil {
		b.faults = append(b.faults, l.last)
	}
	return nil
}

// troubles are faults as they are shown.
func (b *bench) troubles(f *faults) troubles {
	t := troubles{Failed: f.failed}
	if why := (*redlock.QuorumError)(nil); errors.As(f.last, &why) {
		t.Last = reason(why)
	} else if f.last != nil {
		t.Last = plain(f.last)
	}
	return t
}

// conclude says what it means, and gives the exit code.
func (b *bench) conclude(ctx context.Context) (code int, err error) {
	var by interrupted
	stopped := errors.As(context.Cause(ctx), &by)
	b.report.Interrupted, b.report.Advice = stopped, b.report.advice()
	switch {
	case b.cfg.json:
		if err := b.printJSON(b.report); err != nil {
			return 0, err
		}
	case len(b.report.Advice) > 0:
		fmt.Fprint(b.stdout, "what it means\n\n"+items(b.report.Advice))
	}
	var why *redlock.QuorumError
	switch {
	case stopped:
		if !b.cfg.json {
			fmt.Fprintf(b.stdout, "\nended early by %v\n", by)
		}
		return by.code(), nil
	case len(b.faults) == 0:
		return 0, nil
	case errors.As(b.faults[0], &why):
		return 0, fail(exitNoQuorum, remedy(why.Nodes(), why.Need), "a measurement had no lock at all: %s", reason(why))
	}
	return 0, fail(exitNoQuorum, "", "a measurement had no lock at all: %s", plain(b.faults[0]))
}
