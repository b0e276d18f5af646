package redistest

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

func TestMain(m *testing.M) { os.Exit(leaks.Main(m)) }

// bubble runs a test with n nodes and a client that is already connected to the first, so that no fault
// hits the handshake.
func bubble(t *testing.T, n int, f func(t *testing.T, b *Bubble, c *redis.Client)) {
	synctest.Test(t, func(t *testing.T) {
		leaks.Check(t)
		b := NewBubble(t, n)
		c := b.Client(0)
		if err := c.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		f(t, b, c)
	})
}

// TestBubbleExpiry: a key lives for its TTL of virtual time, on the node where it was set.
func TestBubbleExpiry(t *testing.T) {
	bubble(t, 2, func(t *testing.T, b *Bubble, c *redis.Client) {
		if err := c.Set(t.Context(), "k", "v", time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour - time.Millisecond)
		if got := b.Keys(0); !slices.Equal(got, []string{"k"}) {
			t.Errorf("keys just before the hour: %q", got)
		}
		time.Sleep(time.Millisecond)
		if got := b.Keys(0); len(got) != 0 {
			t.Errorf("keys after an hour: %q", got)
		}
		if got := b.Keys(1); len(got) != 0 {
			t.Errorf("keys of the other node: %q", got)
		}
	})
}

// TestBubbleKillAndRestart: a killed node refuses connections; restarted, it is another process, with its data or
// without.
func TestBubbleKillAndRestart(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *Bubble, c *redis.Client) {
		ctx := t.Context()
		c.Set(ctx, "k", "v", 0)
		id := runID(t, c)

		b.Kill(0)
		conn, err := b.Options(0).Dialer(ctx, "tcp", b.Addr(0))
		if !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dialling a killed node: %v, %v", conn, err)
		}

		b.Restart(0, true)
		if v, err := c.Get(ctx, "k").Result(); v != "v" || err != nil {
			t.Errorf("after a restart with data: %q, %v", v, err)
		}
		if now := runID(t, c); now == id {
			t.Error("the run_id has survived")
		}

		b.Restart(0, false)
		if err := c.Get(ctx, "k").Err(); !errors.Is(err, redis.Nil) {
			t.Errorf("after a restart without data: %v", err)
		}
	})
}

// A pooled connection that broke while it was idle is noticed as over TCP: the
// command is not sent on it, so even a client that never retries succeeds.
func TestBubbleIdleConnection(t *testing.T) {
	if runtime.GOOS == "windows" {
		need.Skip(t, "of closed connections", "on Windows go-redis does not see them")
	}
	bubble(t, 1, func(t *testing.T, b *Bubble, _ *redis.Client) {
		opts := b.Options(0)
		opts.MaxRetries = -1
		c := redis.NewClient(opts)
		defer c.Close()
		if err := c.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		b.Restart(0, true)
		synctest.Wait() // until the client's side is closed
		if err := c.Ping(t.Context()).Err(); err != nil {
			t.Error(err)
		}
	})
}

// TestBubbleHang: a node that hangs carries nothing out and answers nothing, and carries all of it out when it goes
// on.
func TestBubbleHang(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *Bubble, c *redis.Client) {
		b.Hang(0)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		opts := b.Options(0)
		opts.ContextTimeoutEnabled = true
		fresh := redis.NewClient(opts)
		defer fresh.Close()
		start := time.Now()
		if err := fresh.Set(ctx, "greeting", "v", 0).Err(); err == nil {
			t.Error("a hung node has completed a handshake")
		}
		if err := c.WithTimeout(50*time.Millisecond).SetNX(t.Context(), "k", "v", 0).Err(); !isTimeout(err) {
			t.Errorf("SET on a hung node: %v", err)
		}
		t.Logf("%v of virtual time", time.Since(start))
		if got := b.Keys(0); len(got) != 0 {
			t.Errorf("a hung node has executed something: %q", got)
		}
		b.Resume(0)
		synctest.Wait()
		if got := b.Keys(0); !slices.Equal(got, []string{"k"}) {
			t.Errorf("after it went on, its keys are %q", got)
		}
	})
}

// TestBubbleKillWhileHung: what a node had not read when it was killed is lost.
func TestBubbleKillWhileHung(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *Bubble, c *redis.Client) {
		b.Hang(0)
		done := make(chan error)
		go func() {
			opts := b.Options(0)
			opts.MaxRetries = -1
			once := redis.NewClient(opts)
			defer once.Close()
			done <- once.Set(t.Context(), "k", "v", 0).Err()
		}()
		synctest.Wait()
		b.Kill(0)
		if err := <-done; err == nil {
			t.Error("a killed node has answered")
		}
		b.Restart(0, true)
		if got, err := c.Exists(t.Context(), "k").Result(); got != 0 || err != nil {
			t.Errorf("what the killed process had not read: %d keys, %v", got, err)
		}
	})
}

// TestBubbleDelay: a delay on the path is the time that a command takes, and that a connection takes.
func TestBubbleDelay(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *Bubble, c *redis.Client) {
		b.Path(0).SetDelay(30 * time.Millisecond)
		start := time.Now()
		if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d != 30*time.Millisecond {
			t.Errorf("SET took %v", d)
		}
		start = time.Now()
		conn, err := b.Options(0).Dialer(t.Context(), "tcp", b.Addr(0))
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		if d := time.Since(start); d != 30*time.Millisecond {
			t.Errorf("connecting took %v", d)
		}
	})
}

