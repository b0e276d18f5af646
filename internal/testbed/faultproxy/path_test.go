package faultproxy_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/testbed/faultproxy"
)

// A server answers each line with the same line and records it: a line stands for an executed command.
type server struct {
	mu   sync.Mutex
	seen []string
	ends []error // how its connections ended
}

func (s *server) serve(conn io.ReadWriteCloser) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	for {
		line, err := r.ReadString('\n')
		if err == nil {
			s.note(func() { s.seen = append(s.seen, line[:len(line)-1]) })
			_, err = io.WriteString(conn, line)
		}
		if err != nil {
			s.note(func() { s.ends = append(s.ends, err) })
			return
		}
	}
}

func (s *server) note(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *server) executed() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprint(s.seen)
}

// onPath runs a test in a bubble, over pipes, with virtual time.
func onPath(t *testing.T, f func(t *testing.T, p *faultproxy.Path, s *server, dial func() *client)) {
	synctest.Test(t, func(t *testing.T) {
		p, s := faultproxy.NewPath(), &server{}
		dial := func() *client {
			c, near := net.Pipe()
			far, end := net.Pipe()
			go s.serve(end)
			p.Join(near, far)
			return newClient(t, c)
		}
		f(t, p, s, dial)
		p.Close()
	})
}

type client struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

func newClient(t *testing.T, conn net.Conn) *client {
	t.Cleanup(func() { _ = conn.Close() })
	return &client{t, conn, bufio.NewReader(conn)}
}

func (c *client) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.conn, line+"\n"); err != nil {
		c.t.Errorf("sending %q: %v", line, err)
	}
}

// receive returns a line, or the error as text.
func (c *client) receive() string {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return err.Error()
	}
	return line[:len(line)-1]
}

func (c *client) want(reply string) {
	c.t.Helper()
	if got := c.receive(); got != reply {
		c.t.Errorf("received %q, want %q", got, reply)
	}
}

// silence is asserted for a virtual minute.
func (c *client) silence() {
	c.t.Helper()
	_ = c.conn.SetReadDeadline(time.Now().Add(time.Minute))
	if got, err := c.r.ReadString('\n'); !errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Errorf("received %q, %v, want nothing", got, err)
	}
	_ = c.conn.SetReadDeadline(time.Time{})
}

func (s *server) want(t *testing.T, executed string) {
	t.Helper()
	if got := s.executed(); got != executed {
		t.Errorf("executed %s, want %s", got, executed)
	}
}

// TestDelayKeepsThroughput: a delayed path passes on any number of messages at once: a thousand take no longer than
// one.
func TestDelayKeepsThroughput(t *testing.T) {
	onPath(t, func(t *testing.T, p *faultproxy.Path, _ *server, dial func() *client) {
		c := dial()
		p.SetDelay(100 * time.Millisecond)
		start := time.Now()
		for i := range 1000 {
			c.send(fmt.Sprint(i))
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("sending took %v", d)
		}
		for i := range 1000 {
			c.want(fmt.Sprint(i))
		}
		if d := time.Since(start); d != 100*time.Millisecond {
			t.Errorf("a thousand replies took %v", d)
		}
	})
}

// TestShorterDelayDoesNotOvertake: a message that is sent after the delay was shortened waits for those before it.
func TestShorterDelayDoesNotOvertake(t *testing.T) {
	onPath(t, func(t *testing.T, p *faultproxy.Path, _ *server, dial func() *client) {
		c := dial()
		p.SetDelay(time.Second)
		start := time.Now()
		c.send("first")
		synctest.Wait()
		p.SetDelay(0)
		c.send("second")
		c.want("first")
		c.want("second")
		if d := time.Since(start); d != time.Second/2 {
			t.Errorf("took %v", d)
		}
	})
}

// TestCutAndHeal: a cut path holds messages back, and delivers them when it is healed.
func TestCutAndHeal(t *testing.T) {
	onPath(t, func(t *testing.T, p *faultproxy.Path, s *server, dial func() *client) {
		c := dial()
		p.Cut()
		c.send("late")
		c.silence()
		s.want(t, "[]")
		p.Heal()
		c.want("late")
		s.want(t, "[late]")
	})
}

// A request outlives the connection of a client that gave up: a ghost, against which a lock library must
// be safe.
func TestCutHoldsTheEndOfAConnection(t *testing.T) {
	onPath(t, func(t *testing.T, p *faultproxy.Path, s *server, dial func() *client) {
		c := dial()
		p.Cut()
		c.send("ghost")
		synctest.Wait()
		c.conn.Close()
		time.Sleep(time.Hour)
		s.want(t, "[]")
		p.Heal()
		synctest.Wait()
		s.want(t, "[ghost]")
	})
}

