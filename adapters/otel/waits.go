package otelredlock

import (
	"sync"
	"time"

	"github.com/quorumlock/redlock/redlocktrace"
	"go.opentelemetry.io/otel/metric"
)

// A call is one acquire, from its start to its end. It is in the acquire's context.
type call struct {
	contended bool      // it was counted as contended: it counts once, however many attempts it makes
	since     time.Time // when it began to wait; zero: it does not
	name      string
}

// callKey is the key of a *call in a context.
type callKey struct{}

// waits has the calls that wait now. A histogram has a wait only once it is over, and a wait that
// never ends is the worst one.
type waits struct {
	bound time.Duration
	label func(name string) string

	mu  sync.Mutex // protects what follows, and since and name of each call
	now map[*call]struct{}
}

// begin is called each time that a call has asked in vain.
func (w *waits) begin(c *call, op redlocktrace.Operation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.since.IsZero() {
		c.since, c.name = op.At.Add(-op.Waited), op.Name
		w.now[c] = struct{}{}
	}
}

func (w *waits) end(c *call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.now, c)
}

// observe counts the calls that have waited for longer than the bound, by label.
func (w *waits) observe(o metric.Observer, overdue metric.Int64Observable) {
	over := map[string]int64{"": 0}
	w.mu.Lock()
	var late []string
	for c := range w.now {
		if time.Since(c.since) > w.bound {
			late = append(late, c.name)
		}
	}
	w.mu.Unlock()
	for _, name := range late { // label is the program's own: it is not called under the mutex
		label := ""
		if w.label != nil {
			label = w.label(name)
		}
		over[label]++
	}
	for label, n := range over {
		if label == "" {
			o.ObserveInt64(overdue, n)
		} else {
			o.ObserveInt64(overdue, n, metric.WithAttributes(labelKey.String(label)))
		}
	}
}
