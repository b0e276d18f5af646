package memredis_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
	"github.com/redis/go-redis/v9"
)

// serve runs a test with one engine that is running, and a client of it.
func serve(t *testing.T, f func(t *testing.T, e *memredis.Engine, c *redis.Client)) {
	synctest.Test(t, func(t *testing.T) {
		e := memredis.NewEngine(6379)
		defer e.Stop()
		c := redis.NewClient(&redis.Options{Addr: "10.0.0.1:6379", MaxRetries: -1, Dialer: func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			if !e.Serve(far) {
				return nil, net.ErrClosed
			}
			return near, nil
		}})
		defer c.Close()
		f(t, e, c)
	})
}

// An error in a script is the command's own, with the script's hash and the line,
// as real servers of version 7 have it.
func TestErrorsInScripts(t *testing.T) {
	const set = "\n return redis.call('SET', KEYS[1], ARGV[1])"
	serve(t, func(t *testing.T, e *memredis.Engine, c *redis.Client) {
		c.HSet(t.Context(), "hash", "a", "b")
		get := redis.NewScript("return redis.call('GET', KEYS[1])")
		for range 2 { // by EVALSHA, EVAL, and EVALSHA again
			want := "WRONGTYPE Operation against a key holding the wrong kind of value script: " + get.Hash() + ", on @user_script:1."
			if err := get.Run(t.Context(), c, []string{"hash"}).Err(); err == nil || err.Error() != want {
				t.Errorf("the script says %v", err)
			}
		}
		e.Refuse(&memredis.Refusal{Error: "OOM no", Only: []string{"SET"}})
		if err := c.Eval(t.Context(), set, []string{"k"}, "v").Err(); !redis.HasErrorPrefix(err, "OOM no script: ") || !strings.HasSuffix(err.Error(), ":2.") {
			t.Errorf("the script says %v", err)
		}
		for script, want := range map[string]string{
			"return redis.error_reply('MINE own')": "MINE own",
			"syntax error":                         "ERR Error compiling script",
			"return redis.call('NOPE')":            "ERR Error compiling script",
		} {
			if err := c.Eval(t.Context(), script, nil).Err(); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%q: %v", script, err)
			}
		}
	})
}

// What is refused is refused to those who send it; a script that was let in, and
// what the harness does itself, is not.
func TestRefuse(t *testing.T) {
	serve(t, func(t *testing.T, e *memredis.Engine, c *redis.Client) {
		e.Put("before")
		e.Refuse(&memredis.Refusal{Error: "BUSY yes", Except: []string{"HELLO", "PING"}})
		if err := c.Ping(t.Context()).Err(); err != nil {
			t.Errorf("the exception: %v", err)
		}
		for _, err := range []error{
			c.Set(t.Context(), "k", "v", 0).Err(), c.Eval(t.Context(), "return 1", nil).Err(), c.Info(t.Context()).Err(),
		} {
			if !redis.HasErrorPrefix(err, "BUSY yes") {
				t.Errorf("the node says %v", err)
			}
		}
		e.Put("after")
		e.Stop()
		e.Put("down")
		e.Take("before")
		e.Start(true)
		c.Ping(t.Context()) // finds out that the connection has gone
		if err := c.Set(t.Context(), "k", "v", 0).Err(); !redis.HasErrorPrefix(err, "BUSY yes") {
			t.Errorf("after a restart the node says %v", err)
		}
		e.Refuse(nil)
		if keys, err := c.Keys(t.Context(), "*").Result(); !slices.Equal(keys, []string{"after", "down", script.Marker}) || err != nil {
			t.Errorf("the keys are %q, %v", keys, err)
		}
	})
}

// What is there already stays: it is not for us to break somebody's lock.
func TestPutAndTake(t *testing.T) {
	serve(t, func(t *testing.T, e *memredis.Engine, c *redis.Client) {
		c.Set(t.Context(), "lock", "token", 0)
		for _, key := range []string{"lock", "free"} {
			e.Put(key)
		}
		if got := e.Values(); len(got) != 2 || got["lock"] != "token" || got["free"] != "" {
			t.Errorf("the values are %q", got)
		}
		for _, key := range []string{"lock", "free", "nothing"} {
			e.Take(key)
		}
		if got := e.Keys(); !slices.Equal(got, []string{"lock"}) {
			t.Errorf("the keys are %q", got)
		}
	})
}

