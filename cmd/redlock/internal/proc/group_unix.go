//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package proc

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/term"
)

// A Group is a command that runs: its process group, and all that it has started.
type Group struct {
	pid     int
	tty     *term.Terminal // redlock's; nil: there is none
	front   bool           // the group has been in its foreground, and is again when redlock is
	Keys    chan os.Signal // Ctrl-Z that was for redlock; nil: it stops redlock by itself
	passed  bool           // it was stopped because redlock was
	resumed chan os.Signal // SIGCONT since then
	keeper  *keeper
	root    atomic.Int64   // the process below which all is that the command has started
	closed  chan struct{}  // by Close
	heard   chan struct{}  // the keeper has ended, and the output of the command was copied
	Stopped chan os.Signal // the signal that has stopped it: Ctrl-Z, or that of a read in the background

	Exited chan struct{}      // the command itself has ended
	status syscall.WaitStatus // once Exited is closed
	Left   bool               // likewise: something is left of what it has started

	Orphaned chan struct{} // the keeper was killed

	Gone  chan struct{} // nothing is left of what it has started
	Valid bool          // once Gone is closed: that was so, the keeper says, before the lock ended
}

// Start starts a command in a process group of its own, and does the job control of a shell for it. until is the end of
// the lock, and terms say how the command ends with it. The error is ErrLate, a *Refused, or one of the system.
//
// If the shell has started nothing but redlock, the command's group is in the foreground from the start, and gets
// Ctrl-C and Ctrl-Z. In a pipeline another process may read the keys, and in a script Ctrl-C is for the script as well:
// there the foreground stays as it is until the command uses the terminal and is stopped for it, and redlock passes on
// the signals that are for all processes in the foreground.
func Start(child *exec.Cmd, until time.Time, terms Terms) (*Group, error) {
	g := &Group{
		Stopped: make(chan os.Signal, 1), Exited: make(chan struct{}), Orphaned: make(chan struct{}), Gone: make(chan struct{}),
		closed: make(chan struct{}), heard: make(chan struct{}), tty: term.Open(),
	}
	own := syscall.Getpgrp()
	alone := !passesStops || own == syscall.Getpid() && term.Is(child.Stdin) && term.Is(child.Stdout)
	g.front = alone && g.tty.Foreground() == own
	adopt()           // so that redlock has what the keeper had, if that is killed
	if g.tty != nil { // before the start: redlock must not stop while the command runs on
		g.Keys = catchStops()
	}
	var err error
	if g.keeper, err = startKeeper(child, &orders{Front: g.front, Until: until.UnixNano(), Terms: terms}); err != nil {
		g.leaveTerminal()
		return nil, err
	}
	g.root.Store(int64(child.Process.Pid))
	if g.pid, err = g.keeper.started(until); err == errKeeper {
		_ = child.Wait()
		if g.pid = eldest(os.Getpid()); g.pid != 0 { // it was killed after it had started the command
			err = nil
		}
	}
	if err != nil {
		signalAll(child.Process.Pid, child.Process.Pid, syscall.SIGKILL) // the keeper was too late to say what it has started
		g.keeper.dismiss()
		_ = child.Wait()
		if g.front && g.tty.Foreground() != own {
			signal.Ignore(syscall.SIGTTOU)
			g.tty.Give(own)
			signal.Reset(syscall.SIGTTOU)
		}
		g.leaveTerminal()
		return nil, err
	}
	if g.tty != nil { // after the start, or the command would ignore it, too
		signal.Ignore(syscall.SIGTTOU) // a process in the background gets it when it sets the foreground
	}
	go g.listen(child)
	return g, nil
}

// listen takes what the keeper (the parent of the command) reports of it. If the keeper is killed, listen waits for the
// command's processes itself.
func (g *Group) listen(child *exec.Cmd) {
	for {
		line, err := g.keeper.from.ReadString('\n')
		if err != nil {
			break
		}
		word, numbers := parseWord(line)
		g.note(word, numbers[0], numbers[1])
	}
	_ = child.Wait() // until its output is copied
	close(g.heard)
	select {
	case <-g.Gone:
		return
	case <-g.closed:
		return
	default:
	}
	// The keeper was killed. What it has kept are children of redlock now, where orphans are adopted; and
	// redlock has no other ones.
	g.root.Store(int64(os.Getpid()))
	takeOver()
	close(g.Orphaned)
	reap(g.pid, func(words ...any) { g.note(words[0].(string), words[1].(int), append(words, 0)[2].(int)) })
	g.note(endedWord, unknown, 0) // if it was no child
	g.note(goneWord, 0, 0)
}

// unknown is the status of a command of which it is not known how it has ended.
const unknown = 255 << 8

