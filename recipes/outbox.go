package recipes

import (
	"context"
	"database/sql"
	"errors"
	"strconv"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/fence"
)

// Messages that are to be sent.
//
//	CREATE TABLE outbox (id BIGSERIAL PRIMARY KEY, body TEXT NOT NULL)

// Post puts a message into the outbox. It is sent if tx is committed, and only then.
func Post(ctx context.Context, tx *sql.Tx, body string) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO outbox (body) VALUES ($1)`, body)
	return err
}

// Relay sends the messages of the outbox one after another, the oldest first, until none is
// left. Every machine may call it, and one at a time sends. It sends each message at least
// once: a machine that dies, or loses its lock, when it has sent a message and not yet deleted
// it leaves it for the next one. So send gives the receiver the id, for Receive.
func Relay(ctx context.Context, locker *redlock.Locker, db *sql.DB, send func(ctx context.Context, id int64, body string) error) error {
	return locker.Do(ctx, "outbox", func(ctx context.Context, l *redlock.Lock) error {
		for {
			var id int64
			var body string
			err := fence.Tx(ctx, db, "outbox", l.Fence(), func(tx *sql.Tx) error {
				return tx.QueryRowContext(ctx, `SELECT id, body FROM outbox ORDER BY id LIMIT 1`).Scan(&id, &body)
			})
			if errors.Is(err, sql.ErrNoRows) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := send(ctx, id, body); err != nil {
				return err
			}
			err = fence.Tx(ctx, db, "outbox", l.Fence(), func(tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, `DELETE FROM outbox WHERE id = $1`, id)
				return err
			})
			if err != nil {
				return err
			}
		}
	})
}

// Receive handles a message once, however often it comes. The receiver needs no lock: its mark
// and what f writes with tx are one transaction.
func Receive(ctx context.Context, db *sql.DB, id int64, f func(context.Context, *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	if first, err := mark(ctx, tx, "message/"+strconv.FormatInt(id, 10)); err != nil || !first {
		return err
	}
	if err := f(ctx, tx); err != nil {
		return err
	}
	return tx.Commit()
}
