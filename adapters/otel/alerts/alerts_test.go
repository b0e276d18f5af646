package alerts_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/quorumlock/redlock"
	otelredlock "github.com/quorumlock/redlock/adapters/otel"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
)

// A plant has nodes, a program that locks on them all the time, and a Prometheus that scrapes the program.
type plant struct {
	*testing.T
	*redistest.Bubble
	lk       *redlock.Locker
	registry *prometheus.Registry
	history  *history
	round    int
}

// observed runs a scenario with five nodes in a bubble of virtual time, and returns what was scraped.
func observed(t *testing.T, opts redlock.Options, run func(*plant)) *history {
	t.Helper()
	h := &history{series: make(map[string]*series)}
	synctest.Test(t, func(t *testing.T) {
		p := &plant{T: t, Bubble: redistest.NewBubble(t, 5), registry: prometheus.NewRegistry(), history: h}
		reader, err := exporter.New(exporter.WithRegisterer(p.registry))
		if err != nil {
			t.Fatal(err)
		}
		opts.Hooks, err = otelredlock.Hooks(otelredlock.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
		if err != nil {
			t.Fatal(err)
		}
		if p.lk, err = redlock.New(p.Clients(), &opts); err != nil {
			t.Fatal(err)
		}
		defer p.lk.Close()
		if err := p.lk.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.passes(2 * time.Minute)
		run(p)
		for i := range p.Len() { // or Close waits
			p.Resume(i)
		}
	})
	return h
}

// passes lets time go by. Each 5 s the program asks for a lock, as far as that works, and each 15 s it
// is scraped.
func (p *plant) passes(d time.Duration) {
	p.Helper()
	for range int(d / (5 * time.Second)) {
		ctx, cancel := context.WithTimeout(p.Context(), 2*time.Second)
		began := time.Now()
		if l, err := p.lk.Acquire(ctx, "job"); err == nil {
			_ = l.Release(ctx)
		}
		cancel()
		time.Sleep(5*time.Second - time.Since(began))
		synctest.Wait()
		if p.round++; p.round%3 == 0 {
			families, err := p.registry.Gather()
			if err != nil {
				p.Fatal(err)
			}
			p.history.add(time.Now(), families)
		}
	}
}

// hold acquires a lock that is renewed.
func (p *plant) hold(name string) *redlock.Lock {
	p.Helper()
	l, err := p.lk.Acquire(p.Context(), name, redlock.AutoRenew())
	if err != nil {
		p.Fatal(err)
	}
	return l
}

// other is another program on the same nodes.
func (p *plant) other(opts *redlock.Options) *redlock.Locker {
	p.Helper()
	lk, err := redlock.New(p.Clients(), opts)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = lk.Close() })
	return lk
}

// A scenario makes one alert fire, and no others but those that it names.
type scenario struct {
	alert, with string
	opts        redlock.Options
	run         func(*plant)
}

var scenarios = []scenario{
	{alert: "RedlockLockLost", with: "RedlockRenewalsFailing", run: func(p *plant) {
		l := p.hold("long")
		for i := range p.Len() {
			p.Hang(i)
		}
		<-l.Context(p.Context()).Done()
		for i := range p.Len() {
			p.Resume(i)
		}
		p.passes(2 * time.Minute)
	}},
	{alert: "RedlockRenewalsFailing", opts: redlock.Options{TTL: 30 * time.Second}, run: func(p *plant) {
		l := p.hold("long")
		for i := range 3 {
			p.Hang(i)
		}
		time.Sleep(20 * time.Second)
		for i := range 3 {
			p.Resume(i)
		}
		p.passes(2 * time.Minute)
		if err := l.Release(p.Context()); err != nil {
			p.Errorf("the lock is not held to the end: %v", err)
		}
	}},
	{alert: "RedlockWaitOverdue", run: func(p *plant) {
		l, err := p.other(nil).Acquire(p.Context(), "long", redlock.AutoRenew())
		if err != nil {
			p.Fatal(err)
		}
		ctx, cancel := context.WithCancel(p.Context())
		defer cancel()
		go func() { _, _ = p.lk.Acquire(ctx, "long") }()
		p.passes(2 * time.Minute)
		_ = l.Release(p.Context())
	}},
	{alert: "RedlockNodeDown", run: func(p *plant) {
		p.Kill(0)
		p.passes(4 * time.Minute)
	}},
	{alert: "RedlockNoVoteToSpare", with: "RedlockNodeDown", run: func(p *plant) {
		p.Kill(0)
		p.Kill(1)
		p.passes(4 * time.Minute)
	}},
	{alert: "RedlockNoQuorum", with: "RedlockNodeDown", run: func(p *plant) {
		p.Kill(0)
		p.Kill(1)
		p.Kill(2)
		p.passes(4 * time.Minute)
	}},
	{alert: "RedlockNodeIneligible", run: func(p *plant) {
		p.SetInfo(1, "role", "slave")
		p.Restart(1, true)
		p.passes(4 * time.Minute)
	}},
	{alert: "RedlockNodeQuarantined", opts: redlock.Options{MaxTTL: 10 * time.Minute}, run: func(p *plant) {
		p.Restart(1, false)
		p.passes(8 * time.Minute)
	}},
	{alert: "RedlockNodeLosesData", run: func(p *plant) {
		for range 4 {
			p.Restart(1, false)
			p.passes(5 * time.Minute)
		}
	}},
	{alert: "RedlockClockStep", run: func(p *plant) {
		p.Step(1, 300*time.Millisecond)
		p.passes(2 * time.Minute)
	}},
	{alert: "RedlockWarning", with: "RedlockClockStep RedlockNodeIneligible", run: func(p *plant) {
		p.Step(1, -time.Hour)
		p.passes(3 * time.Minute)
	}},
}

