//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package proc

import (
	"context"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
)

// Everything: here a lock ends the command alone, and not what that has started.
const Everything = false

// A Group is the command alone, where there are no process groups.
type Group struct {
	process  *os.Process
	Stopped  chan os.Signal
	Keys     chan os.Signal
	Orphaned chan struct{}
	Exited   chan struct{}
	Gone     chan struct{}
	Left     bool
	Valid    bool
	state    *os.ProcessState // once Exited is closed
}

// Terms say how the command ends with its lock.
type Terms struct {
	Margin time.Duration
	Sign   syscall.Signal
	Grace  time.Duration
}

// ErrLate says that the lock would have ended too soon after the start of the command.
var ErrLate = os.ErrDeadlineExceeded

// A Refused is the reason for which a command cannot be executed.
type Refused struct{ Err error }

func (r *Refused) Error() string { return r.Err.Error() }

func Start(child *exec.Cmd, _ time.Time, _ Terms) (*Group, error) {
	if err := child.Start(); err != nil {
		return nil, &Refused{err}
	}
	g := &Group{process: child.Process, Exited: make(chan struct{}), Gone: make(chan struct{})}
	go func() {
		defer close(g.Gone)
		defer close(g.Exited)
		_ = child.Wait()
		g.state = child.ProcessState
	}()
	return g, nil
}

func (g *Group) Signal(sig os.Signal) { _ = g.process.Signal(sig) }

func (g *Group) End(sig syscall.Signal) { g.Signal(sig) }

func (g *Group) Kill() { _ = g.process.Kill() }

func (g *Group) Survivors() []string { return nil }

func (g *Group) Stop() {}

func (g *Group) Suspend(os.Signal, context.Context) {}

func (g *Group) EndedByKeeper() bool { return false }
func (g *Group) KeepUntil(time.Time) {}

func (g *Group) Close() {}

func (g *Group) Code() int { return g.state.ExitCode() }

func (g *Group) String() string { return g.state.String() }

func DieOf(syscall.Signal) {}

func Keep([]string, []string) int { return exit.Usage }

// ReapOrphans does nothing: a process 1, which has to wait for orphans, is there on Unix only.
func ReapOrphans() (stop func()) { return func() {} }
