//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/quorumlock/redlock/internal/testbed/port"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
)

// TestUserAndTLS: the user of docs/operations.md, with the rights that newer servers have beside, is allowed all
// that redlock does, over TLS, with a password that must be escaped, and URLs from a file or a configuration file;
// and errors name what is wrong with certificates and passwords.
func TestUserAndTLS(t *testing.T) {
	dir := t.TempDir()
	redistest.Certificate(t, dir, "server")
	redistest.Certificate(t, dir, "other")
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
		claim, err := port.Reserve()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(claim.Close)
		tlsPort := strconv.Itoa(claim.Number)
		server := redistest.Servers(t, 1, "--tls-port", tlsPort, "--tls-auth-clients", "no", "--tls-ca-cert-file", filepath.Join(dir, "server.pem"),
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
		urls += fmt.Sprintf("rediss://locks:p%%2Ca%%40ss@127.0.0.1:%s\n", tlsPort)
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
