package recipes

import (
	"context"
	"database/sql"
	"errors"
)

// A row with its number. The row must exist: a missing one looks stale.
//
// Tested with SQLite and PostgreSQL. For MySQL the placeholders are ?, ReadRow needs a transaction, as there is no
// RETURNING, and the driver must count the rows that were found and not those that have changed
// (clientFoundRows=true): else a text that is written twice looks stale. To SQLite $1 is a name, and names are
// numbered in the order in which they first appear: keep that order in your own statements.
//
//	CREATE TABLE documents (
//		id    TEXT PRIMARY KEY,
//		body  TEXT NOT NULL,
//		fence BIGINT NOT NULL DEFAULT 0
//	)

// ReadRow reads a row, and makes it reject all earlier holders from now on.
func ReadRow(ctx context.Context, db *sql.DB, id string, fence int64) (body string, err error) {
	err = db.QueryRowContext(ctx,
		`UPDATE documents SET fence = $1 WHERE id = $2 AND fence <= $1 RETURNING body`,
		fence, id).Scan(&body)
	if errors.Is(err, sql.ErrNoRows) {
		return "", ErrStale
	}
	return body, err
}

// WriteRow writes a row.
func WriteRow(ctx context.Context, db *sql.DB, id string, fence int64, body string) error {
	return touched(db.ExecContext(ctx,
		`UPDATE documents SET body = $1, fence = $2 WHERE id = $3 AND fence <= $2`,
		body, fence, id))
}

// InTx is for a lock that protects more than one row. It calls f in a transaction: none with
// a larger number was begun before, and none begins until it ends. Every access to the rows
// under the lock must be in such a transaction. One that fails takes its number back, too, so
// what f has read in it does not count.
//
//	CREATE TABLE fences (name TEXT PRIMARY KEY, fence BIGINT NOT NULL)
func InTx(ctx context.Context, db *sql.DB, name string, fence int64, f func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	// This is the first statement: it makes the database exclude others until the end.
	err = touched(tx.ExecContext(ctx,
		`INSERT INTO fences (name, fence) VALUES ($1, $2)
		ON CONFLICT (name) DO UPDATE SET fence = excluded.fence WHERE fences.fence <= excluded.fence`,
		name, fence))
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// touched is ErrStale for a statement that found no row with a number that small.
func touched(result sql.Result, err error) error {
	if err != nil {
		return err
	}
	switch rows, err := result.RowsAffected(); {
	case err != nil:
		return err
	case rows == 0:
		return ErrStale
	}
	return nil
}
