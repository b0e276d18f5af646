// Package need has the one rule by which a test that starts servers runs, is skipped, or
// fails. It is a package of its own for the tests of what redistest is built on.
package need

import (
	"os"
	"testing"
)

const (
	// UseServers is the environment variable that, set to 1, has the tests run that start
	// a redis-server. Where there is none, they are skipped.
	UseServers = "REDLOCK_SERVERS"

	// RequireRedis is the environment variable that, set to 1, has them run as well, and
	// makes a missing redis-server a failure: CI must not pass because it skipped them.
	RequireRedis = "REDLOCK_REQUIRE_REDIS"
)

// Servers skips the test unless the environment asks for the tests that start servers, and
// those can be started here, which available says.
func Servers(t testing.TB, available func() error) {
	t.Helper()
	require := os.Getenv(RequireRedis) == "1"
	if !require && os.Getenv(UseServers) != "1" {
		t.Skip("set " + UseServers + "=1 to run it with redis-server")
	}
	if err := available(); err != nil {
		if require {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}
