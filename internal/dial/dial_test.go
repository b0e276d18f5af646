package dial

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/facts"
)

// certificate is a new one for a host, with the settings of a client that trusts it.
func certificate(t *testing.T, host string) (tls.Certificate, *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	is := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{host}, NotAfter: time.Now().Add(time.Hour)}
	if ip := net.ParseIP(host); ip != nil {
		is.DNSNames, is.IPAddresses = nil, []net.IP{ip}
	}
	der, err := x509.CreateCertificate(rand.Reader, is, is, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, &tls.Config{RootCAs: trusted}
}

// listen accepts connections on a port of this computer, and lets serve answer each.
func listen(t *testing.T, serve func(net.Conn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return l.Addr().String()
}

// greets is a server that says hello, in TLS with this certificate.
func greets(with tls.Certificate) func(net.Conn) {
	return func(conn net.Conn) {
		defer conn.Close()
		fmt.Fprintln(tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{with}}), "hello")
	}
}

// TestSecureChecksTheHost: the certificate must be for the host that is dialed, or for the ServerName of the settings. The
// settings are asked for with each connection, and not changed.
func TestSecureChecksTheHost(t *testing.T) {
	for _, tt := range []struct {
		name, certified, serverName string
		ok                          bool
	}{
		{"the host that is dialed", "127.0.0.1", "", true},
		{"another host", "redis.example", "", false},
		{"the ServerName", "redis.example", "redis.example", true},
		{"another one than the ServerName", "127.0.0.1", "redis.example", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server, settings := certificate(t, tt.certified)
			settings.ServerName = tt.serverName
			addr, asked := listen(t, greets(server)), 0
			dial := Secure(time.Minute, func() (*tls.Config, error) { asked++; return settings, nil })
			for range 2 {
				conn, err := dial(t.Context(), "tcp", addr)
				if (err == nil) != tt.ok {
					t.Fatalf("dialed: %v", err)
				}
				if err != nil {
					continue
				}
				if line, err := bufio.NewReader(conn).ReadString('\n'); line != "hello\n" {
					t.Errorf("the server says %q, %v", line, err)
				}
				conn.Close()
			}
			if asked != 2 || settings.ServerName != tt.serverName {
				t.Errorf("asked %d times, and the ServerName is %q", asked, settings.ServerName)
			}
		})
	}
}

// TestSecureFails: without settings no connection is made, and a port that nobody listens on is refused, as without TLS.
func TestSecureFails(t *testing.T) {
	missing := errors.New("no such file")
	dial := Secure(time.Minute, func() (*tls.Config, error) { return nil, missing })
	if conn, err := dial(t.Context(), "tcp", "127.0.0.1:1"); !errors.Is(err, missing) {
		t.Errorf("without settings: %v, %v", conn, err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	_, plain := Plain(time.Minute)(t.Context(), "tcp", addr)
	_, secure := Secure(time.Minute, func() (*tls.Config, error) { return new(tls.Config), nil })(t.Context(), "tcp", addr)
	if plain == nil || secure == nil || plain.Error() != secure.Error() {
		t.Errorf("nobody listens: %v, and with TLS %v", plain, secure)
	}
}

// A port is the far end of the connections that shake makes in a bubble.
type port func(far net.Conn)

// silent reads all that comes, and never answers.
func silent(far net.Conn) {
	for b := make([]byte, 1024); ; {
		if _, err := far.Read(b); err != nil {
			return
		}
	}
}

// shaken runs shake over a pipe, with so much time, and then over another pipe to see whether the port speaks plain text. It
// returns how long that took, and the error.
func shaken(ctx context.Context, t *testing.T, limit time.Duration, p port) (time.Duration, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	again := func(context.Context) (net.Conn, error) {
		near, far := net.Pipe()
		go func() {
			defer far.Close()
			p(far)
		}()
		return near, nil
	}
	conn, _ := again(ctx)
	defer conn.Close()
	start := time.Now()
	_, err := shake(ctx, conn, &tls.Config{ServerName: "redis.example"}, again)
	return time.Since(start), err
}

// TestPortWithoutTLSIsTold: a Redis that speaks no TLS waits for the end of the line that the handshake looks like. After three
// quarters of the time the port is asked in plain text, and what it says tells what it is.
func TestPortWithoutTLSIsTold(t *testing.T) {
	answers := func(says string) port { // to a line; a handshake is the beginning of one that does not end
		return func(far net.Conn) {
			first := make([]byte, 1)
			if _, err := far.Read(first); err != nil {
				return
			}
			if first[0] != 'P' {
				silent(far)
			} else if _, err := bufio.NewReader(far).ReadString('\n'); err == nil {
				fmt.Fprint(far, says)
			}
		}
	}
	for _, tt := range []struct {
		name  string
		port  port
		plain bool
		after time.Duration
	}{
		{"a Redis", answers("+PONG\r\n"), true, 3 * time.Second},
		{"a Redis with a password", answers("-NOAUTH Authentication required.\r\n"), true, 3 * time.Second},
		{"something else", answers("HTTP/1.1 400 Bad Request\r\n"), false, 3 * time.Second},
		{"a port that says nothing", silent, false, 4 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			took, err := shaken(t.Context(), t, 4*time.Second, tt.port)
			if errors.Is(err, facts.ErrPlain) != tt.plain || took != tt.after {
				t.Errorf("%s: %v after %v", tt.name, err, took)
			}
			if !tt.plain && (!errors.Is(err, os.ErrDeadlineExceeded) || !strings.HasPrefix(err.Error(), "TLS handshake: ")) {
				t.Errorf("%s: %v", tt.name, err)
			}
		})
	}
}

// TestHandshakeEndsWithItsContext: whatever the port does, the reason that the context has is the error, at once.
func TestHandshakeEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("the caller is gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(gone) })
		took, err := shaken(ctx, t, time.Minute, silent)
		if !errors.Is(err, gone) || took != time.Second {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// TestConnectionHasNoDeadline: the time for the handshake does not bound what comes after it.
func TestConnectionHasNoDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, settings := certificate(t, "redis.example")
		settings.ServerName = "redis.example"
		near, far := net.Pipe()
		go func() {
			conn := tls.Server(far, &tls.Config{Certificates: []tls.Certificate{server}})
			defer conn.Close()
			if err := conn.Handshake(); err == nil {
				time.Sleep(time.Hour)
				fmt.Fprintln(conn, "hello")
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		conn, err := shake(ctx, near, settings, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if line, err := bufio.NewReader(conn).ReadString('\n'); line != "hello\n" {
			t.Errorf("an hour later: %q, %v", line, err)
		}
	})
}

// TestDefaultDialer: the dialer that go-redis makes for a client without one is told from a caller's own.
func TestDefaultDialer(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	for _, tt := range []struct {
		name   string
		dialer Func
		want   bool
	}{
		{"none", nil, true},
		{"go-redis's", client.Options().Dialer, true},
		{"ours", Plain(time.Second), false},
		{"another one", func(context.Context, string, string) (net.Conn, error) { return nil, nil }, false},
	} {
		if got := IsDefault(tt.dialer); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// TestHost: of an address with a port, without one, and of a socket in the file system.
func TestHost(t *testing.T) {
	for addr, want := range map[string]string{"redis.example:6379": "redis.example", "[::1]:6379": "::1", "redis.example": "redis.example", "/run/redis.sock": "/run/redis.sock"} {
		if got := Host(addr); got != want {
			t.Errorf("the host of %q is %q", addr, got)
		}
	}
}
