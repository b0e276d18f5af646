package client

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
)

// A Process is where one client lives.
type Process interface {
	Locker(*redlock.Options) (*redlock.Locker, error)

	// Token is a new one, its name, a dot and the number of it.
	Token() string

	// Addrs lists the addresses of all nodes. Give says which of them its Lockers are given from then on;
	// before, it is all.
	Addrs() []string
	Give(addrs []string)

	// Plain returns the nodes for a client of another library, as Foreign does with PlainPatience.
	Plain() []ForeignNode

	// Foreign returns the nodes for another client of another library, which waits for an answer for this long.
	Foreign(patience time.Duration) []ForeignNode

	// Pass returns when a worker's n-th step may go on: at any point of a program
	// the process may be held up.
	Pass(worker, n int)

	// Hold stops the process for some time, or suspends its machine.
	Hold(d time.Duration, machine bool)

	// Skew sets its clock forward; real converts an instant of its clock to the right time.
	Skew(d time.Duration)
	Real(t time.Time) time.Time

	// Lanes gives the number of requests that its Locker keeps for each node.
	Lanes() []int

	// Holders looks for a token under a key: how many nodes have it, and how many do not answer.
	Holders(key, token string) (has, silent int)

	// Crash ends it: no message leaves it or reaches it any more.
	Crash()
}

// PlainPatience is how long a client of another library waits for an answer if it has no dialect.
const PlainPatience = 50 * time.Millisecond

// A ForeignNode is a node as a client of another library uses it: with the commands of the Redlock page, and a script that
// makes the TTL of its lock whole again.
type ForeignNode interface {
	SetNX(ctx context.Context, key, token string, ttl time.Duration) (bool, error)
	CompareAndDelete(ctx context.Context, key, token string) error
	CompareAndExpire(ctx context.Context, key, token string, ttl time.Duration) (had bool, err error)
}

// A ForeignRedis is a ForeignNode by go-redis. The client must not repeat commands: a SET NX that is sent twice finds its own
// key.
type ForeignRedis struct{ *redis.Client }

func (n ForeignRedis) SetNX(ctx context.Context, key, token string, ttl time.Duration) (bool, error) {
	return n.Client.SetNX(ctx, key, token, ttl).Result()
}

func (n ForeignRedis) CompareAndDelete(ctx context.Context, key, token string) error {
	const script = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`
	return n.Eval(ctx, script, []string{key}, token).Err()
}

func (n ForeignRedis) CompareAndExpire(ctx context.Context, key, token string, ttl time.Duration) (bool, error) {
	const script = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("pexpire",KEYS[1],ARGV[2]) else return 0 end`
	had, err := n.Eval(ctx, script, []string{key}, token, ttl.Milliseconds()).Int()
	return had == 1, err
}
