package redlock

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/replace"
	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/wire"
)

// Options configure a Locker. Nil, or a zero field, means the default. [New] and [Connect] check them as a set and
// return an error that names each field with a bad value.
type Options struct {
	// TTL is how long a lock lasts unless it is extended: whole milliseconds, at most a year. Default 10s.
	TTL time.Duration

	// MaxTTL is the longest TTL that a lock of a new set may have: the first program that locks on new nodes writes it
	// there. From then on the set's own counts (Members), whatever this one is: a lock with a longer TTL is an error.
	// Every quarantine is longer than the set's MaxTTL, so a long one makes nodes wait long for their vote after a
	// restart. A lock that is held for long is renewed, and needs none. [Locker.Change] changes it for all programs, and
	// so does "redlock members set max-ttl". Default 10s, or TTL if that is longer.
	MaxTTL time.Duration

	// Prefix comes before the name in the key of every lock. Default none, so that the key is the name, as in other
	// Redlock clients. Prefix and name together have at most MaxName bytes. A key must not be one that the library uses
	// for something else: it must not end in :queue, or :slot: and a number, and must not be redlock:marker, redlock:set,
	// redlock:choice, redlock:fence or redlock:below.
	Prefix string

	// Separator makes names paths, such as "project/A" with "/", and locks hierarchical: a lock on a path includes
	// everything below it. A path has at most MaxDepth parts. The set of the nodes has one separator (Members), and
	// another one is an error. Default that of the set; of a new set none: names are not divided.
	Separator string

	// Owner is the name under which others see this process: in the tokens of its locks, in queues, and in errors
	// ([Identity]). At most MaxOwner bytes. Default the host's name and the process's id.
	Owner string

	// Hooks are called when something happens that an operator may want to know. Default none.
	Hooks *Hooks

	// Clock tells the time. It must not call into the Locker. Default the system's clock.
	Clock Clock

	// Expert options. The defaults follow from TTL and MaxTTL, and are checked with them as a set. They are for programs
	// that know their network and their clocks better than that.

	// NodeTimeout is the longest wait for one node in one round. So it bounds TryAcquire, Extend and Release where too few
	// nodes answer. A node that has been silent for this long gets no new requests until it answers. Default TTL/10, at
	// least 50ms and at most 500ms.
	NodeTimeout time.Duration

	// Quorum is how many of the N members of the set must grant a lock. The set has one (Members), and another one is an
	// error. Default that of the set; of a new set, and least, N/2+1. A larger quorum keeps exclusion while 2·Quorum-N-1
	// nodes lose their data at once, and costs availability: no more than N-Quorum nodes may fail.
	Quorum int

	// Drift is subtracted from every lock's validity, since a node's clock may run faster than this process's. Default
	// TTL/100 + 2ms, with each lock's own TTL.
	Drift time.Duration

	// Quarantine is how long a node has no vote after it may have forgotten what it granted: it is new, was restarted,
	// lost its data, or its clock was set. Default MaxTTL plus Drift, at least 2s. Less than the MaxTTL that is given, or
	// than TTL, plus Drift is an error. It lasts longer where the set has a longer MaxTTL.
	//
	// New nodes are in quarantine, too: a client cannot tell them from nodes that have all been emptied. So the first lock
	// on new nodes waits for this long, unless [Locker.WaitReady] has waited before.
	//
	// A negative value turns the quarantine off: a node that has forgotten votes at once, as with other Redlock clients,
	// and MaxTTL bounds this program's locks.
	Quarantine time.Duration

	// MaxNodeSkew is how far a node's clock may be from the median of the nodes' clocks. A node that is further off has no
	// vote. Nor has a grant whose fence is ahead of the median by more than MaxNodeSkew and a second: a node keeps such
	// numbers after its clock has been corrected. It must be the same for all clients.
	//
	// Default (Quarantine - 1.5s)/2, at least 250ms and at most 10s. More than (Quarantine - 1.5s)/2 is an error: fences
	// could go back when nodes lose their data. A negative value turns the check off. A clock that is set while this
	// process is connected is noticed without it (Hooks.ClockStep).
	MaxNodeSkew time.Duration

	parts *replace.Parts // in tests
}

func init() {
	replace.In = func(options any, parts replace.Parts) { options.(*Options).parts = &parts }
}

