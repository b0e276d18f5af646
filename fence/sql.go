package fence

import (
	"context"
	"database/sql"
	"errors"
)

// A Table is the name of an SQL table with the largest fence of each name, as a statement has it: with its schema
// and quotes, if it needs any. It becomes a part of statements, so it must not come from users.
//
// It is tested with PostgreSQL and SQLite. It is not for MySQL, which has no ON CONFLICT … WHERE.
type Table string

// Fences is the Table that [Tx] uses.
const Fences Table = "fences"

// Schema returns the statement that creates the table if there is none. Tx and Check do not create it.
func (t Table) Schema() string {
	return "CREATE TABLE IF NOT EXISTS " + string(t) + " (name TEXT PRIMARY KEY, fence BIGINT NOT NULL)"
}

// Tx is [Table.Tx] with the table "fences", which [Table.Schema] creates:
//
//	CREATE TABLE IF NOT EXISTS fences (name TEXT PRIMARY KEY, fence BIGINT NOT NULL)
func Tx(ctx context.Context, db *sql.DB, name string, fence int64, f func(*sql.Tx) error) error {
	return Fences.Tx(ctx, db, name, fence, f)
}

// Tx calls f in a transaction for the holder that has this fence, on the resource with this name. No transaction of that
// name with a larger fence was committed before, and no other one of that name runs until this one ends. Every access under
// the lock to what the lock protects must be in such a transaction.
//
// If a transaction with a larger fence was committed before, Tx returns [ErrStale], and does not call f. If f returns an
// error, or the commit fails, the transaction is rolled back, and Tx returns that error. Then its fence is not stored, and
// an earlier holder may still write: discard what f has read. After an error of the commit, such as that of a broken
// connection, the transaction may have been committed all the same.
//
// The transaction has the database's default isolation. It waits for other transactions of that name, as long as ctx and the
// database allow: SQLite gives up after its busy timeout. A holder that is stopped in the transaction keeps others out for
// as long; PostgreSQL ends it after idle_in_transaction_session_timeout. If ctx ends, the transaction is rolled back: give
// it the lock's context.
func (t Table) Tx(ctx context.Context, db *sql.DB, name string, fence int64, f func(*sql.Tx) error) error {
	if err := checkNamed("name", name, fence); err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	if err := t.Check(ctx, tx, name, fence); err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// Check is for a transaction that you begin yourself. It must be the first statement: it stores the fence, and
// makes the database exclude other transactions of that name until this one ends. It returns [ErrStale] if a
// transaction with a larger fence was committed before; then roll back. If PostgreSQL says that access could not
// be serialized, which it does above READ COMMITTED, the fence is not stale: roll back, and begin again.
//
// tx is an *sql.Tx, or what has its ExecContext and takes $1 for an argument. A driver that has not, such as pgx
// by itself, can execute the statement, which changes no row if the fence is stale:
//
//	INSERT INTO fences (name, fence) VALUES ($1, $2)
//	ON CONFLICT (name) DO UPDATE SET fence = excluded.fence WHERE fences.fence <= excluded.fence
func (t Table) Check(ctx context.Context, tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}, name string, fence int64) error {
	if err := checkNamed("name", name, fence); err != nil {
		return err
	}
	// The table has another name here, so that a schema can be in t.
	err := Changed(tx.ExecContext(ctx, "INSERT INTO "+string(t)+" AS kept (name, fence) VALUES ($1, $2) "+
		"ON CONFLICT (name) DO UPDATE SET fence = excluded.fence WHERE kept.fence <= excluded.fence", name, fence))
	if errors.Is(err, ErrStale) {
		return stale(name, fence)
	}
	return err
}

// Changed is for a resource that is one row with its fence in a column. It takes what ExecContext returns, and
// returns [ErrStale] if the statement has changed no row:
//
//	err := fence.Changed(db.ExecContext(ctx,
//		`UPDATE documents SET body = $1, fence = $2 WHERE id = $3 AND fence <= $2`, body, l.Fence(), id))
//
// So a row that does not exist looks stale: it must exist, or the statement must insert it. With SQLite number the
// arguments in the order in which they first appear: to SQLite $1 is a name. MySQL counts a row that was found and
// not changed only with clientFoundRows=true; without it, a text that is written twice looks stale.
func Changed(result sql.Result, err error) error {
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

// Found is for the read of such a row. It takes what Scan of an *sql.Row returns, and returns [ErrStale] for
// sql.ErrNoRows. The statement must store the fence, so that earlier holders are rejected from then on:
//
//	err := fence.Found(db.QueryRowContext(ctx,
//		`UPDATE documents SET fence = $1 WHERE id = $2 AND fence <= $1 RETURNING body`, l.Fence(), id).Scan(&body))
func Found(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return ErrStale
	}
	return err
}
