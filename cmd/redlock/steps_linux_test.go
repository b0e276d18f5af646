package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

func init() { programs["alone"] = alone }

// alone is a command for redlock to run that must not run twice at once, and ignores SIGTERM. It locks a file for as
// long as it lives, however it ends, and writes to another one if somebody else has locked the first.
func alone() {
	name := os.Args[1]
	lives, err := time.ParseDuration(os.Args[2])
	file, no := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil || no != nil {
		os.Exit(2)
	}
	signal.Ignore(syscall.SIGTERM)
	says := "one\n"
	if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		says = "two\n"
	}
	log, err := os.OpenFile(name+".log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err == nil {
		_, err = log.WriteString(says)
	}
	if err != nil {
		os.Exit(2)
	}
	time.Sleep(lives)
}

// A tap is the way to some nodes, by which every client goes. It counts the messages in both directions, and holds one
// of them up until something was done.
type tap struct {
	urls  []string
	ends  sync.WaitGroup
	close []func() error

	mu     sync.Mutex
	seen   int
	at     int         // the message, from 1; 0: none, or none any more
	counts func() bool // reports whether a message counts
	do     func()      // called once, before that message goes on
}

func newTap(nodes *memredis.Cluster) (*tap, error) {
	t := new(tap)
	for _, node := range nodes.Nodes {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return t, err
		}
		t.urls, t.close = append(t.urls, "redis://"+l.Addr().String()), append(t.close, l.Close)
		t.ends.Go(func() {
			for {
				client, err := l.Accept()
				if err != nil {
					return
				}
				server, err := net.Dial("tcp", node.Addr())
				if err != nil {
					_ = client.Close()
					continue
				}
				t.ends.Go(func() { t.carry(client, server) })
				t.ends.Go(func() { t.carry(server, client) })
			}
		})
	}
	return t, nil
}

