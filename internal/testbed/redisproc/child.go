package redisproc

import (
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

// A Child is any other process that is hung and killed like a server, and dies with its parent like
// one: the clients of the chaos harness.
type Child struct{ p *process }

// StartChild starts a command as a Child. Its output should go to files, or to pipes that the caller
// made: StartChild waits for the command in a goroutine, which closes what cmd.StdoutPipe returns.
func StartChild(cmd *exec.Cmd) (*Child, error) {
	p, err := begin(cmd)
	if err != nil {
		return nil, fmt.Errorf("redisproc: %w", err)
	}
	return &Child{p}, nil
}

// Pid is the number of the process.
func (c *Child) Pid() int { return c.p.pid }

// Done is closed when the process has ended, whatever ended it.
func (c *Child) Done() <-chan struct{} { return c.p.done }

// Ended says how the process has ended: "exit status 1", "signal: killed". It waits for Done.
func (c *Child) Ended() string {
	<-c.p.done
	return c.p.cmd.ProcessState.String()
}

// Hang stops the process (SIGSTOP). When it returns, it has stopped.
func (c *Child) Hang() error {
	if err := c.p.signal(sigStop); err != nil {
		return fmt.Errorf("redisproc: hang process %d: %w", c.p.pid, err)
	}
	return c.p.awaitStopped()
}

// Resume lets a hung process go on (SIGCONT).
func (c *Child) Resume() error {
	if err := c.p.signal(sigCont); err != nil {
		return fmt.Errorf("redisproc: resume process %d: %w", c.p.pid, err)
	}
	return nil
}

// Kill ends the process at once (SIGKILL), hung or not, and waits until it is gone.
func (c *Child) Kill() { c.p.kill() }

// Dump makes the process, which is a Go program, print its goroutines to standard error, if it still
// can, and end. It waits until the process is gone.
func (c *Child) Dump() {
	_ = c.p.signal(syscall.SIGQUIT) // fails only if it has gone already
	select {
	case <-c.p.done:
	case <-time.After(2 * time.Second):
		c.p.kill()
	}
}
