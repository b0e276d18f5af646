package look

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/page"
	"github.com/quorumlock/redlock/cmd/redlock/internal/screen"
	"github.com/quorumlock/redlock/internal/printable"
)

// checkHTTP rejects an address that other hosts can reach, unless there is a token.
func checkHTTP(address, token string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return exit.Fail(exit.Usage, "for example --http 127.0.0.1:8080", "--http %q is not an address and a port", address)
	}
	ip, err := netip.ParseAddr(host)
	if loopback := host == "localhost" || err == nil && ip.IsLoopback(); !loopback && token == "" {
		return exit.Fail(exit.Usage, "use 127.0.0.1, or give --token: the page shows the names and owners of all locks", "--http %s can be reached from other hosts", address)
	}
	return nil
}

// topPage is redlock top --http. It prints the page's address, and serves the page until ctx ends.
func topPage(ctx context.Context, c *console.Console, looks *looks, cfg *topConfig) error {
	listener, err := net.Listen("tcp", cfg.http)
	if err != nil {
		return exit.Fail(exit.Usage, "is the port in use? With port 0 a free one is taken", "--http %s: %v", cfg.http, err)
	}
	host, _, _ := net.SplitHostPort(cfg.http)
	server := &page.Server{Host: host, Token: cfg.token}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() {
		err := server.Serve(ctx, listener)
		cancel()
		served <- err
	}()
	c.Result("http://%s/", listener.Addr())
	for {
		p, err := looks.picture(ctx)
		if err == nil {
			err = server.Show(viewOf(p, cfg.sort))
		}
		if err == nil && pauseFor(ctx, cfg.every) {
			continue
		}
		cancel()
		if why := <-served; why != nil && !errors.Is(why, context.Canceled) {
			return exit.Fail(exit.CannotWrite, "", "--http %s: %v", cfg.http, why)
		}
		return nil // ctx has ended
	}
}

// viewOf converts a picture for the page.
func viewOf(p *screen.Picture, order string) *page.View {
	v := &page.View{Time: p.At, Set: screen.Set(p.Members), Summary: p.Summary(), Order: order, Nodes: screen.NodeTable(p)[1:], Locks: []page.Lock{}}
	for _, r := range p.Rows {
		l := page.Lock{Cells: p.Cells(r), Age: -1, Wait: -1}
		for _, name := range r.Names {
			l.Names = append(l.Names, printable.Text(name))
		}
		if since := r.Since(); !since.IsZero() {
			l.Age = max(0, p.At.Sub(since)).Milliseconds()
		}
		if len(r.Waiting) > 0 {
			l.Wait = int64(r.Wait() / time.Millisecond)
		}
		v.Locks = append(v.Locks, l)
	}
	return v
}
