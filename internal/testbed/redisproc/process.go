package redisproc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/quorumlock/redlock/internal/testbed/port"
)

// A process is one run of redis-server, or a Child.
type process struct {
	pid  int
	log  string // the server's; empty for a Child
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended and was waited for
}

// spawn starts a redis-server with this process's environment and these additions.
func spawn(program, log string, args, env []string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), env...)
	// A file, not a buffer: it needs no goroutine to copy, and outlives this process.
	cmd.Stdout, cmd.Stderr = out, out
	p, err := begin(cmd)
	if err != nil {
		return nil, err
	}
	p.log = log
	return p, nil
}

// begin starts a process that dies with this one, if the system offers that.
//
// The parent-death signal of Linux is sent when the parent's *thread* ends. Go
// ends threads as it likes, so the goroutine that starts the process keeps its
// thread to itself for as long as the process lives, waiting for it there.
func begin(cmd *exec.Cmd) (*process, error) {
	dieWithParent(cmd)
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // mostly it was killed; its log, or cmd.ProcessState, says why it ended
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	p.pid = cmd.Process.Pid
	return p, nil
}

// signal never reaches another process: os.Process remembers that it was waited for.
func (p *process) signal(sig os.Signal) error { return p.cmd.Process.Signal(sig) }

// kill ends the process and waits until it is gone. SIGKILL needs no SIGCONT
// before: it also ends a stopped process.
func (p *process) kill() {
	_ = p.signal(syscall.SIGKILL) // fails only if it is gone already
	<-p.done
}

func (p *process) exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// ready polls until this very process answers at addr. It asks for the process number, because
// another server may have taken the port first and be answering in its place.
func (p *process) ready(addr string, within time.Duration) error {
	deadline := time.Now().Add(within)
	var last error
	for wait := time.Millisecond; ; wait = min(2*wait, 20*time.Millisecond) {
		if p.exited() {
			return p.whyItEnded()
		}
		pid, err := askPid(addr)
		switch {
		case err == nil && pid == p.pid:
			return nil
		case err == nil:
			err = fmt.Errorf("process %d answers at %s", pid, addr)
		}
		if last = err; time.Now().After(deadline) {
			return fmt.Errorf("no answer within %v: %w", within, last)
		}
		time.Sleep(wait)
	}
}

func (p *process) whyItEnded() error {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return errors.Join(errors.New("redis-server has ended"), err)
	}
	tail := strings.TrimSpace(string(text[max(0, len(text)-1000):]))
	if strings.Contains(tail, "Address already in use") {
		return fmt.Errorf("%w: %s", port.ErrTaken, tail)
	}
	return fmt.Errorf("redis-server has ended: %s", tail)
}
