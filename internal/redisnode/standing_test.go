package redisnode

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// TestLook: a connection that the other end has closed, or over which something has come, does not stand; with
// TLS neither, and without reading what belongs to TLS.
func TestLook(t *testing.T) {
	if runtime.GOOS == "windows" {
		need.Skip(t, "of closed connections", "Windows does not show them")
	}
	web := httptest.NewTLSServer(nil) // for its certificate
	web.Close()
	pool := x509.NewCertPool()
	pool.AddCert(web.Certificate())
	for name, wrap := range map[string]func(near, far net.Conn) (net.Conn, net.Conn){
		"plain": func(near, far net.Conn) (net.Conn, net.Conn) { return near, far },
		"TLS": func(near, far net.Conn) (net.Conn, net.Conn) {
			return tls.Client(near, &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"}), tls.Server(far, web.TLS)
		},
	} {
		for end, do := range map[string]func(net.Conn) error{
			"closed": net.Conn.Close,
			"sends":  func(c net.Conn) error { _, err := io.WriteString(c, "+"); return err },
		} {
			t.Run(name+" "+end, func(t *testing.T) {
				ln, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				defer ln.Close()
				near, err := net.Dial("tcp", ln.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer near.Close()
				far, err := ln.Accept()
				if err != nil {
					t.Fatal(err)
				}
				defer far.Close()
				near, far = wrap(near, far)
				go func() { // the first request and its reply, with which what TLS sends of itself arrives
					_, _ = far.Read(make([]byte, 10))
					_, _ = io.WriteString(far, "+PONG\r\n")
				}()
				_, _ = io.WriteString(near, "PING\r\n")
				if n, err := io.ReadFull(near, make([]byte, 7)); err != nil {
					t.Fatal(n, err)
				}
				_ = near.SetReadDeadline(time.Now().Add(-time.Second))
				if saw := look(near); saw != silent {
					t.Errorf("it looks %d", saw)
				}
				if err := do(far); err != nil {
					t.Fatal(err)
				}
				for begin := time.Now(); look(near) != broken; time.Sleep(time.Millisecond) {
					if time.Since(begin) > 10*time.Second {
						t.Fatal("it stands")
					}
				}
			})
		}
	}
	if saw := look(struct{ net.Conn }{}); saw != blind {
		t.Errorf("what has no socket looks %d", saw)
	}
}
