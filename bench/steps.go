package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/quorumlock/redlock/bench/contender"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/wire"
	"github.com/redis/go-redis/v9"
)

// A step is one command, executed many times on one node that does nothing else.
type step struct {
	name    string // empty: executed, but not measured
	command string // the name under which INFO counts it
	reply   string // the expected form of the reply
	args    call
}

const (
	plainAcquireStep = "acquire, plain script"
	otherToken       = "another.@a@@bench"
)

// A waiter of another process, with its ticket: when it came, in microseconds.
const (
	stepWaiter = "bench.1"
	stepTicket = 1763755200000000
)

// stepsOf returns the steps in an order in which each finds the state that it expects: at the end
// each name is free again, without waiters.
func stepsOf(runID, marker string, ttl time.Duration) []step {
	plain := redis.NewScript(string(plainAcquire)).Hash()
	millis := ttl.Milliseconds()
	number := newNumber()
	acquire := func(runID, marker, waiter string, ticket int) call {
		return acquireCall(runID, marker, waiter, ticket, millis, number)
	}
	fenced, waiting := acquire(runID, marker, "", 0), acquire(runID, marker, stepWaiter, stepTicket)
	refused := func(args call) call {
		return func(name, _ string) []any { return args(name, otherToken) }
	}
	const granted, denied = "int64", "[int64 string int64]"
	released := releaseCall()
	release := func(name string) step { return step{name, "evalsha", "int64", released} }
	return []step{
		{"SET NX PX, no script", "set", "string", func(name, token string) []any {
			return []any{"set", name, token, "nx", "px", millis}
		}},
		release("release"),
		{plainAcquireStep, "evalsha", "0", func(name, token string) []any {
			return []any{"evalsha", plain, 1, name, token, millis, 0, 0, "", 0, "", 0, "x", 0}
		}},
		release(""),
		{"acquire, first lock on a name", "evalsha", granted, fenced},
		release(""),
		{"acquire, no quarantine", "evalsha", granted, acquire(runID, "", "", 0)},
		release(""),
		{"acquire", "evalsha", granted, fenced},
		{"acquire, denied", "evalsha", denied, refused(fenced)},
		{"acquire, denied and queued", "evalsha", denied, refused(waiting)},
		{"the same, in the queue already", "evalsha", denied, refused(waiting)},
		release("release that wakes the first"),
		{"acquire, by the first", "evalsha", granted, waiting},
		{"", "evalsha", denied, refused(waiting)},
		{"leave", "evalsha", "int64", func(name, _ string) []any {
			return []any{"evalsha", script.Leave.Hash, 1, name, stepWaiter, stepTicket, "x"}
		}},
		{"raise", "evalsha", "int64", func(name, token string) []any {
			return []any{"evalsha", script.Raise.Hash, 1, name, token, time.Now().UnixMicro(), "x", script.Bucket(name)} // no larger one: another name may share the bucket
		}},
		{"extend", "evalsha", "int64", func(name, token string) []any {
			return []any{"evalsha", script.Extend.Hash, 1, name, token, millis, "x"}
		}},
		release(""),
	}
}

// A call gives the command and the arguments for a name and a token.
type call func(name, token string) []any

// acquireCall is the acquire script's, for a lock that is held exclusively.
func acquireCall(runID, marker, waiter string, ticket int, millis int64, number func() int64) call {
	hash := script.Acquire(runID).Hash
	return func(name, token string) []any {
		n := number()
		return []any{"evalsha", hash, 1, name, token, millis, n, n + time.Minute.Microseconds(), marker,
			ticket, waiter, wire.MaxLease, "x", 0, script.Bucket(name)}
	}
}

// releaseCall is the release script's.
func releaseCall() call {
	return func(name, token string) []any {
		return []any{"evalsha", script.Release.Hash, 1, name, token, "x", 0}
	}
}

// newNumber gives numbers of which each is larger than the one before, as two names may share a bucket.
func newNumber() func() int64 {
	last := int64(0)
	return func() int64 {
		last = max(last+1, time.Now().UnixMicro())
		return last
	}
}

