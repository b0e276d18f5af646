package recipes

import (
	"testing"

	"github.com/quorumlock/redlock/internal/testbed/pgtest"
)

// startPostgres starts a server of its own, which ends with the test.
func startPostgres(t *testing.T) string {
	t.Helper()
	where := "host=" + pgtest.Start(t) + " user=postgres dbname=postgres sslmode=disable"
	if err := prepare(t.Context(), "postgres", where); err != nil {
		t.Fatal(err)
	}
	return where
}
