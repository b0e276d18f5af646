package recipes

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/rpc"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/redlock/fence"
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
	{"memory", startRPC, openRPC},
	{"HTTP", startHTTP, openHTTP},
	{"SQLite, a row", startSQLite, func(where string) (*store, error) { return openRows("sqlite3", where) }},
	{"SQLite, a transaction", startSQLite, func(where string) (*store, error) { return openTx("sqlite3", where) }},
	{"PostgreSQL, a row", startPostgres, func(where string) (*store, error) { return openRows("postgres", where) }},
	{"PostgreSQL, a transaction", startPostgres, func(where string) (*store, error) { return openTx("postgres", where) }},
	{"Redis, a hash", startRedis, openRedis},
	{"Redis Cluster, a script", startCluster, openCluster},
}

// A Guarded has texts behind Guards, in this process; other processes access it by net/rpc.
type Guarded struct {
	guards fence.Guards
	mu     sync.Mutex // of texts, not of a text
	texts  map[string]*string
}

// A Call reads, or writes if there is a text.
type Call struct {
	Name  string
	Fence int64
	Text  string
}

func (g *Guarded) named(name string) *string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.texts[name] == nil {
		g.texts[name] = new(string)
	}
	return g.texts[name]
}

// Do carries out a Call.
func (g *Guarded) Do(c Call, reply *string) error {
	return g.guards.Do(c.Name, c.Fence, func() error {
		text := g.named(c.Name)
		if c.Text != "" {
			*text = c.Text
		}
		*reply = *text
		return nil
	})
}

func startRPC(t *testing.T) string {
	server := rpc.NewServer()
	if err := server.Register(&Guarded{texts: map[string]*string{}}); err != nil {
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
		if err != nil && strings.HasSuffix(err.Error(), fence.ErrStale.Error()) { // net/rpc passes on no more than the text
			err = fence.ErrStale
		}
		return text, err
	}
	return &store{
		create: func(context.Context, string) error { return nil },
		read: func(_ context.Context, name string, number int64) (string, error) {
			return call(Call{name, number, ""})
		},
		write: func(_ context.Context, name string, number int64, text string) error {
			_, err := call(Call{name, number, text})
			return err
		},
		close: func() { _ = client.Close() },
	}, nil
}

// startHTTP starts a service that has texts in memory, by the paths of their URLs.
func startHTTP(t *testing.T) string {
	var texts sync.Map
	return serve(t, &fence.Handler{Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			sent, err := io.ReadAll(r.Body)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			texts.Store(r.URL.Path, sent)
		}
		text, _ := texts.LoadOrStore(r.URL.Path, []byte(nil))
		_, _ = w.Write(text.([]byte))
	})})
}

func openHTTP(where string) (*store, error) {
	client := &http.Client{Transport: new(http.Transport)}
	call := func(ctx context.Context, method, name string, number int64, body string) (string, error) {
		req, err := http.NewRequestWithContext(ctx, method, where+"/"+name, strings.NewReader(body))
		if err != nil {
			return "", err
		}
		resp, err := fence.Send(client, req, number)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		got, err := io.ReadAll(resp.Body)
		if err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", resp.Status, got)
		}
		return string(got), err
	}
	return &store{
		create: func(context.Context, string) error { return nil },
		read: func(ctx context.Context, name string, number int64) (string, error) {
			return call(ctx, http.MethodGet, name, number, "")
		},
		write: func(ctx context.Context, name string, number int64, text string) error {
			_, err := call(ctx, http.MethodPut, name, number, text)
			return err
		},
		close: client.CloseIdleConnections,
	}, nil
}

func serve(t *testing.T, h http.Handler) string {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// documents is the table that the comment in append.go gives.
const documents = `CREATE TABLE documents (id TEXT PRIMARY KEY, body TEXT NOT NULL, fence BIGINT NOT NULL DEFAULT 0)`

// prepare makes the tables. The error is the driver's or the server's.
func prepare(ctx context.Context, driver, where string) error {
	db, err := sql.Open(driver, where)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, documents+"; "+fence.Fences.Schema())
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
		read: func(ctx context.Context, name string, number int64) (string, error) {
			return readRow(ctx, db, name, number)
		},
		write: func(ctx context.Context, name string, number int64, text string) error {
			return writeRow(ctx, db, name, number, text)
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
		read: func(ctx context.Context, name string, number int64) (text string, err error) {
			err = fence.Tx(ctx, db, name, number, func(tx *sql.Tx) error {
				return tx.QueryRowContext(ctx, `SELECT body FROM documents WHERE id = $1`, name).Scan(&text)
			})
			return text, err
		},
		write: func(ctx context.Context, name string, number int64, text string) error {
			return fence.Tx(ctx, db, name, number, func(tx *sql.Tx) error {
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
		read: func(ctx context.Context, name string, number int64) (string, error) {
			values, err := fence.HGetAll(ctx, client, name, number)
			return values["text"], err
		},
		write: func(ctx context.Context, name string, number int64, text string) error {
			return fence.HSet(ctx, client, name, number, map[string]string{"text": text})
		},
		close: func() { _ = client.Close() },
	}, nil
}

// startCluster starts a cluster of one node.
func startCluster(t *testing.T) string {
	where := redistest.NewServers(t, 1, "--cluster-enabled", "yes")[0].Addr
	client := redis.NewClient(&redis.Options{Addr: where})
	defer client.Close()
	if err := client.ClusterAddSlotsRange(t.Context(), 0, 1<<14-1).Err(); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); !strings.Contains(client.ClusterInfo(t.Context()).Val(), "cluster_state:ok"); time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > patience {
			t.Fatal("the cluster does not begin")
		}
	}
	return where
}

var (
	get = fence.NewScript(`return redis.call('GET', KEYS[2])`)
	set = fence.NewScript(`return redis.call('SET', KEYS[2], ARGV[2])`)
)

// openCluster keeps texts in keys of their own, beside their numbers.
func openCluster(where string) (*store, error) {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{where}})
	keys := func(name string) []string { return []string{"{" + name + "}:fence", "{" + name + "}:text"} }
	return &store{
		create: func(context.Context, string) error { return nil },
		read: func(ctx context.Context, name string, number int64) (string, error) {
			text, err := get.Run(ctx, client, keys(name), number).Text()
			if errors.Is(err, redis.Nil) {
				err = nil
			}
			return text, err
		},
		write: func(ctx context.Context, name string, number int64, text string) error {
			return set.Run(ctx, client, keys(name), number, text).Err()
		},
		close: func() { _ = client.Close() },
	}, nil
}
