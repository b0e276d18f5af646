package chaos

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestProcess: what a process is stopped or killed with.
func TestProcess(t *testing.T) {
	inWorld := func(t *testing.T, f func(*testing.T, *miniWorld, *miniProcess, *redis.Client)) {
		synctest.Test(t, func(t *testing.T) {
			w := newMiniWorld(&Plan{Run: Head{Nodes: 1}, RTT: time.Millisecond})
			p, _ := w.enter(1, "c1")
			process := p.(*miniProcess)
			o := process.options(w.nodes[0])
			o.MaxRetries, o.DialerRetries = -1, 1
			c := redis.NewClient(o)
			if err := c.Ping(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			f(t, w, process, c)
			c.Close()
			if err := w.close(); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("stopped", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *miniWorld, p *miniProcess, c *redis.Client) {
			begin := time.Now()
			p.hold(time.Second, false)
			if err := c.Set(context.Background(), "a", "b", 0).Err(); err != nil || time.Since(begin) < time.Second {
				t.Errorf("what it was about to send: %v after %v", err, time.Since(begin))
			}
			time.AfterFunc(100*time.Microsecond, func() { p.hold(time.Second, false) })
			begin = time.Now()
			if err := c.Set(context.Background(), "c", "d", 0).Err(); err != nil || time.Since(begin) < time.Second {
				t.Errorf("what it has sent: %v after %v", err, time.Since(begin))
			}
		})
	})
	t.Run("killed", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *miniWorld, p *miniProcess, c *redis.Client) {
			time.AfterFunc(100*time.Microsecond, p.crash)
			if err := c.Set(context.Background(), "sent", "before", 0).Err(); !errors.Is(err, net.ErrClosed) {
				t.Errorf("the reply came to %v", err)
			}
			if err := c.Set(context.Background(), "sent", "after", 0).Err(); !errors.Is(err, net.ErrClosed) {
				t.Errorf("a dead process was answered: %v", err)
			}
			time.Sleep(time.Second)
			if got := w.left(); len(got) != 1 || got[0] != (leftover{0, "sent", "before"}) {
				t.Errorf("the node has %v", got)
			}
		})
	})
	t.Run("leaves a connection", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newMiniWorld(&Plan{Run: Head{Nodes: 1}})
			p, _ := w.enter(1, "c1")
			if _, err := p.(*miniProcess).dial(t.Context(), w.nodes[0]); err != nil {
				t.Fatal(err)
			}
			if err := w.close(); text(err) != "c1 has left 1 connections open" {
				t.Errorf("what is left: %v", err)
			}
		})
	})
}
