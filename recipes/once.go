package recipes

import (
	"context"
	"database/sql"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/fence"
)

// Keys of what is done: an order's number, or a job's name and day.
//
//	CREATE TABLE done (key TEXT PRIMARY KEY, at TIMESTAMPTZ NOT NULL DEFAULT now())

// Once calls f once for each key, on however many machines and however often it is called. The
// mark that the key is done and what f writes with tx are committed together, or not at all: if
// f fails, or the machine dies, the next call does it. A nil error says that it is done, by this
// call or an earlier one.
//
// The lock called name lets one machine at a time work, and the others wait. Its fence makes
// the database reject a machine that was stopped, and goes on when another one has worked.
func Once(ctx context.Context, locker *redlock.Locker, db *sql.DB, name, key string, f func(context.Context, *sql.Tx) error) error {
	return locker.Do(ctx, name, func(ctx context.Context, l *redlock.Lock) error {
		return fence.Tx(ctx, db, name, l.Fence(), func(tx *sql.Tx) error {
			if first, err := mark(ctx, tx, key); err != nil || !first {
				return err
			}
			return f(ctx, tx)
		})
	})
}

// mark marks a key as done, and reports whether it was not done before. A second transaction
// that marks the same key waits here for the first one to end.
func mark(ctx context.Context, tx *sql.Tx, key string) (first bool, err error) {
	result, err := tx.ExecContext(ctx, `INSERT INTO done (key) VALUES ($1) ON CONFLICT (key) DO NOTHING`, key)
	if err != nil {
		return false, err
	}
	rows, err := result.RowsAffected()
	return rows == 1, err
}
