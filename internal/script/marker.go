package script

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/facts"
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

// A Mark is what a marker says; see join.lua.
type Mark struct {
	RunID        string        // of the server's process
	Born, Writer int64         // when it was written, in milliseconds: by the node's clock, and by the writer's
	Longest      time.Duration // the longest TTL that anybody has announced; 0: nobody has
	DB           string        // the number of the database; "": not known
}

// ParseMark reads a marker.
func ParseMark(text string) (m Mark, ok bool) {
	part := strings.Split(text, ":")
	if len(part) != 5 {
		return Mark{}, false
	}
	var longest int64
	var errs [3]error
	m.RunID, m.DB = part[0], part[4]
	m.Born, errs[0] = strconv.ParseInt(part[1], 10, 64)
	m.Writer, errs[1] = strconv.ParseInt(part[2], 10, 64)
	longest, errs[2] = strconv.ParseInt(part[3], 10, 64)
	m.Longest = time.Duration(min(longest, 100*365*24*3600*1000)) * time.Millisecond
	return m, errors.Join(errs[:]...) == nil
}

func (m Mark) String() string {
	return fmt.Sprintf("%s:%d:%d:%d:%s", m.RunID, m.Born, m.Writer, m.Longest.Milliseconds(), m.DB)
}

// Same reports whether a node that has shown both has kept its data in between: whatever
// its clients have announced meanwhile.
func (m Mark) Same(o Mark) bool { return m.RunID == o.RunID && m.Born == o.Born && m.DB == o.DB }

// Settled is the marker of a server process that has been there for long.
func Settled(runID string, now time.Time) string {
	long := now.AddDate(-10, 0, 0).UnixMilli()
	return Mark{RunID: runID, Born: long, Writer: long}.String()
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
