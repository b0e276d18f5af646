package main

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
	"time"

	"github.com/quorumlock/redlock/bench/contender"
)

// A reading is the state of every counter at one moment.
type reading struct {
	at             time.Time
	client         time.Duration // CPU of this process, user and system
	mallocs, bytes uint64
	servers        counters
}

// read reads the cheap counters last at the beginning and first at the end (see usage), so that the
// reading of the servers is in no figure, except one INFO, which usage subtracts.
func read(ctx context.Context, f *fleet) (reading, error) {
	servers, err := f.counters(ctx)
	if err != nil {
		return reading{}, err
	}
	return readClient(reading{servers: servers}), nil
}

func readClient(r reading) reading {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	r.mallocs, r.bytes = m.Mallocs, m.TotalAlloc
	r.client = ownCPU()
	r.at = time.Now()
	return r
}

// A usage is what happened between two readings.
type usage struct {
	elapsed        time.Duration
	client         time.Duration
	mallocs, bytes float64
	servers        counters
}

// since ends the measurement that r began.
func (r reading) since(ctx context.Context, f *fleet) (usage, error) {
	end := readClient(reading{})
	servers, err := f.counters(ctx)
	if err != nil {
		return usage{}, err
	}
	u := usage{
		elapsed: end.at.Sub(r.at),
		client:  end.client - r.client,
		mallocs: float64(end.mallocs - r.mallocs),
		bytes:   float64(end.bytes - r.bytes),
		servers: servers.minus(r.servers),
	}
	// A server counts a command when it is through, so between two INFO lies
	// exactly one: the first.
	u.servers.commands -= float64(len(f.watch))
	u.servers.reads -= float64(len(f.watch))
	return u, nil
}

func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(fmt.Sprintf("getrusage of the own process: %v", err)) // it has no way to fail
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// price runs a load against a contender, and of makes figures of its result and cost; room is the
// number of cycles for which a caller has space.
func (e *env) price(ctx context.Context, c contender.Contender, l load, room int, of func(*tally, usage) sample) (got sample, err error) {
	err = e.with(ctx, c, e.fleet.addrs(), l, func(locker contender.Locker) error {
		j := l.ready(room)
		start, err := read(ctx, e.fleet)
		if err != nil {
			return err
		}
		t := j.run(ctx, locker)
		u, err := start.since(ctx, e.fleet)
		if err != nil {
			return err
		}
		got = of(t, u)
		return t.none()
	})
	return got, err
}
