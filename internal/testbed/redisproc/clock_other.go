//go:build !linux

package redisproc

import (
	"errors"
	"time"
)

var errNoClock = errors.New("only on Linux can a server have a clock of its own")

func shim() ([]byte, error) { return nil, errNoClock }

// A clock cannot be made here, so its methods are never called.
type clock struct{}

func newClock() (*clock, error)         { return nil, errNoClock }
func (*clock) env() []string            { return nil }
func (*clock) step(time.Duration) error { return errNoClock }
func (*clock) slew(time.Duration) error { return errNoClock }
func (*clock) readBy(int) error         { return errNoClock }
func (*clock) close()                   {}
