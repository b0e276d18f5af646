//go:build unix

package reach

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/quorumlock/redlock/internal/testbed/redistest"
)

// TestRotatedPassword: the file with the password is read at each connect. One that is gone, or not whole for a
// moment, leaves the password of the start.
func TestRotatedPassword(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "password")
	f := &config{file: filepath.Join(dir, "redlock.conf"), values: map[string]entry{"password-file": {"password", 1}, "password": {"old", 1}, "user": {"locks", 2}}}
	nodes, err := f.options([]string{"redis://127.0.0.1:1", "redis://me:mine@127.0.0.1:2"})
	if err != nil {
		t.Fatal(err)
	}
	if nodes[1].CredentialsProvider != nil {
		t.Error("a node has credentials in its URL, and would get those of the file")
	}
	for _, tt := range []struct{ text, want string }{{"old\n", "old"}, {"new\n", "new"}, {"", "old"}, {"two\nlines\n", "old"}} {
		if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if user, password := nodes[0].CredentialsProvider(); user != "locks" || password != tt.want {
			t.Errorf("%q: %q, %q", tt.text, user, password)
		}
	}
}

// TestRotatedCertificates: the certificates are read at each connect, those of the authorities and the client's own. A
// file that is gone, or not whole for a moment, leaves those of the start.
func TestRotatedCertificates(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	redistest.Certificate(t, dir, "first")
	redistest.Certificate(t, dir, "second")
	put := func(name string) { // as ca, cert and key
		for _, pair := range [][2]string{{name + ".pem", "ca.pem"}, {name + ".pem", "cert.pem"}, {name + ".key", "key.pem"}} {
			text, err := os.ReadFile(file(pair[0]))
			if err == nil {
				err = os.WriteFile(file(pair[1]), text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	put("first")

	var pair tls.Certificate // the server's
	clients := x509.NewCertPool()
	use := func(name string) {
		var err error
		if pair, err = tls.LoadX509KeyPair(file(name+".pem"), file(name+".key")); err != nil {
			t.Fatal(err)
		}
		text, _ := os.ReadFile(file(name + ".pem"))
		clients = x509.NewCertPool()
		clients.AppendCertsFromPEM(text)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()

	f := &config{file: file("redlock.conf"), values: map[string]entry{"tls-ca": {"ca.pem", 1}, "tls-cert": {"cert.pem", 2}, "tls-key": {"key.pem", 3}}}
	nodes, err := f.options([]string{"rediss://" + ln.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	connect := func() error { // both sides must trust each other
		server := make(chan error, 1)
		settings := &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert}
		go func() {
			conn, err := ln.Accept()
			if err == nil {
				defer conn.Close()
				err = tls.Server(conn, settings).Handshake()
			}
			server <- err
		}()
		conn, err := nodes[0].Dialer(context.Background(), "tcp", nodes[0].Addr)
		if err == nil {
			conn.Close()
		}
		if err2 := <-server; err == nil {
			err = err2
		}
		return err
	}
	use("first")
	if err := connect(); err != nil {
		t.Fatal(err)
	}
	use("second")
	if err := connect(); err == nil {
		t.Fatal("a server with another certificate is trusted before the files have it")
	}
	put("second")
	if err := connect(); err != nil {
		t.Errorf("after the files were replaced: %v", err)
	}
	use("first")
	for name, spoil := range map[string]func() error{
		"half a file": func() error { return os.Truncate(file("ca.pem"), 100) },
		"no file":     func() error { return os.Remove(file("cert.pem")) },
		"a pipe":      func() error { _ = os.Remove(file("ca.pem")); return syscall.Mkfifo(file("ca.pem"), 0o600) },
	} {
		_ = os.Remove(file("ca.pem"))
		put("second")
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if err := connect(); err != nil {
			t.Errorf("%s, and those of the start: %v", name, err)
		}
	}
}

// TestEndlessCertificates: a file that has no end is no certificate.
func TestEndlessCertificates(t *testing.T) {
	for _, key := range []string{"tls-ca", "tls-cert", "tls-key"} {
		values := map[string]entry{"tls-ca": {"", 0}, "tls-cert": {"/dev/zero", 2}, "tls-key": {"/dev/zero", 3}}
		if key == "tls-ca" {
			values = map[string]entry{"tls-ca": {"/dev/zero", 1}}
		}
		f := &config{file: "/x/redlock.conf", values: values}
		if _, err := f.options([]string{"rediss://127.0.0.1:1"}); err == nil || !strings.Contains(fmt.Sprint(err), "/dev/zero is larger than 1 MiB") {
			t.Errorf("%s: %v", key, err)
		}
	}
}