// TestHealByReset: a path that is healed by a reset loses what it held back, with the connections; new ones work.
func TestHealByReset(t *testing.T) {
	onPath(t, func(t *testing.T, p *faultproxy.Path, s *server, dial func() *client) {
		c := dial()
		p.Cut()
		c.send("lost")
		c.silence()
		p.HealByReset()
		c.want("EOF") // a pipe has no reset
		c = dial()
		c.send("new")
		c.want("new")
		s.want(t, "[new]")
	})
}

// TestOneWay: one direction can be cut alone: a request is executed and its reply held back, or the request is held
// back.
func TestOneWay(t *testing.T) {
	onPath(t, func(t *testing.T, p *faultproxy.Path, s *server, dial func() *client) {
		c := dial()
		p.CutReplies()
		c.send("a")
		c.silence()
		s.want(t, "[a]")
		p.Heal()
		c.want("a")

		p.CutRequests()
		c.send("b")
		c.silence()
		s.want(t, "[a]")
		p.Heal()
		c.want("b")
	})
}

// TestHangIsNotHealed: Heal ends a cut, and not a hang: the server goes on with Resume.
func TestHangIsNotHealed(t *testing.T) {
	onPath(t, func(t *testing.T, p *faultproxy.Path, s *server, dial func() *client) {
		c := dial()
		p.Hang()
		p.Cut()
		p.Heal()
		c.send("a")
		c.silence()
		s.want(t, "[]")
		p.Resume()
		c.want("a")
	})
}

// TestDropReplies: so many replies are lost with their connections, though the requests were executed. 0 takes the
// order back.
func TestDropReplies(t *testing.T) {
	onPath(t, func(t *testing.T, p *faultproxy.Path, s *server, dial func() *client) {
		p.DropReplies(2)
		for _, line := range []string{"a", "b"} {
			c := dial()
			c.send(line)
			c.want("EOF")
		}
		c := dial()
		c.send("c")
		c.want("c")
		s.want(t, "[a b c]")

		p.DropReplies(1)
		p.DropReplies(0)
		c.send("d")
		c.want("d")
	})
}

// When a reply is lost with its connection, those behind it are lost as well.
func TestDropTakesTheRest(t *testing.T) {
	onPath(t, func(t *testing.T, p *faultproxy.Path, s *server, dial func() *client) {
		c := dial()
		p.SetDelay(time.Second)
		p.DropReplies(1)
		c.send("a")
		c.send("b")
		c.want("EOF")
		s.want(t, "[a b]")
	})
}

// TestResetAll: all connections end, and what is under way on them is lost.
func TestResetAll(t *testing.T) {
	onPath(t, func(t *testing.T, p *faultproxy.Path, s *server, dial func() *client) {
		a, b := dial(), dial()
		p.SetDelay(time.Second)
		a.send("lost")
		synctest.Wait()
		p.ResetAll()
		a.want("EOF")
		b.want("EOF")
		time.Sleep(time.Minute)
		s.want(t, "[]")
	})
}

// TestStats: the bytes are counted where they enter the path, also if they are held back.
func TestStats(t *testing.T) {
	onPath(t, func(t *testing.T, p *faultproxy.Path, _ *server, dial func() *client) {
		dial()
		c := dial()
		p.CutReplies()
		c.send("four")
		c.silence()
		want := faultproxy.Stats{Accepted: 2, RequestBytes: 5, ReplyBytes: 5}
		if got := p.Stats(); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}

// TestJoinOfAClosedPath: a closed path takes no connection, and closes both ends of the one that it was given.
func TestJoinOfAClosedPath(t *testing.T) {
	p := faultproxy.NewPath()
	p.Close()
	a, near := net.Pipe()
	far, b := net.Pipe()
	if p.Join(near, far) {
		t.Error("joined")
	}
	for _, end := range []net.Conn{a, b} {
		if _, err := end.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("its connection: %v", err)
		}
	}
}

// TestForget: what is sent over a connection that the path has forgotten is lost, and neither side is told. A new
// connection works.
func TestForget(t *testing.T) {
	onPath(t, func(t *testing.T, p *faultproxy.Path, s *server, dial func() *client) {
		c := dial()
		c.send("before")
		c.want("before")
		p.Forget()
		c.send("lost")
		c.silence()
		s.want(t, "[before]")
		next := dial()
		next.send("after")
		next.want("after")
		c.silence()
		s.want(t, "[before after]")
	})
}
