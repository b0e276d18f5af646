package main

import (
	"os"
	"path/filepath"
	"testing"
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
