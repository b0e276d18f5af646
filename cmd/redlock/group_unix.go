//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// A group is the process group of a command.
type group struct {
	pid     int
	tty     *terminal // ours, in whose foreground the group is; nil: it is in none
	keeper  *keeper
	stopped chan struct{} // somebody has stopped the command: Ctrl-Z
	exited  chan struct{}
	status  syscall.WaitStatus // once exited is closed
}

// startGroup starts a command in a group of its own; in the terminal's foreground, if
// that is where we are, or it would be stopped when it reads from there. From then on it
// is the group that gets Ctrl-C and Ctrl-Z, and we do for it what a shell does.
func startGroup(child *exec.Cmd, until time.Time, sign syscall.Signal, grace time.Duration) (*group, error) {
	g := &group{stopped: make(chan struct{}, 1), exited: make(chan struct{}), tty: openTerminal()}
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if g.tty.foreground() == syscall.Getpgrp() {
		child.SysProcAttr.Foreground, child.SysProcAttr.Ctty = true, g.tty.fd()
	}
	if err := child.Start(); err != nil {
		g.tty.close()
		return nil, err
	}
	g.pid = child.Process.Pid
	if g.tty != nil { // after the start, or the command would ignore it, too
		signal.Ignore(syscall.SIGTTOU) // that of who takes the foreground without being there
	}
	g.keeper = startKeeper(g.pid, until, sign, grace)
	go g.wait(child)
	return g, nil
}

// wait is for the command's end, and for whenever it is stopped.
func (g *group) wait(child *exec.Cmd) {
	defer close(g.exited)
	for {
		var status syscall.WaitStatus
		switch _, err := syscall.Wait4(g.pid, &status, syscall.WUNTRACED, nil); {
		case err == syscall.EINTR:
			continue
		case err != nil:
			status = 255 << 8 // it has ended, and nobody knows how
		}
		if status.Stopped() {
			select {
			case g.stopped <- struct{}{}:
			default:
			}
			continue
		}
		g.status = status
		_ = child.Wait() // for what it has written
		return
	}
}

func (g *group) signal(sig os.Signal) { signalGroup(g.pid, sig.(syscall.Signal)) }
func (g *group) kill()                { g.signal(syscall.SIGKILL) }

// drain returns when nobody of the group is left, whom somebody else kills by then.
func (g *group) drain(killed time.Time) {
	goneBy(g.pid, killed.Add(time.Second)) // longer only takes a zombie that nobody buries
}

// signalGroup tells all of a process group, if there is one.
func signalGroup(pid int, sig syscall.Signal) {
	_ = syscall.Kill(-pid, sig)
	if sig != syscall.SIGKILL {
		_ = syscall.Kill(-pid, syscall.SIGCONT) // who is stopped hears nothing
	}
}

// goneBy waits until nobody of a process group is left, and reports false if somebody is
// when the time is up.
func goneBy(pid int, limit time.Time) bool {
	for time.Now().Before(limit) {
		if syscall.Kill(-pid, 0) != nil {
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

// suspend stops us with a command that was stopped in the terminal, and the lock is not
// renewed meanwhile. When we are continued, so is the command; unless its lock has ended:
// then it will only hear of that.
func (g *group) suspend(held context.Context) {
	if g.tty == nil {
		return // it was not a key
	}
	// One in the background is stopped because it wants the terminal: which we may have
	// been given meanwhile.
	if own := syscall.Getpgrp(); g.tty.foreground() != own {
		continued := make(chan os.Signal, 1)
		signal.Notify(continued, syscall.SIGCONT)
		g.tty.give(own)
		_ = syscall.Kill(0, syscall.SIGTSTP)
		// It is for any of our threads, and this one may run on until that one has taken
		// it: the command would be continued, and we stopped. Where there is no shell that
		// could continue us we are not stopped at all.
		select {
		case <-continued:
		case <-time.After(time.Second):
		}
		signal.Stop(continued)
	}
	if g.tty.foreground() == syscall.Getpgrp() {
		g.tty.give(g.pid)
	}
	if held.Err() == nil {
		_ = syscall.Kill(-g.pid, syscall.SIGCONT)
	}
}

// close takes the terminal back, and lets the keeper go.
func (g *group) close() {
	g.keeper.dismiss()
	if g.tty != nil {
		if g.tty.foreground() == g.pid {
			g.tty.give(syscall.Getpgrp())
		}
		signal.Reset(syscall.SIGTTOU)
		g.tty.close()
	}
}

func (g *group) keepUntil(until time.Time) { g.keeper.until(until) }

// code is the exit code that a shell would give to the command.
func (g *group) code() int {
	if g.status.Signaled() {
		return exitSignal + int(g.status.Signal())
	}
	return g.status.ExitStatus()
}

func (g *group) String() string {
	if g.status.Signaled() {
		return "signal: " + g.status.Signal().String()
	}
	return "exit status " + strconv.Itoa(g.status.ExitStatus())
}
