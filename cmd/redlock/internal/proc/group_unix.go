//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package proc

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/term"
)

// A Group is the process group of a command.
type Group struct {
	pid     int
	tty     *term.Terminal // ours; nil: we are in none
	front   bool           // the group has had its foreground, and gets it again with us
	Keys    chan os.Signal // Ctrl-Z that is for us; nil: it stops us by itself
	passed  bool           // it was stopped because we were told to stop
	gate    *gate
	keeper  *keeper
	due     time.Time      // when the keeper ends the command
	overdue bool           // it has not heard of a later time before
	Stopped chan os.Signal // by this signal: Ctrl-Z, or it wants the terminal
	Exited  chan struct{}
	status  syscall.WaitStatus // once Exited is closed
	Refused error              // likewise: why the command was never executed
}

// Start starts a command in a group of its own, and does for it what a shell does
// in a terminal.
//
// If we are all that the shell has started, the group is in the foreground from the start,
// and gets Ctrl-C and Ctrl-Z. In a pipeline another process may read the keys, and in
// a script Ctrl-C is for the script as well: there the foreground stays where it is until
// the command wants something of the terminal and is stopped for it, and what is meant for
// all in the foreground is passed on.
func Start(child *exec.Cmd, until time.Time, sign syscall.Signal, grace time.Duration) (*Group, error) {
	g := &Group{Stopped: make(chan os.Signal, 1), Exited: make(chan struct{}), tty: term.Open()}
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	own := syscall.Getpgrp()
	alone := !passesStops || own == syscall.Getpid() && term.Is(child.Stdin) && term.Is(child.Stdout)
	if g.front = alone && g.tty.Foreground() == own; g.front {
		child.SysProcAttr.Foreground, child.SysProcAttr.Ctty = true, g.tty.FD()
	}
	var err error
	if g.gate, err = startAtGate(child); err != nil {
		g.tty.Close()
		return nil, err
	}
	g.pid, g.due = child.Process.Pid, until
	if g.tty != nil { // after the start, or the command would ignore it, too
		signal.Ignore(syscall.SIGTTOU) // which a process gets that takes the foreground from the background
		g.Keys = catchStops()
	}
	g.keeper = startKeeper(g.pid, until, sign, grace)
	g.gate.open()
	go g.wait(child)
	return g, nil
}

// wait is for the command's end, and for whenever it is stopped.
func (g *Group) wait(child *exec.Cmd) {
	defer close(g.Exited)
	for {
		var status syscall.WaitStatus
		switch _, err := syscall.Wait4(g.pid, &status, syscall.WUNTRACED, nil); {
		case err == syscall.EINTR:
			continue
		case err != nil:
			status = 255 << 8 // it has ended, in an unknown way
		}
		if status.Stopped() {
			select {
			case g.Stopped <- status.StopSignal():
			default:
			}
			continue
		}
		g.status = status
		_ = child.Wait() // for what it has written
		g.Refused = g.gate.refusal()
		return
	}
}

func (g *Group) Signal(sig os.Signal) { signalGroup(g.pid, sig.(syscall.Signal)) }

func (g *Group) Kill() { g.Signal(syscall.SIGKILL) }

// Drain returns when no process of the group is left. The caller has them killed by then.
func (g *Group) Drain(killed time.Time) {
	goneBy(g.pid, killed.Add(time.Second)) // only a zombie that its parent does not reap lasts longer
}

// signalGroup signals all of a process group, if there is one.
func signalGroup(pid int, sig syscall.Signal) {
	_ = syscall.Kill(-pid, sig)
	if sig != syscall.SIGKILL {
		_ = syscall.Kill(-pid, syscall.SIGCONT) // a stopped process gets no other signal
	}
}

// goneBy waits until no process of a group is left, and reports false if one is when the
// time is up.
func goneBy(pid int, limit time.Time) bool {
	for time.Now().Before(limit) {
		if syscall.Kill(-pid, 0) != nil {
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

// Between two commands Ctrl-Z stops us by itself.
var (
	stopKeys     = make(chan os.Signal, 1)
	restoreStops func()
)

// catchStops gives the channel that gets Ctrl-Z from now on; nil: it cannot, or is ignored.
func catchStops() chan os.Signal {
	switch {
	case !passesStops || signal.Ignored(syscall.SIGTSTP):
		return nil
	case restoreStops != nil:
		restoreStops()
	default:
		signal.Notify(stopKeys, syscall.SIGTSTP)
	}
	return stopKeys
}

// Stop passes Ctrl-Z on, which was for us and not for the command.
func (g *Group) Stop() {
	g.passed = true
	_ = syscall.Kill(-g.pid, syscall.SIGTSTP)
}

// Suspend stops us with a command that was stopped in the terminal, and the lock is not
// renewed meanwhile. When we are continued, so is the command; unless its lock has ended:
// then it will only hear of that. One that was stopped because it wants the terminal gets
// it if we have it.
func (g *Group) Suspend(by os.Signal, held context.Context) {
	if g.tty == nil {
		return // it was not a key
	}
	own := syscall.Getpgrp()
	wants := by == syscall.SIGTTIN || by == syscall.SIGTTOU
	if !wants || g.tty.Foreground() != own {
		continued := make(chan os.Signal, 1)
		signal.Notify(continued, syscall.SIGCONT)
		restore := stopsUs()
		whom := 0 // all that the shell has started with us
		if g.passed {
			whom = os.Getpid() // the others were told
		}
		_ = syscall.Kill(whom, syscall.SIGTSTP)
		// It is for any of our threads, and this one may run on until that one has taken
		// it: the command would be continued, and we stopped. Where there is no shell that
		// could continue us we are not stopped at all.
		select {
		case <-continued:
		case <-time.After(time.Second):
		}
		signal.Stop(continued)
		restore()
	}
	g.passed = false
	if g.front = g.front || wants; g.front && g.tty.Foreground() == own {
		g.tty.Give(g.pid)
	}
	if held.Err() == nil {
		_ = syscall.Kill(-g.pid, syscall.SIGCONT)
	}
}

// Close takes the terminal back, and lets the keeper go.
func (g *Group) Close() {
	g.keeper.dismiss()
	if g.tty != nil {
		if g.tty.Foreground() == g.pid {
			g.tty.Give(syscall.Getpgrp())
		}
		signal.Reset(syscall.SIGTTOU)
		if g.Keys != nil {
			restoreStops = stopsUs()
		}
		g.tty.Close()
	}
}

// KeepUntil tells the keeper by when the command must have ended.
func (g *Group) KeepUntil(until time.Time) {
	g.overdue = g.overdue || time.Now().After(g.due)
	g.due = until
	g.keeper.until(until)
}

// EndedByKeeper reports, once Exited is closed, whether it was the keeper that ended the
// command: it was killed, and we had let pass the time that the keeper knew of.
func (g *Group) EndedByKeeper() bool {
	return g.keeper != nil && g.status.Signaled() && g.status.Signal() == syscall.SIGKILL && (g.overdue || time.Now().After(g.due))
}

// Code is the exit code that a shell would give to the command.
func (g *Group) Code() int {
	if g.status.Signaled() {
		return exit.Signal + int(g.status.Signal())
	}
	return g.status.ExitStatus()
}

func (g *Group) String() string {
	if g.status.Signaled() {
		return "signal: " + g.status.Signal().String()
	}
	return "exit status " + strconv.Itoa(g.status.ExitStatus())
}
