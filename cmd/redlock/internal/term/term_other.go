//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

// Package term is the terminal, which cannot be asked on this system.
package term

import (
	"errors"
	"os"
)

// Width returns 0, as for a file that is not a terminal.
func Width(*os.File) int { return 0 }

// A Full cannot be had on this system.
type Full struct{}

// OpenFull returns an error: it cannot be done on this system.
func OpenFull(_, _ *os.File) (*Full, error) { return nil, errors.ErrUnsupported }

func (*Full) Close()                             {}
func (*Full) Signals() <-chan os.Signal          { return nil }
func (*Full) Handle(os.Signal) error             { return nil }
func (*Full) Size() (columns, rows int)          { return 80, 24 }
func (*Full) Draw([]string) error                { return nil }
func (*Full) Read(func([]byte)) (_ <-chan error) { return nil }
