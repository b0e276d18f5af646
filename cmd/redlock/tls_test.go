//go:build unix

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/quorumlock/redlock/internal/testbed/redistest"
)

// TestUserAndTLS: the user of docs/operations.md, with the rights that newer servers have beside, is allowed all
// that redlock does, over TLS, with a password that must be escaped, and URLs from a file or a configuration file;
// and errors name what is wrong with certificates and passwords.
func TestUserAndTLS(t *testing.T) {
	dir := t.TempDir()
	certificate(t, dir, "server")
	certificate(t, dir, "other")
	manual, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	rule := regexp.MustCompile(`(?m)^user (locks on >PASSWORD .*)$`).FindSubmatch(manual)
	if rule == nil {
		t.Fatal("docs/operations.md has no user")
	}
	user := strings.Fields(strings.Replace(string(rule[1]), "PASSWORD", "p,a@ss", 1))

	urls, plain := "", []string(nil)
	for range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(l.Addr().String())
		l.Close()
		server := redistest.Servers(t, 1, "--tls-port", port, "--tls-auth-clients", "no", "--tls-ca-cert-file", filepath.Join(dir, "server.pem"),
			"--tls-cert-file", filepath.Join(dir, "server.pem"), "--tls-key-file", filepath.Join(dir, "server.key"))[0]
		if _, err := ask(server.Addr, append([]string{"ACL", "SETUSER"}, user...)); err != nil {
			t.Fatal(err)
		}
		for _, newer := range []string{"+delex", "+delifeq"} {
			if _, err := ask(server.Addr, []string{"ACL", "SETUSER", "locks", newer}); err != nil && !strings.Contains(err.Error(), "Unknown command") {
				t.Fatal(err)
			}
		}
		plain = append(plain, server.Addr)
		urls += fmt.Sprintf("rediss://locks:p%%2Ca%%40ss@127.0.0.1:%s\n", port)
	}
	conf := strings.ReplaceAll(strings.ReplaceAll(urls, "rediss://", "node = rediss://"), "locks:p%2Ca%40ss@", "") + "user = locks\ntls-ca = server.pem\ntls-cert = server.pem\ntls-key = server.key\n"
	for name, text := range map[string]string{
		"nodes": "# ours\n" + urls, "wrong": strings.ReplaceAll(urls, "%2C", ""), "password": "p,a@ss\n",
		"redlock.conf": conf + "password = p,a@ss\n", "file.conf": conf + "password-file = password\n", "wrong.conf": conf + "password = wrong\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("script", func(t *testing.T) {
		runScripts(t, testscript.Params{Dir: "testdata/tls"}, "SSL_CERT_FILE="+filepath.Join(dir, "server.pem"), "REDLOCK_NODES_FILE="+filepath.Join(dir, "nodes"), "DIR="+dir)
	})
	for _, addr := range plain { // the log has wrong passwords, and commands that the user may not use
		log, err := ask(addr, []string{"ACL", "LOG", "128"})
		refused := regexp.MustCompile(`object:(\S+)`).FindAllStringSubmatch(fmt.Sprint(log), -1)
		if err != nil || len(refused) == 0 {
			t.Errorf("%s: %v, %v", addr, log, err)
		}
		for _, what := range refused {
			if !slices.Contains([]string{"auth", "hello", "config|get"}, what[1]) {
				t.Errorf("%s has refused %s", addr, what[1])
			}
		}
	}
}

// certificate writes NAME.pem and NAME.key, for 127.0.0.1.
func certificate(t *testing.T, dir, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{name + ".pem": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
