//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package proc

import (
	"context"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
)

// A Group is the command alone, where there are no process groups.
type Group struct {
	process *os.Process
	Stopped chan os.Signal
	Keys    chan os.Signal
	Exited  chan struct{}
	state   *os.ProcessState // once Exited is closed
	Refused error            // always nil: Start returns the error
}

func Start(child *exec.Cmd, _ time.Time, _ syscall.Signal, _ time.Duration) (*Group, error) {
	if err := child.Start(); err != nil {
		return nil, err
	}
	g := &Group{process: child.Process, Exited: make(chan struct{})}
	go func() {
		defer close(g.Exited)
		_ = child.Wait()
		g.state = child.ProcessState
	}()
	return g, nil
}

func (g *Group) Signal(sig os.Signal) { _ = g.process.Signal(sig) }

func (g *Group) End(sig os.Signal) { g.Signal(sig) }

func (g *Group) Kill() { _ = g.process.Kill() }

func (g *Group) Drain(time.Time) {}

func (g *Group) Stop() {}

func (g *Group) Suspend(os.Signal, context.Context) {}

func (g *Group) EndedByKeeper() bool { return false }
func (g *Group) KeepUntil(time.Time) {}

func (g *Group) Close() {}

func (g *Group) Code() int { return g.state.ExitCode() }

func (g *Group) String() string { return g.state.String() }

func DieOf(syscall.Signal) {}

func Begin([]string, []string) int { return exit.Usage }

func Keep([]string, io.Reader, io.Writer) int { return exit.Usage }
