package drive

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/client"
)

// A Recorder collects the events of a run.
type Recorder struct {
	Start time.Time

	mu     sync.Mutex
	events []history.Event
}

// NewRecorder starts the run's clock.
func NewRecorder() *Recorder { return &Recorder{Start: time.Now()} }

// Now is the run's time.
func (r *Recorder) Now() time.Duration { return time.Since(r.Start) }

// Note records that e has happened now.
func (r *Recorder) Note(e history.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.At = r.Now()
	r.events = append(r.events, e)
}

// Sorted returns the events in the order in which they happened. Events of one instant get an order
// that each run repeats: by client, by operation, and then by which kind can follow which.
func (r *Recorder) Sorted() []history.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortStableFunc(r.events, func(a, b history.Event) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Client, b.Client), cmp.Compare(a.Op, b.Op),
			cmp.Compare(slices.Index(order, a.Kind), slices.Index(order, b.Kind)))
	})
	return r.events
}

var order = []history.Kind{
	history.Calm, history.Stalled, history.Lost, history.Measured, history.Struck, history.Healed, history.Held, history.Ask, history.Denied, history.Got, history.Found, history.Read, history.Wrote, history.Refused, history.Renewed, history.Extend, history.Extended, history.Failed, history.Release, history.Told, history.Released, history.Changing, history.Changed, history.Break, history.Broke, history.Crashed, history.Left, history.Weighed,
}

// removed reports which of the nodes with these addresses an operator has begun to remove from the set.
// Such a change may come into force at any time, whatever the operator was told.
func (r *Recorder) removed(addrs []string) map[int]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(map[int]bool)
	for _, e := range r.events {
		if addr, ok := strings.CutPrefix(e.Name, client.Removes); ok && e.Kind == history.Changing {
			all[slices.Index(addrs, addr)] = true
		}
	}
	return all
}

// made are the members after the last change that an operator has made; nil: there was none.
func (r *Recorder) made() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range slices.Backward(r.events) {
		if e.Kind == history.Changed && e.Error == "" {
			return strings.Fields(e.Also)
		}
	}
	return nil
}

// Add records an event that has its time.
func (r *Recorder) Add(e history.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}
