package peek

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/dial"
)

// Checkup bounds an examination of one node: all questions together.
const Checkup = 5 * time.Second

// Patience bounds an inspection of one node.
const Patience = 2 * time.Second

// Client returns a client that gives up soon: it never retries, dials for half of Checkup at most, and reads within bounds.
func Client(o *redis.Options) *redis.Client {
	hasty := *o
	hasty.MaxRetries, hasty.DialerRetries, hasty.DialTimeout, hasty.DisableIdentity = -1, 1, Checkup/2, true
	hasty.Protocol, hasty.Dialer = 2, dial.Bounded(&hasty)
	return redis.NewClient(&hasty)
}

// A Pace is what Measure has found out about a node's clock and round trips.
type Pace struct {
	Fastest   time.Duration
	Clock     time.Duration // how far the node's clock is ahead of ours, plus or minus half of Fastest
	RoundTrip time.Duration // the median
}

// Measure asks a node for its time so many times, and returns its round trips and how far its clock is ahead.
func Measure(ctx context.Context, rdb *redis.Client, times int) (p Pace, err error) {
	trips := make([]time.Duration, 0, times)
	for range times {
		sent := time.Now()
		at, err := rdb.Time(ctx).Result()
		trip := time.Since(sent)
		if err != nil {
			return Pace{}, err
		}
		if trips = append(trips, trip); p.Fastest == 0 || trip < p.Fastest {
			p.Fastest, p.Clock = trip, at.Sub(sent.Add(trip/2))
		}
	}
	slices.Sort(trips)
	p.RoundTrip = trips[len(trips)/2]
	return p, nil
}

// probeName is a lock that no client takes. Status inspects it to learn about the nodes, not about a lock.
const probeName = "redlock:prepare"

// Status returns the state of the nodes, as they report it to the Locker.
func Status(ctx context.Context, locker *redlock.Locker) *redlock.Status {
	status, err := locker.Inspect(ctx, probeName)
	if err != nil {
		panic(err) // neither the name nor the Locker is at fault
	}
	return status
}
