//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// A group is the command alone, where there are no process groups.
type group struct {
	process *os.Process
	stopped chan os.Signal
	keys    chan os.Signal
	exited  chan struct{}
	state   *os.ProcessState // once exited is closed
	refused error            // always nil: startGroup has said so
}

func startGroup(child *exec.Cmd, _ time.Time, _ syscall.Signal, _ time.Duration) (*group, error) {
	if err := child.Start(); err != nil {
		return nil, err
	}
	g := &group{process: child.Process, exited: make(chan struct{})}
	go func() {
		defer close(g.exited)
		_ = child.Wait()
		g.state = child.ProcessState
	}()
	return g, nil
}

func (g *group) signal(sig os.Signal)               { _ = g.process.Signal(sig) }
func (g *group) kill()                              { _ = g.process.Kill() }
func (g *group) drain(time.Time)                    {}
func (g *group) stop()                              {}
func (g *group) suspend(os.Signal, context.Context) {}
func (g *group) keepUntil(time.Time)                {}
func (g *group) close()                             {}
func (g *group) code() int                          { return g.state.ExitCode() }
func (g *group) String() string                     { return g.state.String() }

func dieOf(syscall.Signal) {}

func begin([]string, []string) int { return exitUsage }

func keep([]string, io.Reader) int { return exitUsage }
