package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/fence"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/redis/go-redis/v9"
)

// The examples use these as if a program had made them.
var (
	ctx    = context.Background()
	db     *sql.DB
	locker *redlock.Locker
)

// A holder of the lock takes an order out of stock. If the process is stopped for longer than its lock lasts, and
// another holder has worked meanwhile, the database rejects the whole transaction.
func Example() {
	err := locker.Do(ctx, "stock", func(ctx context.Context, l *redlock.Lock) error {
		return fence.Tx(ctx, db, "stock", l.Fence(), func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `UPDATE stock SET pieces = pieces - 1 WHERE item = 'lamp'`)
			return err
		})
	})
	if errors.Is(err, fence.ErrStale) {
		log.Print("another holder has the lock: ", err) // so do not try again with this one
	}
}

// A transaction, for a lock that protects more than one row.
func ExampleTx() {
	err := locker.Do(ctx, "accounts", func(ctx context.Context, l *redlock.Lock) error {
		return fence.Tx(ctx, db, "accounts", l.Fence(), func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, `UPDATE accounts SET cents = cents - 100 WHERE id = 1`); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, `UPDATE accounts SET cents = cents + 100 WHERE id = 2`)
			return err
		})
	})
	if err != nil {
		log.Print(err)
	}
}

// The statement that creates the table, for your migrations.
func ExampleTable_Schema() {
	fmt.Println(fence.Fences.Schema())
	fmt.Println(fence.Table("app.lock_fences").Schema())
	// Output:
	// CREATE TABLE IF NOT EXISTS fences (name TEXT PRIMARY KEY, fence BIGINT NOT NULL)
	// CREATE TABLE IF NOT EXISTS app.lock_fences (name TEXT PRIMARY KEY, fence BIGINT NOT NULL)
}

// The table has another name.
func ExampleTable_Tx() {
	const fences fence.Table = "app.lock_fences"
	err := locker.Do(ctx, "stock", func(ctx context.Context, l *redlock.Lock) error {
		return fences.Tx(ctx, db, "stock", l.Fence(), func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `UPDATE stock SET pieces = pieces - 1 WHERE item = 'lamp'`)
			return err
		})
	})
	if err != nil {
		log.Print(err)
	}
}

