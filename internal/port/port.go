// Package port finds ports of the loopback interface for servers that may be down for a while: nobody else who
// uses this package is given a port that is claimed.
package port

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are drawn from below the range that kernels use for outgoing connections. Otherwise the kernel
// might give a server's port to another connection, or another server, before the restart; worse, a client
// that keeps dialling a dead port of that range can end up connected to itself.
const (
	first = 20000
	last  = 31999

	tries = 20
)

// ErrTaken is part of the error of a server that cannot listen since somebody else does.
var ErrTaken = errors.New("port is taken")

// A Claim keeps a port for a server, whether it runs or not.
type Claim struct {
	Addr   string // host:port
	Number int
	udp    net.PacketConn // the same number's: no process that uses this package starts a server there
}

// Find draws ports until start has made a server of its own listen there. Any error but ErrTaken
// ends that.
func Find(start func(*Claim) error) (c *Claim, err error) {
	for range tries {
		n := first + rand.IntN(last-first+1)
		if c, err = claim(n); err != nil {
			continue
		}
		if err = start(c); err == nil {
			return c, nil
		}
		c.Close()
		if !errors.Is(err, ErrTaken) {
			break
		}
	}
	return nil, err
}

func claim(number int) (*Claim, error) {
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(number))
	udp, err := net.ListenPacket("udp", addr)
	return &Claim{Addr: addr, Number: number, udp: udp}, err
}

// Close ends the claim. The server does not listen any more.
func (c *Claim) Close() { _ = c.udp.Close() }
