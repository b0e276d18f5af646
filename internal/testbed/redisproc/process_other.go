//go:build !linux

package redisproc

import (
	"errors"
	"os/exec"
	"time"
)

func dieWithParent(*exec.Cmd) {}

// awaitStopped trusts the signal: there is no portable way to look.
func (p *process) awaitStopped() error { return nil }

func (p *process) cpu() (time.Duration, error) {
	return 0, errors.New("redisproc: CPU times are read from /proc, which only Linux has")
}