// TestBubbleCut: without replies a command is carried out and times out; a cut path connects to nothing until its
// context ends.
func TestBubbleCut(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *Bubble, c *redis.Client) {
		b.Path(0).CutReplies()
		if err := c.WithTimeout(time.Second).Set(t.Context(), "k", "v", 0).Err(); !isTimeout(err) {
			t.Errorf("without replies: %v", err)
		}
		if got := b.Keys(0); !slices.Equal(got, []string{"k"}) {
			t.Errorf("the request did not get through: %q", got)
		}
		b.Path(0).Cut()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		conn, err := b.Options(0).Dialer(ctx, "tcp", b.Addr(0))
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute {
			t.Errorf("dialling into a black hole: %v, %v after %v", conn, err, time.Since(start))
		}
		b.Path(0).Heal()
		if err := c.Ping(t.Context()).Err(); err != nil {
			t.Errorf("healed: %v", err)
		}
	})
}

// A trap for the library: after a lost reply go-redis sends the command again, which then finds its own
// key.
func TestBubbleLostReply(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *Bubble, c *redis.Client) {
		b.Path(0).DropReplies(1)
		got, err := c.SetNX(t.Context(), "k", "v", 0).Result()
		if got || err != nil {
			t.Errorf("SET NX after a lost reply: %v, %v", got, err)
		}
		if got := b.Keys(0); !slices.Equal(got, []string{"k"}) {
			t.Errorf("keys %q", got)
		}

		opts := b.Options(0)
		opts.MaxRetries = -1
		once := redis.NewClient(opts)
		defer once.Close()
		once.Ping(t.Context())
		b.Path(0).DropReplies(1)
		if err := once.SetNX(t.Context(), "k2", "v", 0).Err(); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("a lost reply without retry: %v", err)
		}
		if got := b.Keys(0); !slices.Equal(got, []string{"k", "k2"}) {
			t.Errorf("keys %q", got)
		}
	})
}

// TestBubblePubSub: a message takes the delay of the path, and go-redis subscribes again after a restart.
func TestBubblePubSub(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *Bubble, c *redis.Client) {
		sub := c.Subscribe(t.Context(), "ch")
		defer sub.Close()
		if _, err := sub.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.Path(0).SetDelay(20 * time.Millisecond)
		go c.Publish(context.Background(), "ch", "hello")
		start := time.Now()
		msg, err := sub.ReceiveMessage(t.Context())
		if err != nil || msg.Payload != "hello" {
			t.Fatalf("%v, %v", msg, err)
		}
		if d := time.Since(start); d != 20*time.Millisecond {
			t.Errorf("the message took %v", d)
		}

		b.Restart(0, true)
		for {
			// go-redis subscribes again by itself; the message may come before that.
			c.Publish(t.Context(), "ch", "again")
			got, err := sub.ReceiveTimeout(t.Context(), 100*time.Millisecond)
			if msg, ok := got.(*redis.Message); ok && msg.Payload == "again" {
				break
			}
			if err != nil && time.Since(start) > time.Minute {
				t.Fatal(err)
			}
		}
	})
}

// The errors that a client may examine are the same as over TCP.
func TestPipeErrors(t *testing.T) {
	bubble(t, 1, func(t *testing.T, b *Bubble, _ *redis.Client) {
		dial := func() net.Conn {
			c, err := b.Options(0).Dialer(t.Context(), "tcp", b.Addr(0))
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		var opErr *net.OpError

		c := dial()
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := c.Read(make([]byte, 1)); !isTimeout(err) || !errors.As(err, &opErr) {
			t.Errorf("deadline: %v", err)
		}
		c.Close()
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("closed: %v", err)
		}

		c = dial()
		b.Path(0).ResetAll()
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("reset: %v", err)
		}
		if _, err := io.WriteString(c, "PING\r\n"); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("writing after a reset: %v", err)
		}
		c.Close()

		c = dial()
		b.Kill(0)
		synctest.Wait()
		if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
			t.Errorf("a deadline on a connection that the node has closed: %v", err)
		}
		if _, err := c.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("killed: %v", err)
		}
		if _, err := io.WriteString(c, "PING\r\n"); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("writing to a killed node: %v", err)
		}
		c.Close()
	})
}

// TestBubbleInfo: each node has a run_id of its own, unless it is overridden, and an uptime in virtual time.
func TestBubbleInfo(t *testing.T) {
	bubble(t, 2, func(t *testing.T, b *Bubble, c *redis.Client) {
		if len(b.Clients()) != b.Len() {
			t.Error("clients are missing")
		}
		if runID(t, c) == runID(t, b.Client(1)) {
			t.Error("two nodes have one run_id")
		}
		b.SetInfo(1, "run_id", runID(t, c))
		if runID(t, c) != runID(t, b.Client(1)) {
			t.Error("the run_id was not overridden")
		}
		time.Sleep(time.Hour)
		if text := c.Info(t.Context(), "server").Val(); !strings.Contains(text, "uptime_in_seconds:3600\r\n") {
			t.Errorf("after an hour: %q", text)
		}
	})
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

func runID(t *testing.T, c *redis.Client) string {
	t.Helper()
	text, err := c.Info(t.Context(), "server").Result()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(text, "run_id:")
	id, _, _ := strings.Cut(rest, "\r\n")
	if len(id) != 40 {
		t.Fatalf("run_id is %q", id)
	}
	return id
}