// settings are the options with the defaults filled in, and with what the set's description says. They never change:
// when the description does, the Locker replaces them (with).
type settings struct {
	Options
	callbacks *callbacks    // the Hooks
	label     string        // the Owner, as tokens have it
	wants     common        // what the program has set itself, without defaults
	most      time.Duration // the longest TTL of a lock; 0: not known, since no description of the set is
}

// common are the options that all programs of a set must have in common. Zero: the program has not set it.
type common struct {
	quorum    int
	separator string
	maxTTL    time.Duration
}

// String shows the options that are not zero.
func (o Options) String() string {
	var set []string
	add := func(name string, isSet bool, value any) {
		if isSet {
			set = append(set, fmt.Sprintf("%s: %v", name, value))
		}
	}
	add("TTL", o.TTL != 0, o.TTL)
	add("MaxTTL", o.MaxTTL != 0, o.MaxTTL)
	add("Prefix", o.Prefix != "", strconv.Quote(o.Prefix))
	add("Separator", o.Separator != "", strconv.Quote(o.Separator))
	add("Owner", o.Owner != "", strconv.Quote(o.Owner))
	add("Hooks", o.Hooks != nil, "set")
	add("Clock", o.Clock != nil, "set")
	add("NodeTimeout", o.NodeTimeout != 0, o.NodeTimeout)
	add("Quorum", o.Quorum != 0, o.Quorum)
	add("Drift", o.Drift != 0, o.Drift)
	add("Quarantine", o.Quarantine != 0, o.Quarantine)
	add("MaxNodeSkew", o.MaxNodeSkew != 0, o.MaxNodeSkew)
	return "redlock.Options{" + strings.Join(set, ", ") + "}"
}

// withDefaults returns a copy of the options (o may be nil), with defaults for n nodes, and an error if there are bad ones.
func (o *Options) withDefaults(n int) (*settings, error) {
	opts := new(settings)
	if o != nil {
		opts.Options = *o
	}
	opts.wants = common{opts.Quorum, opts.Separator, opts.MaxTTL}
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf("redlock: Options."+format, args...)) }
	opts.checkTTLs(refuse)
	opts.checkQuarantine(refuse)
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
		opts.Owner = wire.DefaultOwner()
	}
	opts.label = wire.Label(opts.Owner)
	hooks := new(Hooks)
	if opts.Hooks != nil {
		*hooks = *opts.Hooks
	}
	if hooks.Trace != nil {
		trace := *hooks.Trace
		hooks.Trace = &trace
	}
	opts.Hooks, opts.callbacks = hooks, newCallbacks(hooks)
	if opts.Clock == nil {
		opts.Clock = systemClock{}
	}
	var parts replace.Parts
	if opts.parts != nil {
		parts = *opts.parts
	}
	if parts.Host == nil {
		parts.Host = sim.Chance{}
	}
	opts.parts = &parts
	return opts, errors.Join(errs...)
}

