package proc

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What the command has started ends with it, wherever it has gone: to another group or session, or to
// another parent; or if it is stopped, or ignores signals, or forks on and on.
func TestNothingIsLeft(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{
		"another session": "setsid sleep 60 & sleep 60",
		"another parent":  "(setsid sh -c 'sleep 60 & sleep 60 &' &) ; sleep 60",
		"nohup":           "nohup sleep 60 >/dev/null 2>&1 & sleep 60",
		"stubborn":        "trap '' TERM; setsid sleep 60 & while :; do sleep 1; done",
		"stopped":         "setsid sh -c 'kill -STOP $$' & kill -STOP $$",
		"many":            "for i in $(seq 30); do setsid sh -c 'for j in 1 2 3; do sleep 60 & done; wait' & done; wait",
		"forks on":        fmt.Sprintf("%s fork %d & sleep 60", self, time.Now().Add(time.Minute).Unix()),
	} {
		t.Run(name, func(t *testing.T) {
			g, _, err := start(t, "/bin/sh", "sh", "-c", script)
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			time.Sleep(100 * time.Millisecond) // any moment will do
			g.End(syscall.SIGTERM)
			killer := time.AfterFunc(100*time.Millisecond, g.Kill)
			defer killer.Stop()
			select {
			case <-g.Gone:
			case <-time.After(20 * time.Second):
				t.Fatalf("left: %s", strings.Join(g.Survivors(), ", "))
			}
			if left := g.Survivors(); len(left) > 0 {
				t.Errorf("the keeper says that nothing is left, and there is %s", strings.Join(left, ", "))
			}
		})
	}
}

// A process in a group with others is signalled alone.
func TestOthersInTheGroup(t *testing.T) {
	if tree, foreign, ok := below(os.Getpid()); !ok || !foreign[syscall.Getpgrp()] {
		t.Errorf("this process is not in its group: %v, %v, %v", tree, foreign, ok)
	}
	p, ok := look(os.Getpid())
	if !ok || p.parent != os.Getppid() || p.group != syscall.Getpgrp() || p.dead {
		t.Errorf("%+v", p)
	}
	p.started += "0" // another process with its number
	p.signal(syscall.SIGKILL)
}

// A keeper that was killed before it could say what it has started is no reason to leave that alone.
func TestEldest(t *testing.T) {
	g, _, err := start(t, "/bin/sh", "sh", "-c", "sleep 60 & sleep 60 & wait")
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if pid := eldest(g.keeper.process.Process.Pid); pid != g.pid {
		t.Errorf("the command is process %d, and not %d", g.pid, pid)
	}
	g.Kill()
	<-g.Gone
}

// When the keeper is killed, redlock is the parent of the command, and tells its status.
func TestKeeperIsKilled(t *testing.T) {
	g, _, err := start(t, "/bin/sh", "sh", "-c", "setsid sleep 0.2 & sleep 0.1; exit 5")
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if err := g.keeper.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-g.Orphaned
	<-g.Exited
	if g.Code() != 5 || !g.Left {
		t.Errorf("code %d, left %v", g.Code(), g.Left)
	}
	<-g.Gone
}
