package redlock

import (
	"errors"
	"fmt"
	"time"

	"github.com/quorumlock/redlock/internal/queue"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/wire"
)

// Options tune a Locker. Nil, or a zero field, means the default. They are
// checked as a set, and [New] and [Connect] refuse what cannot be honoured.
type Options struct {
	// TTL is how long a lock lasts unless it is extended. Default 10s; whole
	// milliseconds, at most a year.
	TTL time.Duration

	// NodeTimeout is the longest wait for one node in one round, so it is how
	// long an answer takes when too few nodes are well. Default a tenth of TTL,
	// at least 50ms and at most 500ms. A node that has kept silent for as long is
	// passed over until it answers again.
	NodeTimeout time.Duration

	// Drift is taken off every lock's validity: the room for the nodes' clocks
	// running faster than ours. Default TTL/100 + 2ms, of each lock's own TTL.
	Drift time.Duration

	// MaxTTL is the longest TTL that this program uses on these nodes; a longer one is
	// refused. Default TTL. It should be the same for all programs: it is announced to
	// the nodes, which keep the largest, and every quarantine goes by that. A program
	// whose MaxTTL is another gets a Warning (Hooks) with both.
	MaxTTL time.Duration

	// Quarantine is how long a node has no vote that may have forgotten what it
	// granted: it is new, was restarted, lost its data, or its clock was set. Default
	// MaxTTL and the drift, at least 2s; less than MaxTTL and the drift is refused. It is
	// longer than this where another program has announced a longer MaxTTL. Negative: off.
	// Then nodes are taken at their word, as by other Redlock clients, and this program
	// announces nothing.
	//
	// New nodes are no exception (to a client, nodes that were all emptied look the
	// same), so the first lock on them waits for as long; [Locker.WaitReady] has them
	// ready before.
	Quarantine time.Duration

	// MaxNodeSkew is how far a node's clock may be from the middle of the nodes'
	// clocks; further off, it has no vote, and neither has a grant whose number is
	// further ahead of the middle than that and a second: a node that was ahead once keeps
	// such numbers. Default half of what the quarantine leaves after 1.5s, at least 250ms
	// and at most 10s; it must be the same for all clients, and more than that half is refused,
	// since fences would go back when nodes lose their data. Negative: off. A node whose
	// clock is set while we look is found without it (Hooks.ClockStep).
	MaxNodeSkew time.Duration

	// Quorum is how many of the N nodes must grant a lock. Default, and least,
	// N/2+1. A larger one keeps its promise while 2·Quorum-N-1 nodes forget their
	// data at once, and costs availability: N-Quorum nodes may fail.
	Quorum int

	// Prefix is put before the key of every lock. Default none, so that keys equal
	// names, as other Redlock clients have them. With it, a name has at most MaxName
	// bytes, and must not be a key that the library keeps something else under: one that
	// ends in :fence, :below, :queue, or :slot: and a number; and redlock, redlock:marker,
	// redlock:node, redlock:fence and redlock:below, which all share.
	Prefix string

	// Separator, if there is one, has names be paths, "project/A" with "/": a lock on one
	// takes in all that lies below it. A path has at most MaxDepth parts. It must be the same
	// for all clients. Default none: names are names.
	Separator string

	// Owner is how others see us in a queue (Inspect): at most MaxOwner bytes. Default the
	// host's name and the process's number.
	Owner string

	// Hooks are called when something happens that an operator may want to know.
	Hooks *Hooks

	// Clock tells the time. Default the system's.
	Clock Clock

	host sim.Host // the Clock, if it is one
}

// withDefaults checks opts as a set for n nodes, and fills in what was left out.
func (o *Options) withDefaults(n int) (Options, error) {
	var opts Options
	if o != nil {
		opts = *o
	}
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf("redlock: Options."+format, args...)) }

	if opts.TTL == 0 {
		opts.TTL = 10 * time.Second
	}
	if opts.MaxTTL == 0 {
		opts.MaxTTL = opts.TTL
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"TTL", opts.TTL}, {"MaxTTL", opts.MaxTTL}} {
		if why := notATTL(d.value); why != "" {
			refuse("%s %v %s", d.name, d.value, why)
		}
	}
	if opts.MaxTTL < opts.TTL {
		refuse("MaxTTL %v is less than TTL %v", opts.MaxTTL, opts.TTL)
	}
	if opts.Drift < 0 {
		refuse("Drift %v is negative", opts.Drift)
	}
	if drift := opts.drift(opts.TTL); drift >= opts.TTL {
		refuse("TTL %v leaves nothing after Drift %v", opts.TTL, drift)
	}
	switch {
	case opts.NodeTimeout < 0:
		refuse("NodeTimeout %v is negative", opts.NodeTimeout)
	case opts.NodeTimeout == 0:
		opts.NodeTimeout = defaultNodeTimeout(opts.TTL)
	case opts.NodeTimeout >= opts.TTL-opts.drift(opts.TTL):
		refuse("NodeTimeout %v leaves nothing of TTL %v after Drift %v", opts.NodeTimeout, opts.TTL, opts.drift(opts.TTL))
	}
	switch least := opts.MaxTTL + opts.drift(opts.MaxTTL); {
	case opts.Quarantine == 0:
		opts.Quarantine = max(least, 2*time.Second)
	case opts.Quarantine > 0 && opts.Quarantine < least:
		refuse("Quarantine %v is less than MaxTTL %v and Drift %v: locks may be forgotten that are still held; negative turns it off", opts.Quarantine, opts.MaxTTL, opts.drift(opts.MaxTTL))
	}
	switch room := (opts.Quarantine - 3*wire.Clamp) / 2; {
	case opts.MaxNodeSkew == 0 && opts.Quarantine < 0: // nothing is asked of nodes that lose their data
		opts.MaxNodeSkew = 10 * time.Second
	case opts.MaxNodeSkew == 0:
		opts.MaxNodeSkew = max(min(room, 10*time.Second), 250*time.Millisecond)
	case opts.MaxNodeSkew > max(room, 250*time.Millisecond) && opts.Quarantine > 0:
		refuse("MaxNodeSkew %v is more than the Quarantine %v leaves room for, which is %v: fences may go back when nodes lose their data; negative turns it off", opts.MaxNodeSkew, opts.Quarantine, max(room, 250*time.Millisecond))
	}
	switch {
	case opts.Quorum == 0:
		opts.Quorum = majority(n)
	case opts.Quorum < majority(n):
		refuse("Quorum %d of %d nodes is no majority: two locks could be held at once; the least is %d", opts.Quorum, n, majority(n))
	case opts.Quorum > n:
		refuse("Quorum %d is more than the %d nodes", opts.Quorum, n)
	}
	if len(opts.Prefix) >= MaxName {
		refuse("Prefix %s is %d bytes long: the limit is %d, since a name comes after it, and a key has %d at most", clipped(opts.Prefix), len(opts.Prefix), MaxName-1, MaxName)
	}
	if len(opts.Owner) > MaxOwner {
		refuse("Owner %s is %d bytes long: the limit is %d", clipped(opts.Owner), len(opts.Owner), MaxOwner)
	}
	if opts.Owner == "" {
		opts.Owner = queue.Owner()
	}
	if opts.Hooks == nil {
		opts.Hooks = new(Hooks)
	}
	if opts.Clock == nil {
		opts.Clock = systemClock{}
	}
	opts.host = sim.Chance{}
	if h, ok := opts.Clock.(sim.Host); ok {
		opts.host = h
	}
	return opts, errors.Join(errs...)
}

