package redisproc

import (
	"fmt"
	"time"
)

// clockArgs come before the caller's arguments of a server with a clock of its own.
// Its allocator has a thread that gives memory back to the system in pieces. From
// one to the next it waits until a time of day, which it reckons by the server's
// clock and the kernel awaits by the machine's. With the server's set back, that
// time is always past: the thread keeps a processor busy while there is memory to
// give back. Without the thread, memory is given back in passing.
var clockArgs = []string{"--jemalloc-bg-thread", "no"}

// CanStepClock says what is missing for StartWithClock to work, or nil.
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
	s, err := newServer(dir, c, append(clockArgs[:len(clockArgs):len(clockArgs)], args...))
	if err != nil {
		c.close()
		return nil, err
	}
	return s, nil
}

// StepClock moves the server's wall clock by d, forwards or back, from the next
// command on (Valkey from 9.1 reads its clock once in a millisecond, so up to that
// later): its TIME, and with it what has expired. Steps add up. The clock is
// the host's and not the process's: it can be stepped while the server hangs or is
// down, and keeps its offset over restarts. Clocks that measure durations, like the
// one that tells a long script, do not notice. Only a server of StartWithClock has
// a clock to step, until Stop.
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
