package recipes

import (
	"context"
	"database/sql"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/fence"
)

// Documents, of which each row has its fence.
//
//	CREATE TABLE documents (id TEXT PRIMARY KEY, body TEXT NOT NULL, fence BIGINT NOT NULL DEFAULT 0)

// Append adds a line to a row that exists. Its write depends on its read, so it works under a lock, and
// shows its fence both times. fence.ErrStale means the same as redlock.ErrLost: another holder has the lock.
func Append(ctx context.Context, locker *redlock.Locker, db *sql.DB, id, line string) error {
	return locker.Do(ctx, "documents/"+id, func(ctx context.Context, l *redlock.Lock) error {
		body, err := readRow(ctx, db, id, l.Fence())
		if err != nil {
			return err
		}
		return writeRow(ctx, db, id, l.Fence(), body+line+"\n")
	})
}

// readRow reads a row, and makes it reject all earlier holders from now on.
func readRow(ctx context.Context, db *sql.DB, id string, number int64) (body string, err error) {
	err = fence.Found(db.QueryRowContext(ctx,
		`UPDATE documents SET fence = $1 WHERE id = $2 AND fence <= $1 RETURNING body`, number, id).Scan(&body))
	return body, err
}

// writeRow writes a row.
func writeRow(ctx context.Context, db *sql.DB, id string, number int64, body string) error {
	return fence.Changed(db.ExecContext(ctx,
		`UPDATE documents SET body = $1, fence = $2 WHERE id = $3 AND fence <= $2`, body, number, id))
}
