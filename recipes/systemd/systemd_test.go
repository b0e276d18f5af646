//go:build unix

// Package systemd has no code: its tests check the units beside them, and run their commands.
package systemd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/testbed/redisproc"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// patience is how long a step may take that takes a moment on an idle machine.
const patience = 30 * time.Second

// A unit has the values of each setting, by SECTION.SETTING.
type unit map[string][]string

// units reads the units of this directory.
func units(t *testing.T) map[string]unit {
	t.Helper()
	files, err := filepath.Glob("*.*")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]unit{}
	for _, file := range files {
		if filepath.Ext(file) == ".go" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		u, section := unit{}, ""
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSuffix(line, "\n")
			key, value, setting := strings.Cut(line, "=")
			switch {
			case line == "" || line[0] == '#':
			case line[0] == '[':
				section = strings.Trim(line, "[]")
			case section == "" || !setting || strings.HasSuffix(line, `\`):
				t.Errorf("%s: %q is no setting", file, line)
			default:
				u[section+"."+key] = append(u[section+"."+key], value)
			}
		}
		all[file] = u
	}
	return all
}

// TestUnits: each unit ends what it starts, may be busy or stopped without being failed, and is no one's root.
func TestUnits(t *testing.T) {
	all := units(t)
	for _, name := range []string{"nightly.service", "nightly.timer", "scheduler.service"} {
		if all[name] == nil {
			t.Errorf("there is no %s", name)
		}
	}
	for name, u := range all {
		if filepath.Ext(name) != ".service" {
			continue
		}
		// redlock passes SIGTERM on: a second one, of systemd, would not let the command end in its own time.
		for setting, want := range map[string]string{"KillMode": "mixed", "TimeoutStopSec": "60", "DynamicUser": "yes", "EnvironmentFile": "/etc/redlock.env"} {
			if got := u["Service."+setting]; len(got) != 1 || got[0] != want {
				t.Errorf("%s: %s is %q, want %q", name, setting, got, want)
			}
		}
	}
	if got := all["nightly.timer"]["Timer.Persistent"]; len(got) != 1 || got[0] != "no" {
		t.Errorf("nightly.timer: a machine that was off does the job again: Persistent is %q", got)
	}
	if on := all["nightly.service"]["Install.WantedBy"]; on != nil {
		t.Errorf("nightly.service is started by %q, and not by its timer alone", on)
	}
}

// TestDocumentedUnits: what docs/once.md shows of a unit is in a file here.
func TestDocumentedUnits(t *testing.T) {
	page, err := os.ReadFile("../../docs/once.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```ini\n(.*?)^```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) == 0 {
		t.Fatal("docs/once.md shows no unit")
	}
	file, err := os.ReadFile("nightly.service")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range blocks {
		if !strings.Contains(string(file), block[1]) {
			t.Errorf("docs/once.md shows\n%s\nand nightly.service is\n%s", block[1], file)
		}
	}
}

// TestVerify has systemd look at the units, with programs that this machine has.
func TestVerify(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		need.Skip(t, "with systemd", err)
	}
	dir := t.TempDir()
	args := []string{"verify"}
	for name := range units(t) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		here := regexp.MustCompile(`/usr/local/bin/\w+`).ReplaceAllString(string(text), "/bin/true")
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(here), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, file)
	}
	out, err := exec.CommandContext(t.Context(), "systemd-analyze", args...).CombinedOutput()
	if err != nil || strings.Contains(string(out), dir) { // it may have something to say of units of this machine
		t.Errorf("systemd-analyze %q: %v\n%s", args, err, out)
	}
}

// TestRun runs the commands of the units: two machines start the job at once, one does it, and for systemd neither
// has failed; and a service is stopped, as it works and as it waits.
func TestRun(t *testing.T) {
	var nodes []string
	for _, s := range redistest.Servers(t, 3) {
		nodes = append(nodes, s.URL())
	}
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(bin, "redlock"), "./cmd/redlock")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, code := range map[string]string{
		"nightly":   "echo done; sleep 1",
		"scheduler": "trap 'exit 0' TERM; echo leads; while :; do sleep 0.1; done",
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+code+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	env := append(os.Environ(), "REDLOCK_NODES="+strings.Join(nodes, " "), "REDLOCK_CONFIG="+os.DevNull)
	all := units(t)
	start := func(name, from, to string) *service {
		t.Helper()
		out, err := os.Create(filepath.Join(t.TempDir(), "journal"))
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		line := strings.ReplaceAll(all[name]["Service.ExecStart"][0], "/usr/local/bin", bin)
		args := strings.Fields(strings.Replace(line, from, to, 1))
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env, cmd.Stdout, cmd.Stderr = env, out, out
		child, err := redisproc.StartChild(cmd)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(child.Kill)
		return &service{T: t, unit: all[name], cmd: cmd, child: child, journal: out.Name()}
	}

	done := 0
	for _, machine := range []*service{start("nightly.service", "--once 24h", "--once 6s"), start("nightly.service", "--once 24h", "--once 6s")} {
		machine.succeeds()
		done += strings.Count(machine.said(), "done\n")
	}
	if done != 1 {
		t.Errorf("%d of two machines did the job", done)
	}

	works := start("scheduler.service", "", "")
	works.says("leads\n")
	waits := start("scheduler.service", "", "")
	waits.says("waiting for ")
	for _, s := range []*service{waits, works} { // systemctl stop
		if err := syscall.Kill(s.child.Pid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		s.succeeds()
	}
}

// A service is the main process of one.
type service struct {
	*testing.T
	unit    unit
	cmd     *exec.Cmd
	child   *redisproc.Child
	journal string
}

func (s *service) said() string {
	text, err := os.ReadFile(s.journal)
	if err != nil {
		s.Fatal(err)
	}
	return string(text)
}

// says waits until the service has printed something.
func (s *service) says(what string) {
	s.Helper()
	for end := time.Now().Add(patience); !strings.Contains(s.said(), what); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			s.Fatalf("%v has not printed %q:\n%s", s.cmd.Args, what, s.said())
		}
	}
}

// succeeds waits for the end of the service, which systemd must take for a success.
func (s *service) succeeds() {
	s.Helper()
	select {
	case <-s.child.Done():
	case <-time.After(patience):
		s.Fatalf("%v has not ended:\n%s", s.cmd.Args, s.said())
	}
	how := s.child.Ended()
	code := fmt.Sprint(s.cmd.ProcessState.ExitCode())
	if code != "0" && !slices.Contains(s.unit["Service.SuccessExitStatus"], code) {
		s.Errorf("%v: %s\n%s", s.cmd.Args, how, s.said())
	}
}
