package redisnode

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/resp"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
	"github.com/redis/go-redis/v9"
)

// scripts are those of the test's servers.
var scripts = map[string]string{script.Release.Hash: "release", script.Extend.Hash: "extend", script.Raise.Hash: "raise"}

// commands gives the names of the commands and scripts in what was sent.
func commands(sent []byte) string {
	var names []string
	var r resp.Reader
	r.Reset(bytes.NewReader(sent))
	for {
		v, err := r.Reply()
		if err != nil {
			return strings.Join(names, " ")
		}
		c := v.([]any)
		name := c[0].(string)
		if name == "evalsha" {
			name = scripts[c[1].(string)]
		}
		names = append(names, name)
	}
}

// TestNative: what is sent for an extension or a release without a script, and what comes of the replies.
func TestNative(t *testing.T) {
	const marks = "*1\r\n$1\r\nm\r\n"               // MGET
	const clock = "*2\r\n$4\r\n1000\r\n$1\r\n7\r\n" // TIME
	const known, unknown = "*1\r\n:1\r\n", "*1\r\n:0\r\n"
	extension, newer, valkey := natives{extend: true}, natives{true, "delex"}, natives{true, "delifeq"}
	for _, tt := range []struct {
		name       string
		has        natives
		ops        []wire.Op
		sent, said string
		want       string
	}{
		{"extended", newer, []wire.Op{wire.Extend}, "set exists mget time script", "+OK\r\n:0\r\n" + marks + clock + known, "granted 1000000007 by m"},
		{"two extended", newer, []wire.Op{wire.Extend, wire.Extend}, "set exists set exists mget time script", "+OK\r\n:0\r\n+OK\r\n:0\r\n" + marks + clock + known, "granted 1000000007 by m, granted 1000000007 by m"},
		{"gone", newer, []wire.Op{wire.Extend}, "set exists mget time script", "$-1\r\n:0\r\n" + marks + clock + known, "open"},
		{"broken", newer, []wire.Op{wire.Extend}, "set exists mget time script", "+OK\r\n:1\r\n" + marks + clock + known, "open"},
		{"broken, or not", newer, []wire.Op{wire.Extend}, "set exists mget time script", "+OK\r\n-NOPERM no\r\n" + marks + clock + known, "open"},
		{"another's", newer, []wire.Op{wire.Extend, wire.Extend}, "set exists set exists mget time script", "$-1\r\n:0\r\n+OK\r\n:0\r\n" + marks + clock + known, "open, granted 1000000007 by m"},
		{"a full server", newer, []wire.Op{wire.Extend}, "set exists mget time script", "-OOM no\r\n:0\r\n" + marks + clock + known, "open"},
		{"another process", newer, []wire.Op{wire.Extend}, "set exists mget time script", "+OK\r\n:0\r\n" + marks + clock + unknown, "open"},
		{"no SCRIPT EXISTS", newer, []wire.Op{wire.Extend}, "set exists mget time script", "+OK\r\n:0\r\n" + marks + clock + "-NOPERM no\r\n", "open"},
		{"no TIME", newer, []wire.Op{wire.Extend}, "set exists mget time script", "+OK\r\n:0\r\n" + marks + "-NOPERM no\r\n" + known, "open"},

		{"released", newer, []wire.Op{wire.Release}, "delex exists", ":1\r\n:0\r\n", "granted 0"},
		{"released by Valkey", valkey, []wire.Op{wire.Release}, "delifeq exists", ":1\r\n:0\r\n", "granted 0"},
		{"others wait", newer, []wire.Op{wire.Release}, "delex exists", ":1\r\n:1\r\n", "granted 0, others wait"},
		{"others may wait", newer, []wire.Op{wire.Release}, "delex exists", ":1\r\n-NOPERM no\r\n", "granted 0, others wait"},
		{"was not there", newer, []wire.Op{wire.Release}, "delex exists", ":0\r\n:1\r\n", "open"},
		{"is another's", newer, []wire.Op{wire.Release}, "delex exists", ":0\r\n:1\r\n", "open"},
		{"is denied", newer, []wire.Op{wire.Release}, "delex exists", "-NOPERM no\r\n:0\r\n", "open"},
		{"is no string", newer, []wire.Op{wire.Release}, "delex exists", "-ERR Key should be of string type\r\n:0\r\n", "open"},

		{"both", newer, []wire.Op{wire.Release, wire.Raise, wire.Extend, wire.Release}, "delex exists raise set exists delex exists mget time script",
			":1\r\n:1\r\n" + ":1\r\n" + "$-1\r\n:0\r\n" + ":0\r\n:0\r\n" + marks + clock + known, "granted 0, others wait, granted 0, open, open"},
		{"half of the replies", newer, []wire.Op{wire.Release, wire.Extend}, "delex exists set exists mget time script", ":1\r\n:0\r\n", "timeout 0, timeout 0"},

		{"a server with IFEQ alone", extension, []wire.Op{wire.Release, wire.Extend}, "release set exists mget time script", ":1\r\n+OK\r\n:0\r\n" + marks + clock + known, "granted 0, granted 1000000007 by m"},
		{"no marker", newer, []wire.Op{wire.Extend}, "set exists mget time script", "+OK\r\n:0\r\n*1\r\n$-1\r\n" + clock + known, "granted 1000000007 by "},
		{"no MGET", newer, []wire.Op{wire.Extend}, "set exists mget time script", "+OK\r\n:0\r\n-NOPERM no\r\n" + clock + known, "open"},
		{"a server with none", natives{}, []wire.Op{wire.Release, wire.Extend}, "release extend mget", ":1\r\n:12\r\n" + marks, "granted 0, granted 12 by m"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, far := connected(t, time.Second)
				h := *s.scripts.Load()
				h.natives = tt.has
				s.scripts.Store(&h)
				var batch []*lane.Request
				for _, op := range tt.ops {
					q := request(op)
					q.Native, q.Claim.Keys, q.Claim.Modes = true, []string{"a"}, "x"
					batch = append(batch, q)
				}
				var sent []string
				go func() {
					buf := make([]byte, 64<<10)
					n, err := io.ReadAtLeast(far, buf, 1)
					if err != nil {
						return
					}
					sent = append(sent, commands(buf[:n]))
					_, _ = io.WriteString(far, tt.said)
				}()
				begin := time.Now()
				_ = exec(s, batch)
				if time.Since(begin) > time.Second {
					t.Errorf("it has taken %v", time.Since(begin))
				}
				synctest.Wait()
				var got []string
				for _, q := range batch {
					text := fmt.Sprint(q.Reply.Status, " ", q.Reply.Time)
					switch {
					case q.Open:
						text = "open"
					case q.Waited:
						text += ", others wait"
					case q.Op == wire.Extend && q.Reply.Status != wire.Timeout:
						text += " by " + q.Shown // the marker that was there afterwards
					}
					got = append(got, text)
				}
				if text := strings.Join(got, ", "); text != tt.want {
					t.Errorf("it comes to %s, want %s", text, tt.want)
				}
				if text := strings.Join(sent, "; "); text != tt.sent {
					t.Errorf("sent %s, want %s", text, tt.sent)
				}
			})
		})
	}
}

