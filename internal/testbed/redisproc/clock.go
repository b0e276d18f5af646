package redisproc

import (
	"fmt"
	"time"
)

// clockArgs come before the caller's arguments of a server with a clock of its own. A thread of the
// server's allocator gives memory back to the system in pieces. Between two pieces it waits until a
// time of day, which it computes from the server's clock and the kernel awaits by the machine's. If
// the server's clock is set back, that time is always past, and the thread keeps a processor busy
// while there is memory to give back. Without the thread, the allocator gives memory back by the way.
var clockArgs = []string{"--jemalloc-bg-thread", "no"}

// CanStepClock returns what is missing for StartWithClock to work; nil: nothing is.
func CanStepClock() error {
	if err := Available(); err != nil {
		return err
	}
	if _, err := shim(); err != nil {
		return fmt.Errorf("redisproc: %w", err)
	}
	return nil
}

// StartWithClock is Start of a server whose wall clock StepClock can step. The
// clock is that of the machine until then. This needs Linux and gcc; see
// CanStepClock.
func StartWithClock(dir string, args ...string) (*Server, error) {
	if err := Available(); err != nil {
		return nil, err
	}
	c, err := newClock()
	if err != nil {
		return nil, fmt.Errorf("redisproc: %w", err)
	}
	s, err := newServer(binary, dir, c, append(clockArgs[:len(clockArgs):len(clockArgs)], args...))
	if err != nil {
		c.close()
		return nil, err
	}
	return s, nil
}

// StepClock moves the server's wall clock by d, forwards or back: the reply of TIME, and which keys
// have expired. It takes effect with the next command; Valkey from 9.1 on reads its clock once in a
// millisecond, so there up to a millisecond later. Steps add up. The clock is the host's and not the
// process's: it can be stepped while the server hangs or is down, and keeps its offset over restarts.
// Clocks that measure durations, like the one that finds a long script, are not affected. Only a
// server of StartWithClock has a clock to step, until Stop.
func (s *Server) StepClock(d time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clock == nil {
		return fmt.Errorf("redisproc: step the clock of %s: it has none of its own", s.Addr)
	}
	if err := s.clock.step(d); err != nil {
		return fmt.Errorf("redisproc: step the clock of %s: %w", s.Addr, err)
	}
	return nil
}

// SlewClock makes the server's wall clock gain so much in each second, or lose it; with 0 it keeps what it has gained,
// and runs like the machine's again. It is for the servers that have a clock to step, and takes effect like a step.
func (s *Server) SlewClock(gain time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clock == nil {
		return fmt.Errorf("redisproc: slew the clock of %s: it has none of its own", s.Addr)
	}
	if err := s.clock.slew(gain); err != nil {
		return fmt.Errorf("redisproc: slew the clock of %s: %w", s.Addr, err)
	}
	return nil
}