// note stores what the keeper reports of the command: word is stoppedWord, endedWord or goneWord, with its two numbers.
// Only the goroutine of listen calls it.
func (g *Group) note(word string, number, more int) {
	switch word {
	case stoppedWord:
		select {
		case g.Stopped <- syscall.Signal(number):
		default:
		}
	case endedWord:
		if !isClosed(g.Exited) {
			g.status, g.Left = syscall.WaitStatus(number), more == 1
			close(g.Exited)
		}
	case goneWord:
		if !isClosed(g.Gone) {
			g.Valid = number == 1
			close(g.Gone)
		}
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Signal sends the signal to the command's process group.
func (g *Group) Signal(sig os.Signal) { signalGroup(g.pid, sig.(syscall.Signal)) }

// Kill sends SIGKILL to all that the command has started, again and again until nothing is left. It does not wait for
// that.
func (g *Group) Kill() {
	go func() {
		for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
			signalAll(int(g.root.Load()), g.pid, syscall.SIGKILL)
			select {
			case <-g.Gone:
				return
			case <-g.closed:
				return
			case <-time.After(pause):
			}
		}
	}()
}

// Survivors returns names and numbers of what is left of what the command has started, as far as they can be seen.
func (g *Group) Survivors() []string { return survivors(int(g.root.Load()), g.pid) }

// signalGroup sends a signal to all processes of group pid, if there is one, and lets stopped ones go on to get it.
func signalGroup(pid int, sig syscall.Signal) {
	_ = syscall.Kill(-pid, sig)
	if sig != syscall.SIGKILL {
		_ = syscall.Kill(-pid, syscall.SIGCONT) // a stopped process gets no other signal
	}
}

// Between two commands Ctrl-Z stops redlock by itself.
var (
	stopKeys     = make(chan os.Signal, 1)
	restoreStops func()
)

// catchStops returns a channel that gets each Ctrl-Z (SIGTSTP) from now on; nil: it cannot be caught here, or is
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

// Stop passes Ctrl-Z on to the command, as redlock got it and the command did not. The shell sees its other processes
// stop, and may continue the job before the command has stopped: from here on a SIGCONT is noted, and Suspend then does
// not stop redlock, which no signal would continue.
func (g *Group) Stop() {
	if g.passed {
		signal.Stop(g.resumed) // the command has ignored the last one
	}
	g.passed, g.resumed = true, make(chan os.Signal, 1)
	signal.Notify(g.resumed, syscall.SIGCONT)
	_ = syscall.Kill(-g.pid, syscall.SIGTSTP)
}

// Suspend stops redlock, as the signal by has stopped the command in the terminal; the lock is not renewed meanwhile.
// When redlock is continued, so is the command, unless held, the lock's context, has ended: then the command only gets
// the signal for that. A command that was stopped because it reads from the terminal gets the foreground if redlock has
// it.
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
		// Any thread of redlock may take the signal, and this one may run on until then: the command would be
		// continued, and redlock stopped. Where no shell could continue redlock, the kernel does not stop it at all.
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

// Close takes the foreground back, and ends the keeper. What is left of what the command has started goes on.
func (g *Group) Close() {
	close(g.closed)
	g.keeper.dismiss()
	<-g.heard
	if g.tty != nil {
		if g.tty.Foreground() == g.pid {
			g.tty.Give(syscall.Getpgrp())
		}
		signal.Reset(syscall.SIGTTOU)
	}
	g.leaveTerminal()
}

// leaveTerminal closes the terminal. From then on Ctrl-Z stops redlock alone, without Suspend.
func (g *Group) leaveTerminal() {
	if g.Keys != nil {
		restoreStops = stopsUs()
	}
	g.tty.Close()
}

// KeepUntil tells the keeper (the process that ends the command if redlock cannot) until when the lock lasts.
func (g *Group) KeepUntil(until time.Time) { g.keeper.lasts(until) }

// End sends a signal to all that the command has started, because its lock ends, or the command itself has ended.
func (g *Group) End(sig syscall.Signal) {
	g.keeper.ending()
	signalAll(int(g.root.Load()), g.pid, sig)
}

// EndedByKeeper reports, once Exited is closed, whether the keeper has ended the command since redlock did not run.
func (g *Group) EndedByKeeper() bool { return g.keeper.hasBegun() }

// Code returns the exit code that a shell would give to the command. Exited must be closed.
func (g *Group) Code() int {
	if g.status.Signaled() {
		return exit.Signal + int(g.status.Signal())
	}
	return g.status.ExitStatus()
}

func (g *Group) String() string {
	if !isClosed(g.Exited) {
		return "it still runs"
	}
	if g.status.Signaled() {
		return "signal: " + g.status.Signal().String()
	}
	return "exit status " + strconv.Itoa(g.status.ExitStatus())
}
