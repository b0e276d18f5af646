package recipes

import (
	"database/sql"
	"strings"
	"sync"
	"testing"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
)

// TestAppend: no line is lost, and none is there twice.
func TestAppend(t *testing.T) {
	leaks.Check(t)
	where := startSQLite(t)
	s, err := openRows("sqlite3", where)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if err := s.create(t.Context(), "log"); err != nil {
		t.Fatal(err)
	}
	nodes := urls(redistest.Servers(t, 3))

	lines := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	var all sync.WaitGroup
	for _, line := range lines {
		all.Go(func() { // a Locker and a database for each, as if it were another process
			lk, err := redlock.Connect(nodes, nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = lk.Close() }()
			db, err := sql.Open("sqlite3", where)
			if err != nil {
				t.Error(err)
				return
			}
			defer db.Close()
			if err := Append(t.Context(), lk, db, "log", line); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		})
	}
	all.Wait()
	got, err := s.read(t.Context(), "log", 1<<53-1)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		if strings.Count(got, line+"\n") != 1 {
			t.Errorf("%d times %s in %q", strings.Count(got, line+"\n"), line, got)
		}
	}
}
