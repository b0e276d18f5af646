package faultproxy_test

import (
	"io"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/sockerr"
	"github.com/quorumlock/redlock/internal/testbed/faultproxy"
)

// TestJitter: each message takes the delay, and a part of the jitter drawn anew; without both it takes no time.
func TestJitter(t *testing.T) {
	onPath(t, func(t *testing.T, p *faultproxy.Path, s *server, dial func() *client) {
		const most = 100 * time.Millisecond
		p.SetDelay(time.Second)
		p.SetJitter(most)
		took := make(map[time.Duration]bool)
		c := dial()
		for range 20 {
			start := time.Now()
			c.send("a")
			c.want("a")
			d := time.Since(start)
			if d < time.Second || d >= time.Second+2*most {
				t.Errorf("there and back took %v", d)
			}
			took[d] = true
		}
		if len(took) < 2 {
			t.Errorf("each took the same: %v", took)
		}
		p.SetDelay(0)
		p.SetJitter(0)
		start := time.Now()
		c.send("a")
		c.want("a")
		if d := time.Since(start); d != 0 {
			t.Errorf("without jitter it took %v", d)
		}
	})
}

// TestJitterKeepsTheOrderOfAConnection: messages of one connection arrive in the order in which they were sent,
// whatever each of them draws.
func TestJitterKeepsTheOrderOfAConnection(t *testing.T) {
	onPath(t, func(t *testing.T, p *faultproxy.Path, s *server, dial func() *client) {
		p.SetJitter(time.Second)
		c := dial()
		lines := strings.Fields("a b c d e f g h")
		for _, line := range lines {
			c.send(line)
		}
		for _, line := range lines {
			c.want(line)
		}
	})
}

// TestTearReplies: half of the bytes of the next reply arrive, and then the end. The request was executed. 0 takes
// the order back.
func TestTearReplies(t *testing.T) {
	onPath(t, func(t *testing.T, p *faultproxy.Path, s *server, dial func() *client) {
		p.TearReplies(1)
		c := dial()
		c.send("abc") // and a newline: half of the answer is two bytes
		got, err := io.ReadAll(c.r)
		if string(got) != "ab" || err != nil {
			t.Errorf("received %q, %v", got, err)
		}
		c = dial()
		c.send("d")
		c.want("d")
		s.want(t, "[abc d]")

		p.TearReplies(1)
		p.TearReplies(0)
		c.send("e")
		c.want("e")
	})
}

// TestProxyTearsReplies: the same over TCP, where the end is a reset.
func TestProxyTearsReplies(t *testing.T) {
	p, _, dial, _ := tcp(t)
	c := dial()
	c.send("a")
	c.want("a")
	p.TearReplies(1)
	c.send("bcd")
	got, err := io.ReadAll(c.r)
	arrived := string(got) == "bc" || runtime.GOOS == "windows" && strings.HasPrefix("bc", string(got)) // there a reset overtakes
	if !arrived || !sockerr.Is(err, syscall.ECONNRESET) {
		t.Errorf("received %q, %v", got, err)
	}
}
