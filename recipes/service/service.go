package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/fence"
)

var schema = fence.Fences.Schema() + `;
	CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, paid BOOLEAN NOT NULL, fence BIGINT NOT NULL);
	CREATE TABLE IF NOT EXISTS runs (at BIGINT NOT NULL, machine TEXT NOT NULL)`

// A Service is the service on one machine.
type Service struct {
	Name   string // of the machine
	Locker *redlock.Locker
	DB     *sql.DB
	Pay    func(ctx context.Context, id string) error // at another service; id is the idempotency key

	leader atomic.Pointer[string] // the Name of the machine that leads; "": none, or not known
}

// Run runs the service until ctx ends. When it returns, the locks are released, and the Locker is closed.
func (s *Service) Run(ctx context.Context) error {
	var work sync.WaitGroup
	for _, f := range []func(context.Context){s.lead, s.clean, s.watch} {
		work.Go(func() { f(ctx) })
	}
	<-ctx.Done()
	brief, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := s.Locker.Shutdown(brief) // ends requests under a lock, too: they get a 503, and come again elsewhere
	work.Wait()
	return err
}

// lead makes the machine a candidate, and again when it has resigned or lost the lock.
func (s *Service) lead(ctx context.Context) {
	for ctx.Err() == nil {
		if err := s.Locker.Do(ctx, "leader", s.schedule); ctx.Err() == nil {
			log.Printf("%s has stopped leading: %v", s.Name, err)
			pause(ctx, time.Second) // an error that comes at once may come again
		}
	}
}

// schedule is the leader's work. An error resigns: another machine may reach the database.
func (s *Service) schedule(ctx context.Context, l *redlock.Lock) error {
	log.Printf("%s leads, term %d", s.Name, l.Fence())
	for {
		err := fence.Tx(ctx, s.DB, "leader", l.Fence(), func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `INSERT INTO runs (at, machine) VALUES ($1, $2)`, time.Now().Unix(), s.Name)
			return err
		})
		if err != nil || !pause(ctx, time.Second) {
			return errors.Join(err, context.Cause(ctx))
		}
	}
}

// clean deletes old rows once a minute, on the machine that comes first. MinHold keeps out the others, whose clocks
// are up to five seconds behind. It is at most the set's MaxTTL: 10 s, unless you set it.
func (s *Service) clean(ctx context.Context) {
	for pause(ctx, time.Until(time.Now().Truncate(time.Minute).Add(time.Minute))) {
		err := s.Locker.Do(ctx, "clean", func(ctx context.Context, _ *redlock.Lock) error {
			log.Printf("%s cleans", s.Name)
			_, err := s.DB.ExecContext(ctx, `DELETE FROM runs WHERE at < $1`, time.Now().Add(-time.Hour).Unix())
			return err
		}, redlock.Wait(0), redlock.MinHold(5*time.Second))
		if err != nil && !errors.Is(err, redlock.ErrHeld) {
			log.Print(err)
		}
	}
}

// watch notes which machine leads.
func (s *Service) watch(ctx context.Context) {
	for status, err := range s.Locker.Watch(ctx, "leader", 0) {
		if err == nil {
			s.leader.Store(&status.By.Owner)
		}
	}
}

// pause waits for d, and reports whether ctx lives still.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// Handler answers HTTP requests.
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /orders/{id}", s.order)
	mux.HandleFunc("GET /documents/{id}/edit", s.edit)
	s.leader.CompareAndSwap(nil, new(string))
	mux.HandleFunc("GET /leader", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, *s.leader.Load()) })
	return mux
}

// order pays an order once, whatever fails.
func (s *Service) order(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	err := s.Locker.Do(r.Context(), "orders/"+id, func(ctx context.Context, l *redlock.Lock) error {
		var paid bool
		err := fence.Found(s.DB.QueryRowContext(ctx, `INSERT INTO orders (id, paid, fence) VALUES ($1, FALSE, $2)
			ON CONFLICT (id) DO UPDATE SET fence = excluded.fence WHERE orders.fence <= excluded.fence
			RETURNING paid`, id, l.Fence()).Scan(&paid))
		if err != nil || paid {
			return err
		}
		if err := s.Pay(ctx, id); err != nil {
			return err
		}
		// What was paid is noted also if ctx has ended meanwhile, unless a later holder of the lock has been here.
		return fence.Changed(s.DB.ExecContext(context.WithoutCancel(ctx),
			`UPDATE orders SET paid = TRUE, fence = $1 WHERE id = $2 AND fence <= $1`, l.Fence(), id))
	}, redlock.Wait(2*time.Second))
	if err != nil {
		refuse(w, err)
	}
}

// edit locks a document while its editor is connected. The editor shows the number with each change.
func (s *Service) edit(w http.ResponseWriter, r *http.Request) {
	l, err := s.Locker.TryAcquire(r.Context(), "documents/"+r.PathValue("id"), redlock.RenewWhile(r.Context()))
	if err != nil {
		refuse(w, err)
		return
	}
	defer l.Release(context.WithoutCancel(r.Context()))
	fmt.Fprintln(w, l.Fence())
	_ = http.NewResponseController(w).Flush()
	<-l.Context(r.Context()).Done() // the editor has left, the lock is lost, or the machine is told to end
}

// refuse says whether others have the lock, or it failed: then another machine may do it.
func refuse(w http.ResponseWriter, err error) {
	log.Print(err) // it names the nodes, and is not for the client
	status := http.StatusServiceUnavailable
	if errors.Is(err, redlock.ErrHeld) {
		status = http.StatusConflict
	}
	http.Error(w, http.StatusText(status), status)
}
