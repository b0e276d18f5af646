package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
)

// asService makes this program the service.
const asService = "REDLOCK_RECIPES_SERVICE"

// patience is how long a step may take that takes a moment on an idle machine.
const patience = 30 * time.Second

// A process is the service as a process, and the lines of its log.
type process struct {
	child *redisproc.Child
	lines chan event
}

func startProcess(t *testing.T, name, nodes, database string) *process {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), asService+"=1", "NAME="+name, "LISTEN=127.0.0.1:0", "DATABASE="+database, "REDLOCK_NODES="+nodes)
	cmd.Stdout, cmd.Stderr = out, out
	child, err := redisproc.StartChild(cmd)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{child, make(chan event, 1000)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(p.lines)
		for scan := bufio.NewScanner(in); scan.Scan(); {
			p.lines <- parse(scan.Text())
		}
	}()
	t.Cleanup(func() {
		child.Kill()
		<-read
		_ = in.Close()
	})
	return p
}

// parse takes a line of the log apart. One that was not written by package log has no time.
func parse(line string) event {
	const layout = "2006/01/02 15:04:05.000000"
	if len(line) > len(layout) {
		if at, err := time.ParseInLocation(layout, line[:len(layout)], time.Local); err == nil {
			return event{at, line[len(layout)+1:]}
		}
	}
	return event{text: line}
}

// leads waits until the process leads, and returns when that was, by its own clock.
func (p *process) leads(t *testing.T) time.Time {
	t.Helper()
	for over := time.After(patience); ; {
		select {
		case e, open := <-p.lines:
			if !open {
				t.Fatal("the process has ended")
			}
			t.Log(e.text)
			if strings.Contains(e.text, " leads, term ") {
				return e.at
			}
		case <-over:
			t.Fatal("the process does not lead")
		}
	}
}

// TestProcessesHandOverOnSIGTERM: of two processes with real servers the second leads when the first is told to end.
func TestProcessesHandOverOnSIGTERM(t *testing.T) {
	var nodes []string
	for _, s := range redistest.Servers(t, 3) {
		nodes = append(nodes, s.URL())
	}
	database := "file:" + filepath.Join(t.TempDir(), "db") + "?_busy_timeout=10000"
	first := startProcess(t, "first", strings.Join(nodes, " "), database)
	first.leads(t)
	second := startProcess(t, "second", strings.Join(nodes, " "), database)
	locker, err := redlock.Connect(nodes, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer locker.Close()
	for status, err := range locker.Watch(t.Context(), "leader", 10*time.Millisecond) {
		if err != nil {
			t.Fatal(err)
		}
		if len(status.Waiting) > 0 { // the second process is a candidate
			break
		}
	}

	told := time.Now()
	if err := syscall.Kill(first.child.Pid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-first.child.Done()
	ended := time.Now()
	if how := first.child.Ended(); how != "exit status 0" {
		t.Errorf("the first process ended with %s", how)
	}
	leads := second.leads(t)
	t.Logf("the first process ends %v after SIGTERM; the second leads %v after SIGTERM, %v after the end of the first",
		ended.Sub(told), leads.Sub(told), leads.Sub(ended))
	if gap := leads.Sub(ended); gap > ttl/4 {
		t.Errorf("the second process leads %v after the end of the first: that is not far below the TTL, %v", gap, ttl)
	}
}
