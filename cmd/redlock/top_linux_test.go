package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sys/unix"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
	"github.com/quorumlock/redlock/cmd/redlock/internal/screen"
	"github.com/quorumlock/redlock/internal/testbed/faultproxy"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
	"github.com/quorumlock/redlock/internal/testbed/pty"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// A topSession is a terminal, and what is on it.
type topSession struct {
	*testing.T
	keyboard, terminal *os.File
	said               buffer
	before             unix.Termios
}

func newTopSession(t *testing.T, columns, rows uint16) *topSession {
	t.Helper()
	keyboard, terminal := pty.Open(t)
	s := &topSession{T: t, keyboard: keyboard, terminal: terminal, before: mode(t, terminal)}
	s.resize(columns, rows)
	go func() { _, _ = io.Copy(&s.said, keyboard) }()
	return s
}

func mode(t *testing.T, terminal *os.File) unix.Termios {
	t.Helper()
	m, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *m
}

func (s *topSession) resize(columns, rows uint16) {
	s.Helper()
	if err := unix.IoctlSetWinsize(int(s.keyboard.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows}); err != nil {
		s.Fatal(err)
	}
}

// start starts redlock top in the terminal.
func (s *topSession) start(nodes string, args ...string) (cmd *exec.Cmd, ended chan error) {
	s.Helper()
	cmd = exec.Command("redlock", append([]string{"top"}, args...)...)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "TERM=xterm", reach.NodesVariable+"="+nodes)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.terminal, s.terminal, s.terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	ended = make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	s.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, ended
}

var styles = regexp.MustCompile("\x1b\\[[0-9;?]*[a-zA-Z]")

// screen is what the last drawing has put on the screen.
func (s *topSession) screen() []string {
	text := s.said.String()
	end := strings.LastIndex(text, "\x1b[?2026l")
	if end < 0 {
		return nil
	}
	text = text[:end]
	text = text[strings.LastIndex(text, "\x1b[H")+len("\x1b[H"):]
	return strings.Split(strings.ReplaceAll(styles.ReplaceAllString(text, ""), "\r", ""), "\n")
}

// press types keys, and waits until the screen is as it should be.
func (s *topSession) press(keys string, want func(lines []string) bool) []string {
	s.Helper()
	if _, err := s.keyboard.WriteString(keys); err != nil {
		s.Fatal(err)
	}
	var lines []string
	if !within(patience, func() bool { lines = s.screen(); return want(lines) }) {
		s.Fatalf("after %q the screen is\n%s", keys, strings.Join(lines, "\n"))
	}
	return lines
}

func has(pattern string) func([]string) bool {
	re := regexp.MustCompile("(?m)" + pattern)
	return func(lines []string) bool { return re.MatchString(strings.Join(lines, "\n")) }
}

// restored checks that the terminal is as it was.
func (s *topSession) restored() {
	s.Helper()
	if now := mode(s.T, s.terminal); now != s.before {
		s.Errorf("the terminal's mode is %+v, and was %+v", now, s.before)
	}
	if !within(patience, func() bool {
		text := s.said.String()
		return strings.LastIndex(text, "\x1b[?1049l") > strings.LastIndex(text, "\x1b[?1049h") &&
			strings.LastIndex(text, "\x1b[?25h") > strings.LastIndex(text, "\x1b[?25l")
	}) {
		s.Errorf("the screen was not given back: %q", s.said.String())
	}
}

// owned takes a lock for an owner.
func owned(t *testing.T, nodes *memredis.Cluster, owner, name string) {
	t.Helper()
	lk := lockerOf(t, nodes, owner)
	l, err := lk.Acquire(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Release(context.Background()) })
}

// longTTL is that of locks that nobody renews: on a busy machine a browser may take a minute to look at them.
const longTTL = 10 * time.Minute

func lockerOf(t *testing.T, nodes *memredis.Cluster, owner string) *redlock.Locker {
	t.Helper()
	return lockerWith(t, nodes, &redlock.Options{Owner: owner, TTL: longTTL})
}

func lockerWith(t *testing.T, nodes *memredis.Cluster, options *redlock.Options) *redlock.Locker {
	t.Helper()
	var clients []*redis.Client
	for _, url := range nodes.URLs() {
		o, err := redis.ParseURL(url)
		if err != nil {
			t.Fatal(err)
		}
		rdb := redis.NewClient(o)
		defer rdb.Close()
		clients = append(clients, rdb)
	}
	lk, err := redlock.New(clients, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lk.Close() })
	return lk
}

