package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/fence"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/redlocktest"
	"github.com/redis/go-redis/v9"
)

const ttl = 10 * time.Second // the default of Options.TTL

func TestMain(m *testing.M) {
	if os.Getenv(asService) != "" {
		log.SetFlags(log.LstdFlags | log.Lmicroseconds)
		main()
		return
	}
	os.Exit(leaks.Main(m))
}

// A fleet is the machines of one test, in virtual time.
type fleet struct {
	t     *testing.T
	nodes *redlocktest.Nodes
	file  string // of the database

	mu     sync.Mutex
	events []event // what the machines have logged
	paid   []string
}

// An event is a line of the log, and when it was written.
type event struct {
	at   time.Time
	text string
}

func (f *fleet) Write(line []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, event{time.Now(), strings.TrimSpace(string(line))})
	return len(line), nil
}

// logged returns the lines that contain a text, and when they were written.
func (f *fleet) logged(text string) (lines []event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.events {
		if strings.Contains(e.text, text) {
			lines = append(lines, e)
		}
	}
	return lines
}

// leader returns which machine began to lead last, and when.
func (f *fleet) leader() (name string, since time.Time) {
	f.t.Helper()
	terms := f.logged(" leads, term ")
	if len(terms) == 0 {
		f.t.Fatal("no machine leads")
	}
	last := terms[len(terms)-1]
	name, _, _ = strings.Cut(last.text, " ")
	return name, last.at
}

// A machine runs the service. Its network and its database can be taken away from it.
type machine struct {
	*Service
	handler http.Handler
	sigterm context.CancelFunc
	ended   chan error

	mu    sync.Mutex
	dead  bool
	conns []net.Conn
}

// fleetOf runs a test in a bubble, with these machines. The first of them leads.
func fleetOf(t *testing.T, test func(*testing.T, *fleet, map[string]*machine), names ...string) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{t: t, nodes: redlocktest.New(t), file: filepath.Join(t.TempDir(), "db")}
		for i := range f.nodes.Len() {
			f.nodes.Slow(i, 2*time.Millisecond)
		}
		flags := log.Flags()
		log.SetFlags(0)
		log.SetOutput(f)
		defer func() { log.SetFlags(flags); log.SetOutput(os.Stderr) }()
		machines := make(map[string]*machine)
		for _, name := range names {
			machines[name] = f.start(name)
			f.nodes.Sleep(time.Second)
		}
		test(t, f, machines)
		for name, m := range machines {
			m.sigterm()
			if err := <-m.ended; err != nil && !m.dead {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func (f *fleet) start(name string) *machine {
	f.t.Helper()
	m := &machine{ended: make(chan error, 1)}
	var clients []*redis.Client
	for _, c := range f.nodes.Clients() {
		o := *c.Options()
		o.Dialer = m.dialer(o.Dialer)
		clients = append(clients, redis.NewClient(&o))
	}
	locker, err := redlock.New(clients, &redlock.Options{Owner: name})
	if err != nil {
		f.t.Fatal(err)
	}
	for _, c := range clients { // a Locker has connections of its own
		_ = c.Close()
	}
	db, err := sql.Open("sqlite3", "file:"+f.file+"?_busy_timeout=10000")
	if err == nil {
		_, err = db.Exec(schema)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = db.Close() })
	m.Service = &Service{Name: name, Locker: locker, DB: db, Pay: func(_ context.Context, id string) error {
		time.Sleep(100 * time.Millisecond)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.paid = append(f.paid, id)
		return nil
	}}
	m.handler = m.Handler()
	ctx, sigterm := context.WithCancel(f.t.Context())
	m.sigterm = sigterm
	go func() { m.ended <- m.Run(ctx) }()
	return m
}

func (m *machine) dialer(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		m.mu.Lock()
		defer m.mu.Unlock()
		if err == nil && m.dead {
			_ = conn.Close()
			return nil, errors.New("this machine is dead")
		}
		m.conns = append(m.conns, conn)
		return conn, err
	}
}

// die ends all that others see of the machine: its connections break, no new ones are made, and it writes nothing.
func (m *machine) die() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = true
	for _, c := range m.conns {
		if c != nil {
			_ = c.Close()
		}
	}
	_ = m.DB.Close()
}

// request sends a request, and returns the answer's status and text. It ends with ctx.
func (m *machine) request(ctx context.Context, method, path string) (status int, text string) {
	w := httptest.NewRecorder()
	m.handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, method, path, nil))
	return w.Code, strings.TrimSpace(w.Body.String())
}