// TestEachFires: each alert fires when what it is for happens, and others do not.
func TestEachFires(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.alert, func(t *testing.T) {
			fired := observed(t, s.opts, s.run).fired(t)
			want := append(strings.Fields(s.with), s.alert)
			slices.Sort(want)
			if got := slices.Sorted(maps.Keys(fired)); !slices.Equal(got, want) {
				t.Errorf("fired: %s, want %s", show(fired), fmt.Sprint(want))
			}
		})
	}
}

// TestHealthyIsSilent: no alert fires while locks are acquired, waited for, renewed and released, and the nodes are
// restarted one after another, as docs/operations.md says; and each rule had something to look at.
func TestHealthyIsSilent(t *testing.T) {
	h := observed(t, redlock.Options{}, func(p *plant) {
		l := p.hold("long")
		rival := p.other(nil)
		for i := range p.Len() {
			p.Restart(i, i%2 == 0)
			p.passes(3 * time.Minute)
			held, err := rival.Acquire(p.Context(), "shared", redlock.AutoRenew())
			if err != nil {
				p.Fatal(err)
			}
			done := make(chan error)
			go func() {
				l, err := p.lk.Acquire(p.Context(), "shared")
				if err == nil {
					err = l.Release(p.Context())
				}
				done <- err
			}()
			p.passes(20 * time.Second) // a wait within the bound
			if err := held.Release(p.Context()); err != nil {
				p.Fatal(err)
			}
			if err := <-done; err != nil {
				p.Fatal(err)
			}
		}
		p.Kill(0) // for less than an alert waits
		p.passes(time.Minute)
		p.Restart(0, true)
		p.passes(3 * time.Minute)
		if err := l.Release(p.Context()); err != nil {
			p.Error(err)
		}
	})
	if fired := h.fired(t); len(fired) > 0 {
		t.Errorf("fired: %s", show(fired))
	}
	h.selects(t)
}

// TestOneNodeIsSilent: a set that is too small to lose a vote has none to spare, and that is no trouble.
func TestOneNodeIsSilent(t *testing.T) {
	h := &history{series: make(map[string]*series)}
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry))
	if err != nil {
		t.Fatal(err)
	}
	hooks, err := otelredlock.Hooks(otelredlock.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
	if err != nil {
		t.Fatal(err)
	}
	hooks.Joined(redlock.Members{Nodes: []string{"a:6379"}, Quorum: 1})
	scrapes := func(n int) {
		for range n {
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			h.add(time.Unix(int64(1e9+15*len(h.times)), 0), families)
		}
	}
	scrapes(20)
	if fired := h.fired(t); len(fired) > 0 {
		t.Errorf("fired: %s", show(fired))
	}
	hooks.NodeDown(&redlock.NodeError{Node: "a:6379", Outcome: redlock.OutcomeUnreachable})
	scrapes(20)
	if fired := h.fired(t); fired["RedlockNoQuorum"] != 1 || fired["RedlockNoVoteToSpare"] != 0 {
		t.Errorf("the only node is down, and fired: %s", show(fired))
	}
}
