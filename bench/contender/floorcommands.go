package contender

import (
	"context"
	"time"

	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/wire"
)

// floorCommands is no lock library either, but the least work that this library's own commands cost: those
// of an acquire, an extension and a release, with tokens like its own, over one connection to each node. So
// what floor-commands costs beside floor is the price of the commands, less that of go-redis, and what
// redlock costs beside floor-commands is about what the library does besides. It looks only at the answer
// that says whether a lock was granted or released: it judges no marker, no time and no number, and has no
// deadlines, no validity, no clean-up and no limit to its queues.
var floorCommands = Contender{
	Name:   "floor-commands",
	Module: "github.com/quorumlock/redlock",
	Note: "the commands that redlock sends, without go-redis, requests of all callers pipelined per node over one TCP connection: " +
		"answers are read and not judged, no validity, no deadlines, no clean-up",
	Open: openFloorCommands,
}

type commandLocker struct {
	lanes []*commandLane
	owner string // as it stands in tokens
	held  *floorHeld[*commandLock]
}

func openFloorCommands(c Config) (Locker, error) {
	l := &commandLocker{owner: wire.Label(wire.DefaultOwner())}
	for _, addr := range c.Addrs {
		l.lanes = append(l.lanes, startCommandLane(addr, c.TTL.Milliseconds()))
	}
	l.held = startFloorHeld(c.Renewal, func(k *commandLock) { l.send(wire.Extend, k) })
	return l, nil
}

type commandLock struct {
	locker     *commandLocker
	key, token string
	number     int64 // the proposed fence
}

func (l *commandLocker) Lock(ctx context.Context, name string) (Lock, error) {
	return l.lock(ctx, name)
}

func (l *commandLocker) lock(ctx context.Context, name string) (*commandLock, error) {
	now := time.Now()
	lock := &commandLock{
		locker: l, key: name, number: now.UnixMicro(),
		token: wire.Sign(sim.Chance{}.Token(), now, "", "", l.owner),
	}
	if err := l.send(wire.Plain, lock).wait(); err != nil {
		_ = lock.Release(ctx)
		return nil, err
	}
	return lock, nil
}

func (k *commandLock) Release(context.Context) error {
	return k.locker.send(wire.Release, k).wait()
}

// send asks all nodes for one step of a lock.
func (l *commandLocker) send(step wire.Op, k *commandLock) *floorBallot {
	b := newFloorBallot(len(l.lanes))
	for _, lane := range l.lanes {
		lane.add(commandRequest{step: step, lock: k, ballot: b})
	}
	return b
}

func (l *commandLocker) Hold(ctx context.Context, name string) (Lock, error) {
	lock, err := l.lock(ctx, name)
	if err != nil {
		return nil, err
	}
	l.held.add(lock)
	return lock, nil
}

func (l *commandLocker) Close() error {
	l.held.stop()
	for _, lane := range l.lanes {
		lane.close()
	}
	for _, lane := range l.lanes {
		<-lane.ended
	}
	return nil
}