// A transaction with options of its own.
func ExampleTable_Check() {
	err := locker.Do(ctx, "stock", func(ctx context.Context, l *redlock.Lock) error {
		tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable})
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := fence.Fences.Check(ctx, tx, "stock", l.Fence()); err != nil { // first of all
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE stock SET pieces = pieces - 1 WHERE item = 'lamp'`); err != nil {
			return err
		}
		return tx.Commit()
	})
	if err != nil {
		log.Print(err)
	}
}

// One row, which has its fence in a column.
func ExampleChanged() {
	err := locker.Do(ctx, "documents/1", func(ctx context.Context, l *redlock.Lock) error {
		return fence.Changed(db.ExecContext(ctx,
			`UPDATE documents SET body = $1, fence = $2 WHERE id = 1 AND fence <= $2`, "the text", l.Fence()))
	})
	if errors.Is(err, fence.ErrStale) {
		log.Print("another holder has the lock: ", err)
	}
}

// A write that depends on a read: both show the fence.
func ExampleFound() {
	err := locker.Do(ctx, "documents/1", func(ctx context.Context, l *redlock.Lock) error {
		var body string
		err := fence.Found(db.QueryRowContext(ctx,
			`UPDATE documents SET fence = $1 WHERE id = 1 AND fence <= $1 RETURNING body`, l.Fence()).Scan(&body))
		if err != nil {
			return err
		}
		return fence.Changed(db.ExecContext(ctx,
			`UPDATE documents SET body = $1, fence = $2 WHERE id = 1 AND fence <= $2`, body+"!", l.Fence()))
	})
	if err != nil {
		log.Print(err)
	}
}

func startRedis() (client *redis.Client, stop func()) {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	client = redis.NewClient(&redis.Options{Addr: server.Addr()})
	return client, func() { _ = client.Close(); server.Close() }
}

// A hash in a Redis. The fences are those of two locks on one name.
func ExampleHSet() {
	client, stop := startRedis()
	defer stop()
	fmt.Println(fence.HSet(ctx, client, "document", 8, map[string]string{"body": "second"}))
	fmt.Println(fence.HSet(ctx, client, "document", 7, map[string]string{"body": "first, late"}))
	// Output:
	// <nil>
	// document: fence 7: stale fence: a later holder of the lock has been here
}

// A holder that has read shuts out the one before it.
func ExampleHGetAll() {
	client, stop := startRedis()
	defer stop()
	fmt.Println(fence.HSet(ctx, client, "document", 7, map[string]string{"body": "first"}))
	fmt.Println(fence.HGetAll(ctx, client, "document", 8))
	err := fence.HSet(ctx, client, "document", 7, map[string]string{"body": "first, late"})
	fmt.Println("stale:", errors.Is(err, fence.ErrStale))
	// Output:
	// <nil>
	// map[body:first] <nil>
	// stale: true
}

// Any commands, in one step with the check.
func ExampleScript() {
	client, stop := startRedis()
	defer stop()
	push := fence.NewScript(`return redis.call('RPUSH', KEYS[2], ARGV[2])`)
	keys := []string{"{report}:fence", "{report}:lines"} // in a cluster both are in one slot
	fmt.Println(push.Run(ctx, client, keys, 7, "a line").Int())
	fmt.Println(push.Run(ctx, client, keys, 8, "another").Int())
	fmt.Println(push.Run(ctx, client, keys, 7, "a late one").Int())
	// Output:
	// 1 <nil>
	// 2 <nil>
	// 0 {report}:fence: fence 7: stale fence: a later holder of the lock has been here
}

// A value in memory.
func ExampleGuard() {
	var guard fence.Guard
	var text string
	write := func(number int64, s string) error {
		return guard.Do(number, func() error { text = s; return nil })
	}
	fmt.Println(write(8, "second"), write(7, "first, late"))
	fmt.Println(text)
	// Output:
	// <nil> fence 7: stale fence: a later holder of the lock has been here
	// second
}

// Several resources by name, each with a number of its own.
func ExampleGuards() {
	guards := fence.Guards{Max: 1000}
	nothing := func() error { return nil }
	fmt.Println(guards.Do("a", 8, nothing))
	fmt.Println(guards.Do("b", 7, nothing))
	fmt.Println(guards.Do("a", 7, nothing))
	// Output:
	// <nil>
	// <nil>
	// a: fence 7: stale fence: a later holder of the lock has been here
}

// A resource behind HTTP, in memory. Its numbers are by the path of the URL.
func ExampleHandler() {
	var documents http.Handler // yours
	http.Handle("/documents/", &fence.Handler{Next: documents})
}

// A client of a resource behind HTTP shows its fence.
func ExampleSend() {
	service := httptest.NewServer(&fence.Handler{Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	})})
	defer service.Close()
	put := func(number int64, body string) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, service.URL+"/document", strings.NewReader(body))
		if err != nil {
			return err
		}
		resp, err := fence.Send(service.Client(), req, number) // number is Lock.Fence()
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode >= 300 {
			said, _ := io.ReadAll(resp.Body)
			return fmt.Errorf("%s: %s", resp.Status, said)
		}
		return nil
	}
	fmt.Println(put(8, "second"))
	fmt.Println("stale:", errors.Is(put(7, "first, late"), fence.ErrStale))
	// Output:
	// <nil>
	// stale: true
}

// A resource behind HTTP that has its number in a database, with its data.
func ExampleFromRequest() {
	http.HandleFunc("PUT /documents/{id}", func(w http.ResponseWriter, r *http.Request) {
		number, err := fence.FromRequest(r)
		if err != nil {
			http.Error(w, err.Error(), fence.StatusCode(err))
			return
		}
		// Read the request before the transaction: a client may be stopped halfway.
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		err = fence.Changed(db.ExecContext(r.Context(),
			`UPDATE documents SET body = $1, fence = $2 WHERE id = $3 AND fence <= $2`, body, number, r.PathValue("id")))
		if err != nil {
			http.Error(w, err.Error(), fence.StatusCode(err))
		}
	})
}

// StatusCode has the status for each error of this package.
func ExampleStatusCode() {
	var guard fence.Guard
	nothing := func() error { return nil }
	for _, number := range []int64{8, 7, 0} {
		fmt.Println(fence.StatusCode(guard.Do(number, nothing)))
	}
	// Output:
	// 200
	// 412
	// 400
}

func TestMain(m *testing.M) { os.Exit(leaks.Main(m)) }
