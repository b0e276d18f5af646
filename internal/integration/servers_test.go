package integration_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/facts"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
)

// TestOldRedisIsRefused: a real Redis before 7.0 is rejected: by its version; when it claims a
// newer one, as KeyDB can be configured to; and when it does not answer INFO. The same questions
// are put to servers of today that claim to be old, or do not answer INFO.
func TestOldRedisIsRefused(t *testing.T) {
	leaks.Check(t)
	good := redistest.Servers(t, 2)
	olds := redistest.OldServers(t, 2)
	old, mute := olds[0], olds[1]
	about := make(facts.Facts)
	about.Add(ask(t, old, "INFO", "server").(string))
	version := about["redis_version"]
	ask(t, mute, "ACL", "SETUSER", "default", "-info")
	pretender := newRewriter(t, old.Addr, "redis_version:"+version, "redis_version:7"+version[1:])
	for _, tt := range []struct{ name, addr, want string }{
		{"as it is", old.Addr, "it is Redis " + version + ", which replicates and persists scripts"},
		{"claims to be new", pretender, "it is Redis 7" + version[1:] + ", which replicates and persists scripts"},
		{"hides", mute.Addr, "it is a server that does not say its version (INFO server), which replicates and persists scripts"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var err error
			for try := 0; err == nil && try < 5; try++ { // see TestUnfitServers
				var lk *redlock.Locker
				if lk, err = redlock.Connect([]string{good[0].URL(), "redis://" + tt.addr, good[1].URL()}, nil); err == nil {
					lk.Close()
				}
			}
			for _, want := range []string{"node " + tt.addr + ": ineligible: must not vote: " + tt.want, "use Redis 7.0 or later, Valkey or Redict"} {
				if !strings.Contains(fmt.Sprint(err), want) {
					t.Errorf("got %v, want %q", err, want)
				}
			}
		})
	}
}

// TestServersThatHide: a server of today that does not answer INFO is recognised by its scripts,
// which it does not keep. A server that answers neither question gets a warning. Both may vote.
func TestServersThatHide(t *testing.T) {
	for _, tt := range []struct {
		name string
		acl  []any
		want string // in the warning
	}{
		{"INFO", []any{"-info"}, "it does not say what it is (INFO server), so it may be a replica"},
		{"INFO and the key to ask with", []any{"-info", "resetkeys", "~a*", "~b*", "~redlock:node*", "~redlock:marker*", "~redlock:fence", "~redlock:below"}, "nor whether its scripts stay in one process (EVAL)"},
		{"the key to ask with", []any{"resetkeys", "~a*", "~b*", "~redlock:node*", "~redlock:marker*", "~redlock:fence", "~redlock:below"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			servers := redistest.Servers(t, 1)
			ask(t, servers[0], append([]any{"ACL", "SETUSER", "default"}, tt.acl...)...)
			opts := trusting()
			var warned []string
			opts.Hooks = &redlock.Hooks{Warning: func(err error) { warned = append(warned, err.Error()) }}
			lk := open(t, redistest.Clients(t, servers), opts)
			released(t, acquired(t, lk, "a"))
			_ = lk.Close()
			if (len(warned) > 0) != (tt.want != "") || !strings.Contains(strings.Join(warned, "\n"), tt.want) {
				t.Errorf("warned %q, want %q", warned, tt.want)
			}
		})
	}
}

// TestServerThatRepeatsPasswords: a server, or a proxy, that does not know AUTH repeats its
// arguments in the reply. No error has them.
func TestServerThatRepeatsPasswords(t *testing.T) {
	s := redistest.Servers(t, 1, "--rename-command", "AUTH", "", "--rename-command", "HELLO", "")[0]
	for _, login := range []string{"me:hush", ":hush"} {
		var down []error
		opts := trusting()
		opts.Hooks = &redlock.Hooks{NodeDown: func(e *redlock.NodeError) { down = append(down, e) }}
		lk, err := redlock.Connect([]string{"redis://" + login + "@" + s.Addr}, opts)
		if err == nil {
			_ = lk.Close()
		}
		for _, err := range append(down, err) {
			if text := fmt.Sprintf("%v %+v", err, errors.Unwrap(err)); strings.Contains(text, "hush") || !strings.Contains(text, "ineligible: ERR unknown command") {
				t.Errorf("%s: %s", login, text)
			}
		}
	}
}

// A rewriter is a proxy that replaces a text in a server's replies by another of the same length.
func newRewriter(t testing.TB, target, from, to string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var workers sync.WaitGroup
	t.Cleanup(func() { _ = listener.Close(); workers.Wait() })
	carry := func(to, from net.Conn, edit func([]byte) []byte) {
		defer to.Close()
		for buf := make([]byte, 64<<10); ; {
			n, err := from.Read(buf)
			if err != nil {
				return
			}
			if _, err := to.Write(edit(buf[:n])); err != nil {
				return
			}
		}
	}
	workers.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				_ = client.Close()
				continue
			}
			workers.Go(func() { carry(server, client, func(b []byte) []byte { return b }) })
			workers.Go(func() {
				carry(client, server, func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(from), []byte(to)) })
			})
		}
	})
	return listener.Addr().String()
}
