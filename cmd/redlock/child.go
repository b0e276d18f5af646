package main

import (
	"context"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/quorumlock/redlock"
)

// grace is how long a command has between SIGTERM and SIGKILL when its lock is
// lost. It works without the lock then, so it is time to stop, not to finish.
const grace = time.Second

// supervise runs the command to its end, passes signals on to it, and ends it if
// the lock is lost before: then it also says why. The error is that it could not
// be started.
//
// The command stays in our process group. In one of its own it would be in the
// terminal's background: stopped when it reads from there, and out of reach of
// Ctrl-C and Ctrl-Z, unless we did a shell's job control. The price is that only
// the command itself is signalled, and not what it has started.
func (c *command) supervise(child *exec.Cmd, lock *redlock.Lock, signals <-chan os.Signal) (ended *os.ProcessState, lost bool, err error) {
	if err := child.Start(); err != nil {
		return nil, false, notExecutable(child.Args[0], err)
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = child.Wait() // its ProcessState says it all
	}()

	held := lock.Context(context.Background())
	gone := held.Done()
	for {
		select {
		case sig := <-signals:
			if !sentByTerminal(sig) {
				_ = child.Process.Signal(sig) // if it has gone, exited comes next
			}
		case <-gone:
			gone, lost = nil, true
			// First the deeds: stderr may be a pipe that nobody empties.
			_ = child.Process.Signal(syscall.SIGTERM)
			kill := time.AfterFunc(grace, func() { _ = child.Process.Kill() })
			defer kill.Stop()
			c.say("lost %q while the command runs, which gets SIGTERM, and SIGKILL in %v: %s", lock.Name(), grace, plain(context.Cause(held)))
		case <-exited:
			return child.ProcessState, lost, nil
		}
	}
}
