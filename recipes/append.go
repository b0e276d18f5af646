package recipes

import (
	"context"
	"database/sql"

	"github.com/quorumlock/redlock"
)

// Append adds a line to a row. What it writes depends on what it read, so it works
// under a lock, and shows its number both times. ErrStale means what redlock.ErrLost
// does: the lock is another's.
func Append(ctx context.Context, locker *redlock.Locker, db *sql.DB, id, line string) error {
	return locker.Do(ctx, "documents/"+id, func(ctx context.Context, l *redlock.Lock) error {
		body, err := ReadRow(ctx, db, id, l.Fence())
		if err != nil {
			return err
		}
		return WriteRow(ctx, db, id, l.Fence(), body+line+"\n")
	})
}
