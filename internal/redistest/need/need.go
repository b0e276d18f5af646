// Package need has the rules by which a test runs, is skipped, or fails for what it takes:
// servers, or more time than `go test ./...` is to take. It is a package of its own for the
// tests of what redistest is built on.
//
// There are three sizes. A quick run is `go test ./...`: it checks the rules with few
// schedules, most of them on the model. A full run is that of each submission: it starts
// servers and programs, and runs the schedules that CI runs. A long run is that of the night.
package need

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

const (
	// UseServers is the environment variable that, set to 1, makes the run a full one: the
	// tests run that start a redis-server, and those that take seconds. Where there is no
	// redis-server, the former are skipped.
	UseServers = "REDLOCK_SERVERS"

	// RequireRedis is the environment variable that, set to 1, makes the run a full one as
	// well, and a missing redis-server a failure: CI must not pass because it skipped them.
	RequireRedis = "REDLOCK_REQUIRE_REDIS"

	// RequireChromium and RequireTmux are the environment variables that, set to 1, make a missing
	// Chromium or tmux a failure.
	RequireChromium = "REDLOCK_REQUIRE_CHROMIUM"
	RequireTmux     = "REDLOCK_REQUIRE_TMUX"

	// UseLong is the environment variable that, set to 1, makes the run a long one.
	UseLong = "REDLOCK_LONG"
)

func set(variable string) bool { return os.Getenv(variable) == "1" }

func isFull() bool { return set(UseServers) || set(RequireRedis) || set(UseLong) }

// Sized gives a test the number that goes with the size of the run: of schedules, seeds,
// rounds. A quick run must check what a full run checks, only less often.
func Sized[N any](quick, full, long N) N {
	switch {
	case set(UseLong):
		return long
	case isFull():
		return full
	}
	return quick
}

// Sample reports whether a case of a table runs: each of them in a full run, and one in so many in
// a quick one. Where each row is combined with each column, at is the sum of both, so that a quick
// run has other columns in other rows.
func Sample(at, every int) bool { return Sized(at%every == 0, true, true) }

// Full skips the test in a quick run. It is for a test that builds or starts programs, or
// cannot be made shorter; a test with a smaller size calls Sized instead.
func Full(t testing.TB) {
	t.Helper()
	if !isFull() {
		t.Skip("takes seconds: set " + UseServers + "=1 to run it")
	}
}

// Long skips the test in a quick and in a full run. It is for more of what a full run
// checks, never for the only test of a promise.
func Long(t testing.TB) {
	t.Helper()
	if !set(UseLong) {
		t.Skip("takes minutes: set " + UseLong + "=1 to run it")
	}
}

// Servers skips the test unless the run is a full one, and the servers that the test
// starts can be started here, which available says.
func Servers(t testing.TB, available func() error) {
	t.Helper()
	if !isFull() {
		t.Skip("set " + UseServers + "=1 to run it with redis-server")
	}
	if err := available(); err != nil {
		if set(RequireRedis) {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}

// Chromium finds the browser. It skips the test in a quick run, and where there is none.
func Chromium(t testing.TB) (path string) {
	t.Helper()
	return program(t, RequireChromium, "chromium", "chromium-browser", "google-chrome")
}

// Tmux finds the terminal multiplexer. It skips the test in a quick run, and where there is none.
func Tmux(t testing.TB) (path string) {
	t.Helper()
	return program(t, RequireTmux, "tmux")
}

// program finds the first of these programs that is in the PATH. Where there is none it skips the
// test, or fails it if the environment variable require is 1.
func program(t testing.TB, require string, names ...string) (path string) {
	t.Helper()
	Full(t)
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	missing := "there is no " + strings.Join(names, ", and no ")
	if set(require) {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}
