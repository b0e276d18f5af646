package main

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/quorumlock/redlock/bench/contender"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
	"github.com/redis/go-redis/v9"
)

// leaky takes its locks with SET on all nodes, and does not release the last one, which the orphans
// scenario must find; it also leaves a list for every name. It keeps a counter, too, which is no
// fault.
var leaky = contender.Contender{
	Name: "leaky",
	Open: func(c contender.Config) (contender.Locker, error) {
		l := &leakyLocker{}
		for _, addr := range c.Addrs {
			l.clients = append(l.clients, redis.NewClient(&redis.Options{Addr: addr}))
		}
		return l, nil
	},
}

type leakyLocker struct{ clients []*redis.Client }

type leakyLock struct {
	clients []*redis.Client
	name    string
}

func (l *leakyLocker) Lock(ctx context.Context, name string) (contender.Lock, error) {
	for _, c := range l.clients {
		if err := c.Set(ctx, name, "", time.Minute).Err(); err != nil {
			return nil, err
		}
	}
	if err := l.clients[1].RPush(ctx, name+":list", "").Err(); err != nil {
		return nil, err
	}
	return leakyLock{l.clients, name}, l.clients[0].Incr(ctx, name+script.QueueSuffix).Err()
}

func (l *leakyLocker) Hold(ctx context.Context, name string) (contender.Lock, error) {
	return l.Lock(ctx, name)
}

func (l *leakyLocker) Close() error {
	for _, c := range l.clients {
		_ = c.Close()
	}
	return nil
}

func (k leakyLock) Release(ctx context.Context) error {
	for _, c := range k.clients[:len(k.clients)-1] {
		if err := c.Del(ctx, k.name).Err(); err != nil {
			return err
		}
	}
	return nil
}

// An orphan count that cannot be other than 0 would prove nothing.
func TestOrphansAreFound(t *testing.T) {
	e := miniature(t)
	e.rounds, e.contenders = 1, []contender.Contender{leaky}
	tables, err := orphans(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	checkTable(t, tables[0])
	got := tables[0].series.rounds["leaky"][0]
	names := float64(min(namesEach, int(got["alone"])))
	for figure, want := range map[string]float64{
		"alone keys": names, "alone node": names,
		"contended keys": 1, "contended node": 1,
		"kept": names + 1, "other": names + 1, // one for each name, on one node
	} {
		if got[figure] != want {
			t.Errorf("%s: %v, want %v (all: %v)", figure, got[figure], want, got)
		}
	}
}

func TestCountersAreThoseOfTheContender(t *testing.T) {
	e := miniature(t)
	ctx := t.Context()
	client := redis.NewClient(&redis.Options{Addr: e.fleet.addrs()[2]})
	defer client.Close()
	client.Ping(ctx) // so that the handshake is not counted
	measure := func(do func()) counters {
		t.Helper()
		start, err := read(ctx, e.fleet)
		if err != nil {
			t.Fatal(err)
		}
		do()
		u, err := start.since(ctx, e.fleet)
		if err != nil {
			t.Fatal(err)
		}
		u.servers.cpu = 0
		return u.servers
	}
	if got := measure(func() {}); got != (counters{}) {
		t.Errorf("nothing done: %+v", got)
	}
	got := measure(func() {
		for range 7 {
			client.Ping(ctx)
		}
		client.Eval(ctx, "return redis.call('GET', KEYS[1])", []string{"bench:none"})
	})
	if want := (counters{commands: 9, scripts: 1, reads: 8}); got != want {
		t.Errorf("seven PINGs and a script with a GET: %+v, want %+v", got, want)
	}
}

// Round trips are counted by looking for raises, which are rare.
func TestRaisesAreFound(t *testing.T) {
	e := miniature(t)
	for _, c := range []struct {
		situation
		share float64
	}{
		{situation{}, 1},
		{situation{first: behind, second: behind}, 1}, // the nodes' clocks count, and not the clients'
		{situation{first: behind, second: behind, byScript: true}, 0},
	} {
		got, err := e.count(t.Context(), c.situation)
		if err != nil {
			t.Fatal(err)
		}
		if got["share"] != c.share || got["acquisitions"] != float64(e.counted) {
			t.Errorf("%+v: %v, want %d acquisitions of which %v took one round trip", c.situation, got, e.counted, c.share)
		}
	}
}

// TestPlainProgram: the program with the plain scripts counts nothing, the other one
// does.
func TestPlainProgram(t *testing.T) {
	e := miniature(t)
	p, err := buildPrograms(t.Context(), plainScripts())
	if err != nil {
		t.Fatal(err)
	}
	defer p.remove()
	for _, c := range []struct {
		name     string
		counters bool
	}{{"redlock", true}, {contender.Plain, false}} {
		if err := e.fleet.renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, err := p.ask(t.Context(), c.name, e.one(taskCycles, c.name))
		if err != nil || got["cycles"] == 0 {
			t.Fatalf("%s: %v, %v", c.name, got, err)
		}
		counters := 0
		if err := e.fleet.scan(t.Context(), script.Fences, func(int, string) { counters++ }); err != nil {
			t.Fatal(err)
		}
		if (counters > 0) != c.counters {
			t.Errorf("%s leaves %d counters", c.name, counters)
		}
	}
}

func TestHeldOnAMajority(t *testing.T) {
	e := miniature(t)
	for node, w := range e.fleet.watch[:3] {
		if node < 2 {
			w.Set(t.Context(), "bench:x:minority"+nameEnd, "", time.Minute)
		}
		w.Set(t.Context(), "bench:x:majority"+nameEnd, "", time.Minute)
	}
	got, err := e.fleet.heldOn(t.Context(), "bench:x:", 3)
	if got != 1 || err != nil {
		t.Errorf("held on three of five: %d, %v; want 1", got, err)
	}
}

// The end of the context stops the servers even while no contender returns.
func TestContextStopsServers(t *testing.T) {
	e := miniature(t) // for the skip
	ctx, cancel := context.WithCancel(t.Context())
	f, err := startFleet(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.hang(1); err != nil {
		t.Fatal(err)
	}
	cancel()
	for slices.ContainsFunc(f.servers, func(s *redisproc.Server) bool { return s.Pid() != 0 }) {
		time.Sleep(time.Millisecond)
	}
	if e.fleet.servers[0].Pid() == 0 {
		t.Error("a fleet that was not ours is gone")
	}
}
