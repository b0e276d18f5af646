package contender

import (
	"context"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/redis/go-redis/v9"
)

var ours = redlockWith("redlock", "this library, default options, stock clients", redlock.Options{})

// Plain is this library with the scripts in bench/plain in the place of its own. That is decided
// when a program is built: in any other program it is the same as redlock.
const Plain = "redlock, plain scripts"

// Fenced returns the contenders of the scenario fence: this library, and the same without some of
// its parts, or with worse conditions. A comma in a name separates the contender from its variant.
func Fenced() []Contender {
	return []Contender{
		redsyncStock, floor,
		redlockWith(Plain, "acquire is SET NX PX in a script: no number, no marker, no time; the rest is the same library", redlock.Options{}),
		ours,
		redlockWith("redlock, no quarantine", "Options.Quarantine -1: fences, and no check whether a node forgot", redlock.Options{Quarantine: -1}),
		redlockWith("redlock, 2 s behind", "its clock is two seconds behind the nodes'",
			redlock.Options{Clock: Ahead(-2 * time.Second)}),
	}
}

// NoQueue is this library with the queue removed from its scripts, decided in the same way.
const NoQueue = "redlock, no queue"

// Idle returns the contenders whose difference is the cost of a queue without waiters.
func Idle() []Contender {
	return []Contender{redlockWith(NoQueue, "its scripts without the queue, which is sent to them all the same", redlock.Options{}), ours}
}

// Variants returns the contenders that are measured in processes of their own.
func Variants() []Contender { return append(Fenced(), Idle()[0]) }

// Ahead is a clock that is so far ahead of the system's.
type Ahead time.Duration

func (a Ahead) Now() time.Time { return time.Now().Add(time.Duration(a)) }

func redlockWith(name, note string, o redlock.Options) Contender {
	return Contender{Name: name, Module: "github.com/quorumlock/redlock", Note: note, Open: func(c Config) (Locker, error) {
		o := o
		o.TTL, o.MaxTTL = c.TTL, max(o.MaxTTL, 6*c.TTL) // some locks are held for longer than a run, without a renewal
		clients := dial(c.Addrs)
		l, err := redlock.New(clients, &o)
		if err != nil {
			_ = closeAll(clients)
			return nil, err
		}
		return &redlockLocker{Locker: l, clients: clients}, nil
	}}
}

type redlockLocker struct {
	*redlock.Locker
	clients []*redis.Client
}

func (l *redlockLocker) Lock(ctx context.Context, name string) (Lock, error) {
	lock, err := l.TryAcquire(ctx, name)
	if err != nil {
		return nil, err
	}
	return lock, nil
}

// Hold leaves the period to the library: a third of the TTL, like Config.Renewal.
func (l *redlockLocker) Hold(ctx context.Context, name string) (Lock, error) {
	lock, err := l.TryAcquire(ctx, name, redlock.AutoRenew())
	if err != nil {
		return nil, err
	}
	return lock, nil
}

func (l *redlockLocker) Close() error {
	err := l.Locker.Close()
	if cerr := closeAll(l.clients); err == nil {
		err = cerr
	}
	return err
}
