package redlock_test

import (
	"net"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
)

// TestNodeAnnouncesATerabyte: what a node announces in its greeting does not end the client.
func TestNodeAnnouncesATerabyte(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = conn.Read(make([]byte, 4096))
				_, _ = conn.Write([]byte("*2\r\n$6\r\nserver\r\n$1000000000000\r\n"))
				_, _ = conn.Read(make([]byte, 1))
			}()
		}
	}()
	lk, err := redlock.Connect([]string{"redis://" + l.Addr().String()}, &redlock.Options{NodeTimeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer lk.Close()
	if _, err := lk.TryAcquire(t.Context(), "a"); err == nil {
		t.Error("locked")
	}
}
