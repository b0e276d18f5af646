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
	tty     *term.Terminal // redlock's; nil: there is none
	front   bool           // the group has been in its foreground, and is again when redlock is
	Keys    chan os.Signal // Ctrl-Z that was for redlock; nil: it stops redlock by itself
	passed  bool           // it was stopped because redlock was
	resumed chan os.Signal // SIGCONT since then
	gate    *gate
	keeper  *keeper
	Stopped chan os.Signal // the signal that has stopped it: Ctrl-Z, or that of a read in the background
	Exited  chan struct{}
	status  syscall.WaitStatus // once Exited is closed
	Refused error              // likewise: why the command was never executed
}

// Start starts a command in a group of its own, and does the job control of a shell for it.
//
// If the shell has started nothing but redlock, the command's group is in the foreground from
// the start, and gets Ctrl-C and Ctrl-Z. In a pipeline another process may read the keys, and in
// a script Ctrl-C is for the script as well: there the foreground stays as it is until the
// command uses the terminal and is stopped for it, and redlock passes on the signals that are
// for all processes in the foreground.
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
	g.pid = child.Process.Pid
	if g.tty != nil { // after the start, or the command would ignore it, too
		signal.Ignore(syscall.SIGTTOU) // a process in the background gets it when it sets the foreground
		g.Keys = catchStops()
	}
	g.keeper = startKeeper(g.pid, until, sign, grace)
	g.gate.open()
	go g.wait(child)
	return g, nil
}

// wait waits for the command's end, and notes whenever it is stopped.
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
		_ = child.Wait() // until its output is copied
		g.Refused = g.gate.refusal()
		return
	}
}

func (g *Group) Signal(sig os.Signal) { signalGroup(g.pid, sig.(syscall.Signal)) }

func (g *Group) Kill() { g.Signal(syscall.SIGKILL) }

// Drain returns when no process of the group is left, which the caller has had killed by then.
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

// Between two commands Ctrl-Z stops redlock by itself.
var (
	stopKeys     = make(chan os.Signal, 1)
	restoreStops func()
)

// catchStops returns the channel that gets Ctrl-Z from now on; nil: it cannot be caught, or is
// ignored.
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

// Stop passes Ctrl-Z on, which redlock got and the command did not. The shell sees its other
// processes stop, and may continue the job before the command has stopped: from here on a
// SIGCONT is noted, and Suspend then does not stop redlock, which no signal would continue.
func (g *Group) Stop() {
	if g.passed {
		signal.Stop(g.resumed) // the command has ignored the last one
	}
	g.passed, g.resumed = true, make(chan os.Signal, 1)
	signal.Notify(g.resumed, syscall.SIGCONT)
	_ = syscall.Kill(-g.pid, syscall.SIGTSTP)
}

// Suspend stops redlock with a command that was stopped in the terminal; the lock is not renewed
// meanwhile. When redlock is continued, so is the command, unless its lock has ended: then it
// only gets the signal for that. A command that was stopped because it reads from the terminal
// gets the foreground if redlock has it.
func (g *Group) Suspend(by os.Signal, held context.Context) {
	if g.tty == nil {
		return // no key has stopped it
	}
	own := syscall.Getpgrp()
	wants := by == syscall.SIGTTIN || by == syscall.SIGTTOU
	if !wants || g.tty.Foreground() != own {
		continued, target := g.resumed, os.Getpid() // the others have got Ctrl-Z
		if !g.passed {
			continued, target = make(chan os.Signal, 1), 0 // all that the shell has started with redlock
			signal.Notify(continued, syscall.SIGCONT)
		}
		restore := stopsUs()
		if len(continued) == 0 {
			_ = syscall.Kill(target, syscall.SIGTSTP)
		}
		// Any thread of redlock may take the signal, and this one may run on until then: the
		// command would be continued, and redlock stopped. Where no shell could continue
		// redlock, the kernel does not stop it at all.
		select {
		case <-continued:
		case <-time.After(time.Second):
		}
		signal.Stop(continued)
		restore()
	}
	if g.passed {
		signal.Stop(g.resumed)
	}
	g.passed = false
	if g.front = g.front || wants; g.front && g.tty.Foreground() == own {
		g.tty.Give(g.pid)
	}
	if held.Err() == nil {
		_ = syscall.Kill(-g.pid, syscall.SIGCONT)
	}
}

// Close takes the foreground back, and ends the keeper.
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
func (g *Group) KeepUntil(until time.Time) { g.keeper.until(until) }

// End signals the command because its lock ends.
func (g *Group) End(sig os.Signal) {
	g.keeper.ending()
	g.Signal(sig)
}

// EndedByKeeper reports, once Exited is closed, whether the keeper has ended the command.
func (g *Group) EndedByKeeper() bool { return g.keeper.hasBegun() }

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
