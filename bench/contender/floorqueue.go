package contender

import (
	"runtime"
	"sync"
)

// A floorQueue is what is asked of one node: what callers ask for while requests are in flight goes
// out together in the next write. It has no limit.
type floorQueue[R any] struct {
	wake  chan struct{} // one token: there is something to send
	done  chan struct{}
	ended chan struct{} // closed by the goroutine that sends

	mu    sync.Mutex
	queue []R
}

func newFloorQueue[R any]() floorQueue[R] {
	return floorQueue[R]{
		wake:  make(chan struct{}, 1),
		done:  make(chan struct{}),
		ended: make(chan struct{}),
	}
}

func (q *floorQueue[R]) add(r R) {
	q.mu.Lock()
	q.queue = append(q.queue, r)
	first := len(q.queue) == 1
	q.mu.Unlock()
	if first {
		select {
		case q.wake <- struct{}{}:
		default:
		}
	}
}

func (q *floorQueue[R]) stop() { close(q.done) }

// take waits for requests and takes all of them. It gives false when the queue has been stopped. The
// next ones are collected in spare.
func (q *floorQueue[R]) take(spare []R) ([]R, bool) {
	select {
	case <-q.done:
		return nil, false
	case <-q.wake:
	}
	// The callers that were woken by the last answers are runnable now;
	// letting them go first puts their next requests into this write.
	runtime.Gosched()

	q.mu.Lock()
	defer q.mu.Unlock()
	batch := q.queue
	q.queue = spare[:0]
	return batch, true
}

// A floorBallot counts until the outcome is certain and tells it once.
type floorBallot struct {
	mu          sync.Mutex
	need, spare int
	decided     chan bool
}

func newFloorBallot(nodes int) *floorBallot {
	quorum := nodes/2 + 1
	return &floorBallot{need: quorum, spare: nodes - quorum, decided: make(chan bool, 1)}
}

func (b *floorBallot) vote(yes bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if yes {
		b.need--
		if b.need == 0 {
			b.decided <- true
		}
		return
	}
	b.spare--
	if b.spare == -1 {
		b.decided <- false
	}
}

// wait returns as soon as the majority is known to have said yes or can no longer do so.
func (b *floorBallot) wait() error {
	if !<-b.decided {
		return errNoMajority
	}
	return nil
}
