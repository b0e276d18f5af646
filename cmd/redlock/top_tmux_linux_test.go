package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
	"github.com/quorumlock/redlock/cmd/redlock/internal/screen"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// A tmuxSession is a terminal in a tmux server of the test's own.
type tmuxSession struct {
	*testing.T
	program string
	env     []string
}

// newTmuxSession starts a shell script in a terminal of this size. Without tmux the test is skipped. The server ends
// with the test, and with the test's process.
func newTmuxSession(t *testing.T, columns, rows int, script string, env ...string) *tmuxSession {
	t.Helper()
	s := &tmuxSession{T: t, program: need.Tmux(t)}
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "TMUX") {
			s.env = append(s.env, variable)
		}
	}
	s.env = append(s.env, "TMUX_TMPDIR="+t.TempDir(), "LC_ALL=C.UTF-8", "SHELL=/bin/sh", "GORACE=atexit_sleep_ms=0")
	s.env = append(s.env, env...)

	// The server is nobody's child. When the test ends, however it does, the pipe ends that this shell reads from.
	keeper := s.command("kill-server")
	keeper.Path, keeper.Args = "/bin/sh", append([]string{"sh", "-c", `read -r _; exec "$@"`, "sh", s.program}, keeper.Args[1:]...)
	keeper.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the test
	pipe, err := keeper.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := keeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = pipe.Close()
		_ = keeper.Wait() // it fails if there is no server any more
		if err := s.command("has-session").Run(); err == nil {
			t.Error("the tmux server goes on")
		}
	})
	s.do("new-session", "-d", "-x", fmt.Sprint(columns), "-y", fmt.Sprint(rows), script)
	return s
}

func (s *tmuxSession) command(args ...string) *exec.Cmd {
	cmd := exec.Command(s.program, append([]string{"-u", "-L", "top", "-f", os.DevNull}, args...)...)
	cmd.Env = s.env
	return cmd
}

