package realarena

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"sync"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/client"
)

// A shop lets clients in other processes read and write a resource in this one: they send an event
// over TCP with their read or write, and get it back with the answer.
type shop struct {
	listener net.Listener
	serving  sync.WaitGroup

	mu     sync.Mutex
	conns  []net.Conn
	closed bool
}

func newShop() (*shop, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	return &shop{listener: l}, err
}

func (s *shop) addr() string { return s.listener.Addr().String() }

// serve begins to answer. Earlier requests have waited until then.
func (s *shop) serve(r client.Resource) {
	s.serving.Go(func() {
		for {
			conn, err := s.listener.Accept()
			if err != nil || !s.add(conn) {
				return
			}
			s.serving.Go(func() { answer(conn, r) })
		}
	})
}

func answer(conn net.Conn, r client.Resource) {
	defer conn.Close()
	in, out := json.NewDecoder(conn), json.NewEncoder(conn)
	for {
		var e history.Event
		if in.Decode(&e) != nil {
			return
		}
		switch e.Kind {
		case history.Read:
			e.Value = r.Read(e.Name, e.Fence)
		case history.Wrote:
			r.Write(e)
		}
		if out.Encode(e) != nil {
			return
		}
	}
}

func (s *shop) add(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		conn.Close()
		return false
	}
	s.conns = append(s.conns, conn)
	return true
}

func (s *shop) close() {
	s.listener.Close()
	s.mu.Lock()
	s.closed = true
	for _, conn := range s.conns {
		conn.Close()
	}
	s.mu.Unlock()
	s.serving.Wait()
}

// A customer is a client's access to the resource of a shop.
type customer struct {
	mu  sync.Mutex
	in  *json.Decoder
	out *json.Encoder
}

func newCustomer(addr string) (*customer, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &customer{in: json.NewDecoder(conn), out: json.NewEncoder(conn)}, nil
}

func (c *customer) Read(name string, fence uint64) int {
	return c.ask(history.Event{Kind: history.Read, Name: name, Fence: fence}).Value
}

func (c *customer) Write(e history.Event) {
	e.Kind = history.Wrote
	c.ask(e)
}

// ask ends the process if there is no answer: the shop is closed, so the run is over.
func (c *customer) ask(e history.Event) history.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.out.Encode(e)
	if err == nil {
		err = c.in.Decode(&e)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the resource does not answer:", err)
		os.Exit(1)
	}
	return e
}
