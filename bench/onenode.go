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
	"github.com/redis/go-redis/v9"
)

// A pair is a way to lock and unlock on one node, by the commands that the library, or a client of plain
// Redlock, sends.
type pair struct {
	name    string
	lock    func(p redis.Pipeliner, name, token string)
	trailer func(p redis.Pipeliner) // after the last lock of a write; nil: none
	unlock  func(p redis.Pipeliner, name, token string)
	locked  int // the replies of a lock: the first one says whether there is one
}

const plainPair = "SET NX PX, compare-and-delete"

// node measures what one node spends on a lock, if it gets many at once.
func node(ctx context.Context, e *env) ([]*table, error) {
	client := e.fleet.watch[0]
	runID, marker, err := loadScripts(ctx, client, string(plainRelease))
	if err != nil {
		return nil, err
	}
	all := pairsOf(ctx, client, runID, marker, e.ttl)
	s := &series{rounds: map[string][]sample{}}
	for _, known := range []bool{true, false} {
		for _, p := range all {
			s.contenders = append(s.contenders, contender.Contender{Name: p.title(known)})
		}
	}
	for round := range e.rounds {
		for _, known := range []bool{true, false} {
			for _, p := range all {
				fmt.Fprintf(os.Stderr, "node: round %d of %d: %s\n", round+1, e.rounds, p.title(known))
				cpu, err := p.measure(ctx, client, known, 20*e.step)
				if err != nil {
					return nil, err
				}
				s.rounds[p.title(known)] = append(s.rounds[p.title(known)], sample{"cpu": float64(cpu)})
			}
		}
	}
	return []*table{{
		title: "node",
		text: fmt.Sprintf("The CPU that one node spends on a lock and its release (INFO cpu), which come in pipelines of %d, %d of them a round.",
			stepBatch, 20*e.step),
		head:    "commands",
		columns: []column{median("CPU/lock", "cpu", micros), over("÷ plain Redlock", "cpu", plainPair)},
		series:  s,
	}}, nil
}

func (p pair) title(known bool) string {
	if known {
		return p.name
	}
	return p.name + ", new names"
}

// pairsOf are the pairs that the server can do.
func pairsOf(ctx context.Context, client *redis.Client, runID, marker string, ttl time.Duration) []pair {
	millis := ttl.Milliseconds()
	number := newNumber()
	plainHash := redis.NewScript(string(plainRelease)).Hash()
	acquireHash := script.Acquire(runID).Hash
	set := func(p redis.Pipeliner, name, token string) { p.Do(ctx, "set", name, token, "nx", "px", millis) }
	does := func(c call) func(p redis.Pipeliner, name, token string) {
		return func(p redis.Pipeliner, name, token string) { p.Do(ctx, c(name, token)...) }
	}
	release := does(releaseCall())
	acquire := func(p redis.Pipeliner, name, token string) {
		set(p, name, token)
		p.Do(ctx, "zadd", script.Fences, "gt", "ch", number(), script.Bucket(name))
		p.Do(ctx, "get", name)
		p.Do(ctx, "exists", name+script.QueueSuffix)
	}
	trailer := func(p redis.Pipeliner) {
		p.Do(ctx, "mget", script.Marker)
		p.Do(ctx, "time")
		p.Do(ctx, "script", "exists", acquireHash)
	}
	all := []pair{
		{plainPair, set, nil, func(p redis.Pipeliner, name, token string) {
			p.Do(ctx, "evalsha", plainHash, 1, name, token)
		}, 1},
		{"acquire by script, release by script", does(acquireCall(runID, marker, "", 0, millis, number)), nil, release, 1},
		{"acquire by plain commands, release by script", acquire, trailer, release, 4},
	}
	for name, compare := range map[string][]any{"DELEX": {"delex", script.ProbeKey, "ifeq", "no token"}, "DELIFEQ": {"delifeq", script.ProbeKey, "no token"}} {
		if n, err := client.Do(ctx, compare...).Int64(); err != nil || n != 0 {
			continue
		}
		all = append(all, pair{"acquire by plain commands, release by " + name, acquire, trailer, func(p redis.Pipeliner, key, token string) {
			args := append([]any{compare[0], key}, compare[2:]...)
			args[len(args)-1] = token
			p.Do(ctx, args...)
			p.Do(ctx, "exists", key+script.QueueSuffix)
		}, 4})
	}
	return all
}

// measure locks and unlocks names, and gives what the server has spent on each.
func (p pair) measure(ctx context.Context, client *redis.Client, known bool, times int) (time.Duration, error) {
	before, err := readInfo(ctx, client)
	if err != nil {
		return 0, err
	}
	prefix := freshPrefix()
	for n := 0; n < times; n += stepBatch {
		token := sim.Chance{}.Token()
		name := func(i int) string {
			if known {
				return prefix + strconv.Itoa((n+i)%(16*stepBatch)) + nameEnd
			}
			return prefix + strconv.Itoa(n+i) + nameEnd
		}
		locked, err := client.Pipelined(ctx, func(to redis.Pipeliner) error {
			for i := range stepBatch {
				p.lock(to, name(i), token)
			}
			if p.trailer != nil {
				p.trailer(to)
			}
			return nil
		})
		if err != nil {
			return 0, fmt.Errorf("%s: %w", p.name, err)
		}
		for i := range stepBatch {
			switch got := locked[i*p.locked].(*redis.Cmd).Val().(type) {
			case string, int64:
			default:
				return 0, fmt.Errorf("%s: lock: %v", p.name, got)
			}
		}
		unlocked, err := client.Pipelined(ctx, func(to redis.Pipeliner) error {
			for i := range stepBatch {
				p.unlock(to, name(i), token)
			}
			return nil
		})
		if err != nil {
			return 0, fmt.Errorf("%s: %w", p.name, err)
		}
		if got := unlocked[0].(*redis.Cmd).Val(); got != int64(1) {
			return 0, fmt.Errorf("%s: unlock: %v, not 1", p.name, got)
		}
	}
	after, err := readInfo(ctx, client)
	if err != nil {
		return 0, err
	}
	return time.Duration((after.cpu() - before.cpu()) * float64(time.Second) / float64(times)), nil
}