// TestNativeProbe: what the answers of servers say that they have.
func TestNativeProbe(t *testing.T) {
	const none = redis.Nil
	unknown, syntax, denied := errors.New("ERR unknown command"), errors.New("ERR syntax error"), errors.New("NOPERM no")
	say := func(v any) *redis.Cmd {
		c := redis.NewCmd(t.Context())
		if err, is := v.(error); is {
			c.SetErr(err)
		} else {
			c.SetVal(v)
		}
		return c
	}
	exists := []any{int64(0)}
	for _, tt := range []struct {
		name                         string
		ifeq, exists, delex, delifeq any
		want                         natives
	}{
		{"Redis 8.6", none, exists, int64(0), unknown, natives{true, "delex"}},
		{"Redis 8.0", syntax, exists, unknown, unknown, natives{}},
		{"Valkey 9.1", none, exists, unknown, int64(0), natives{true, "delifeq"}},
		{"Valkey 8.1", none, exists, unknown, unknown, natives{true, ""}},
		{"denied", denied, exists, denied, unknown, natives{}},
		{"the trailer is denied", none, denied, int64(0), unknown, natives{false, "delex"}},
		{"another server", "OK", exists, "OK", "OK", natives{}},
	} {
		if got := (nativeProbe{say(tt.ifeq), say(tt.exists), say(tt.delex), say(tt.delifeq)}).natives(); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestMarkerOfAnEarlierBatch: an extension that is sent again, since the server had dropped its scripts, is
// followed by a marker of its own. If that gets lost, the earlier one says nothing.
func TestMarkerOfAnEarlierBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, far := connected(t, time.Second)
		q := request(wire.Extend)
		go answer(far, "-NOSCRIPT no\r\n*1\r\n$1\r\nm\r\n")
		if err := exec(s, []*lane.Request{q}); err != nil || q.Shown != "m" {
			t.Errorf("%v, and the marker is %q", err, q.Shown)
		}
		go answer(far, ":12\r\n")
		if err := exec(s, []*lane.Request{q}); err == nil || q.Reply.Status == wire.Granted && q.Shown != "" {
			t.Errorf("%v, %v, and the marker is %q", err, q.Reply.Status, q.Shown)
		}
	})
}
