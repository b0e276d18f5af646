package recipes

import (
	"context"
	"database/sql"

	"github.com/quorumlock/redlock"
)

// Append adds a line to a row. Its write depends on its read, so it works under a lock, and
// shows its fence both times. ErrStale means the same as redlock.ErrLost: another holder has
// the lock.
func Append(ctx context.Context, locker *redlock.Locker, db *sql.DB, id, line string) error {
	return locker.Do(ctx, "documents/"+id, func(ctx context.Context, l *redlock.Lock) error {
		body, err := ReadRow(ctx, db, id, l.Fence())
		if err != nil {
			return err
		}
		return WriteRow(ctx, db, id, l.Fence(), body+line+"\n")
	})
}
