// Package aside runs a user's callbacks off the path of everything else: one after another, on one goroutine. A
// callback that sleeps, or writes to a pipe that nobody reads, delays the callbacks behind it and nothing else.
package aside

import (
	"context"
	"sync"
	"time"
)

// Bounds of what waits in a Queue. Most calls keep an error and some words: a full Queue has less than 4 MB.
const (
	mostNews    = 1024
	mostDetails = 8192
)

// pause is the shortest time between two reports of dropped calls.
const pause = time.Minute

// A Class says which calls a Queue drops when callbacks are slower than the events that they report.
type Class uint8

const (
	// News is what an operator has to know, such as the state of a node. If 1,024 of these wait, the oldest is dropped:
	// so the latest news of each node stays.
	News Class = iota

	// Detail is of use only together with the rest of it, such as the beginning of an operation. If 8,192 calls wait
	// that are Detail or Final, a new Detail is dropped.
	Detail

	// Final belongs to a Detail that was taken, and is never dropped. The caller bounds how many there are.
	Final
)

// A Queue runs callbacks in the order in which they were added, on a goroutine that it has while there is something to
// run. The zero Queue is ready for use.
type Queue struct {
	// Dropped is called on the Queue's goroutine when calls were dropped, once a minute at most: with their number, and
	// the slowest callback since the Queue was empty, and how long that took. Nil: not reported.
	Dropped func(n int, slowest string, took time.Duration)

	mu       sync.Mutex        // protects what follows; nothing is called under it
	waits    [Final + 1][]call // of each class, in order
	added    int               // the number of the last call, across the classes
	running  bool              // there is a goroutine
	closed   bool
	now      string        // the name of the callback that runs; "": none
	since    time.Time     // when that began
	slowest  string        // the name of the slowest callback since the Queue was empty
	took     time.Duration // by slowest
	dropped  int           // calls that were dropped and not reported yet
	reported time.Time     // when Dropped was last called
}

type call struct {
	number int
	name   string
	f      func()
}

// Add makes a callback run after all that were added before. It never waits. name identifies the callback in reports.
// False: the callback will not run, since the Queue is closed, or class is Detail and too many calls wait (full).
func (q *Queue) Add(class Class, name string, f func()) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return false
	case class == Detail && q.full():
		q.dropped++
		return false
	case class == News && len(q.waits[News]) >= mostNews:
		q.take(News)
		q.dropped++
	}
	q.put(class, name, f)
	if !q.running {
		q.running = true
		go q.run()
	}
	return true
}

// full reports whether so many calls wait that a new Detail is dropped. Caller holds q.mu.
func (q *Queue) full() bool { return len(q.waits[Detail])+len(q.waits[Final]) >= mostDetails }

// put adds a call behind all others. take returns and removes the oldest one of its class. Caller of both holds q.mu.
func (q *Queue) put(class Class, name string, f func()) {
	q.added++
	q.waits[class] = append(q.waits[class], call{q.added, name, f})
}

func (q *Queue) take(class Class) call {
	waits := q.waits[class]
	c := waits[0]
	waits[0] = call{} // for the garbage collector
	q.waits[class] = waits[1:]
	return c
}

// Full reports whether Add would refuse a Detail now, and counts one as dropped if so, except after Close.
func (q *Queue) Full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || !q.full() {
		return q.closed
	}
	q.dropped++
	return true
}

// run runs the callbacks until none is left. It does not recover a panic of a callback. A callback that ends its
// goroutine, as testing.T.FailNow does, does not end the Queue.
func (q *Queue) run() {
	alive := true
	defer func() {
		if alive {
			go q.run()
		}
	}()
	for {
		c, ok := q.next()
		if !ok {
			alive = false
			return
		}
		c()
	}
}

// next returns the call that run makes next: the oldest one, or a report of dropped calls. False: none is left.
func (q *Queue) next() (func(), bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	if q.now != "" {
		if took := now.Sub(q.since); q.slowest == "" || took > q.took {
			q.slowest, q.took = q.now, took
		}
		q.now = ""
	}
	if q.dropped > 0 && q.Dropped != nil && (q.reported.IsZero() || now.Sub(q.reported) >= pause || q.closed) {
		n, slowest, took := q.dropped, q.slowest, q.took
		q.dropped, q.reported = 0, now
		return func() { q.Dropped(n, slowest, took) }, true
	}
	first := -1
	for class, waits := range q.waits {
		if len(waits) > 0 && (first < 0 || waits[0].number < q.waits[first][0].number) {
			first = class
		}
	}
	if first < 0 {
		q.waits, q.running, q.slowest = [Final + 1][]call{}, false, ""
		return nil, false
	}
	c := q.take(Class(first))
	q.now, q.since = c.name, now
	return c.f, true
}

// Wait waits until all callbacks that were added before have run, and returns true; false if ctx ends first.
func (q *Queue) Wait(ctx context.Context) bool {
	done := make(chan struct{})
	q.mu.Lock()
	if !q.running {
		q.mu.Unlock()
		return true
	}
	q.put(Final, "", func() { close(done) })
	q.mu.Unlock()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// Close takes no more callbacks, and waits at most limit for those that were added before. left is how many will not
// run. stuck is the name of the one that has not returned; "": none. When it does return, the Queue's goroutine ends.
func (q *Queue) Close(limit time.Duration) (left int, stuck string) {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if q.Wait(ctx) {
		return 0, ""
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	left = q.dropped
	for _, waits := range q.waits {
		for _, c := range waits {
			if c.name != "" { // "": it is the one of Wait
				left++
			}
		}
	}
	q.waits, q.dropped = [Final + 1][]call{}, 0
	return left, q.now
}
