package fence

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"
)

// A database is one that executes nothing. recipes has the tests with PostgreSQL and SQLite.
type database struct {
	rows                              int64 // that a statement has changed
	begins, executes, counts, commits error
	did                               []string
}

func (d *database) Connect(context.Context) (driver.Conn, error) { return d, nil }
func (d *database) Driver() driver.Driver                        { return nil }
func (d *database) Prepare(string) (driver.Stmt, error)          { return nil, errors.New("not prepared") }
func (d *database) Close() error                                 { return nil }
func (d *database) Begin() (driver.Tx, error)                    { return d, d.begins }
func (d *database) Commit() error                                { d.did = append(d.did, "commit"); return d.commits }
func (d *database) Rollback() error                              { d.did = append(d.did, "rollback"); return nil }
func (d *database) LastInsertId() (int64, error)                 { return 0, errors.New("none") }
func (d *database) RowsAffected() (int64, error)                 { return d.rows, d.counts }

func (d *database) ExecContext(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if !strings.HasPrefix(query, "INSERT INTO app.fences AS kept ") || len(args) != 2 || args[0].Value != "orders" || args[1].Value != int64(7) {
		return nil, errors.New("another statement: " + query)
	}
	d.did = append(d.did, "check")
	return d, d.executes
}

// TestTx: what it does, and returns, at each step that can fail.
func TestTx(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		d    database
		f    error
		want error
		did  string
	}{
		"done":                 {d: database{rows: 1}, did: "check f commit"},
		"stale":                {d: database{rows: 0}, want: ErrStale, did: "check rollback"},
		"no transaction":       {d: database{begins: broken}, want: broken},
		"no statement":         {d: database{executes: broken}, want: broken, did: "check rollback"},
		"no count of the rows": {d: database{counts: broken}, want: broken, did: "check rollback"},
		"f fails":              {d: database{rows: 1}, f: broken, want: broken, did: "check f rollback"},
		"no commit":            {d: database{rows: 1, commits: broken}, want: broken, did: "check f commit"},
	} {
		t.Run(name, func(t *testing.T) {
			db := sql.OpenDB(&c.d)
			defer db.Close()
			err := Table("app.fences").Tx(t.Context(), db, "orders", 7, func(*sql.Tx) error {
				c.d.did = append(c.d.did, "f")
				return c.f
			})
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if did := strings.Join(c.d.did, " "); did != c.did {
				t.Errorf("it did %q, want %q", did, c.did)
			}
			if name == "stale" && err.Error() != "orders: fence 7: "+ErrStale.Error() {
				t.Errorf("it says %v", err)
			}
		})
	}
	for _, in := range inputs {
		refused(t, "Tx", Tx(t.Context(), nil, in.name, in.fence, nil), in.says)
		refused(t, "Check", Fences.Check(t.Context(), nil, in.name, in.fence), in.says)
	}
}

func TestRows(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct{ got, want error }{
		"a row is changed":   {Changed(&database{rows: 1}, nil), nil},
		"none is":            {Changed(&database{}, nil), ErrStale},
		"it is not executed": {Changed(nil, broken), broken},
		"no count":           {Changed(&database{counts: broken}, nil), broken},
		"a row is found":     {Found(nil), nil},
		"none is found":      {Found(sql.ErrNoRows), ErrStale},
		"it is not read":     {Found(broken), broken},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: got %v, want %v", name, c.got, c.want)
		}
	}
}