// checkTTLs sets the defaults of TTL, MaxTTL and NodeTimeout, and calls refuse for each bad value of these and of Drift.
func (opts *settings) checkTTLs(refuse func(format string, args ...any)) {
	if opts.TTL == 0 {
		opts.TTL = 10 * time.Second
	}
	if opts.MaxTTL == 0 {
		opts.MaxTTL = max(opts.TTL, 10*time.Second)
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
}

// checkQuarantine sets the defaults of Quarantine (for how long a node that may have forgotten locks has no vote) and
// MaxNodeSkew, after checkTTLs, and calls refuse for each bad value.
func (opts *settings) checkQuarantine(refuse func(format string, args ...any)) {
	what, most := "MaxTTL", opts.wants.maxTTL
	if most == 0 {
		what, most = "TTL", opts.TTL
	}
	switch {
	case opts.Quarantine == 0:
		opts.Quarantine = max(opts.MaxTTL+opts.drift(opts.MaxTTL), 2*time.Second)
	case opts.Quarantine > 0 && opts.Quarantine < most+opts.drift(most):
		refuse("Quarantine %v is less than %s %v and Drift %v: locks may be forgotten that are still held; negative turns it off", opts.Quarantine, what, most, opts.drift(most))
	}
	if opts.Quarantine < 0 {
		opts.most = opts.MaxTTL
	}
	switch room := (opts.Quarantine - 3*wire.Clamp) / 2; {
	case opts.MaxNodeSkew == 0 && opts.Quarantine < 0: // no fence must survive a loss of data
		opts.MaxNodeSkew = 10 * time.Second
	case opts.MaxNodeSkew == 0:
		opts.MaxNodeSkew = max(min(room, 10*time.Second), 250*time.Millisecond)
	case opts.MaxNodeSkew > max(room, 250*time.Millisecond) && opts.Quarantine > 0:
		refuse("MaxNodeSkew %v is more than the Quarantine %v leaves room for, which is %v: fences may go back when nodes lose their data; negative turns it off", opts.MaxNodeSkew, opts.Quarantine, max(room, 250*time.Millisecond))
	}
}

// with returns a copy of o with d's Separator and MaxTTL (most). The error: the program set another Quorum or Separator.
func (o *settings) with(d *wire.Description) (*settings, error) {
	if err := o.rejects(d); err != nil {
		return nil, err
	}
	then := *o
	then.most, then.Separator = wire.Milliseconds(d.MaxTTL), d.Separator
	return &then, nil
}

// rejects returns why a program with these options cannot use a set with the description d; nil: it can.
func (o *settings) rejects(d *wire.Description) error {
	var errs []error
	refuse := func(what, set, ours, change string) {
		errs = append(errs, fmt.Errorf("redlock: Options.%s is %s, and that of the set is %s: all its programs must have the same, whatever their Prefix; leave it out, give this program servers or a database of its own, or change the set with redlock members set %s", what, ours, set, change))
	}
	if o.wants.quorum != 0 && o.wants.quorum != d.Needs() {
		refuse("Quorum", strconv.Itoa(d.Needs()), strconv.Itoa(o.wants.quorum), "quorum "+strconv.Itoa(o.wants.quorum))
	}
	if o.wants.separator != "" && o.wants.separator != d.Separator {
		refuse("Separator", strconv.Quote(d.Separator), strconv.Quote(o.wants.separator), "separator "+o.wants.separator)
	}
	return errors.Join(errs...)
}

// drift is what is subtracted from the validity of a lock with this TTL.
func (o *settings) drift(ttl time.Duration) time.Duration {
	if o.Drift > 0 {
		return o.Drift
	}
	return defaultDrift(ttl)
}

// lookEvery is how often a process looks for locks that ended while it was suspended, when timers stood still (renew).
func (o *settings) lookEvery() time.Duration {
	return min(max(o.TTL/10, 50*time.Millisecond), 500*time.Millisecond)
}

// longestTTL is longer than anybody waits for a lock of a process that died. A deadline in milliseconds has thirteen
// digits until the year 2286; the sets of kinds.lua have no room for more.
const longestTTL = 365 * 24 * time.Hour

// notATTL returns why d can be no TTL; "": it can. Redis counts milliseconds and would cut off anything finer.
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

// Limits of a lock. More is an error before anything is sent: a node runs one script at a time, and with MaxKeys keys a
// script takes about a millisecond.
const (
	MaxName  = 1024 // bytes of a name, with Options.Prefix
	MaxDepth = 32   // parts of a path: each folder is a key of its own, which all locks below it write to
	MaxKeys  = 256  // keys of one lock: the names of Also, and the folders above them
	MaxOwner = 256  // bytes of Options.Owner, which is part of each token and each entry of a queue
)

// clipped quotes a text, or its beginning, so that errors stay short.
func clipped(s string) string {
	if len(s) <= 100 {
		return strconv.Quote(s)
	}
	return strings.TrimSuffix(strconv.Quote(s[:20]), `"`) + `…"`
}

// Members says which nodes a set has, and what they have agreed on.
type Members struct {
	Set   string   // names the set
	Epoch int64    // counts the changes of the set, from 1; 0: it has no description yet
	Nodes []string // their addresses

	Quorum    int           // of the nodes, how many must grant a lock
	Separator string        // see Options
	MaxTTL    time.Duration // the longest TTL of a lock

	// LongerTTL is the longer of two MaxTTLs while a change from one to the other is under way: MaxTTL is the shorter one,
	// and quarantines go by this one. 0: no change is under way.
	LongerTTL time.Duration

	Since time.Time // when the change to this was proposed, by the clock of the process that proposed it
}

func described(d *wire.Description) Members {
	return Members{
		Set: d.Set, Epoch: d.Epoch, Nodes: slices.Clone(d.Members), Quorum: d.Needs(),
		Separator: d.Separator, MaxTTL: wire.Milliseconds(d.MaxTTL), LongerTTL: wire.Milliseconds(d.Other), Since: time.UnixMilli(d.Since),
	}
}