// do has the server do something.
func (s *tmuxSession) do(args ...string) string {
	s.Helper()
	out, err := s.command(args...).CombinedOutput()
	if err != nil {
		s.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return string(out)
}

// screen is what is on the screen.
func (s *tmuxSession) screen(flags ...string) []string {
	s.Helper()
	return strings.Split(strings.TrimSuffix(s.do(append([]string{"capture-pane", "-p"}, flags...)...), "\n"), "\n")
}

// press types keys, by the names that tmux has for them, and waits until the screen is as it should be.
func (s *tmuxSession) press(want func(lines []string) bool, keys ...string) (lines []string) {
	s.Helper()
	if len(keys) > 0 {
		s.do(append([]string{"send-keys"}, keys...)...)
	}
	if !within(patience, func() bool { lines = s.screen(); return want(lines) }) {
		s.Fatalf("after %q the screen is\n%s", keys, strings.Join(lines, "\n"))
	}
	return lines
}

// tableOn are the cells of the rows below a heading, each with so many.
func tableOn(lines []string, heading string, columns int) (rows [][]string) {
	gaps := regexp.MustCompile(` {2,}`)
	cells := func(line string) []string {
		return gaps.Split(strings.TrimSpace(strings.TrimPrefix(line, ">")), -1)
	}
	at := slices.IndexFunc(lines, func(line string) bool { return slices.Equal(cells(line), cells(heading)) })
	for _, line := range lines[at+1:] {
		row := cells(line)
		if row[0] == "" {
			break
		}
		rows = append(rows, append(row, make([]string, max(0, columns-len(row)))...)) // the last ones may be empty
	}
	return rows
}

// details are the lines that the nodes want to see of one lock.
func (s *topScene) details(name string) []string {
	s.Helper()
	says := s.says(name)
	want := []string{fmt.Sprintf(`^"%s": held by %s \(token .*, fence at most %d; 2 waiting`, name, says.By.Owner, says.Fence), "^" + says.By.Owner + ` +exclusive +20`}
	for _, w := range says.Waiting {
		want = append(want, fmt.Sprintf(`^%s +\S+s +%d nodes`, w.Owner, w.Nodes))
	}
	for _, n := range says.Nodes {
		has := "-"
		if n.Token != "" {
			has = says.By.Owner
		}
		want = append(want, fmt.Sprintf(`^%s +%s.* +%d`, regexp.QuoteMeta(n.Node), has, len(n.Waiting)))
	}
	return want
}

// TestTopInTmux compares what is on a screen of tmux, which has a terminal of its own kind and sends keys of its own,
// with what the nodes have. With -update it writes the picture of the screen for the documentation.
func TestTopInTmux(t *testing.T) {
	need.Tmux(t)
	scene := pictured(t)
	const script = `echo before; redlock top --every 100ms; echo "code $?, $TERM"; exec cat`
	s := newTmuxSession(t, 100, 30, script, reach.NodesVariable+"="+strings.Join(scene.nodes.URLs(), ","))
	all := has(`^10 locks held, 3 waiting, 1 leftover; 0 switches/s; 2 of 3 nodes vote$`)
	lines := s.press(all)
	const nodesHeading, locksHeading = "node  vote  round trip  quarantine  clock", "name  mode  owner  age  left  waiting  note"
	scene.compare(tableOn(lines, nodesHeading, 6), tableOn(lines, locksHeading, 7))
	if len(lines) != 30 || !strings.HasPrefix(lines[29], "q quit  s sort: age  ") {
		t.Errorf("the last of %d lines is %q", len(lines), lines[len(lines)-1])
	}
	s.draw("top.svg", "redlock top in a terminal: nodes and locks, with their owners and waiters", 100)

	// Keys as tmux sends them.
	s.press(has(`^> leader/scheduler `))
	s.press(has(`^> jobs/nightly `), "Down")
	s.press(has(`^> leader/scheduler `), "Up")
	s.press(has(`^> orders/4711 `), "End")
	s.press(has(`^> leader/scheduler `), "Home")
	s.press(has(`^> orders/4711 `), "NPage", "NPage")
	s.press(has(`^> leader/scheduler `), "PPage", "PPage")
	lines = s.press(has(`s sort: wait`), "s")
	longest := slices.MaxFunc(scene.names, func(a, b string) int { return cmp.Compare(scene.waits(a), scene.waits(b)) })
	if first := tableOn(lines, locksHeading, 7)[0]; first[0] != longest {
		t.Errorf("by wait %q is the first, and the nodes say %q", first, longest)
	}
	s.press(has(`filter: nightlyx_`), "/", "nightlyx")
	s.press(has(`filter: nightly_`), "BSpace")
	lines = s.press(has(`filter: nightly \(Esc clears\)`), "Enter")
	if rows := tableOn(lines, locksHeading, 7); len(rows) != 1 || rows[0][0] != "jobs/nightly" {
		t.Errorf("nightly is in the names of %q", rows)
	}
	s.press(has(`^"jobs/nightly": held by .*; 2 waiting, `), "Enter")
	var missing []string // for a moment a waiter may have the lock at the node that was emptied, and the screen is older than what the nodes say
	if !within(patience, func() bool {
		lines, missing = s.screen(), scene.details("jobs/nightly")
		missing = slices.DeleteFunc(missing, func(want string) bool { return has(want)(lines) })
		return len(missing) == 0
	}) {
		t.Errorf("no %q in\n%s", missing, strings.Join(lines, "\n"))
	}
	s.press(has(`^> jobs/nightly `), "Escape")
	s.press(all, "Escape")

	// Another size, and names that are wider than they are long.
	owned(t, scene.nodes, "編集者-1", "日本/朝刊🚀")
	s.press(has(`^  日本/朝刊🚀 +exclusive +編集者-1 `))
	s.do("resize-window", "-x", "60", "-y", "20")
	s.press(func(lines []string) bool {
		return len(lines) == 20 && strings.HasPrefix(lines[19], "q quit") && !slices.ContainsFunc(lines, func(l string) bool { return screen.Width(l) > 60 })
	})
	lines = s.press(func(lines []string) bool { return !has(`redlock top`)(lines) && has(`^code 0, (screen|tmux)`)(lines) }, "q")
	if lines[0] != "before" {
		t.Errorf("the screen from before is not back:\n%s", strings.Join(lines, "\n"))
	}
}
