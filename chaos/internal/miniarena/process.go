package miniarena

import (
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/chaos/internal/drive"
	"github.com/quorumlock/redlock/internal/replace"
	"github.com/quorumlock/redlock/internal/testbed/model"
)

// A process has sockets that die and stand still with it.
type process struct {
	world     *world
	name      string
	host      *model.Host
	strangers []*redis.Client // of clients of other libraries
	given     []string        // addresses; nil: all

	mu      sync.Mutex // never held while waiting
	sockets map[*socket]struct{}
	stopped time.Time // it stands still until then
	dead    bool
}

// Locker makes the process's Locker as a program would, from its own clients.
func (p *process) Locker(opts *redlock.Options) (*redlock.Locker, error) {
	opts.Clock = p.host
	replace.In(opts, p.host.Parts(nil))
	given := p.given
	if given == nil {
		given = p.world.Addrs()
	}
	clients := make([]*redis.Client, len(given))
	for i, addr := range given {
		clients[i] = redis.NewClient(p.options(p.world.at(addr)))
		defer clients[i].Close() // it has no connection
	}
	return redlock.New(clients, opts)
}

func (p *process) Addrs() []string { return p.world.Addrs() }

func (p *process) Give(addrs []string) { p.given = addrs }

// options returns the default options, with the process's dialer, which leads to any node by its address:
// the library copies the options of one node for those that become members later.
func (p *process) options(n *node) *redis.Options {
	o := n.Options()
	o.Dialer = func(ctx context.Context, _, addr string) (net.Conn, error) { return p.dial(ctx, p.world.at(addr)) }
	return o
}

func (p *process) Pass(worker, n int) { p.host.Pass(worker, n) }

func (p *process) Hold(d time.Duration, machine bool) {
	if machine {
		p.host.Suspend(d)
	} else {
		p.host.Stop(d)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := time.Now().Add(d); until.After(p.stopped) {
		p.stopped = until
	}
}

func (p *process) Token() string { return p.host.Token() }

func (p *process) Skew(d time.Duration) { p.host.Skew(d) }

func (p *process) Real(t time.Time) time.Time { return p.host.Real(t) }

func (p *process) Lanes() []int { return p.host.Lanes() }

func (p *process) Holders(_, token string) (has, silent int) {
	for i := range p.world.nodes {
		if slices.ContainsFunc(p.world.on(i), func(l drive.Key) bool { return l.Token == token }) {
			has++
		}
	}
	return has, 0
}

// Crash closes the sockets, as the kernel does: what was sent before may arrive.
func (p *process) Crash() {
	p.host.Crash()
	p.mu.Lock()
	p.dead = true
	p.stopped = time.Time{}
	all := slices.Collect(maps.Keys(p.sockets))
	p.mu.Unlock()
	for _, s := range all {
		_ = s.Close()
	}
}

// stands waits for as long as the process stands still, and reports whether it is alive.
func (p *process) stands() bool {
	for {
		p.mu.Lock()
		rest, dead := time.Until(p.stopped), p.dead
		p.mu.Unlock()
		if dead || rest <= 0 {
			return !dead
		}
		time.Sleep(rest)
	}
}

func (p *process) open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.sockets)
}

func (p *process) dial(ctx context.Context, n *node) (net.Conn, error) {
	if !p.stands() {
		return nil, n.DialError(net.ErrClosed)
	}
	conn, err := n.Dial(ctx)
	p.stands()
	if err != nil {
		return nil, err
	}
	s := &socket{Conn: conn, process: p}
	p.mu.Lock()
	dead := p.dead
	if !dead {
		p.sockets[s] = struct{}{}
	}
	p.mu.Unlock()
	if dead {
		_ = conn.Close()
		return nil, n.DialError(net.ErrClosed)
	}
	return s, nil
}

// A socket is a connection of a process.
type socket struct {
	net.Conn
	process *process
}

// Read, too, returns only when the process goes on.
func (s *socket) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if !s.process.stands() {
		return 0, net.ErrClosed
	}
	return n, err
}

func (s *socket) Write(b []byte) (int, error) {
	if !s.process.stands() {
		return 0, net.ErrClosed
	}
	return s.Conn.Write(b)
}

func (s *socket) Close() error {
	s.process.mu.Lock()
	delete(s.process.sockets, s)
	s.process.mu.Unlock()
	return s.Conn.Close()
}

// SyscallConn is what go-redis uses to check whether an idle connection was closed.
func (s *socket) SyscallConn() (syscall.RawConn, error) {
	return s.Conn.(syscall.Conn).SyscallConn()
}
