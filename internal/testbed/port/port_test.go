package port_test

import (
	"errors"
	"net"
	"testing"

	"github.com/quorumlock/redlock/internal/testbed/port"
)

// TestFindTriesAnotherPort: a port that turns out to be taken is given back, and the next one is tried. The port that is
// returned stays claimed until Close.
func TestFindTriesAnotherPort(t *testing.T) {
	var drawn []*port.Claim
	c, err := port.Find(func(c *port.Claim, l net.Listener) error {
		l.Close()
		if drawn = append(drawn, c); len(drawn) < 3 {
			return port.ErrTaken
		}
		return nil
	})
	if err != nil || c != drawn[2] {
		t.Fatalf("%v, %v after %d ports", c, err, len(drawn))
	}
	for i, over := range []bool{true, true, false} {
		again, err := net.ListenPacket("udp", drawn[i].Addr)
		if (err == nil) != over {
			t.Errorf("the claim of port %d is over: want %v: %v", i, over, err)
		}
		if err == nil {
			again.Close()
		}
	}
	c.Close()
}

// TestFindGivesUp: at once for any error but ErrTaken, and for ErrTaken after some ports.
func TestFindGivesUp(t *testing.T) {
	broken := errors.New("broken")
	for want, most := range map[error]int{broken: 1, port.ErrTaken: 20} {
		asked := 0
		_, err := port.Find(func(*port.Claim, net.Listener) error { asked++; return want })
		if !errors.Is(err, want) || asked == 0 || asked > most {
			t.Errorf("%v: %v after %d ports", want, err, asked)
		}
	}
}
