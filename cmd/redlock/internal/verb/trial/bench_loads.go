package trial

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/explain"
	"github.com/quorumlock/redlock/cmd/redlock/internal/load"
	"github.com/quorumlock/redlock/cmd/redlock/internal/peek"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
	"github.com/quorumlock/redlock/redlocktrace"
)

// waiters is how many clients wait for one lock while its hand-over is measured: enough that one is always queued.
// Nodes inside this process get easyWaiters: these show the same, with a load that such nodes can take.
const waiters, easyWaiters = 8, 3

// warmed runs a load for a tenth of its time, to make connections, load scripts and introduce names, and then for all
// of it. Only the figures of the second run count.
func (b *bench) warmed(ctx context.Context, work func(context.Context)) {
	for _, d := range []time.Duration{b.cfg.length / 10, b.cfg.length} {
		part, cancel := context.WithTimeout(ctx, d)
		work(part)
		cancel()
	}
}

// measureNodes measures the round trip to each node.
func (b *bench) measureNodes(ctx context.Context) error {
	locker, err := reach.Open(b.servers, &redlock.Options{TTL: b.cfg.TTL, Prefix: *b.cfg.Prefix, Hooks: &redlock.Hooks{Trace: &redlocktrace.Trace{Node: load.Heard}}})
	if err != nil {
		return reach.NotConnected(err)
	}
	defer locker.Close()
	status := b.connected(ctx, locker, peek.Checkup)
	var s *load.Survey
	b.warmed(ctx, func(ctx context.Context) {
		s = &load.Survey{Locker: locker, Timeout: reach.NodeTimeout(b.cfg.TTL)}
		for _, n := range status.Nodes {
			s.Nodes = append(s.Nodes, &load.Visited{Name: n.Node, Failed: make(load.Tally)})
		}
		s.Run(ctx, load.OwnNames(b.cfg.key, 1)[0])
	})
	for _, v := range s.Nodes {
		figures := nodeFigures{Node: v.Name, Spread: v.Trips.Spread(), Failed: v.Failed}
		if v.Trips.Spread().Count > 0 {
			figures.InMajority = math.Round(1000*float64(v.Counts)/float64(v.Trips.Spread().Count)) / 1000
		}
		if v.Steps() > 0 {
			b.report.Nodes = append(b.report.Nodes, figures)
		}
	}
	return nil
}

// measureCallers measures what a lock costs while so many callers lock.
func (b *bench) measureCallers(ctx context.Context, callers int) {
	var c *load.Callers
	b.warmed(ctx, func(ctx context.Context) {
		c = &load.Callers{Locker: b.locker, Names: load.OwnNames(b.cfg.key, callers)}
		c.Run(ctx)
	})
	figures := callersFigures{Callers: callers, PerSecond: rate(c.Cycles.Spread().Count, c.Took), Spread: c.Cycles.Spread(), troubles: b.troubles(&c.Faults)}
	if figures.Count > 0 || c.Last != nil {
		b.report.Callers = append(b.report.Callers, figures)
	}
	if figures.Count == 0 && c.Last != nil {
		b.faults = append(b.faults, c.Last)
	}
}

// measureHandOver measures the time from a release to the next holder.
func (b *bench) measureHandOver(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	first := new(load.Queue)
	defer func() { first.Close() }()
	n := waiters
	if b.report.Embedded {
		n = easyWaiters
	}
	if err := first.Open(n, func() (*redlock.Locker, error) {
		return reach.Open(b.servers, &redlock.Options{TTL: b.cfg.TTL, Prefix: *b.cfg.Prefix})
	}); err != nil {
		return reach.NotConnected(err)
	}
	settling, cancel := context.WithTimeout(ctx, peek.Checkup)
	first.Settle(settling, load.OwnNames(b.cfg.key, n))
	cancel()
	var l *load.Queue
	b.warmed(ctx, func(ctx context.Context) {
		l = &load.Queue{Lockers: first.Lockers, Name: b.cfg.key + ":one-for-all"}
		l.Run(ctx)
	})
	if l.Waits.Spread().Count > 0 || ctx.Err() == nil {
		b.report.HandOver = &handOverFigures{Waiters: n, PerSecond: rate(l.Waits.Spread().Count, l.Took), HandOver: l.HandOvers.Spread(), Wait: l.Waits.Spread(), troubles: b.troubles(&l.Faults)}
	}
	if l.Waits.Spread().Count == 0 && l.Last != nil {
		b.faults = append(b.faults, l.Last)
	}
	return nil
}

// troubles returns the failures of one measurement, in the form of the report.
func (b *bench) troubles(f *load.Faults) troubles {
	t := troubles{Failed: f.Failed}
	if why := (*redlock.QuorumError)(nil); errors.As(f.Last, &why) {
		t.Last = explain.Reason(why)
	} else if f.Last != nil {
		t.Last = phrase.Plain(f.Last)
	}
	return t
}
