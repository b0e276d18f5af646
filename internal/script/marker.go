package script

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/facts"
	"github.com/quorumlock/redlock/internal/wire"
	"github.com/redis/go-redis/v9"
)

const (
	// FenceSuffix is what the key of a lock's counter has after that of the lock, to clients
	// from before there was a table (counters.lua). BelowSuffix is that of the counter of
	// what lies below it.
	FenceSuffix = ":fence"
	BelowSuffix = ":below"

	// SlotInfix is between a lock's key and the number of a slot, from 1.
	SlotInfix = ":slot:"

	// QueueSuffix is what the key of a lock's queue has after it, WakeChannel what the
	// channel begins with over which a process is told that it is its turn.
	QueueSuffix = ":queue"
	WakeChannel = "redlock:wake:"

	// ProbeKey is for probe.lua. It never is there.
	ProbeKey = "redlock:probe"

	// Marker is the key of a node's marker, whatever prefix the locks have: all who
	// use a node share it. OldMarker is that of clients from before there was a table: where
	// it is, they are about.
	Marker    = "redlock:marker"
	OldMarker = "redlock:node"
)

// Lasting reports whether a key is one that stays when all locks are gone: a node's
// marker, its table of counters, those of older clients, or for a minute a lock's queue.
func Lasting(key string) bool {
	return Reserved(key) != "" || strings.HasSuffix(key, FenceSuffix) || strings.HasSuffix(key, BelowSuffix) || strings.HasSuffix(key, QueueSuffix)
}

// Settled is the marker of a server process that has been there for long.
func Settled(runID string, now time.Time) string {
	long := now.AddDate(-10, 0, 0).UnixMilli()
	return wire.Marker{RunID: runID, Born: long, Writer: long}.String()
}

// Settle gives a server the marker of one that has been there for long, for those
// who have just started it, and know that it cannot have forgotten anything.
func Settle(ctx context.Context, client *redis.Client) error {
	info, err := client.Info(ctx, "server").Result()
	if err != nil {
		return err
	}
	about := make(facts.Facts)
	about.Add(info)
	id := about["run_id"]
	if id == "" {
		return fmt.Errorf("INFO server has no run_id: %q", info)
	}
	now, err := client.Time(ctx).Result()
	if err != nil {
		return err
	}
	return client.Set(ctx, Marker, Settled(id, now), 0).Err()
}
