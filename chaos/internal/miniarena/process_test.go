package miniarena

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/drive"
	"github.com/quorumlock/redlock/chaos/internal/scenario"
)

// TestProcess: the effects of a stop or a crash on a process's messages.
func TestProcess(t *testing.T) {
	inWorld := func(t *testing.T, f func(*testing.T, *world, *process, *redis.Client)) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(&scenario.Plan{Run: history.Head{Nodes: 1}, RTT: time.Millisecond})
			p, _ := w.Enter(1, "c1")
			process := p.(*process)
			o := process.options(w.nodes[0])
			o.MaxRetries, o.DialerRetries = -1, 1
			c := redis.NewClient(o)
			if err := c.Ping(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			f(t, w, process, c)
			c.Close()
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("stopped", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world, p *process, c *redis.Client) {
			begin := time.Now()
			p.Hold(time.Second, false)
			if err := c.Set(context.Background(), "a", "b", 0).Err(); err != nil || time.Since(begin) < time.Second {
				t.Errorf("what it was about to send: %v after %v", err, time.Since(begin))
			}
			time.AfterFunc(100*time.Microsecond, func() { p.Hold(time.Second, false) })
			begin = time.Now()
			if err := c.Set(context.Background(), "c", "d", 0).Err(); err != nil || time.Since(begin) < time.Second {
				t.Errorf("what it has sent: %v after %v", err, time.Since(begin))
			}
		})
	})
	t.Run("killed", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world, p *process, c *redis.Client) {
			time.AfterFunc(100*time.Microsecond, p.Crash)
			if err := c.Set(context.Background(), "sent", "before", 0).Err(); !errors.Is(err, net.ErrClosed) {
				t.Errorf("the reply came to %v", err)
			}
			if err := c.Set(context.Background(), "sent", "after", 0).Err(); !errors.Is(err, net.ErrClosed) {
				t.Errorf("a dead process was answered: %v", err)
			}
			time.Sleep(time.Second)
			if got := w.Keys(); len(got) != 1 || got[0] != (drive.Key{Node: 0, Key: "sent", Token: "before"}) {
				t.Errorf("the node has %v", got)
			}
		})
	})
	t.Run("leaves a connection", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(&scenario.Plan{Run: history.Head{Nodes: 1}})
			p, _ := w.Enter(1, "c1")
			if _, err := p.(*process).dial(t.Context(), w.nodes[0]); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err == nil || err.Error() != "c1 has left 1 connections open" {
				t.Errorf("what is left: %v", err)
			}
		})
	})
}