// TestStep: a node whose clock is set keeps its keys for longer, or drops them; what had expired does not come back.
func TestStep(t *testing.T) {
	serve(t, func(t *testing.T, e *memredis.Engine, c *redis.Client) {
		c.Set(t.Context(), "k", "v", time.Minute)
		c.Set(t.Context(), "gone", "v", time.Second)
		time.Sleep(2 * time.Second)
		e.Step(-time.Hour)
		if got := c.PTTL(t.Context(), "k").Val(); got != time.Hour+58*time.Second {
			t.Errorf("after the clock was set back, it has %v to live", got)
		}
		if got := e.Keys(); !slices.Equal(got, []string{"k"}) {
			t.Errorf("the keys are %q: what had expired has come back", got)
		}
		e.Step(time.Hour + 58*time.Second)
		if got := e.Keys(); len(got) != 0 {
			t.Errorf("after the clock was set forward, there is %q", got)
		}
	})
}

// A node that is killed while a script runs says nothing about it.
func TestKilledInAScript(t *testing.T) {
	e := memredis.NewEngine(6379)
	defer e.Stop()
	for range 20 {
		var asking sync.WaitGroup
		var conns []net.Conn
		for range 8 {
			near, far := net.Pipe()
			e.Serve(far)
			conns = append(conns, near)
			asking.Go(func() {
				const script = "return redis.call('INCR', 'k')"
				request := fmt.Sprintf("*3\r\n$4\r\nEVAL\r\n$%d\r\n%s\r\n$1\r\n0\r\n", len(script), script)
				for in := bufio.NewReader(near); ; {
					if _, err := io.WriteString(near, request); err != nil {
						return
					}
					line, err := in.ReadString('\n')
					if err != nil {
						return
					}
					if !strings.HasPrefix(line, ":") {
						t.Errorf("the node says %q", line)
					}
				}
			})
		}
		time.Sleep(2 * time.Millisecond)
		e.Stop()
		for _, c := range conns {
			_ = c.Close()
		}
		asking.Wait()
		e.Start(true)
	}
}

// A script is compiled once, and is there for as long as nobody has flushed it; one that
// cannot be compiled is refused each time.
func TestLoadedScripts(t *testing.T) {
	serve(t, func(t *testing.T, e *memredis.Engine, c *redis.Client) {
		flushes := []func(){
			func() { c.ScriptFlush(t.Context()) },
			e.FlushScripts,
			func() { e.Stop(); e.Start(true); c.Ping(t.Context()) }, // which finds its connection closed
		}
		for i := range len(flushes) + 1 {
			var sha string
			for range 2 {
				sha = c.ScriptLoad(t.Context(), "return 7").Val()
				if got, err := c.EvalSha(t.Context(), sha, nil).Int(); got != 7 || err != nil {
					t.Errorf("loaded as %q, it says %d, %v", sha, got, err)
				}
				if err := c.ScriptLoad(t.Context(), "return return").Err(); err == nil {
					t.Error("what is no script was loaded")
				}
			}
			if i == len(flushes) {
				break
			}
			flushes[i]()
			if err := c.EvalSha(t.Context(), sha, nil).Err(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
				t.Errorf("flushed, it says %v", err)
			}
		}
	})
}

// Scripts that differ in what their first line says of the server are two scripts to those
// who load them, and each is known by its own hash only, also in errors.
func TestScriptsAreNamed(t *testing.T) {
	serve(t, func(t *testing.T, _ *memredis.Engine, c *redis.Client) {
		ctx := t.Context()
		one, two := "-- for one\n\nreturn redis.call('INCR', KEYS[1])", "-- for two\n\nreturn redis.call('INCR', KEYS[1])"
		first := c.ScriptLoad(ctx, one).Val()
		if got, want := c.ScriptExists(ctx, first, redis.NewScript(two).Hash()).Val(), []bool{true, false}; first != redis.NewScript(one).Hash() || !slices.Equal(got, want) {
			t.Errorf("loaded as %s, there are %v, want %v", first, got, want)
		}
		if err := c.EvalSha(ctx, redis.NewScript(two).Hash(), []string{"k"}).Err(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
			t.Errorf("the other one: %v", err)
		}
		second := c.ScriptLoad(ctx, two).Val()
		for i, hash := range []string{first, strings.ToUpper(second)} {
			if n, err := c.EvalSha(ctx, hash, []string{"k"}).Int(); n != i+1 || err != nil {
				t.Errorf("%s: %d, %v", hash, n, err)
			}
		}
		sent := "return 'by EVAL'"
		c.Eval(ctx, sent, nil)
		if got, want := c.ScriptExists(ctx, strings.ToUpper(first), "no hash", redis.NewScript(sent).Hash(), second).Val(), []bool{true, false, true, true}; !slices.Equal(got, want) {
			t.Errorf("there are %v, want %v", got, want)
		}
		c.Set(ctx, "k", "no number", 0)
		if err := c.EvalSha(ctx, second, []string{"k"}).Err(); err == nil || !strings.HasSuffix(err.Error(), " script: "+second+", on @user_script:3.") {
			t.Errorf("on line 3: %v", err)
		}
	})
}