func started(t *testing.T, n int) *memredis.Cluster {
	t.Helper()
	nodes, err := memredis.Start(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nodes.Close)
	return nodes
}

// TestTopShowsWhatTheNodesHave: forty owners, each in the row of the lock that the nodes say it has; then the
// keys, one after another.
func TestTopShowsWhatTheNodesHave(t *testing.T) {
	need.Full(t)
	nodes := started(t, 3)
	for i := range 40 {
		owned(t, nodes, fmt.Sprintf("owner-%02d", i), fmt.Sprintf("jobs/%02d", i))
	}
	owned(t, nodes, "évil\x1b[31m\nowner", "日本/\x1b]0;title\x07\x9bname")
	ctx, cancel := context.WithCancel(t.Context())
	waited := make(chan error, 2)
	for i := range 2 {
		lk := lockerOf(t, nodes, fmt.Sprintf("waiter-%d", i))
		go func() {
			l, err := lk.Acquire(ctx, "jobs/07")
			if err == nil {
				_ = l.Release(context.Background())
			}
			waited <- err
		}()
	}
	defer func() {
		cancel()
		for range 2 {
			if err := <-waited; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	}()

	s := newTopSession(t, 120, 60)
	_, ended := s.start(strings.Join(nodes.URLs(), ","), "--every", "100ms", "--sort", "name")
	lines := s.press("", has(`41 locks held, 2 waiting; \S+ switches/s; 3 of 3 nodes vote`))
	rdb := redis.NewClient(&redis.Options{Addr: nodes.Nodes[0].Addr()})
	defer rdb.Close()
	for i := range 40 {
		name := fmt.Sprintf("jobs/%02d", i)
		token, err := rdb.Get(t.Context(), name).Result()
		if err != nil {
			t.Fatal(err)
		}
		owner := redlock.Identify(token).Owner
		if !slices.ContainsFunc(lines, func(line string) bool {
			cells := strings.Fields(strings.TrimPrefix(line, ">"))
			return len(cells) >= 5 && cells[0] == name && cells[1] == "exclusive" && cells[2] == owner && (cells[5] == "2,") == (i == 7)
		}) {
			t.Errorf("%s is held by %q, and not on the screen:\n%s", name, owner, strings.Join(lines, "\n"))
		}
	}
	for _, n := range nodes.Nodes {
		if !has(`^` + regexp.QuoteMeta(n.Addr()) + ` +yes +\S+s +- +[±+-]\S+s$`)(lines) {
			t.Errorf("node %s is not on the screen:\n%s", n.Addr(), strings.Join(lines, "\n"))
		}
	}

	// The selection, a lock, and back.
	s.press("", has(`^> jobs/00 `))
	s.press("j", has(`^> jobs/01 `))
	s.press("\x1b[B\x1b[B", has(`^> jobs/03 `))
	s.press("k\x1bOA", has(`^> jobs/01 `))
	s.press("G", has(`^> 日本/`))
	s.press("/", has(`filter: _`))
	s.press("7", has(`filter: 7_`))
	lines = s.press("\r", has(`filter: 7 \(Esc clears\)`))
	if found := strings.Join(lines, "\n"); strings.Count(found, "jobs/") != 4 || !strings.Contains(found, "> jobs/") {
		t.Errorf("7 is in the names of\n%s", found)
	}
	s.press("\x1b", has(`jobs/06`))
	s.press("/*/0[67]\r", func(lines []string) bool { return strings.Count(strings.Join(lines, "\n"), " jobs/") == 2 })
	s.press("G", has(`^> jobs/07 `))
	s.press("\r", has(`"jobs/07": held by owner-07 \(token`))
	lines = s.press("", has(`2 waiting, the first is waiter-\d`))
	for _, want := range []string{`^owner-07 +exclusive +20`, `^waiter-0 +\S+s +3 nodes`, `^waiter-1 +\S+s +3 nodes`, `^set [0-9a-f]+, epoch 1: 3 members, quorum 2`} {
		if !has(want)(lines) {
			t.Errorf("no %q in\n%s", want, strings.Join(lines, "\n"))
		}
	}
	for _, n := range nodes.Nodes {
		if !has(`^` + regexp.QuoteMeta(n.Addr()) + ` +owner-07 \(token \S+ +\S+s +\d+ +2`)(lines) {
			t.Errorf("node %s is not on the screen:\n%s", n.Addr(), strings.Join(lines, "\n"))
		}
	}
	s.press("\x1b", has(`^> jobs/07 `))
	s.press("\x1b", has(`jobs/00`))
	s.press("s", has(`s sort: age`))
	lines = s.press("s", has(`s sort: wait`))
	if at := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "  name ") }); at < 0 || !strings.Contains(lines[at+1], "jobs/07") {
		t.Errorf("by wait jobs/07 is the first:\n%s", strings.Join(lines, "\n"))
	}

	// A node that dies, and another size.
	nodes.Nodes[2].Kill()
	s.press("", has(`^`+regexp.QuoteMeta(nodes.Nodes[2].Addr())+` +no +- +- +- +unreachable`))
	s.resize(60, 20)
	s.press("", func(lines []string) bool {
		return len(lines) == 20 && !slices.ContainsFunc(lines, func(l string) bool { return screen.Width(l) > 60 })
	})
	s.resize(30, 3)
	s.press("", func(lines []string) bool { return len(lines) == 3 })

	s.press("q", func([]string) bool { return true })
	if err := <-ended; err != nil {
		t.Errorf("it has ended with %v", err)
	}
	s.restored()
	if text := s.said.String(); strings.ContainsAny(text, "\x07\u009b") || strings.Contains(text, "\x1b]") || strings.Contains(text, "\x1b[31m") || strings.Contains(text, "\x9bn") {
		t.Errorf("names and owners reach the terminal as they are: %q", text)
	}
	if late := regexp.MustCompile(`[^\nH]\x1b\[[KJ]`).FindString(s.said.String()); late != "" {
		t.Errorf("what was written is erased: %q", late) // in a line that is full, its last character
	}
	if !strings.Contains(s.said.String(), `évil\x1b[31m\nowner`) {
		t.Errorf("the owner is not shown: %q", s.said.String())
	}
}

