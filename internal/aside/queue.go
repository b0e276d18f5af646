// Package aside runs a user's callbacks off the path of everything else: one after another, on one
// goroutine. A callback that sleeps, or writes to a pipe that nobody reads, delays the callbacks
// behind it and nothing else.
package aside

import (
	"context"
	"sync"
	"time"
)

// Bounds of what waits in a Queue. Most calls keep an error and some words: a full Queue has less
// than 4 MB.
const (
	mostNews    = 1024
	mostDetails = 8192
)

// pause is the shortest time between two reports of dropped calls, so that a Queue that is never
// quick enough does not report once for each call.
const pause = time.Minute

// A Class says what a Queue drops when callbacks are slower than what they are called for.
type Class uint8

const (
	// News is what an operator has to know, such as the state of a node. If 1,024 of it wait, the
	// oldest is dropped: the last word about each node stays.
	News Class = iota

	// Detail is what is of use only with the rest of it, such as the beginning of an operation. If
	// 8,192 calls wait that are Detail or Final, the next one is dropped.
	Detail

	// Final belongs to a Detail that was taken, and is never dropped. The caller bounds how many
	// there are.
	Final
)

// A Queue runs callbacks in the order in which they were added. It has a goroutine while there is
// something to run. The zero Queue is ready for use.
type Queue struct {
	// Dropped is called on the Queue's goroutine when calls were dropped: how many, and the slowest
	// callback since the Queue was empty, with the time that it took. It is called once a minute
	// at most. Nil: nobody is told.
	Dropped func(n int, slowest string, took time.Duration)

	mu       sync.Mutex        // protects what follows; under it nothing is called
	waits    [Final + 1][]call // of each class, in order
	added    int               // calls so far, which numbers them across the classes
	running  bool              // there is a goroutine
	closed   bool
	now      string    // the callback that runs; "": none
	since    time.Time // when it began
	slowest  string    // since the Queue was empty
	took     time.Duration
	dropped  int // and not reported yet
	reported time.Time
}

type call struct {
	number int
	name   string
	f      func()
}

// Add lets a callback run after all that were added before. It never waits. Name is the callback's,
// for a report. Add returns false if the callback will not run: the Queue is closed, or full of
// Detail.
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

// full reports whether no more Detail is taken. Under the mutex.
func (q *Queue) full() bool { return len(q.waits[Detail])+len(q.waits[Final]) >= mostDetails }

// put adds a call, and take takes the oldest of a class. Under the mutex.
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

// Full reports whether a Detail would be dropped now, and counts it as dropped if so.
func (q *Queue) Full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || !q.full() {
		return q.closed
	}
	q.dropped++
	return true
}

// run runs the callbacks until none is left. A panic of a callback is not recovered. A callback that
// ends its goroutine, as testing.T.FailNow does, does not end the Queue.
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

// next returns what the goroutine runs next; false: it ends, since nothing is left.
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

// Wait waits until all callbacks have run that were added before, or ctx ends. It reports whether
// they have.
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

// Close takes no more callbacks, and waits for those that were added before for so long at most. It
// returns how many will not run, and the callback that has not returned. The goroutine ends with
// that callback.
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
			if c.name != "" { // or it is what Wait has added
				left++
			}
		}
	}
	q.waits, q.dropped = [Final + 1][]call{}, 0
	return left, q.now
}
