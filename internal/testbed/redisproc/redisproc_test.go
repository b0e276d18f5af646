//go:build unix

package redisproc

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/testbed/port"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

func start(t *testing.T, args ...string) *Server {
	t.Helper()
	need.Servers(t, Available)
	s, err := Start("", args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// say sends one inline command over a connection of its own and returns the
// first line of the answer.
func say(addr, command string, patience time.Duration) (string, error) {
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, command+"\r\n"); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(line), err
}

func want(t *testing.T, s *Server, command, answer string) {
	t.Helper()
	if got, err := say(s.Addr, command, 5*time.Second); got != answer || err != nil {
		t.Errorf("%s: %q, %v, want %q", command, got, err, answer)
	}
}

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func within(t *testing.T, d time.Duration, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(d); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", d, what)
		}
	}
}

func TestKillAndRestart(t *testing.T) {
	s := start(t)
	want(t, s, "SET k v", "+OK")
	pid, addr := s.Pid(), s.Addr
	s.Kill()
	if !gone(pid) || s.Running() || s.Pid() != 0 {
		t.Errorf("killed, but: gone %v, running %v, pid %d", gone(pid), s.Running(), s.Pid())
	}
	if _, err := say(addr, "PING", time.Second); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a killed server: %v", err)
	}
	s.Kill() // nothing to do
	if udp, err := net.ListenPacket("udp", addr); err == nil {
		udp.Close()
		t.Error("another server can be started at its port")
	}
	if s.Hang() == nil || s.Resume() == nil {
		t.Error("a killed server can be hung")
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	if s.Addr != addr || s.Pid() == pid || !s.Running() {
		t.Errorf("restarted at %s as %d", s.Addr, s.Pid())
	}
	want(t, s, "EXISTS k", ":0")
}

func TestArgumentsOverrideDefaults(t *testing.T) {
	s := start(t, "--appendonly", "yes", "--appendfsync", "always")
	want(t, s, "SET k v", "+OK")
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	want(t, s, "EXISTS k", ":1")
}

func TestHang(t *testing.T) {
	s := start(t)
	if err := s.Hang(); err != nil {
		t.Fatal(err)
	}
	if s.Running() {
		t.Error("a hung server runs")
	}
	if _, err := say(s.Addr, "SET k v", 20*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a hung server: %v", err)
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	// The kernel has kept the request of the client that gave up.
	within(t, 5*time.Second, "the late SET", func() bool {
		got, _ := say(s.Addr, "EXISTS k", time.Second)
		return got == ":1"
	})
}

func TestStop(t *testing.T) {
	s := start(t)
	if err := s.Hang(); err != nil {
		t.Fatal(err)
	}
	pid := s.Pid()
	s.Stop()
	s.Stop()
	if !gone(pid) {
		t.Error("a hung server survives Stop")
	}
	udp, err := net.ListenPacket("udp", s.Addr)
	if err != nil {
		t.Fatalf("its port is kept: %v", err)
	}
	udp.Close()
	if _, err := os.Stat(s.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its directory: %v", err)
	}
}

func TestItEndsByItself(t *testing.T) {
	s := start(t)
	_, _ = say(s.Addr, "SHUTDOWN NOSAVE", time.Second)
	within(t, 5*time.Second, "it is seen to be down", func() bool { return !s.Running() })
	if s.Pid() != 0 {
		t.Errorf("pid %d", s.Pid())
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	want(t, s, "PING", "+PONG")
}

func TestStartErrors(t *testing.T) {
	need.Servers(t, Available)
	if _, err := Start("", "--no-such-option", "1"); err == nil || !strings.Contains(err.Error(), "no-such-option") {
		t.Errorf("a bad option: %v", err)
	}

	taken := start(t)
	second := &Server{Addr: taken.Addr, program: binary, claim: taken.claim, dir: t.TempDir()}
	if err := second.launch(); !errors.Is(err, port.ErrTaken) {
		second.Kill()
		t.Errorf("a port that another server has: %v", err)
	}

	t.Setenv("PATH", t.TempDir())
	if err := Available(); err == nil || !strings.Contains(err.Error(), "apt-get install redis-server") {
		t.Errorf("nothing installed: %v", err)
	}
}

func TestCounters(t *testing.T) {
	s := start(t)
	before, err := s.Commands()
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		want(t, s, "PING", "+PONG")
	}
	after, err := s.Commands()
	if err != nil || after-before != 10+2 {
		t.Errorf("ten commands are counted as %d - %d, %v", after, before, err)
	}

	if runtime.GOOS != "linux" {
		need.Skip(t, "on Linux", "processor times are in its /proc")
	}
	first, err := s.CPU()
	if err != nil {
		t.Fatal(err)
	}
	within(t, 10*time.Second, "CPU time is counted", func() bool {
		_, _ = say(s.Addr, `EVAL "for i=1,1000000 do end" 0`, time.Second)
		now, err := s.CPU()
		return err == nil && now >= first+20*time.Millisecond
	})
	if err := s.Hang(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CPU(); err != nil {
		t.Errorf("CPU time of a hung server: %v", err)
	}
}

// A test binary that is killed takes its servers with it. The parent that the test kills is this test
// binary again, which a variable tells to start a server and wait.
func TestServerDiesWithItsParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		need.Skip(t, "on Linux", "no other system signals the death of a parent")
	}
	const role = "REDISPROC_TEST_PARENT"
	if os.Getenv(role) != "" {
		s := start(t)
		_, _ = os.Stdout.WriteString("pid " + strconv.Itoa(s.Pid()) + "\n")
		// Threads come and go in a Go program; the server must not end with one.
		for range 20 {
			done := make(chan struct{})
			go func() {
				defer close(done)
				runtime.LockOSThread() // not unlocked: the thread ends
			}()
			<-done
		}
		_, _ = os.Stdout.WriteString("ready\n")
		_, _ = io.Copy(io.Discard, os.Stdin) // until the test kills this process
		return
	}
	need.Servers(t, Available)
	parent := exec.Command(os.Args[0], "-test.run=^TestServerDiesWithItsParent$")
	parent.Env = append(os.Environ(), role+"=1")
	stdin, err := parent.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	for lines := bufio.NewScanner(stdout); lines.Scan() && lines.Text() != "ready"; {
		if text, ok := strings.CutPrefix(lines.Text(), "pid "); ok {
			pid, _ = strconv.Atoi(text)
		}
	}
	if pid == 0 || gone(pid) {
		_ = parent.Process.Kill()
		t.Fatalf("the server, process %d, does not run", pid)
	}
	_ = parent.Process.Kill()
	_ = parent.Wait()
	within(t, 5*time.Second, "the server dies", func() bool { return gone(pid) || zombie(pid) })
}

// zombie: a container may have no init that collects the dead.
func zombie(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(text), ") Z ")
}
