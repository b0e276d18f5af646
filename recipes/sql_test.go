package recipes

import (
	"context"
	"database/sql"
	"errors"
	"testing"
)

// TestInTxGivesUp: what f does is undone when it fails, and when its lock's context
// ends, with the number.
func TestInTxGivesUp(t *testing.T) {
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
			err := InTx(ctx, db, name, 2, func(tx *sql.Tx) error {
				if _, err := tx.ExecContext(ctx, `INSERT INTO documents (id, body) VALUES ($1, '')`, name); err != nil {
					return err
				}
				return f(cancel)
			})
			// Which of the last two it is depends on where the end of ctx is seen first.
			if !errors.Is(err, broken) && !errors.Is(err, context.Canceled) && !errors.Is(err, sql.ErrTxDone) {
				t.Errorf("InTx says %v", err)
			}
			rows := -1
			err = InTx(t.Context(), db, name, 1, func(tx *sql.Tx) error {
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
	err = InTx(ctx, db, "name", 1, func(tx *sql.Tx) error {
		if err := write(tx, "first"); err != nil {
			return err
		}
		return InTx(ctx, db, "name", 2, func(tx *sql.Tx) error { return write(tx, "second") })
	})
	if err == nil || ctx.Err() != nil {
		t.Errorf("the first one's transaction says %v, %v", err, ctx.Err())
	}
	var ids string
	if err := db.QueryRowContext(ctx, `SELECT string_agg(id, ' ') FROM documents`).Scan(&ids); err != nil || ids != "second" {
		t.Errorf("what was written is %q, %v, want that of the second", ids, err)
	}
}
