//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package proc

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary be the keeper, and a process that forks faster than it can be looked at.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case KeepVerb:
			os.Exit(Keep(os.Args[2:], os.Environ()))
		case "fork":
			forkOn()
		}
	}
	os.Exit(m.Run())
}

// forkOn starts this program again, in another session, and ends: no process lives for long. The second
// argument is a time in seconds since 1970 after which no other is started.
func forkOn() {
	if until, err := strconv.ParseInt(os.Args[2], 10, 64); err != nil || time.Now().Unix() > until {
		os.Exit(0)
	}
	_, _, _ = syscall.StartProcess("/proc/self/exe", os.Args, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{Setsid: true}})
	os.Exit(0)
}

var terms = Terms{Margin: time.Second, Sign: syscall.SIGTERM, Grace: time.Second}

// start starts a command whose lock lasts for a minute, and returns what it writes to the file 3.
func start(t *testing.T, path string, args ...string) (g *Group, written func() string, err error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "out")
	out, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	child := &exec.Cmd{Path: path, Args: args, ExtraFiles: []*os.File{out}}
	g, err = Start(child, time.Now().Add(time.Minute), terms)
	return g, func() string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}, err
}

// A command has the files that were opened for it, and its status is passed on; or it is refused.
func TestStart(t *testing.T) {
	g, written, err := start(t, "/bin/sh", "sh", "-c", "printf ran >&3; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	<-g.Gone
	if written() != "ran" || g.Code() != 3 || g.Left || !g.Valid {
		t.Errorf("wrote %q, code %d, left %v, valid %v", written(), g.Code(), g.Left, g.Valid)
	}
	g.Close()

	var refused *Refused
	if _, _, err := start(t, "/dev/null"); !errors.As(err, &refused) || refused.Err != syscall.EACCES {
		t.Errorf("refused with %v, not %v", err, syscall.EACCES)
	}
	if _, err := Start(&exec.Cmd{Path: "/bin/sh", Args: []string{"sh"}}, time.Now().Add(terms.Margin), terms); err != ErrLate {
		t.Errorf("refused with %v, not %v", err, ErrLate)
	}
}

// The arguments are bytes, and a signal that redlock ignores stays ignored.
func TestStartAsIs(t *testing.T) {
	g, written, err := start(t, "/bin/sh", "sh", "-c", `printf %s "$1" >&3`, "sh", "a\xff\n b")
	if err != nil {
		t.Fatal(err)
	}
	<-g.Gone
	g.Close()
	if written() != "a\xff\n b" {
		t.Errorf("wrote %q", written())
	}
}

// A keeper without redlock ends the command.
func TestKeeperAlone(t *testing.T) {
	g, written, err := start(t, "/bin/sh", "sh", "-c", "trap 'printf term >&3; exit' TERM; printf 'ready ' >&3; while :; do sleep 0.01; done")
	if err != nil {
		t.Fatal(err)
	}
	for !strings.Contains(written(), "ready") {
		time.Sleep(time.Millisecond)
	}
	if err := syscall.Shutdown(int(g.keeper.socket.Fd()), syscall.SHUT_WR); err != nil { // as if redlock were dead
		t.Fatal(err)
	}
	<-g.Gone
	g.Close()
	if written() != "ready term" {
		t.Errorf("wrote %q", written())
	}
}
