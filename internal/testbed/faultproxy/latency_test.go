package faultproxy_test

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/testbed/faultproxy"
)

// TestLatency: a leg of a trip takes what the function says, in addition to the delay.
func TestLatency(t *testing.T) {
	onPath(t, func(t *testing.T, p *faultproxy.Path, s *server, dial func() *client) {
		legs := []time.Duration{3 * time.Millisecond, 4 * time.Millisecond, 50 * time.Millisecond, 0}
		drawn := 0
		c := dial()
		p.SetDelay(time.Second)
		p.SetLatency(func() time.Duration {
			drawn++
			return legs[drawn-1]
		})
		for _, want := range []time.Duration{1007 * time.Millisecond, 1050 * time.Millisecond} {
			start := time.Now()
			c.send("a")
			c.want("a")
			if d := time.Since(start); d != want {
				t.Errorf("there and back took %v, want %v", d, want)
			}
		}
		p.SetLatency(nil)
		p.SetDelay(0)
		start := time.Now()
		c.send("a")
		c.want("a")
		if d := time.Since(start); d != 0 {
			t.Errorf("without delay and latency it took %v", d)
		}
	})
}

// Of replies that are under way together, the first ones arrive.
func TestTearAPipeline(t *testing.T) {
	onPath(t, func(t *testing.T, p *faultproxy.Path, s *server, dial func() *client) {
		c := dial()
		p.CutReplies()
		for _, line := range []string{"a", "b", "c", "d"} {
			c.send(line)
		}
		synctest.Wait()
		p.TearReplies(1)
		p.Heal()
		got, err := io.ReadAll(c.r)
		if string(got) != "a\nb\n" || err != nil {
			t.Errorf("received %q, %v", got, err)
		}
	})
}
