package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/quorumlock/redlock/bench/contender"
)

// A phase is one caller's cycles under one condition. The scenarios with faults are made of pairs,
// healthy and hurt, one right after the other: the cost of a fault is a ratio to the same
// contender's healthy phase in the same round.
func (e *env) phase(ctx context.Context, locker contender.Locker, cycles int, name string, got sample) error {
	j := load{callers: 1, window: faultWindows * e.window, cycles: cycles}.ready(cycles)
	peak := watchGoroutines()
	cpu := ownCPU()
	t := j.run(ctx, locker)
	got[name+" cpu"] = float64(ownCPU()-cpu) / float64(max(1, len(t.lock)))
	got[name+" goroutines"] = float64(peak())
	got[name+" cycles"] = float64(len(t.lock))
	got[name+" failed"] = float64(t.failed)
	got[name+" lock p50"], got[name+" lock p99"] = quantile(t.lock, .5), quantile(t.lock, .99)
	got[name+" unlock p50"], got[name+" unlock p99"] = quantile(t.unlock, .5), quantile(t.unlock, .99)
	return t.none()
}

// phaseNote says how long a phase is.
func (e *env) phaseNote() string {
	return fmt.Sprintf("One caller; cycles a phase: %d, or as many as %v allow. "+
		"Healthy and hurt phases alternate, and ratios are taken inside a round.", e.faulted, faultWindows*e.window)
}

// hurtCycles is the number of cycles of a phase with a fault: a contender that waits for seconds
// for every lock would need hours for the others' number.
func (e *env) hurtCycles(c contender.Contender) int {
	if c.Slow {
		return e.stuck
	}
	return e.faulted
}

// compare adds the ratio of each figure of the hurt phase to the healthy one.
func (s sample) compare(hurt, healthy string) {
	for _, figure := range []string{" lock p50", " lock p99", " unlock p50", " unlock p99", " cpu"} {
		if base := s[healthy+figure]; base > 0 {
			s[hurt+figure+" ratio"] = s[hurt+figure] / base
		}
	}
}

// faultColumns are the columns of a table about one fault.
func faultColumns(hurt, healthy string) []column {
	return []column{
		median("cycles", hurt+" cycles", count),
		median("lock p50", hurt+" lock p50", duration),
		median("lock p99", hurt+" lock p99", duration),
		within("p99 ÷ healthy", hurt+" lock p99 ratio"),
		median("unlock p50", hurt+" unlock p50", duration),
		median("unlock p99", hurt+" unlock p99", duration),
		within("p99 ÷ healthy", hurt+" unlock p99 ratio"),
		median("healthy lock p99", healthy+" lock p99", duration),
		median("healthy unlock p99", healthy+" unlock p99", duration),
		median("client CPU/cycle", hurt+" cpu", duration),
		within("CPU ÷ healthy", hurt+" cpu ratio"),
		worst("goroutines added", hurt+" goroutines", count),
		total("failed", hurt+" failed", count),
	}
}

// watchGoroutines samples the number of goroutines until peak is called, which returns the largest increase.
func watchGoroutines() (peak func() int) {
	stop := make(chan struct{})
	var most int
	var done sync.WaitGroup
	var base int
	started := make(chan struct{})
	done.Go(func() {
		base = runtime.NumGoroutine()
		close(started)
		t := time.NewTicker(2 * time.Millisecond)
		defer t.Stop()
		for {
			most = max(most, runtime.NumGoroutine())
			select {
			case <-stop:
				return
			case <-t.C:
			}
		}
	})
	<-started
	return func() int {
		close(stop)
		done.Wait()
		return most - base
	}
}

const drainBound = 30 * time.Second

// drained waits until the goroutines that a fault has piled up are gone, so
// that they are not found in the next phase.
func drained(ctx context.Context, before int) {
	const slack = 16 // pools and probes may keep a few
	for deadline := time.Now().Add(drainBound); runtime.NumGoroutine() > before+slack; {
		if ctx.Err() != nil || time.Now().After(deadline) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
