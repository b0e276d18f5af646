package peek

import (
	"context"
	"crypto/tls"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/dial"
)

// Checkup is how long a node has to answer all questions.
const Checkup = 5 * time.Second

// Patience is how long a node has to answer an inspection.
const Patience = 2 * time.Second

// Client is a client of a node that gives up soon.
func Client(o *redis.Options) *redis.Client {
	hasty := *o
	hasty.MaxRetries, hasty.DialerRetries, hasty.DialTimeout, hasty.DisableIdentity = -1, 1, Checkup/2, true
	if settings := hasty.TLSConfig; settings != nil && dial.IsDefault(hasty.Dialer) { // it tells a port without TLS
		hasty.Dialer = dial.Secure(hasty.DialTimeout, func() (*tls.Config, error) { return settings, nil })
	}
	return redis.NewClient(&hasty)
}

// A Pace is how a node's time was measured.
type Pace struct {
	Fastest   time.Duration
	Clock     time.Duration // how far its clock is ahead, within half of fastest
	RoundTrip time.Duration // the usual one
}

// Measure asks a node for its time, so many times.
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

// probeName is the name of a lock that no client takes. The nodes are asked about it to learn
// about the nodes.
const probeName = "redlock:prepare"

// Status is the state of the nodes, as they report it.
func Status(ctx context.Context, locker *redlock.Locker) *redlock.Status {
	status, err := locker.Inspect(ctx, probeName)
	if err != nil {
		panic(err) // neither the name nor the Locker is at fault
	}
	return status
}
