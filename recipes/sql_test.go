package recipes

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/quorumlock/redlock/fence"
)

// TestTxGivesUp: what f does is undone when it fails, and when its lock's context
// ends, with the number.
func TestTxGivesUp(t *testing.T) {
	where := startSQLite(t)
	db, err := sql.Open("sqlite3", where)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	broken := errors.New("broken")
	for name, f := range map[string]func(context.CancelFunc) error{
		"it fails":         func(context.CancelFunc) error { return broken },
		"its lock is lost": func(cancel context.CancelFunc) error { cancel(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := fence.Tx(ctx, db, name, 2, func(tx *sql.Tx) error {
				if _, err := tx.ExecContext(ctx, `INSERT INTO documents (id, body) VALUES ($1, '')`, name); err != nil {
					return err
				}
				return f(cancel)
			})
			// Which of the last two it is depends on where the end of ctx is seen first.
			if !errors.Is(err, broken) && !errors.Is(err, context.Canceled) && !errors.Is(err, sql.ErrTxDone) {
				t.Errorf("Tx says %v", err)
			}
			rows := -1
			err = fence.Tx(t.Context(), db, name, 1, func(tx *sql.Tx) error {
				return tx.QueryRow(`SELECT count(*) FROM documents WHERE id = $1`, name).Scan(&rows)
			})
			if err != nil || rows != 0 {
				t.Errorf("afterwards there are %d rows, %v, want none", rows, err)
			}
		})
	}
}

// TestPostgresEndsIdleTransactions: a holder that is stopped in a transaction blocks others for no
// longer than idle_in_transaction_session_timeout, and then its transaction is rolled back.
func TestPostgresEndsIdleTransactions(t *testing.T) {
	db, err := sql.Open("postgres", startPostgres(t)+" idle_in_transaction_session_timeout=100")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	write := func(tx *sql.Tx, id string) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO documents (id, body) VALUES ($1, '')`, id)
		return err
	}
	err = fence.Tx(ctx, db, "name", 1, func(tx *sql.Tx) error {
		if err := write(tx, "first"); err != nil {
			return err
		}
		return fence.Tx(ctx, db, "name", 2, func(tx *sql.Tx) error { return write(tx, "second") })
	})
	if err == nil || ctx.Err() != nil {
		t.Errorf("the first one's transaction says %v, %v", err, ctx.Err())
	}
	var ids string
	if err := db.QueryRowContext(ctx, `SELECT string_agg(id, ' ') FROM documents`).Scan(&ids); err != nil || ids != "second" {
		t.Errorf("what was written is %q, %v, want that of the second", ids, err)
	}
}

// TestSerializationFailureIsNotStale: in a transaction that PostgreSQL cannot serialize after another one, the fence is
// not stale, and in the next one it is accepted. The table is in a schema of its own.
func TestSerializationFailureIsNotStale(t *testing.T) {
	db, err := sql.Open("postgres", startPostgres(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	const table fence.Table = `app."lock fences"`
	for _, statement := range []string{"CREATE SCHEMA app", table.Schema(), table.Schema()} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	nothing := func(*sql.Tx) error { return nil }
	if err := table.Tx(ctx, db, "name", 1, nothing); err != nil {
		t.Fatal(err)
	}
	serializable := func(before func()) error {
		tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable})
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		var one int // its snapshot is of now
		if err := tx.QueryRowContext(ctx, "SELECT 1").Scan(&one); err != nil {
			return err
		}
		before()
		if err := table.Check(ctx, tx, "name", 2); err != nil {
			return err
		}
		return tx.Commit()
	}
	err = serializable(func() {
		if err := table.Tx(ctx, db, "name", 1, nothing); err != nil {
			t.Error(err)
		}
	})
	if err == nil || errors.Is(err, fence.ErrStale) {
		t.Errorf("the one that cannot be serialized: %v", err)
	}
	if err := serializable(func() {}); err != nil {
		t.Errorf("the next one: %v", err)
	}
	if err := table.Tx(ctx, db, "name", 1, nothing); !errors.Is(err, fence.ErrStale) {
		t.Errorf("the earlier holder: %v", err)
	}
}
