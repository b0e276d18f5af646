package recipes

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/redlocktest"
)

// startOnce starts a PostgreSQL with the tables that the comments of once.go and outbox.go give, and with
// one that counts how often something has had its effect.
func startOnce(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("postgres", startPostgres(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	tables := []string{"CREATE TABLE effects (key TEXT PRIMARY KEY, times INT NOT NULL)"}
	for _, file := range []string{"once.go", "outbox.go"} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^//\t(CREATE TABLE .*)$`).FindAllStringSubmatch(string(source), -1) {
			tables = append(tables, m[1])
		}
	}
	if len(tables) != 3 {
		t.Fatalf("the recipes have the tables %q", tables[1:])
	}
	if _, err := db.ExecContext(t.Context(), strings.Join(tables, ";\n")); err != nil {
		t.Fatal(err)
	}
	return db
}

// effect counts that something is done.
func effect(ctx context.Context, tx *sql.Tx, key string) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO effects VALUES ($1, 1) ON CONFLICT (key) DO UPDATE SET times = effects.times + 1`, key)
	return err
}

// effects returns how often each thing was done.
func effects(t *testing.T, db *sql.DB) map[string]int {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT key, times FROM effects`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	all := make(map[string]int)
	for rows.Next() {
		var key string
		var times int
		if err := rows.Scan(&key, &times); err != nil {
			t.Fatal(err)
		}
		all[key] = times
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

var errDies = errors.New("the machine dies")

// TestOnce: three machines handle the same orders. Some of the orders fail when half of the work is done,
// and some lose the lock there. Each has its effect once.
func TestOnce(t *testing.T) {
	leaks.Check(t)
	db := startOnce(t)
	nodes := redlocktest.New(t)
	const orders = 12
	var tries [orders]atomic.Int32
	var all sync.WaitGroup
	for range 3 {
		locker := nodes.Locker(nil)
		all.Go(func() {
			for i := range orders {
				key := fmt.Sprint("order/", i)
				for err := errDies; err != nil && t.Context().Err() == nil; {
					err = Once(t.Context(), locker, db, "orders", key, func(ctx context.Context, tx *sql.Tx) error {
						if err := effect(ctx, tx, key); err != nil {
							return err
						}
						switch first := tries[i].Add(1) == 1; {
						case first && i%3 == 1:
							return errDies
						case first && i%3 == 2:
							nodes.Lose("orders")
						}
						return nil
					})
				}
			}
		})
	}
	all.Wait()
	done := effects(t, db)
	for i := range orders {
		key := fmt.Sprint("order/", i)
		if n := done[key]; n != 1 {
			t.Errorf("%s has had its effect %d times", key, n)
		}
		if n, want := tries[i].Load(), int32(min(i%3, 1)+1); n != want {
			t.Errorf("%s was worked on %d times, want %d", key, n, want)
		}
	}
}

// TestOnceANight: three machines begin a night's job at the same moment, and one hours later, as a machine
// does that was off. The job runs once, and once the next night.
func TestOnceANight(t *testing.T) {
	leaks.Check(t)
	db := startOnce(t)
	nodes := redlocktest.New(t)
	night := func(machines int, day string) {
		var all sync.WaitGroup
		for range machines {
			locker := nodes.Locker(nil)
			all.Go(func() {
				err := Once(t.Context(), locker, db, "nightly", "nightly/"+day, func(ctx context.Context, tx *sql.Tx) error {
					return effect(ctx, tx, day)
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	night(3, "2026-11-27")
	night(1, "2026-11-27")
	night(3, "2026-11-28")
	if got, want := fmt.Sprint(effects(t, db)), "map[2026-11-27:1 2026-11-28:1]"; got != want {
		t.Errorf("the job has run %s, want %s", got, want)
	}
}

// TestOutbox: orders post messages, and some of them are rolled back. Two machines relay the messages; some
// of them die, or lose the lock, when they have sent one. So messages come twice. Each that was committed
// has its effect once.
func TestOutbox(t *testing.T) {
	leaks.Check(t)
	db := startOnce(t)
	nodes := redlocktest.New(t)
	locker := nodes.Locker(nil)
	for i := range 12 {
		key := fmt.Sprint("order/", i)
		err := Once(t.Context(), locker, db, "orders", key, func(ctx context.Context, tx *sql.Tx) error {
			if err := Post(ctx, tx, key); err != nil {
				return err
			}
			if i%4 == 3 {
				return errDies
			}
			return nil
		})
		if err != nil && !errors.Is(err, errDies) {
			t.Fatal(err)
		}
	}

	var mu sync.Mutex
	sent := make(map[string]int)
	var all sync.WaitGroup
	for range 2 {
		locker := nodes.Locker(nil)
		all.Go(func() {
			for err := errDies; err != nil && t.Context().Err() == nil; {
				err = Relay(t.Context(), locker, db, func(ctx context.Context, id int64, body string) error {
					err := Receive(ctx, db, id, func(ctx context.Context, tx *sql.Tx) error { return effect(ctx, tx, body) })
					if err != nil {
						return err
					}
					mu.Lock()
					sent[body]++
					first := sent[body] == 1
					mu.Unlock()
					switch {
					case first && id%3 == 1:
						return errDies
					case first && id%3 == 2:
						nodes.Lose("outbox")
					}
					return nil
				})
			}
		})
	}
	all.Wait()
	done, twice := effects(t, db), 0
	for i := range 12 {
		key, want := fmt.Sprint("order/", i), 1
		if i%4 == 3 {
			want = 0 // it was rolled back, and its message with it
		}
		if done[key] != want {
			t.Errorf("%s has had its effect %d times, want %d", key, done[key], want)
		}
		if sent[key] > 1 {
			twice++
		}
	}
	if twice == 0 {
		t.Errorf("no message came twice, so this shows nothing: %v", sent)
	}
	var left int
	if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM outbox`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d messages are left, %v", left, err)
	}
}
