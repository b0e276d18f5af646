// Package need has the rules by which a test runs, is skipped, or fails for what it takes:
// servers, or more time than `go test ./...` is to take. It is a package of its own for the
// tests of what redistest is built on.
//
// There are three sizes. A quick run is `go test ./...`: it checks the rules with few
// schedules, most of them on the model. A full run is that of each submission: it starts
// servers and programs, and runs the schedules that CI runs. A long run is that of the night.
package need

import (
	"errors"
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

// IsFull reports whether tests run that start servers or programs, or cannot be made short.
func IsFull() bool { return set(UseServers) || set(RequireRedis) || set(UseLong) }

// Sized gives a test the number that goes with the size of the run: of schedules, seeds,
// rounds. A quick run must check what a full run checks, only less often.
//
// Under the race detector a full run has the quick number: what the test itself checks is checked by a full
// run without it, and the few rounds take the same paths.
func Sized[N any](quick, full, long N) N {
	switch {
	case set(UseLong):
		return long
	case IsFull() && !Raced:
		return full
	}
	return quick
}

// Sample reports whether a case of a table runs: each of them in a full run, and one in so many in
// a quick one. Where each row is combined with each column, at is the sum of both, so that a quick
// run has other columns in other rows.
func Sample(at, every int) bool { return Sized(at%every == 0, true, true) }

// What a message says why a test is skipped begins with: Skip makes the first, and the second is for a test
// whose checks another test of the same run makes, so that nothing is left out.
const (
	SkipPrefix      = "the tests "
	ElsewherePrefix = "elsewhere: "
)

// Skip skips a test of a kind for which something is missing:
//
//	need.Skip(t, "in Chromium", "there is no chromium")
//
// A run of all tests (internal/testall) ends with the kinds that it left out, and why.
func Skip(t testing.TB, kind string, why any) {
	t.Helper()
	t.Skipf("%s%s (%v)", SkipPrefix, kind, why)
}

// Elsewhere skips a test whose checks another one makes, which by says.
func Elsewhere(t testing.TB, by string) {
	t.Helper()
	t.Skip(ElsewherePrefix + by)
}

// Unraced skips a test under the race detector, but in a long run: a run without it checks the same.
func Unraced(t testing.TB) {
	t.Helper()
	if Raced && !set(UseLong) {
		Elsewhere(t, "a run without the race detector checks the same")
	}
}

// The kinds of tests that a machine may lack a program for.
const (
	WithServers  = "with redis-server"
	WithPostgres = "with PostgreSQL"
	WithOldRedis = "with a Redis before 7.0"
	InChromium   = "in Chromium"
	InTmux       = "in tmux"
	WithHAProxy  = "with HAProxy"
)

// Full skips the test in a quick run. It is for a test that builds or starts programs, or
// cannot be made shorter; a test with a smaller size calls Sized instead.
func Full(t testing.TB) {
	t.Helper()
	if !IsFull() {
		Skip(t, "of seconds", UseServers+" is not 1")
	}
}

// Long skips the test in a quick and in a full run. It is for more of what a full run
// checks, never for the only test of a promise.
func Long(t testing.TB) {
	t.Helper()
	if !set(UseLong) {
		Skip(t, "of minutes", UseLong+" is not 1")
	}
}

// Servers skips the test unless the run is a full one, and the servers that the test
// starts can be started here, which available says.
func Servers(t testing.TB, available func() error) {
	t.Helper()
	if !IsFull() {
		Skip(t, WithServers, UseServers+" is not 1")
	}
	if err := available(); err != nil {
		if set(RequireRedis) {
			t.Fatal(err)
		}
		Skip(t, WithServers, err)
	}
}

// Chromium finds the browser. It skips the test in a quick run, and where there is none.
func Chromium(t testing.TB) (path string) {
	t.Helper()
	return program(t, InChromium, RequireChromium, FindChromium)
}

// Tmux finds the terminal multiplexer. It skips the test in a quick run, and where there is none.
func Tmux(t testing.TB) (path string) {
	t.Helper()
	return program(t, InTmux, RequireTmux, FindTmux)
}

// program finds a program. Where there is none it skips the test, or fails it if the environment variable
// require is 1.
func program(t testing.TB, kind, require string, find func() (string, error)) (path string) {
	t.Helper()
	Full(t)
	path, err := find()
	if err != nil && set(require) {
		t.Fatal(err)
	}
	if err != nil {
		Skip(t, kind, err)
	}
	return path
}

// FindChromium is the path of the browser.
func FindChromium() (path string, err error) {
	return find("chromium", "chromium-browser", "google-chrome")
}

// FindTmux is the path of the terminal multiplexer.
func FindTmux() (path string, err error) { return find("tmux") }

// find is the path of the first of these programs that is in the PATH.
func find(names ...string) (path string, err error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no " + strings.Join(names, ", no ") + " in the PATH")
}
