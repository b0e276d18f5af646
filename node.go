package redlock

import (
	"time"

	"github.com/quorumlock/redlock/internal/lane"
)

// laneConfig is what the lanes need to know of the options.
func (o *Options) laneConfig(names []string) lane.Config {
	return lane.Config{
		TTL: o.TTL, MaxTTL: o.MaxTTL, Drift: o.Drift, DriftOf: o.drift,
		NodeTimeout: o.NodeTimeout, Quarantine: o.Quarantine, MaxNodeSkew: o.MaxNodeSkew,
		Owner: o.Owner, Clock: o.Clock, Host: o.host, Events: events{o.Hooks, names},
	}
}

// events tells an operator's hooks what the lanes tell. Names are the nodes' addresses.
type events struct {
	hooks *Hooks
	names []string
}

func (e events) Down(node int, why *lane.Failure) {
	e.hooks.nodeDown(&NodeError{Node: e.names[node], Outcome: Outcome(why.Status), Err: why.Err})
}

func (e events) Up(node int, down time.Duration) { e.hooks.nodeUp(e.names[node], down) }

func (e events) Quarantined(node int, d time.Duration, why error) {
	e.hooks.quarantined(e.names[node], d, why)
}

func (e events) ClockStep(node int, by time.Duration) { e.hooks.clockStep(e.names[node], by) }

func (e events) Warning(err error) { e.hooks.warning(err) }
