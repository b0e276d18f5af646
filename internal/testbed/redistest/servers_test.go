package redistest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// TestServers: the servers run, can vote at once, and end with the test; Keys tells a server without keys from one
// that cannot be asked.
func TestServers(t *testing.T) {
	leaks.Check(t)
	servers := Servers(t, 3)
	clients := Clients(t, servers)
	behind := ProxyClients(t, Proxies(t, servers))
	if err := clients[0].Set(t.Context(), "b", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := behind[0].Set(t.Context(), "a", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	servers[1].Kill()
	if err := servers[2].Hang(); err != nil {
		t.Fatal(err)
	}
	keys := Keys(t, servers)
	if len(keys) != 1 || !slices.Equal(keys[servers[0].Addr], []string{"a", "b"}) {
		t.Errorf("keys of the one server that runs: %q", keys)
	}
	if err := servers[1].Restart(); err != nil {
		t.Fatal(err)
	}
	if err := servers[2].Resume(); err != nil {
		t.Fatal(err)
	}
	keys = Keys(t, servers)
	if none, there := keys[servers[1].Addr]; len(keys) != 3 || !there || len(none) != 0 {
		t.Errorf("keys of all servers: %q", keys)
	}
}

// A probe takes the place of a testing.T, to show what the helpers do to a test.
type probe struct {
	testing.TB
	cleanups []func()
	skipped  bool
	failed   bool
	said     string
}

func (p *probe) Helper()          {}
func (p *probe) Cleanup(f func()) { p.cleanups = append(p.cleanups, f) }

func (p *probe) Errorf(format string, args ...any) {
	p.failed, p.said = true, fmt.Sprintf(format, args...)
}

// Skipf and Fatal leave the helper as the real ones do, by a panic that run takes.
func (p *probe) Skipf(format string, args ...any) {
	p.skipped, p.said = true, fmt.Sprintf(format, args...)
	panic(p)
}

func (p *probe) Fatal(args ...any) { p.failed, p.said = true, fmt.Sprint(args...); panic(p) }

func (p *probe) run(f func()) {
	defer func() {
		if r := recover(); r != nil && r != any(p) {
			panic(r)
		}
		for _, f := range slices.Backward(p.cleanups) {
			f()
		}
	}()
	f()
}

// TestServersWithoutRedis: by the environment a test is skipped, or fails, where there is no redis-server.
func TestServersWithoutRedis(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv(need.UseLong, "")
	for _, c := range []struct {
		use, require  string
		skips, errors bool
		says          string
	}{
		{"", "", true, false, "the tests with redis-server (REDLOCK_SERVERS is not 1)"},
		{"0", "0", true, false, "the tests with redis-server (REDLOCK_SERVERS is not 1)"},
		{"1", "", true, false, "no redis-server in PATH"},
		{"", "1", false, true, "no redis-server in PATH"},
		{"1", "1", false, true, "no redis-server in PATH"},
	} {
		t.Setenv(need.UseServers, c.use)
		t.Setenv(need.RequireRedis, c.require)
		p := &probe{}
		p.run(func() { Servers(p, 1) })
		if p.skipped != c.skips || p.failed != c.errors || !strings.Contains(p.said, c.says) {
			t.Errorf("%+v: skipped %v, failed %v: %s", c, p.skipped, p.failed, p.said)
		}
	}
}

// TestServersThatDoNotStart: a server that does not start fails the test.
func TestServersThatDoNotStart(t *testing.T) {
	Servers(t, 0) // skips
	p := &probe{}
	p.run(func() { Servers(p, 1, "--dir", filepath.Join(os.TempDir(), "no", "such", "directory")) })
	if !p.failed {
		t.Error("a server that cannot start has not failed the test")
	}
}
