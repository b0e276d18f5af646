// Package pgtest starts a PostgreSQL for a test.
package pgtest

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// Require is the environment variable that, set to 1, makes a missing PostgreSQL a failure.
const Require = "REDLOCK_REQUIRE_POSTGRES"

// patience is how long a server may take that takes a moment on an idle machine.
const patience = 30 * time.Second

// Available says why Start would skip the test; nil if it would not. It fails the test if a PostgreSQL is
// required.
func Available(t *testing.T) error {
	t.Helper()
	err := Installed()
	if err != nil && os.Getenv(Require) == "1" {
		t.Fatal(err)
	}
	return err
}

// Installed says what is missing for Start to work; nil: nothing is.
func Installed() error {
	_, _, _, err := programs()
	return err
}

// Start starts a server of its own with the database and the user postgres, and returns the directory of its
// socket. Both end with the test. Without PostgreSQL the test is skipped.
func Start(t *testing.T) string {
	t.Helper()
	if err := Available(t); err != nil {
		need.Skip(t, need.WithPostgres, err)
	}
	initdb, server, as, _ := programs()
	dir, err := os.MkdirTemp("", "postgres") // t.TempDir is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	command := func(args ...string) *exec.Cmd {
		if as != nil {
			args = append([]string{"setpriv", "--reuid=" + as.Uid, "--regid=" + as.Gid, "--clear-groups"}, args...)
		}
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = dir
		return cmd
	}
	if as != nil {
		uid, _ := strconv.Atoi(as.Uid)
		gid, _ := strconv.Atoi(as.Gid)
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(dir, "data")
	out, err := command(initdb, "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync").CombinedOutput()
	if err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}

	// The server ends when the pipe to the shell is closed: by the test, or when the test ends.
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	in, life, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	run := command("sh", "-c", `"$0" "$@" & read -r _; kill -INT $!; wait`,
		server, "-D", data, "-k", dir, "-h", "", "-F", "-c", "shared_buffers=16MB")
	run.Stdin, run.Stdout, run.Stderr = in, log, log
	if err := run.Start(); err != nil {
		_ = life.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = life.Close()
		_ = run.Wait()
	})

	// The last line of this file is the server's status.
	ready := func() bool {
		text, _ := os.ReadFile(filepath.Join(data, "postmaster.pid"))
		return strings.HasSuffix(strings.TrimSpace(string(text)), "ready")
	}
	for deadline := time.Now().Add(patience); !ready(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("PostgreSQL is not ready within %v:\n%s", patience, text)
		}
	}
	return dir
}

// programs finds the programs, and the user to run them as: PostgreSQL refuses to run as root.
func programs() (initdb, server string, as *user.User, err error) {
	for name, path := range map[string]*string{"initdb": &initdb, "postgres": &server} {
		if *path, err = exec.LookPath(name); err == nil {
			continue
		}
		// Debian has them outside of the PATH.
		found, _ := filepath.Glob(filepath.Join("/usr/lib/postgresql/*/bin", name))
		if len(found) == 0 {
			return "", "", nil, errors.New("there is no " + name + " of PostgreSQL")
		}
		*path = found[len(found)-1]
	}
	if os.Geteuid() != 0 {
		return initdb, server, nil, nil
	}
	if _, err := exec.LookPath("setpriv"); err != nil {
		return "", "", nil, errors.New("PostgreSQL does not run as root, and there is no setpriv")
	}
	for _, name := range []string{"postgres", "nobody"} {
		if as, err = user.Lookup(name); err == nil {
			return initdb, server, as, nil
		}
	}
	return "", "", nil, errors.New("PostgreSQL does not run as root, and there is no other user")
}
