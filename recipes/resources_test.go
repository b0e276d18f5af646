package recipes

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/rpc"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
	"github.com/redis/go-redis/v9"

	_ "github.com/lib/pq"
	_ "github.com/mattn/go-sqlite3"
)

// A resource rejects stale fences. The test that starts it knows its address, and any process can
// open it there.
type resource struct {
	name  string
	start func(t *testing.T) (where string)
	open  func(where string) (*store, error)
}

// A store is an open resource. It holds texts by name, each with its own number.
type store struct {
	create func(ctx context.Context, name string) error
	read   func(ctx context.Context, name string, fence int64) (string, error)
	write  func(ctx context.Context, name string, fence int64, text string) error
	close  func()
}

var resources = []resource{
	{"Guard", startRPC, openRPC},
	{"HTTP", startHTTP, openHTTP},
	{"SQLite, a row", startSQLite, func(where string) (*store, error) { return openRows("sqlite3", where) }},
	{"SQLite, a transaction", startSQLite, func(where string) (*store, error) { return openTx("sqlite3", where) }},
	{"PostgreSQL, a row", startPostgres, func(where string) (*store, error) { return openRows("postgres", where) }},
	{"PostgreSQL, a transaction", startPostgres, func(where string) (*store, error) { return openTx("postgres", where) }},
	{"Redis, a hash", startRedis, openRedis},
}

// A Guarded has texts behind Guards, in this process; other processes access it by net/rpc.
type Guarded struct {
	mu    sync.Mutex // of texts, not of a text
	texts map[string]*guardedText
}

type guardedText struct {
	guard Guard
	text  string
}

// A Call reads, or writes if there is a text.
type Call struct {
	Name  string
	Fence int64
	Text  string
}

func (g *Guarded) named(name string) *guardedText {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.texts[name] == nil {
		g.texts[name] = new(guardedText)
	}
	return g.texts[name]
}

// Do carries out a Call.
func (g *Guarded) Do(c Call, reply *string) error {
	it := g.named(c.Name)
	return it.guard.Do(c.Fence, func() error {
		if c.Text != "" {
			it.text = c.Text
		}
		*reply = it.text
		return nil
	})
}

func startRPC(t *testing.T) string {
	server := rpc.NewServer()
	if err := server.Register(&Guarded{texts: map[string]*guardedText{}}); err != nil {
		t.Fatal(err)
	}
	return serve(t, server)
}

func openRPC(where string) (*store, error) {
	client, err := rpc.DialHTTP("tcp", strings.TrimPrefix(where, "http://"))
	if err != nil {
		return nil, err
	}
	call := func(c Call) (text string, err error) {
		err = client.Call("Guarded.Do", c, &text)
		if err != nil && err.Error() == ErrStale.Error() { // net/rpc passes on no more than the text
			err = ErrStale
		}
		return text, err
	}
	return &store{
		create: func(context.Context, string) error { return nil },
		read: func(_ context.Context, name string, fence int64) (string, error) {
			return call(Call{name, fence, ""})
		},
		write: func(_ context.Context, name string, fence int64, text string) error {
			_, err := call(Call{name, fence, text})
			return err
		},
		close: func() { _ = client.Close() },
	}, nil
}

func startHTTP(t *testing.T) string {
	var mu sync.Mutex
	documents := map[string]*Document{}
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if documents[r.URL.Path] == nil {
			documents[r.URL.Path] = new(Document)
		}
		d := documents[r.URL.Path]
		mu.Unlock()
		d.ServeHTTP(w, r)
	}))
}

func openHTTP(where string) (*store, error) {
	client := &http.Client{Transport: new(http.Transport)}
	return &store{
		create: func(context.Context, string) error { return nil },
		read: func(ctx context.Context, name string, fence int64) (string, error) {
			return ReadHTTP(ctx, client, where+"/"+name, fence)
		},
		write: func(ctx context.Context, name string, fence int64, text string) error {
			return WriteHTTP(ctx, client, where+"/"+name, fence, text)
		},
		close: client.CloseIdleConnections,
	}, nil
}

func serve(t *testing.T, h http.Handler) string {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// schema is the one that the comments in sql.go give.
const schema = `
	CREATE TABLE documents (
		id    TEXT PRIMARY KEY,
		body  TEXT NOT NULL,
		fence BIGINT NOT NULL DEFAULT 0
	);
	CREATE TABLE fences (name TEXT PRIMARY KEY, fence BIGINT NOT NULL)`

// prepare makes the tables. The error is the driver's or the server's.
func prepare(ctx context.Context, driver, where string) error {
	db, err := sql.Open(driver, where)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, schema)
	return err
}

func startSQLite(t *testing.T) string {
	// A writer waits for another one, and none waits for the disk.
	where := "file:" + filepath.Join(t.TempDir(), "documents.db") + "?_busy_timeout=30000&_synchronous=off"
	err := prepare(t.Context(), "sqlite3", where)
	if err != nil && strings.Contains(err.Error(), "CGO_ENABLED=0") {
		need.Skip(t, "with SQLite", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return where
}

// openRows keeps texts in rows that have a number each.
func openRows(driver, where string) (*store, error) {
	db, err := sql.Open(driver, where)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(8)
	return &store{
		create: func(ctx context.Context, name string) error {
			_, err := db.ExecContext(ctx, `INSERT INTO documents (id, body) VALUES ($1, '')`, name)
			return err
		},
		read: func(ctx context.Context, name string, fence int64) (string, error) {
			return ReadRow(ctx, db, name, fence)
		},
		write: func(ctx context.Context, name string, fence int64, text string) error {
			return WriteRow(ctx, db, name, fence, text)
		},
		close: func() { _ = db.Close() },
	}, nil
}

// openTx keeps texts in rows without numbers.
func openTx(driver, where string) (*store, error) {
	s, err := openRows(driver, where)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open(driver, where)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(8)
	closeRows := s.close
	return &store{
		create: s.create,
		read: func(ctx context.Context, name string, fence int64) (text string, err error) {
			err = InTx(ctx, db, name, fence, func(tx *sql.Tx) error {
				return tx.QueryRowContext(ctx, `SELECT body FROM documents WHERE id = $1`, name).Scan(&text)
			})
			return text, err
		},
		write: func(ctx context.Context, name string, fence int64, text string) error {
			return InTx(ctx, db, name, fence, func(tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, `UPDATE documents SET body = $1 WHERE id = $2`, text, name)
				return err
			})
		},
		close: func() { closeRows(); _ = db.Close() },
	}, nil
}

func startRedis(t *testing.T) string { return redistest.NewServers(t, 1)[0].Addr }

func openRedis(where string) (*store, error) {
	client := redis.NewClient(&redis.Options{Addr: where})
	return &store{
		create: func(context.Context, string) error { return nil },
		read: func(ctx context.Context, name string, fence int64) (string, error) {
			text, err := ReadHash(ctx, client, name, fence)
			if errors.Is(err, redis.Nil) {
				err = nil
			}
			return text, err
		},
		write: func(ctx context.Context, name string, fence int64, text string) error {
			return WriteHash(ctx, client, name, fence, text)
		},
		close: func() { _ = client.Close() },
	}, nil
}
