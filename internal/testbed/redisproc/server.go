// Package redisproc runs real redis-server processes on the loopback interface,
// hangs, kills and restarts them, and steps their clocks.
//
// It does not import testing: the benchmarks and the chaos harness use it too.
package redisproc

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/testbed/port"
)

const (
	binary = "redis-server"

	startWithin = 10 * time.Second // a process start; a busy machine takes a second
)

// defaults come before the caller's arguments, which therefore win.
var defaults = []string{
	"--save", "",
	"--appendonly", "no",
	"--bind", "127.0.0.1",
	"--loglevel", "warning",
	"--daemonize", "no",
}

// Available returns what is missing for Start to work; nil: nothing is.
func Available() error {
	if _, err := exec.LookPath(binary); err != nil {
		return fmt.Errorf("redisproc: no %s in PATH (Debian and Ubuntu: apt-get install %s): %w", binary, binary, err)
	}
	return nil
}

// A Server is one redis-server. Its address stays the same over restarts.
// Methods are safe from any goroutine.
type Server struct {
	Addr string // host:port

	program string
	claim   *port.Claim
	args    []string
	dir     string
	ownDir  bool
	clock   *clock // nil: the machine's

	mu   sync.Mutex // protects what follows: one change of state at a time
	proc *process   // nil when there is none
	hung bool
}

// Start starts a server with the given arguments, which override the default ones
// (but not the port, which Start chooses), and returns when it answers. Files
// (its log, and its data if the arguments ask for them) go to dir; with "" to a
// temporary directory that Stop removes.
//
// On Linux the server dies with the process that has started it, however that process
// ends. Elsewhere it survives if Stop is not called.
func Start(dir string, args ...string) (*Server, error) {
	if err := Available(); err != nil {
		return nil, err
	}
	return newServer(binary, dir, nil, args)
}

// StartProgram is Start of another redis-server than that in the PATH.
func StartProgram(program, dir string, args ...string) (*Server, error) {
	return newServer(program, dir, nil, args)
}

func newServer(program, dir string, c *clock, args []string) (*Server, error) {
	s := &Server{program: program, args: args, dir: dir, clock: c}
	if dir == "" {
		tmp, err := os.MkdirTemp("", "redisproc")
		if err != nil {
			return nil, fmt.Errorf("redisproc: %w", err)
		}
		s.dir, s.ownDir = tmp, true
	}
	err := s.startAnywhere()
	if err != nil {
		s.removeDir()
		return nil, fmt.Errorf("redisproc: %w", err)
	}
	return s, nil
}

// startAnywhere starts the server at a port that it keeps. Between the test whether a port is free and the
// server's bind, another process may take it.
func (s *Server) startAnywhere() error {
	_, err := port.Find(func(c *port.Claim, l net.Listener) error {
		s.claim, s.Addr = c, c.Addr
		_ = l.Close()
		return s.launch()
	})
	return err
}

// launch starts the process at the port and waits until it answers.
func (s *Server) launch() error {
	args := append([]string{"--port", strconv.Itoa(s.claim.Number), "--dir", s.dir}, defaults...)
	var env []string
	if s.clock != nil {
		env = s.clock.env()
	}
	p, err := spawn(s.program, filepath.Join(s.dir, "redis.log"), append(args, s.args...), env)
	if err != nil {
		return err
	}
	err = p.ready(s.Addr, startWithin)
	if err == nil && s.clock != nil {
		err = s.clock.readBy(p.pid)
	}
	if err != nil {
		p.kill()
		return err
	}
	s.proc, s.hung = p, false
	return nil
}

// URL is the server's address as redis://host:port.
func (s *Server) URL() string { return "redis://" + s.Addr }

// Dir is the directory of the server's files.
func (s *Server) Dir() string { return s.dir }

// Pid is the number of the process, 0 when there is none.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.alive("pid")
	if err != nil {
		return 0
	}
	return p.pid
}

// Running reports whether there is a process and it is not hung.
func (s *Server) Running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.alive("running")
	return err == nil && !s.hung
}

// alive returns the process if there is one: Kill may have ended it, or it may have ended by itself.
// The caller holds the mutex.
func (s *Server) alive(op string) (*process, error) {
	if s.proc == nil || s.proc.exited() {
		return nil, fmt.Errorf("redisproc: %s %s: the server is down", op, s.Addr)
	}
	return s.proc, nil
}

// Hang stops the process (SIGSTOP): the kernel goes on accepting connections and
// requests for it, which it will execute when it goes on. When Hang returns, it
// has stopped.
func (s *Server) Hang() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.alive("hang")
	if err != nil {
		return err
	}
	if err := p.signal(sigStop); err != nil {
		return fmt.Errorf("redisproc: hang %s: %w", s.Addr, err)
	}
	s.hung = true
	return p.awaitStopped()
}

// Resume lets a hung process go on (SIGCONT).
func (s *Server) Resume() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.alive("resume")
	if err != nil {
		return err
	}
	if err := p.signal(sigCont); err != nil {
		return fmt.Errorf("redisproc: resume %s: %w", s.Addr, err)
	}
	s.hung = false
	return nil
}

// Kill ends the process at once (SIGKILL), hung or not, and waits until it is gone. Without a
// process it does nothing.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kill()
}

func (s *Server) kill() {
	if s.proc != nil {
		s.proc.kill()
		s.proc, s.hung = nil, false
	}
}

// Restart starts the server again, at the same port with the same directory and arguments, and kills
// it first if it runs. The server keeps what it has saved, which is nothing unless the arguments say
// otherwise.
func (s *Server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kill()
	if err := s.launch(); err != nil {
		return fmt.Errorf("redisproc: restart %s: %w", s.Addr, err)
	}
	return nil
}

// dataFiles are the files with a server's data, by their default names.
var dataFiles = []string{"appendonlydir", "appendonly.aof", "dump.rdb"}

// Forget is Restart without the server's data.
func (s *Server) Forget() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kill()
	var err error
	for _, name := range dataFiles {
		err = errors.Join(err, os.RemoveAll(filepath.Join(s.dir, name)))
	}
	if err == nil {
		err = s.launch()
	}
	if err != nil {
		return fmt.Errorf("redisproc: forget %s: %w", s.Addr, err)
	}
	return nil
}

// Stop kills the process and removes the directory if Start has made it. The
// server cannot be restarted after that. Stopping twice does no harm.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kill()
	s.claim.Close()
	s.removeDir()
	if s.clock != nil {
		s.clock.close()
	}
}

func (s *Server) removeDir() {
	if s.ownDir {
		_ = os.RemoveAll(s.dir)
	}
}
