package operate

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/peek"
	"github.com/quorumlock/redlock/internal/facts"
	lua "github.com/quorumlock/redlock/internal/script"
)

// A patient is a node that is examined.
type patient struct {
	name  string // its address
	opts  *redis.Options
	given bool  // false: found as a member of the set
	err   error // it did not answer

	info  facts.Facts
	fsync string // CONFIG appendfsync; "": it does not say
	peek.Pace
	keyError  error     // locking and releasing a key of our own failed
	callError error     // waking waiting clients failed
	keeping   peek.Node // what it keeps of its set
	number    int64     // the largest fence that it has given
	now       int64     // its time, in microseconds

	// The judgement.
	member bool               // its vote counts
	vote   *redlock.NodeError // why it cannot vote, as it told a Locker; nil: it can, or was not asked
	barred string             // why its grants are worthless, even if it votes; "": they are not
}

// examineAll asks nodes all that doctor judges, all at once.
func examineAll(servers []*redis.Options) []*patient {
	patients := make([]*patient, len(servers))
	var examined sync.WaitGroup
	for i, o := range servers {
		examined.Go(func() { patients[i] = examine(o) })
	}
	examined.Wait()
	return patients
}

// examine asks a node all that doctor judges.
func examine(o *redis.Options) *patient {
	p := &patient{info: make(facts.Facts), name: o.Addr, opts: o}
	rdb := peek.Client(o)
	defer rdb.Close()
	ctx, cancel := context.WithTimeout(context.Background(), peek.Checkup)
	defer cancel()
	info, err := rdb.Info(ctx).Result()
	if err = facts.Discreet(err); err != nil && facts.Missing(err.Error()) != "INFO" { // locks need all commands but INFO
		p.err = facts.Explain(err)
		return p
	}
	p.info.Add(info)
	p.info.Probed(rdb.Eval(ctx, lua.Probe, []string{lua.ProbeKey}).Result())
	if config, err := rdb.ConfigGet(ctx, "appendfsync").Result(); err == nil { // an ACL may forbid it
		p.fsync = config["appendfsync"]
	}
	if p.Pace, err = peek.Measure(ctx, rdb, 9); err != nil {
		p.err = facts.Explain(facts.Discreet(err))
		return p
	}
	if !p.info.Replica() && p.info.Lacks() == nil {
		p.keyError = tryCommands(ctx, rdb)
	}
	p.keeping = peek.At(ctx, rdb)
	p.number, p.now = largest(ctx, rdb), time.Now().Add(p.Clock).UnixMicro()
	if p.callError = rdb.Publish(ctx, lua.WakeChannel+"doctor", "").Err(); p.callError == nil {
		waker := rdb.Subscribe(ctx, lua.WakeChannel+"doctor")
		defer waker.Close()
		_, p.callError = waker.Receive(ctx)
	}
	return p
}

// commands is a script that locks and releases a key of doctor's own, by each command that the scripts of a lock
// need. It names the command that the server rejects. It gives no fence: the node's clock may be wrong.
const commands = `
local key = KEYS[1]
for _, c in ipairs({
{'SET', key, 'x', 'PX', '1000'}, {'GET', key}, {'GETRANGE', key, '0', '0'}, {'MGET', key}, {'EXISTS', key}, {'PTTL', key}, {'PEXPIRE', key, '1000'}, {'DEL', key},
{'ZADD', key, '1', 'x'}, {'PEXPIRE', key, '1000'}, {'ZSCORE', key, 'x'}, {'ZMSCORE', key, 'x'}, {'ZCOUNT', key, '0', '1'},
{'ZRANGE', key, '0', '0'}, {'ZRANGEBYSCORE', key, '1', '1'}, {'ZREVRANGEBYSCORE', key, '1', '1'},
{'ZREMRANGEBYSCORE', key, '2', '3'}, {'ZREM', key, 'x'}, {'TIME'},
{'HSET', key, 'a', 'b'}, {'HMGET', key, 'a'}}) do
local r = redis.pcall(unpack(c))
if type(r) == 'table' and r.err then
redis.pcall('DEL', key)
return redis.error_reply(r.err .. ' (' .. c[1] .. ')')
end
end
return redis.call('DEL', key)`

// tryCommands returns the server's error if it rejects what every lock needs.
func tryCommands(ctx context.Context, rdb *redis.Client) error {
	script, key := redis.NewScript(commands), []string{"redlock:doctor"}
	for _, refused := range []func() error{
		script.Eval(ctx, rdb, key).Err, script.Load(ctx, rdb).Err, script.EvalSha(ctx, rdb, key).Err,
	} {
		if err := refused(); err != nil {
			return facts.Explain(facts.Discreet(err))
		}
	}
	return nil
}

// at returns the redis-cli command line that reaches the node.
func (p *patient) at() string {
	host, port, err := net.SplitHostPort(p.opts.Addr)
	if err != nil {
		return "redis-cli -s " + p.opts.Addr
	}
	return "redis-cli -h " + host + " -p " + port
}

func ahead(d time.Duration) string {
	if d > 0 {
		return "ahead of"
	}
	return "behind"
}

// remedyFor returns what can be done about an error of a node.
func remedyFor(err error) string {
	if todo := facts.Todo(err); todo != "" {
		return todo
	}
	switch facts.Code(err.Error()) {
	case "OOM":
		return "give it more memory (maxmemory), or store less in it"
	case "READONLY":
		return "it is a replica, or was one: name its master instead"
	case "MISCONF":
		return "it cannot write to its disk, and rejects writes: make room there"
	case "NOREPLICAS":
		return "it rejects writes without replicas, and locks need none: set min-replicas-to-write 0"
	case "BUSY":
		return "a script runs and does not end: redis-cli script kill; use servers that serve nothing but locks"
	case "LOADING", "MASTERDOWN":
		return "it is loading its data, or waiting for its master: try again later"
	}
	return "does it run, and can it be reached from here? Locks work as long as a majority of the nodes does"
}

// largest returns the largest fence that a node has given; 0 if it has given none, or does not say.
func largest(ctx context.Context, rdb *redis.Client) (number int64) {
	for _, table := range []string{lua.Fences, lua.Belows} {
		last, err := rdb.ZRevRangeByScoreWithScores(ctx, table, &redis.ZRangeBy{Min: "-inf", Max: "+inf", Count: 1}).Result()
		if err == nil && len(last) > 0 {
			number = max(number, int64(last[0].Score))
		}
	}
	return number
}

// settled returns the status of the nodes as soon as again is false for each of them, or when half of peek.Patience is
// over. A Locker connects to a member that was not given after it has connected to the others, so the first status may
// report a timeout of a node that runs.
func settled(locker *redlock.Locker, again func(redlock.NodeStatus) bool) *redlock.Status {
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		status := peek.Status(context.Background(), locker)
		if !slices.ContainsFunc(status.Nodes, again) || time.Since(begin) > peek.Patience/2 {
			return status
		}
	}
}
