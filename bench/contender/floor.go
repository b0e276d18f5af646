package contender

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"

	"github.com/redis/go-redis/v9"
)

// floor is no lock library but the least that five nodes cost through go-redis: SET NX PX to all of
// them, return at a majority, compare-and-delete. It has no deadlines, no validity, no fence, no
// clean-up and no limit to its queues, so no library that has these can be expected to be faster.
var floor = Contender{
	Name:   "floor",
	Module: "github.com/redis/go-redis/v9",
	Note:   "bare go-redis, requests of all callers pipelined per node: no validity, no deadlines, no clean-up",
	Open:   openFloor,
}

const (
	floorDelete = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`
	floorExtend = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0`
)

var (
	floorDeleteHash = redis.NewScript(floorDelete).Hash()
	floorExtendHash = redis.NewScript(floorExtend).Hash()
)

var errNoMajority = errors.New("no majority")

type floorLocker struct {
	clients []*redis.Client
	lanes   []*floorLane
	ttl     int64
	held    *floorHeld[*floorLock]
}

func openFloor(c Config) (Locker, error) {
	l := &floorLocker{
		clients: dial(c.Addrs),
		ttl:     c.TTL.Milliseconds(),
	}
	for _, client := range l.clients {
		l.lanes = append(l.lanes, startFloorLane(client))
	}
	l.held = startFloorHeld(c.Renewal, func(k *floorLock) {
		l.send("evalsha", floorExtendHash, 1, k.name, k.token, l.ttl)
	})
	return l, nil
}

type floorLock struct {
	locker      *floorLocker
	name, token string
}

func (l *floorLocker) Lock(ctx context.Context, name string) (Lock, error) {
	lock := &floorLock{locker: l, name: name, token: floorToken()}
	if err := l.send("set", name, lock.token, "nx", "px", l.ttl).wait(); err != nil {
		_ = lock.Release(ctx)
		return nil, err
	}
	return lock, nil
}

func (k *floorLock) Release(context.Context) error {
	return k.locker.send("evalsha", floorDeleteHash, 1, k.name, k.token).wait()
}

// send sends one command to all nodes.
func (l *floorLocker) send(args ...any) *floorBallot {
	b := newFloorBallot(len(l.lanes))
	for _, lane := range l.lanes {
		lane.add(floorRequest{args, b})
	}
	return b
}

func (l *floorLocker) Hold(ctx context.Context, name string) (Lock, error) {
	lock, err := l.Lock(ctx, name)
	if err != nil {
		return nil, err
	}
	l.held.add(lock.(*floorLock))
	return lock, nil
}

func (l *floorLocker) Close() error {
	l.held.stop()
	for _, lane := range l.lanes {
		lane.stop()
	}
	err := closeAll(l.clients)
	for _, lane := range l.lanes {
		<-lane.ended
	}
	return err
}

func floorToken() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