// stepBatch is how many commands a node gets at once: so few that most batches end before the
// machine takes the processor away, and as many as the scripts after which the server collects Lua's
// garbage (once in 50): otherwise some steps would pay for others.
const stepBatch = 50

// steps measures, on the first node, the time of each step.
func (e *env) steps(ctx context.Context) (*table, error) {
	client := e.fleet.watch[0]
	runID, marker, err := loadScripts(ctx, client, script.Acquire("").Source, string(plainAcquire))
	if err != nil {
		return nil, err
	}
	all := stepsOf(runID, marker, e.ttl)
	s := &series{rounds: map[string][]sample{}}
	for _, st := range all {
		if st.name != "" {
			s.contenders = append(s.contenders, contender.Contender{Name: st.name})
		}
	}
	for round := range e.rounds {
		fmt.Fprintf(os.Stderr, "fence, steps: round %d of %d\n", round+1, e.rounds)
		took, err := e.stepTimes(ctx, client, all)
		if err != nil {
			return nil, err
		}
		for name, times := range took {
			s.rounds[name] = append(s.rounds[name], sample{"usec": quantile(times, .5), "low": quantile(times, .1)})
		}
	}
	return &table{
		title: "fence, steps",
		text: fmt.Sprintf("How long one node is busy with each step, by its own account (INFO commandstats), %d times a round in pipelines of %d: "+
			"the median over the pipelines.", e.step, stepBatch),
		head: "step",
		columns: []column{
			median("a call", "usec", micros),
			over("÷ plain acquire", "usec", plainAcquireStep),
			median("a call, in the fastest tenth", "low", micros),
		},
		series: s,
	}, nil
}

// loadScripts loads the library's scripts into a server, and these as well. It gives the server's run_id
// and marker.
func loadScripts(ctx context.Context, client *redis.Client, more ...string) (runID, marker string, err error) {
	info, err := readInfo(ctx, client)
	if err != nil {
		return "", "", err
	}
	runID = info["run_id"]
	for _, each := range script.All(runID) {
		more = append(more, each.Source)
	}
	for _, source := range more {
		if err := client.ScriptLoad(ctx, source).Err(); err != nil {
			return "", "", err
		}
	}
	marker, err = client.Get(ctx, script.Marker).Result()
	return runID, marker, err
}

// stepTimes goes through all steps with one batch of names after another.
func (e *env) stepTimes(ctx context.Context, client *redis.Client, all []step) (map[string][]time.Duration, error) {
	took := map[string][]time.Duration{}
	for n := 0; n < e.step; n += stepBatch {
		prefix, token := freshPrefix(), sim.Chance{}.Token()
		for _, st := range all {
			before, err := readInfo(ctx, client)
			if err != nil {
				return nil, err
			}
			replies, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
				for i := range stepBatch {
					p.Do(ctx, st.args(prefix+strconv.Itoa(i)+nameEnd, token)...)
				}
				return nil
			})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", st.name, err)
			}
			after, err := readInfo(ctx, client)
			if err != nil {
				return nil, err
			}
			if calls := after.calls(st.command) - before.calls(st.command); calls != stepBatch {
				return nil, fmt.Errorf("%s: %v calls, not %d", st.name, calls, stepBatch)
			}
			for _, r := range replies {
				if got := r.(*redis.Cmd).Val(); likeness(got) != st.reply {
					return nil, fmt.Errorf("%s: %v, which is no %s", st.name, got, st.reply)
				}
			}
			if st.name != "" {
				usec := after.usec(st.command) - before.usec(st.command)
				took[st.name] = append(took[st.name], time.Duration(usec*1000/stepBatch))
			}
		}
	}
	return took, nil
}

// likeness names the types in a reply, which differ between a script's outcomes. No step here gets
// the reply 0, with which scripts refuse.
func likeness(reply any) string {
	if reply == int64(0) {
		return "0"
	}
	list, ok := reply.([]any)
	if !ok {
		return fmt.Sprintf("%T", reply)
	}
	types := make([]string, len(list))
	for i, v := range list {
		types[i] = fmt.Sprintf("%T", v)
	}
	return fmt.Sprint(types)
}
