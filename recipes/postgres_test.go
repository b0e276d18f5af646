package recipes

import (
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// requirePostgres is the environment variable that, set to 1, makes a missing
// PostgreSQL a failure.
const requirePostgres = "REDLOCK_REQUIRE_POSTGRES"

// startPostgres starts a server of its own, at a socket in a directory of its own. Both
// end with the test.
func startPostgres(t *testing.T) string {
	t.Helper()
	initdb, server, as, err := postgresPrograms()
	if err != nil {
		if os.Getenv(requirePostgres) == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
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

	where := "host=" + dir + " user=postgres dbname=postgres sslmode=disable"
	db, err := sql.Open("postgres", where)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for deadline := time.Now().Add(patience); db.PingContext(t.Context()) != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("PostgreSQL does not answer within %v:\n%s", patience, text)
		}
	}
	if err := prepare(t.Context(), "postgres", where); err != nil {
		t.Fatal(err)
	}
	return where
}

// postgresPrograms finds the programs, and the user to run them as: PostgreSQL refuses to run as root.
func postgresPrograms() (initdb, server string, as *user.User, err error) {
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