func (t *tap) carry(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	for buf := make([]byte, 64<<10); ; {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		t.mu.Lock()
		if t.seen < t.at && t.counts() {
			if t.seen++; t.seen == t.at {
				t.do()
			}
		}
		t.mu.Unlock()
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// end waits until nobody is connected any more.
func (t *tap) end() {
	for _, end := range t.close {
		_ = end()
	}
	t.ends.Wait()
}

// childOf is a child of a process; 0: it has none.
func childOf(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	if fields := strings.Fields(string(text)); err == nil && len(fields) > 0 {
		child, _ := strconv.Atoi(fields[0])
		return child
	}
	for _, entry := range procs() { // a thread other than the first may be the parent
		if stat, err := os.ReadFile(entry + "/stat"); err == nil {
			fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
			if child, _ := strconv.Atoi(filepath.Base(entry)); len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
				return child
			}
		}
	}
	return 0
}

func procs() []string {
	all, _ := filepath.Glob("/proc/[0-9]*")
	return all
}

// A walker has what one case needs.
type walker struct {
	*testing.T
	dir string
	env []string
	tap *tap
}

const stepTTL = 2 * time.Second

// redlock starts a command under the lock.
func (s *walker) redlock(lives time.Duration) (p *redisproc.Child, out *bytes.Buffer) {
	cmd := exec.Command("redlock", "run", "--key", "k", "--ttl", stepTTL.String(), "--timeout", "1m", "--", "alone", filepath.Join(s.dir, "file"), lives.String())
	cmd.Env, out = s.env, new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = patience
	p, err := redisproc.StartChild(cmd)
	if err != nil {
		s.Fatal(err)
	}
	return p, out
}

// log has a line for each command that has begun.
func (s *walker) log() string {
	text, _ := os.ReadFile(filepath.Join(s.dir, "file.log"))
	return string(text)
}

// A step is what happens in a case.
type step struct {
	at     int    // the message between redlock and the nodes since the process is there, from 1
	who    string // the process that gets the signal
	sig    syscall.Signal
	behind bool // redlock waits for the lock first
}

// walk runs redlock, and sends one of its processes a signal at a message. It reports whether there was that one.
func (s *walker) walk(do step) (sent bool) {
	who, sig := do.who, do.sig
	nodes, err := memredis.Start(3)
	if err != nil {
		s.Fatal(err)
	}
	defer nodes.Close()
	var first *redisproc.Child
	var pid int
	struck := make(chan struct{})
	s.tap, err = newTap(nodes)
	defer s.tap.end()
	if err != nil {
		s.Fatal(err)
	}
	s.env = append(os.Environ(), reach.NodesVariable+"="+strings.Join(s.tap.urls, ","))
	if do.behind {
		before, also := s.redlock(stepTTL / 4)
		defer func() {
			if how := before.Ended(); how != "exit status 0" {
				s.Errorf("the one before: %s: %s", how, also)
			}
		}()
		if !within(patience, func() bool { return s.log() != "" }) {
			s.Fatal("the one before does not begin")
		}
	}
	s.tap.mu.Lock() // first is not known yet
	s.tap.at = do.at
	s.tap.counts = func() bool {
		pid = first.Pid()
		if who != "redlock" {
			pid = childOf(pid)
		}
		if who == "command" && pid != 0 {
			pid = childOf(pid)
		}
		return pid != 0
	}
	s.tap.do = func() {
		defer close(struck)
		sent = syscall.Kill(pid, sig) == nil
	}
	first, out := s.redlock(2 * stepTTL) // longer than the lock, if nothing ended it
	s.tap.mu.Unlock()
	defer first.Kill()
	select {
	case <-first.Done():
	case <-struck:
	}
	s.tap.mu.Lock()
	s.tap.at = 0
	s.tap.mu.Unlock()
	if sent {
		second, also := s.redlock(0)
		woken := time.AfterFunc(stepTTL*3/2, func() {
			if sig == syscall.SIGSTOP {
				_ = syscall.Kill(pid, syscall.SIGCONT)
				_ = first.Resume() // which has stopped with its command
			}
		})
		defer woken.Stop()
		if how := second.Ended(); how != "exit status 0" {
			s.Errorf("another one at the lock: %s: %s", how, also)
		}
	}
	select {
	case <-first.Done():
	case <-time.After(patience):
		s.Errorf("redlock has not ended: %s", out)
		return sent
	}
	log := s.log()
	if strings.Contains(log, "two") {
		s.Errorf("two commands at once: %q; the first redlock says %s", log, out)
	}
	if sent && !strings.Contains(log, "one") {
		s.Errorf("no command has run: %q", log)
	}
	file, err := os.OpenFile(filepath.Join(s.dir, "file"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		s.Fatal(err)
	}
	defer file.Close()
	if !within(patience, func() bool { return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil }) {
		s.Error("a command has outlived both")
	}
	return sent
}

// TestEachStepOfRun: redlock, its keeper or its command is killed, or stopped for longer than the lock lasts, at each
// message between redlock and the nodes. Another redlock gets the lock, and its command never runs beside the first;
// and nothing of the first is left when both have ended.
func TestEachStepOfRun(t *testing.T) {
	need.Full(t)
	var mu sync.Mutex
	struck := make(map[string]int)
	t.Run("", func(t *testing.T) {
		for _, do := range []step{
			{0, "redlock", syscall.SIGKILL, false}, {0, "redlock", syscall.SIGSTOP, false}, {0, "redlock", syscall.SIGKILL, true}, {0, "redlock", syscall.SIGSTOP, true},
			{0, "keeper", syscall.SIGKILL, false}, {0, "keeper", syscall.SIGSTOP, false}, {0, "command", syscall.SIGKILL, false}, {0, "command", syscall.SIGSTOP, false},
		} {
			// About as many messages as there are. A case whose message does not come is one without a signal.
			from, to, every := need.Sized(30, 30, 1), need.Sized(80, 80, 130), need.Sized(50, 50, 2)
			if do.who != "redlock" {
				from, to, every = need.Sized(8, 8, 1), need.Sized(8, 8, 26), 1
			}
			for at := from; at <= to; at += every {
				do := do
				do.at = at
				t.Run(fmt.Sprintf("%s gets %v at %d, has waited %v", do.who, do.sig, do.at, do.behind), func(t *testing.T) {
					t.Parallel()
					if (&walker{T: t, dir: t.TempDir()}).walk(do) {
						mu.Lock()
						struck[do.who]++
						mu.Unlock()
					}
				})
			}
		}
	})
	t.Logf("signals were sent: %v", struck)
	for _, who := range []string{"redlock", "keeper", "command"} {
		if struck[who] == 0 {
			t.Errorf("no signal was sent to a %s", who)
		}
	}
}
