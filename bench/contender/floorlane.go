package contender

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// A floorLane sends what is asked of one node, as pipelines of go-redis.
type floorLane struct {
	floorQueue[floorRequest]
	client *redis.Client
}

type floorRequest struct {
	args   []any
	ballot *floorBallot
}

func startFloorLane(client *redis.Client) *floorLane {
	l := &floorLane{newFloorQueue[floorRequest](), client}
	go l.run()
	return l
}

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
		batch, ok := l.take(spare)
		if !ok {
			return
		}
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