// TestTopGivesTheTerminalBack after signals, and takes it again after Ctrl-Z.
func TestTopGivesTheTerminalBack(t *testing.T) {
	nodes := started(t, 3)
	owned(t, nodes, "somebody", "k")
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		s := newTopSession(t, 100, 30)
		cmd, ended := s.start(strings.Join(nodes.URLs(), ","))
		s.press("", has(`^> k +exclusive +somebody`))
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		err := <-ended
		if why := new(exec.ExitError); !errors.As(err, &why) || why.ExitCode() != 128+int(sig) {
			t.Errorf("%v: it has ended with %v", sig, err)
		}
		s.restored()
	}

	shell := newSession(t)
	before := mode(t, shell.keyboard)
	shell.press("TERM=xterm redlock top --every 100ms\n", "0 locks held")
	job := shell.front()
	if mode(t, shell.keyboard) == before {
		t.Error("the terminal echoes keys, and sends lines")
	}
	for range 2 {
		shell.press("\x1a", "\x1b[?1049l")
		shell.press("", "Stopped")
		shell.press("echo mine $((6*7))\n", "mine 42")
		if now := mode(t, shell.keyboard); now != before {
			t.Errorf("stopped, the terminal's mode is %+v, and was %+v", now, before)
		}
		shell.fg(job, "redlock top")
		shell.press("", "\x1b[?1049h")
		shell.press("", "0 locks held")
	}
	shell.press("q", "\x1b[?1049l")
	shell.press("", "$ ") // what is typed before that, top reads
	shell.press("echo code $?\n", "code 0")
	if now := mode(t, shell.keyboard); now != before {
		t.Errorf("in the end the terminal's mode is %+v, and was %+v", now, before)
	}
	shell.leave()
}

// TestTopWhileTheNodesHang: keys work at once, and q ends it.
func TestTopWhileTheNodesHang(t *testing.T) {
	need.Full(t) // it waits for nodes that do not answer
	nodes := started(t, 3)
	owned(t, nodes, "somebody", "k")
	owned(t, nodes, "somebody", "l")
	var urls []string
	var slow []*faultproxy.Proxy
	for _, n := range nodes.Nodes {
		proxy, err := faultproxy.Listen(n.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(proxy.Close)
		slow, urls = append(slow, proxy), append(urls, "redis://"+proxy.Addr())
	}
	s := newTopSession(t, 100, 30)
	_, ended := s.start(strings.Join(urls, ","), "--every", "100ms", "--sort", "name")
	s.press("", has(`^> k +exclusive +somebody`))
	for _, p := range slow {
		p.SetDelay(time.Hour)
	}
	s.press("j", has(`^> l `))
	s.press("\r", has(`"l": asking the nodes`))
	s.press("\x1b", has(`^> l `))
	s.press("s", has(`sort: age`))
	s.press("q", func([]string) bool { return true })
	if err := <-ended; err != nil {
		t.Errorf("it has ended with %v", err)
	}
	s.restored()
}