// drift is what is taken off the validity of a lock with this TTL.
func (o *Options) drift(ttl time.Duration) time.Duration {
	if o.Drift > 0 {
		return o.Drift
	}
	return defaultDrift(ttl)
}

// look is how long a host that was suspended may take, once it runs again, to end the
// contexts of locks whose validity went by meanwhile.
func (o *Options) look() time.Duration {
	return min(max(o.TTL/10, 50*time.Millisecond), 500*time.Millisecond)
}

// longestTTL is longer than anybody waits for a lock of a process that died. A deadline in
// milliseconds has thirteen digits until the year 2286, and the sets of kinds.lua have room
// for no more.
const longestTTL = 365 * 24 * time.Hour

// notATTL says why Redis could not keep a key for d, or nothing. Redis counts
// milliseconds: anything finer would be cut, in the end to a key that has no TTL.
func notATTL(d time.Duration) string {
	switch {
	case d <= 0:
		return "is not a time to live"
	case d > longestTTL:
		return fmt.Sprintf("is over %v, which is the longest there can be", longestTTL)
	case d%time.Millisecond != 0:
		return "is not a whole number of milliseconds"
	}
	return ""
}

// An AcquireOption varies one acquisition.
type AcquireOption interface{ apply(*acquisition) }

type acquireOption func(*acquisition)

func (f acquireOption) apply(a *acquisition) { f(a) }

// acquisition is what the options of one call come to.
type acquisition struct {
	name    string // as the lock is called
	ttl     time.Duration
	maxHold *time.Duration // nil: no limit
	renewed bool

	shared bool
	also   []string
	slots  *int

	// What it comes to: the key of the name; all keys, and a letter for each of how it is
	// held (internal/ways). Which slot it is to be is said by attempts.
	key  string
	keys []string
	ways string

	line string // where those wait who want the same

	ahead time.Duration // by how much its number may be ahead of the time; see concede
}

// TTL has this lock last for d instead of Options.TTL: whole milliseconds,
// at most Options.MaxTTL.
func TTL(d time.Duration) AcquireOption {
	return acquireOption(func(a *acquisition) { a.ttl = d })
}

// MaxHold ends the lock when it has been held for d in all, however often it was
// extended.
func MaxHold(d time.Duration) AcquireOption {
	return acquireOption(func(a *acquisition) { a.maxHold = &d })
}

// Renewed has the Locker renew the lock by itself, at a third of its TTL, until
// it is released or lost. It costs no goroutine; the holder learns of a loss
// from [Lock.Context], which it should work under.
func AutoRenew() AcquireOption {
	return acquireOption(func(a *acquisition) { a.renewed = true })
}

// acquisition checks what the caller asked for before anything is sent.
func (o *Options) acquisition(name string, options []AcquireOption) (*acquisition, error) {
	a := &acquisition{ttl: o.TTL}
	for _, opt := range options {
		opt.apply(a)
	}
	var err error
	if a.name, err = o.normal(name); err != nil {
		return a, fmt.Errorf("redlock: acquire: %w", err)
	}
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("redlock: acquire %q: %w", name, fmt.Errorf(format, args...))
	}
	if why := notATTL(a.ttl); why != "" {
		return a, refuse("TTL %v %s", a.ttl, why)
	}
	if a.ttl > o.MaxTTL {
		return a, refuse("TTL %v is over Options.MaxTTL %v", a.ttl, o.MaxTTL)
	}
	if drift := o.drift(a.ttl); drift >= a.ttl {
		return a, refuse("TTL %v leaves nothing after Drift %v", a.ttl, drift)
	}
	if a.maxHold != nil && *a.maxHold <= 0 {
		return a, refuse("MaxHold %v is not a time to hold it for", *a.maxHold)
	}
	if err := a.keyed(o); err != nil {
		return a, refuse("%w", err)
	}
	return a, nil
}
