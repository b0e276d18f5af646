// Package record has the verbs that record what happens to locks, and explain it afterwards.
package record

import (
	"context"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/flags"
	"github.com/quorumlock/redlock/cmd/redlock/internal/peek"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
	"github.com/quorumlock/redlock/internal/recording"
)

// recordConfig has the flags of redlock record.
type recordConfig struct {
	reach.Flags
	file  string
	every time.Duration
	most  int64 // bytes
}

const (
	usualRecord = 64 << 20
	leastRecord = 64 << 10
)

// parseRecord reads the arguments of redlock record.
func parseRecord(args []string) (*recordConfig, error) {
	cfg := &recordConfig{Flags: reach.Defaults, every: recording.Every, most: usualRecord}
	f := flags.New("record")
	f.SetInterspersed(true)
	cfg.AddNodes(f)
	reach.AddEvery(f, &cfg.every)
	f.Value("max-size", "", func(value string) (err error) {
		cfg.most, err = bytesOf("--max-size", value)
		return err
	})
	rest, err := f.Parse(args)
	switch {
	case err != nil:
		return nil, err
	case len(rest) != 1 || rest[0] == "":
		return nil, exit.Fail(exit.Usage, "for example: redlock record /var/log/redlock.record", "record takes the name of one file, and was given %q", rest)
	}
	cfg.file = rest[0]
	return cfg, nil
}

// bytesOf parses a size: 500K, 64M, 2G.
func bytesOf(flag, value string) (int64, error) {
	number, unit := value, int64(1)
	for i, suffix := range []string{"K", "M", "G"} {
		if digits, is := strings.CutSuffix(strings.TrimSuffix(value, "iB"), suffix); is {
			number, unit = digits, 1<<(10*(i+1))
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	switch {
	case err != nil || n < 0 || n > math.MaxInt64/unit:
		return 0, exit.Fail(exit.Usage, "write 500K, 64M or 2G, say", "%s %q is not a size", flag, value)
	case n*unit < leastRecord:
		return 0, exit.Fail(exit.Usage, "the default is 64M", "%s %s is too small: the least is 64K", flag, value)
	}
	return n * unit, nil
}

// Record is redlock record: it writes down what happens to the locks of a set.
func Record(c *console.Console, _ string, args []string) (int, error) {
	cfg, err := parseRecord(args)
	if err != nil {
		return 0, err
	}
	servers, err := reach.Real(c, &cfg.Flags, "ask")
	if err != nil {
		return 0, err
	}
	return reach.Look(c, &cfg.Flags, servers, func(ctx context.Context, locker *redlock.Locker) (int, error) {
		file, err := recording.Create(cfg.file, cfg.most)
		if err != nil {
			return 0, exit.Fail(exit.CannotWrite, "", "%v", err)
		}
		rec := recording.New(file, *cfg.Prefix, cfg.every)
		followSet(ctx, c, locker, servers, rec)
		if err := rec.Close(); err != nil {
			return 0, exit.Fail(exit.CannotWrite, "what was recorded so far can be explained", "%s: %v", cfg.file, err)
		}
		return reach.Looked(ctx, nil)
	})
}

// askMembers is the pause between two checks whether the set has changed.
const askMembers = 2 * time.Second

// followSet records until ctx ends or a write fails. It follows the members of the set.
func followSet(ctx context.Context, c *console.Console, locker *redlock.Locker, servers []*redis.Options, rec *recording.Recorder) {
	tick := time.NewTicker(askMembers)
	defer tick.Stop()
	var members redlock.Members
	said, followed := false, servers
	for {
		if now := peek.Members(locker, followed); !slices.Equal(now.Nodes, members.Nodes) || now.Epoch != members.Epoch {
			members = now
			nodes := make([]recording.Node, len(now.Nodes))
			followed = make([]*redis.Options, len(now.Nodes))
			for i, name := range now.Nodes {
				followed[i] = peek.OptionsOf(servers, name)
				nodes[i] = recording.Node{Name: name, Options: followed[i]}
			}
			rec.Follow(recording.Set{Name: now.Set, Epoch: now.Epoch, Nodes: now.Nodes, Quorum: now.Quorum}, nodes)
		}
		select {
		case <-tick.C:
		case <-rec.Done():
			return
		case <-ctx.Done():
			return
		}
		if silent, mute, known := rec.Silent(); known && !said {
			said = true
			for _, name := range slices.Sorted(maps.Keys(silent)) {
				c.Note("%s cannot be recorded now: %v", name, silent[name])
			}
			if len(mute) > 0 {
				c.Note("%s %s of no changes: what happens there between two looks is not seen", strings.Join(mute, ", "), phrase.Verb(len(mute), "tells", "tell"))
				c.Note("hint: redis-cli CONFIG SET notify-keyspace-events %s has a node tell of each change; see redlock help record", recording.Notify)
			}
		}
	}
}
