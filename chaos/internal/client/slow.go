package client

import (
	"context"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/redlocktrace"
)

// slowHooks returns hooks that sleep each time that they are called: for half of a TTL, for two, or, like a log
// whose pipe nobody reads, for longer than the run takes. There is no Trace.Start: a caller that has no lock yet
// waits for it.
func (c *Client) slowHooks() *redlock.Hooks {
	long := []time.Duration{c.Plan.TTL / 2, 2 * c.Plan.TTL, 1000 * c.Plan.TTL}[c.Number%3]
	sleep := func() { Wait(c.gone, long) }
	return &redlock.Hooks{
		Warning:          func(error) { sleep() },
		NodeDown:         func(*redlock.NodeError) { sleep() },
		NodeUp:           func(string, time.Duration) { sleep() },
		Quarantined:      func(string, time.Duration, error) { sleep() },
		Votes:            func(string) { sleep() },
		ClockStep:        func(string, time.Duration) { sleep() },
		Joined:           func(redlock.Members) { sleep() },
		Members:          func(redlock.Members) { sleep() },
		RenewalFailed:    func(*redlock.Lock, time.Duration, error) { sleep() },
		RenewalRecovered: func(*redlock.Lock, int) { sleep() },
		Lost:             func(*redlock.Lock, error) { sleep() },
		Unreleased:       func(*redlock.Lock, error) { sleep() },
		Trace: &redlocktrace.Trace{
			Wait: func(context.Context, redlocktrace.Operation) { sleep() },
			Node: func(context.Context, redlocktrace.Reply) { sleep() },
			End:  func(context.Context, redlocktrace.Operation) { sleep() },
		},
	}
}