func (m *machine) one(t *testing.T, query string, args ...any) (n int) {
	t.Helper()
	if err := m.DB.QueryRow(query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestLeaderHandsOverOnSIGTERM: another machine leads at once, followers know it within a second, and what the requests
// at the first one had locked is free.
func TestLeaderHandsOverOnSIGTERM(t *testing.T) {
	fleetOf(t, func(t *testing.T, f *fleet, m map[string]*machine) {
		edited := make(chan int)
		go func() {
			status, _ := m["a"].request(t.Context(), "GET", "/documents/1/edit")
			edited <- status
		}()
		f.nodes.Sleep(30 * time.Second) // for longer than the TTL
		if leader, _ := f.leader(); leader != "a" {
			t.Fatalf("%s leads", leader)
		}
		began := time.Now()
		m["a"].sigterm()
		f.nodes.Sleep(time.Second)
		leader, since := f.leader()
		if gap := since.Sub(began); leader != "b" || gap > 50*time.Millisecond {
			t.Errorf("%s leads %v after SIGTERM", leader, gap)
		} else {
			t.Logf("%s leads %v after SIGTERM", leader, gap)
		}
		if len(m["a"].ended) == 0 || <-edited != http.StatusOK {
			t.Error("the first machine has not ended")
		}
		if _, said := m["c"].request(t.Context(), "GET", "/leader"); said != "b" {
			t.Errorf("to a follower %q leads", said)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if status, said := m["c"].request(ctx, "GET", "/documents/1/edit"); status != http.StatusOK {
			t.Errorf("the document is locked: %d %s", status, said)
		}
	}, "a", "b", "c")
}

// TestLeaderAndNextEndTogether: when a deployment ends the leader and the next in line at about the same time, the one
// after them leads as soon as both have ended, also while a node hangs.
func TestLeaderAndNextEndTogether(t *testing.T) {
	for _, ahead := range []time.Duration{-2 * time.Millisecond, 0, 2 * time.Millisecond, 6 * time.Millisecond} { // of the leader
		fleetOf(t, func(t *testing.T, f *fleet, m map[string]*machine) {
			f.nodes.Sleep(15 * time.Second)
			f.nodes.Hang(0)
			time.AfterFunc(max(0, -ahead), m["a"].sigterm)
			time.AfterFunc(max(0, ahead), m["b"].sigterm)
			began := time.Now().Add(max(ahead, -ahead))
			f.nodes.Sleep(5 * time.Second)
			leader, since := f.leader()
			if gap := since.Sub(began); leader != "c" || gap > 50*time.Millisecond {
				t.Errorf("the leader ends %v before the next: %s leads after %v", ahead, leader, gap)
			}
			f.nodes.Resume(0)
		}, "a", "b", "c")
	}
}

// TestLeaderDiesWithoutAWord: the next one leads when the TTL is over, and not before.
func TestLeaderDiesWithoutAWord(t *testing.T) {
	fleetOf(t, func(t *testing.T, f *fleet, m map[string]*machine) {
		f.nodes.Sleep(30 * time.Second)
		began := time.Now()
		m["a"].die()
		f.nodes.Sleep(2 * ttl)
		leader, since := f.leader()
		if gap := since.Sub(began); leader != "b" || gap < ttl/2 || gap > ttl+100*time.Millisecond {
			t.Errorf("%s leads %v after the death", leader, gap)
		} else {
			t.Logf("%s leads %v after the death", leader, gap)
		}
		if _, said := m["c"].request(t.Context(), "GET", "/leader"); said != "b" {
			t.Errorf("to a follower %q leads", said)
		}
	}, "a", "b", "c")
}

// TestMinorityOfTheNodesDies: the same machine leads, its schedule goes on, one machine cleans up each minute, and
// orders are paid.
func TestMinorityOfTheNodesDies(t *testing.T) {
	fleetOf(t, func(t *testing.T, f *fleet, m map[string]*machine) {
		f.nodes.Sleep(10 * time.Second)
		f.nodes.Kill(1)
		before := m["b"].one(t, `SELECT count(*) FROM runs`)
		f.nodes.Sleep(2 * time.Minute)
		if terms := f.logged("leads"); len(terms) != 1 {
			t.Errorf("leaders: %v", terms)
		}
		if runs := m["b"].one(t, `SELECT count(*) FROM runs`) - before; runs < 115 || runs > 120 {
			t.Errorf("%d runs in two minutes", runs)
		}
		if cleans := f.logged("cleans"); len(cleans) != 2 {
			t.Errorf("it was cleaned up %d times in two minutes: %v", len(cleans), cleans)
		}
		if status, said := m["b"].request(t.Context(), "PUT", "/orders/1"); status != http.StatusOK {
			t.Errorf("an order: %d %s", status, said)
		}
	}, "a", "b", "c")
}

// TestOrderIsPaidOnce: whatever machines get it at the same time, and again later.
func TestOrderIsPaidOnce(t *testing.T) {
	fleetOf(t, func(t *testing.T, f *fleet, m map[string]*machine) {
		var all sync.WaitGroup
		put := func(name string, want int) {
			all.Go(func() {
				if status, said := m[name].request(t.Context(), "PUT", "/orders/1"); status != want {
					t.Errorf("%s: %d %s", name, status, said)
				}
			})
		}
		for range 3 {
			put("a", http.StatusOK)
			put("b", http.StatusOK)
		}
		all.Wait()
		put("b", http.StatusOK)
		all.Wait()
		if len(f.paid) != 1 {
			t.Errorf("paid: %v", f.paid)
		}
		other := f.nodes.Hold("orders/1")
		began := time.Now()
		put("a", http.StatusConflict)
		all.Wait()
		if waited := time.Since(began); waited < 2*time.Second || waited > 3*time.Second {
			t.Errorf("the refusal came after %v", waited)
		}
		_ = other.Release(t.Context())
	}, "a", "b")
}

// TestOrderAtSIGTERM: the machine ends when the order is paid, and until then no other one has its lock.
func TestOrderAtSIGTERM(t *testing.T) {
	fleetOf(t, func(t *testing.T, f *fleet, m map[string]*machine) {
		m["a"].Pay = func(context.Context, string) error { time.Sleep(5 * time.Second); return nil }
		first := make(chan int, 1)
		go func() {
			status, _ := m["a"].request(t.Context(), "PUT", "/orders/1")
			first <- status
		}()
		f.nodes.Sleep(time.Second)
		m["a"].sigterm()
		if status, said := m["b"].request(t.Context(), "PUT", "/orders/1"); status != http.StatusConflict {
			t.Errorf("the second machine, meanwhile: %d %s", status, said)
		}
		if status, said := m["a"].request(t.Context(), "PUT", "/orders/2"); status != http.StatusServiceUnavailable {
			t.Errorf("the first machine, another order: %d %s", status, said)
		}
		f.nodes.Sleep(3 * time.Second)
		if len(m["a"].ended) == 0 || <-first != http.StatusOK {
			t.Error("the first machine has not ended with its order")
		}
		if status, said := m["b"].request(t.Context(), "PUT", "/orders/1"); status != http.StatusOK || len(f.paid) > 0 {
			t.Errorf("the second machine, after that: %d %s, paid again: %v", status, said, f.paid)
		}
	}, "a", "b")
}

// TestStaleOrderIsRefused: a machine that stands still while it pays, for longer than its lock lasts, comes back when
// another one has paid the order. The fence rejects what it writes.
func TestStaleOrderIsRefused(t *testing.T) {
	fleetOf(t, func(t *testing.T, f *fleet, m map[string]*machine) {
		goOn := make(chan struct{})
		m["a"].Pay = func(context.Context, string) error { <-goOn; return nil } // it does not look at the context
		late := make(chan int)
		go func() {
			status, _ := m["a"].request(t.Context(), "PUT", "/orders/1")
			late <- status
		}()
		f.nodes.Sleep(time.Second)
		f.nodes.Lose("orders/1") // which the first machine learns when it extends the lock
		if status, said := m["b"].request(t.Context(), "PUT", "/orders/1"); status != http.StatusOK {
			t.Fatalf("the second machine: %d %s", status, said)
		}
		close(goOn)
		if status := <-late; status != http.StatusServiceUnavailable {
			t.Errorf("the late one has the status %d", status)
		}
		if stale := f.logged(fence.ErrStale.Error()); len(stale) != 1 {
			t.Errorf("what was rejected as stale: %v", stale)
		}
		if n := m["b"].one(t, `SELECT count(*) FROM orders WHERE id = '1' AND paid`); n != 1 {
			t.Errorf("%d orders are paid", n)
		}
	}, "a", "b")
}

// TestDocumentIsLockedWhileItsEditorIsConnected: it is renewed meanwhile, others are refused, and it is free after that.
func TestDocumentIsLockedWhileItsEditorIsConnected(t *testing.T) {
	fleetOf(t, func(t *testing.T, f *fleet, m map[string]*machine) {
		ctx, leave := context.WithCancel(t.Context())
		ended := make(chan string)
		go func() {
			status, said := m["a"].request(ctx, "GET", "/documents/1/edit")
			ended <- fmt.Sprint(status, said != "")
		}()
		for range 3 {
			f.nodes.Sleep(ttl)
			if status, said := m["b"].request(t.Context(), "GET", "/documents/1/edit"); status != http.StatusConflict {
				t.Errorf("a second editor: %d %s", status, said)
			}
		}
		leave()
		if said := <-ended; said != "200 true" {
			t.Errorf("the first editor: %s", said)
		}
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if status, said := m["b"].request(brief, "GET", "/documents/1/edit"); status != http.StatusOK {
			t.Errorf("the next editor: %d %s", status, said)
		}
	}, "a", "b")
}
