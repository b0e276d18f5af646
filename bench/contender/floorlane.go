package contender

import (
	"context"
	"runtime"
	"sync"

	"github.com/redis/go-redis/v9"
)

// A floorLane is the queue of one node: what callers ask for while a pipeline
// is in flight goes out together in the next one.
type floorLane struct {
	client *redis.Client
	wake   chan struct{} // one token: there is something to send
	done   chan struct{}
	ended  chan struct{}

	mu    sync.Mutex
	queue []floorRequest
}

type floorRequest struct {
	args   []any
	ballot *floorBallot
}

func startFloorLane(client *redis.Client) *floorLane {
	l := &floorLane{
		client: client,
		wake:   make(chan struct{}, 1),
		done:   make(chan struct{}),
		ended:  make(chan struct{}),
	}
	go l.run()
	return l
}

func (l *floorLane) add(r floorRequest) {
	l.mu.Lock()
	l.queue = append(l.queue, r)
	first := len(l.queue) == 1
	l.mu.Unlock()
	if first {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

func (l *floorLane) stop() { close(l.done) }

func (l *floorLane) run() {
	defer close(l.ended)
	ctx := context.Background()
	// Here and not when the locker is opened, so that a node that is down holds
	// up its own lane only; it has no script to load and no vote to give.
	_, _ = l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.ScriptLoad(ctx, floorDelete)
		p.ScriptLoad(ctx, floorExtend)
		return nil
	})
	var spare []floorRequest
	for {
		select {
		case <-l.done:
			return
		case <-l.wake:
		}
		// The callers that were woken by the last answers are runnable now;
		// letting them go first puts their next requests into this pipeline.
		runtime.Gosched()

		l.mu.Lock()
		batch := l.queue
		l.queue = spare[:0]
		l.mu.Unlock()

		pipe := l.client.Pipeline()
		for _, r := range batch {
			pipe.Do(ctx, r.args...)
		}
		replies, _ := pipe.Exec(ctx) // each command carries its own error
		for i, reply := range replies {
			batch[i].ballot.vote(floorYes(reply))
		}
		clear(batch)
		spare = batch
	}
}

// floorYes reads "OK" of SET and 1 of the scripts as yes; a nil reply arrives
// as the error redis.Nil.
func floorYes(reply redis.Cmder) bool {
	if reply.Err() != nil {
		return false
	}
	n, isInt := reply.(*redis.Cmd).Val().(int64)
	return !isInt || n == 1
}

// A floorBallot counts until the outcome is certain and tells it once.
type floorBallot struct {
	mu          sync.Mutex
	need, spare int
	decided     chan bool
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
