package realarena

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/client"
	"github.com/quorumlock/redlock/chaos/internal/drive"
	"github.com/quorumlock/redlock/internal/testbed/faultproxy"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
)

// A machine measures how much of this computer the processes of a run get. On a busy computer all
// servers may be silent for longer than a client waits for them, and nothing in them, nor in the
// clients, shows why.
//
// Each server, and one without clients, the bystander, is asked for its time every tick. A server
// that carries that out late was not run, or did something else; if the bystander is as late at the
// same time, the computer did not run them. The bystander is also asked through a proxy without
// faults: if that takes too long, there and back, it does so for all nodes, whose proxies are in
// the same process. Both are recorded as Stalled, and the judge uses nothing else. Other
// measurements are recorded for the reader, as Measured: how long the kernel let processes wait
// (PSI, schedstat), what the hypervisor took (steal), and what the servers report (LATENCY,
// SLOWLOG).
type machine struct {
	bystander *redisproc.Server
	way       *faultproxy.Proxy // to it
	servers   []*redisproc.Server

	rec    *drive.Recorder
	stop   context.CancelFunc
	asking sync.WaitGroup
	gauges []*gauge // of the servers, of the bystander, and of the way to it
}

const (
	tick   = 10 * time.Millisecond
	worth  = 40 * time.Millisecond // less is covered by Lag, or by an attempt's time
	window = 100 * time.Millisecond
)

// watchArgs makes a server record slow commands.
var watchArgs = []string{"--latency-monitor-threshold", "20", "--slowlog-log-slower-than", "20000"}

func newMachine(nodes []*node) (m *machine, err error) {
	m = new(machine)
	for _, n := range nodes {
		m.servers = append(m.servers, n.server)
	}
	if m.bystander, err = redisproc.Start(""); err != nil {
		return m, err
	}
	m.way, err = faultproxy.Listen(m.bystander.Addr)
	return m, err
}

// begin measures until end.
func (m *machine) begin(rec *drive.Recorder) {
	var ctx context.Context
	ctx, m.stop = context.WithCancel(context.Background())
	m.rec = rec
	for _, s := range append(slices.Clone(m.servers), m.bystander) {
		m.gauges = append(m.gauges, &gauge{addr: s.Addr, start: rec.Start})
	}
	m.gauges = append(m.gauges, &gauge{addr: m.way.Addr(), whole: true, start: rec.Start})
	for _, g := range m.gauges {
		m.asking.Go(func() { g.run(ctx) })
	}
	m.asking.Go(func() { m.look(ctx) })
}

// end records the measurements, and stops the bystander. It may be called twice.
func (m *machine) end() {
	if m.stop != nil {
		m.stop()
		m.asking.Wait()
		m.stop = nil
		n := len(m.servers)
		bystander, way := m.gauges[n], m.gauges[n+1]
		for node, g := range m.gauges[:n] {
			for _, s := range way.late {
				m.rec.Add(history.Event{At: s.from, Kind: history.Stalled, Value: node, Until: s.to, Error: fmt.Sprintf(
					"a bystander was answered after %v, there and back", (s.to - s.from).Round(time.Millisecond))})
			}
			for _, s := range common(g.late, bystander.late) {
				if s.to-s.from >= worth {
					m.rec.Add(history.Event{At: s.from, Kind: history.Stalled, Value: node, Until: s.to, Error: fmt.Sprintf(
						"it and a bystander did nothing for %v", (s.to - s.from).Round(time.Millisecond))})
				}
			}
			if said := confess(g.addr); said != "" {
				m.rec.Note(history.Event{Kind: history.Measured, Error: fmt.Sprintf("node %d: %s", node, said)})
			}
		}
	}
	if m.way != nil {
		m.way.Close()
		m.way = nil
	}
	if m.bystander != nil {
		m.bystander.Stop()
		m.bystander = nil
	}
}

// A period is a time, from the start of the run.
type period struct{ from, to time.Duration }

// common is the intersection of two lists of times.
func common(a, b []period) (all []period) {
	for _, s := range a {
		for _, t := range b {
			if from, to := max(s.from, t.from), min(s.to, t.to); from < to {
				all = append(all, period{from, to})
			}
		}
	}
	return all
}

// look records the kernel's counters when a process had to wait.
func (m *machine) look(ctx context.Context) {
	if _, err := os.Stat("/proc/pressure"); err != nil {
		m.rec.Note(history.Event{Kind: history.Measured, Error: "this kernel has no PSI"})
	}
	last := m.sample()
	for ctx.Err() == nil {
		client.Wait(ctx, window)
		now := m.sample()
		if text := now.since(last); text != "" {
			m.rec.Note(history.Event{Kind: history.Measured, Error: text})
		}
		last = now
	}
}
