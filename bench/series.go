package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/quorumlock/redlock/bench/contender"
)

// A sample has one contender's figures of one round. Durations are in nanoseconds.
type sample map[string]float64

// A series is every sample of a measurement, by contender and round.
type series struct {
	contenders []contender.Contender
	rounds     map[string][]sample // nil at a round that failed
	failures   []string
}

// interleave measures all contenders once, then all once more, and so on: whatever the machine does
// meanwhile affects all of them, and a ratio taken inside one round compares neighbours in time. A
// contender that fails a round loses that round, not the others' figures.
func (e *env) interleave(ctx context.Context, what string, cs []contender.Contender,
	measure func(context.Context, contender.Contender) (sample, error),
) (*series, error) {
	s := &series{contenders: cs, rounds: map[string][]sample{}}
	goroutines := runtime.NumGoroutine()
	for round := range e.rounds {
		for _, c := range cs {
			fmt.Fprintf(os.Stderr, "%s: round %d of %d: %s\n", what, round+1, e.rounds, c.Name)
			// What the one before has left running must not count for this one.
			drained(ctx, goroutines)
			err := errors.Join(e.fleet.quiet(ctx), e.fleet.renew(ctx))
			var got sample
			if err == nil {
				got, err = measure(ctx, c)
			}
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if err != nil {
				s.failures = append(s.failures, fmt.Sprintf("%s, round %d: %v", c.Name, round+1, err))
				got = nil
			}
			s.rounds[c.Name] = append(s.rounds[c.Name], got)
		}
	}
	e.failures += len(s.failures)
	return s, nil
}

// values returns one figure of one contender over the rounds that have it.
func (s *series) values(name, figure string) []float64 {
	var out []float64
	for _, smp := range s.rounds[name] {
		if v, ok := smp[figure]; ok {
			out = append(out, v)
		}
	}
	return out
}

// ratios returns the figure divided by another contender's in the same round.
func (s *series) ratios(name, figure, to string) []float64 {
	reference := s.rounds[to]
	var out []float64
	for round, smp := range s.rounds[name] {
		if round >= len(reference) {
			break
		}
		v, ok := smp[figure]
		base, has := reference[round][figure]
		if ok && has && base > 0 {
			out = append(out, v/base)
		}
	}
	return out
}
