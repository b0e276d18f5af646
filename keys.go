package redlock

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
)

// A lock is one or more keys, each with a lock mode. A node grants all of them or none (internal/script/kinds.lua).
// Each kind of lock is a plan of keys and modes:
//
//	Acquire("a")                   a exclusive
//	Acquire("a", Shared())         a shared
//	Acquire("a", Also("b"))        a exclusive, b exclusive
//	Acquire("a/b/c")               a and a/b intention exclusive, a/b/c exclusive
//	Acquire("a/b", Shared())       a intention shared, a/b shared
//	Acquire("a", Slots(3))         a for a slot, and that slot exclusive: a:slot:2, say
//
// Two locks exclude each other if there is a key on which their modes conflict (wire.Conflict). So a lock on a folder looks
// at one key to find whether anything below it is locked, and a lock in a folder leaves a mark on each folder above it.

// An AcquireOption changes one acquisition.
type AcquireOption interface{ apply(*acquisition) }

type acquireOption func(*acquisition)

func (f acquireOption) apply(a *acquisition) { f(a) }

// An acquisition is what one call asks for.
type acquisition struct {
	asked   string // the name as the caller wrote it
	options []AcquireOption

	name     string // normalized
	ttl      time.Duration
	maxHold  *time.Duration // nil: no limit
	minHold  *time.Duration // nil: a release deletes the keys
	patience *time.Duration // Wait; nil: until the context ends
	renewed  bool
	while    context.Context // it is renewed until this one ends; nil: until it ends itself
	byDo     bool            // Do releases it: nobody forgets to

	reentrant bool // the call may join a lock of its context that includes what it asks for

	shared bool
	also   []string
	slots  *int

	// key is that of the name. keys are all keys of the lock, and modes has the letter of each one's lock mode
	// (wire.Mode). An attempt for a slot adds the slot's number to the last key.
	key       string
	keys      []string
	modes     string
	separator string // Options.Separator, by which the keys were made
	names     string // the names of a lock on several, as its token has them

	queue string // names the local queue: calls that ask for the same share one

	shut  *shutOut  // records refusals for the queue; nil: the call does not wait
	began time.Time // when the call began
	until time.Time // the call's deadline; zero: only its context ends it
	place uintptr   // of the call in the program, for a Warning (forgotten); 0: there is to be none

	ahead time.Duration // how far its fence may be ahead of the nodes' clocks; see concede
}

// TTL sets the lock's TTL to d in the place of Options.TTL: whole milliseconds, at most the MaxTTL of the set of nodes
// ([Members]). With any other d the call fails.
func TTL(d time.Duration) AcquireOption {
	return acquireOption(func(a *acquisition) { a.ttl = d })
}

// MaxHold ends the lock when it has been held for d, however often it was extended: it counts as lost then (ErrLost). d is
// more than 0, and may be less than the TTL.
func MaxHold(d time.Duration) AcquireOption {
	return acquireOption(func(a *acquisition) { a.maxHold = &d })
}

// MinHold keeps the lock for d after it was acquired, even if it is released earlier: Release then sets the TTL to what
// is left of d and deletes nothing, and the process may end. Until then every other client finds the lock held. So
// machines that begin less than d apart do the work of one tick of a schedule once:
//
//	err := locker.Do(ctx, "nightly", work, redlock.Wait(0), redlock.MinHold(5*time.Second))
//
// d is at most the set's MaxTTL ([Members]): 10 s, unless [Options].MaxTTL or TTL said otherwise when the set was new. If
// the lock is lost, or its process dies before the release, MinHold does nothing; nor does it for a lock that was detached.
func MinHold(d time.Duration) AcquireOption {
	return acquireOption(func(a *acquisition) { a.minHold = &d })
}

// Wait bounds how long [Locker.Acquire] and [Locker.Do] wait for the lock. Without Wait they wait until their context ends,
// which with Do bounds the work, too. Wait(0) asks once, as [Locker.TryAcquire] does, which ignores Wait; less than 0 is an
// error. When the time is over, the error is ErrHeld or ErrNoQuorum, and not a context's. A time of a few round trips may be
// over before the nodes have said that the lock is held: then it is ErrNoQuorum.
func Wait(d time.Duration) AcquireOption {
	return acquireOption(func(a *acquisition) { a.patience = &d })
}

// AutoRenew makes the Locker renew the lock after every third of its TTL, until the lock is released or lost. It needs
// no goroutine. The holder should work under [Lock.Context], which ends when the lock does.
func AutoRenew() AcquireOption {
	return acquireOption(func(a *acquisition) { a.renewed = true })
}

// RenewWhile is [AutoRenew] as long as ctx lives, which may be the context of a request. When ctx ends, the Locker stops
// renewing the lock, which then lasts until [Lock.Until] unless it is released.
func RenewWhile(ctx context.Context) AcquireOption {
	return acquireOption(func(a *acquisition) { a.renewed, a.while = true, ctx })
}

// Reentrant makes the lock reentrant through its context. Let a call be under the context of a lock of the same Locker
// ([Lock.Context], or the one that [Locker.Do] passes on) that has all that the call asks for, in the same mode or
// exclusively. Then the call joins that lock: it gets the same token and fence, and nothing is sent. The lock is released
// with the last of its handles. Goroutines that share the context then do not exclude each other.
//
// Without Reentrant such a call fails at once, since it would wait for itself; its error is not ErrHeld, nor another Err of
// this package. Under any other context Reentrant changes nothing.
func Reentrant() AcquireOption {
	return acquireOption(func(a *acquisition) { a.reentrant = true })
}

// Shared makes the lock the reader's lock of a read-write lock: any number of readers may hold it at once, and nobody
// holds it exclusively meanwhile. A waiter for the exclusive lock keeps later readers out. A reader's lock cannot be
// upgraded: release it, and acquire the exclusive one.
func Shared() AcquireOption {
	return acquireOption(func(a *acquisition) { a.shared = true })
}

// Also adds other names to the lock: it holds all of them, or none. It is one lock with one token and one fence, and
// the order of the names does not matter. The names and the folders above them make at most MaxKeys keys.
func Also(names ...string) AcquireOption {
	return acquireOption(func(a *acquisition) { a.also = append(a.also, names...) })
}

// Slots makes the lock a semaphore: up to n holders at a time, each with a slot of its own, which is as safe as a lock.
// All callers should give the same n for a name; after a change to a smaller n, a holder of one of the slots beyond it
// keeps it until the release. TryAcquire asks for another slot as long as the nodes say that one is free.
func Slots(n int) AcquireOption {
	return acquireOption(func(a *acquisition) { a.slots = &n })
}

// MaxSlots is the largest n of Slots. It bounds the work of a node that looks for a free slot.
const MaxSlots = 1000

// acquisition checks a call's name and options, and plans its keys. It sends nothing.
func (o *settings) acquisition(name string, options []AcquireOption) (*acquisition, error) {
	a := &acquisition{asked: name, options: options, ttl: o.TTL}
	if err := a.apply(options); err != nil {
		return a, fmt.Errorf("redlock: acquire %q: %w", name, err)
	}
	var err error
	if a.name, err = o.normalizeName(name); err != nil {
		return a, fmt.Errorf("redlock: acquire: %w", err)
	}
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("redlock: acquire %q: %w", name, fmt.Errorf(format, args...))
	}
	if why := notATTL(a.ttl); why != "" {
		return a, refuse("TTL %v %s", a.ttl, why)
	}
	if drift := o.drift(a.ttl); drift >= a.ttl {
		return a, refuse("TTL %v leaves nothing after Drift %v", a.ttl, drift)
	}
	if a.maxHold != nil && *a.maxHold <= 0 {
		return a, refuse("MaxHold %v is not a time to hold it for", *a.maxHold)
	}
	if a.minHold != nil && (*a.minHold <= 0 || a.maxHold != nil && *a.minHold > *a.maxHold) {
		return a, refuse("MinHold %v is not a time above 0, and at most MaxHold", *a.minHold)
	}
	if a.patience != nil && *a.patience < 0 {
		return a, refuse("Wait %v is less than 0: without Wait the call waits until its context ends", *a.patience)
	}
	if err := a.plan(o); err != nil {
		return a, refuse("%w", err)
	}
	return a, nil
}

// over reports whether ttl is longer than the MaxTTL of the set; false as long as that is not known.
func (o *settings) over(ttl time.Duration) bool { return o.most > 0 && ttl > o.most }

// longest is for how long a node may keep the lock's keys without another request: the TTL, or MinHold if longer.
func (a *acquisition) longest() time.Duration {
	if a.minHold == nil {
		return a.ttl
	}
	return max(a.ttl, *a.minHold)
}

// bounds returns an error if the lock's TTL or MinHold is longer than the set allows; nil: it is not, or that is not known.
func (o *settings) bounds(a *acquisition) error {
	d, what, less := a.longest(), "TTL", "less, since a lock that is held for longer is renewed (Do, AutoRenew)"
	if d > a.ttl {
		what, less = "MinHold", "less"
	}
	switch {
	case !o.over(d):
		return nil
	case o.Quarantine < 0:
		return fmt.Errorf("redlock: acquire %q: %s %v is over Options.MaxTTL %v", a.asked, what, d, o.most)
	}
	return fmt.Errorf("redlock: acquire %q: %s is %v, and the set allows %v (its MaxTTL): ask for %s; or change it for all programs with redlock members set max-ttl %v: after a restart a node has no vote for so long", a.asked, what, d, o.most, less, d)
}

func (a *acquisition) apply(options []AcquireOption) error {
	for i, o := range options {
		if o == nil {
			return fmt.Errorf("option %d is nil", i)
		}
		o.apply(a)
	}
	return nil
}

// folders yields the folders above a name, the outermost first: "a" and "a/b" for "a/b/c".
func folders(separator, name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for at := 0; separator != ""; at += len(separator) {
			next := strings.Index(name[at:], separator)
			if next < 0 {
				return
			}
			if at += next; !yield(name[:at]) {
				return
			}
		}
	}
}

// planKeys returns the keys of a lock on names, sorted, without Options.Prefix, and in held a letter for the mode of each:
// mode for names, and its intention mode for the folders above them. A name below another of names needs no key.
func planKeys(separator string, names []string, mode wire.Mode) (keys []string, held string) {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	named := func(key string) bool {
		_, is := slices.BinarySearch(names, key)
		return is
	}
	for _, name := range names {
		above := slices.Collect(folders(separator, name))
		if !slices.ContainsFunc(above, named) {
			keys = append(append(keys, above...), name)
		}
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	letters := make([]byte, len(keys))
	for i, key := range keys {
		switch {
		case named(key):
			letters[i] = byte(mode)
		case mode == wire.ModeS:
			letters[i] = byte(wire.ModeIS)
		default:
			letters[i] = byte(wire.ModeIX)
		}
	}
	return keys, string(letters)
}

// normalizeName returns a name without a separator at the beginning or the end, or an error if no lock can have it.
func (o *settings) normalizeName(name string) (string, error) {
	if o.Separator != "" {
		was := name
		name = strings.TrimSuffix(strings.TrimPrefix(name, o.Separator), o.Separator)
		if err := o.checkLength(name); err != nil {
			return "", err
		}
		if parts := strings.Count(name, o.Separator) + 1; parts > MaxDepth {
			return "", fmt.Errorf("the path %s has %d parts: the limit is %d", clipped(was), parts, MaxDepth)
		}
		for part := range strings.SplitSeq(name, o.Separator) {
			if part == "" {
				return "", fmt.Errorf("the path %q has an empty part", was)
			}
		}
		for folder := range folders(o.Separator, name) {
			if err := o.checkName(folder); err != nil {
				return "", fmt.Errorf("the path %q: %w", was, err)
			}
		}
	}
	if err := o.checkLength(name); err != nil {
		return "", err
	}
	return name, o.checkName(name)
}

func (o *settings) checkLength(name string) error {
	n := len(o.Prefix) + len(name)
	switch {
	case n <= MaxName:
		return nil
	case o.Prefix != "":
		return fmt.Errorf("the name %s is %d bytes long with Options.Prefix %s: the limit is %d", clipped(name), n, clipped(o.Prefix), MaxName)
	}
	return fmt.Errorf("the name %s is %d bytes long: the limit is %d", clipped(name), n, MaxName)
}

// checkName returns an error if no lock can have this name: it is empty, or its key (with the prefix) has another use.
func (o *settings) checkName(name string) error {
	key, before := o.Prefix+name, ""
	if o.Prefix != "" {
		before = fmt.Sprintf(", with Options.Prefix %q before it", o.Prefix)
	}
	if name == "" {
		return errors.New("the name is empty")
	}
	if what := script.Reserved(key); what != "" {
		return fmt.Errorf("the name %q %s%s", name, what, before)
	}
	if strings.HasSuffix(key, script.QueueSuffix) {
		return fmt.Errorf("the name %q would be the key of another lock's queue: it must not end in %q%s", name, script.QueueSuffix, before)
	}
	if i := strings.LastIndex(key, script.SlotInfix); i >= 0 {
		if _, err := strconv.Atoi(key[i+len(script.SlotInfix):]); err == nil {
			return fmt.Errorf("the name %q would be the key of another lock's slot: it must not end in %q and a number%s", name, script.SlotInfix, before)
		}
	}
	return nil
}

// plan sets a's keys with their modes, and the name of its local queue, from its names and options. It returns an error for
// options that exclude each other, a bad name of Also, and too many keys.
func (a *acquisition) plan(o *settings) error {
	mode := wire.ModeX
	switch {
	case a.slots != nil && (*a.slots < 1 || *a.slots > MaxSlots):
		return fmt.Errorf("Slots %d: there can be 1 to %d", *a.slots, MaxSlots)
	case a.slots != nil && a.shared:
		return errors.New("Slots and Shared do not go together: a slot is held alone")
	case a.slots != nil && len(a.also) > 0:
		return errors.New("Slots and Also do not go together: a slot is of one name")
	case a.slots != nil:
		mode = wire.ModeSlots
	case a.shared:
		mode = wire.ModeS
	}
	names := []string{a.name}
	for _, name := range a.also {
		name, err := o.normalizeName(name)
		if err != nil {
			return fmt.Errorf("Also: %w", err)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	a.key, a.separator = o.Prefix+a.name, o.Separator
	a.names = wire.List(names)
	if len(names) == 1 && o.Separator == "" {
		a.keys, a.modes = []string{a.key}, string(mode)
	} else {
		a.keys, a.modes = planKeys(o.Separator, names, mode)
		for i := range a.keys {
			a.keys[i] = o.Prefix + a.keys[i]
		}
	}
	switch {
	case len(a.keys) <= MaxKeys:
	case o.Separator != "":
		return fmt.Errorf("Also: %d names have %d keys, with those of the folders above them: the limit is %d", len(names), len(a.keys), MaxKeys)
	default:
		return fmt.Errorf("Also: %d names have %d keys: the limit is %d", len(names), len(a.keys), MaxKeys)
	}
	// A key may have any bytes. So the name of the queue has the length of each key, and begins with a zero byte unless it
	// is a key alone (which then does not begin with one).
	if a.queue = a.key; a.modes != string(wire.ModeX) || a.key[0] == 0 {
		a.queue = "\x00" + a.modes
		for _, key := range a.keys {
			a.queue += strconv.Itoa(len(key)) + ":" + key
		}
	}
	if a.slots != nil {
		a.keys = append(a.keys, a.key+script.SlotInfix)
		a.modes += string(wire.ModeSlot)
	}
	return nil
}

// reads reports whether the call asks for no key exclusively. Its lock has no new fence, but the largest earlier one.
func (a *acquisition) reads() bool {
	return strings.IndexByte(a.modes, byte(wire.ModeX)) < 0 && strings.IndexByte(a.modes, byte(wire.ModeSlot)) < 0
}

// others is how many slots the semaphore has besides the one that an attempt asks for; 0: the lock is no semaphore.
func (a *acquisition) others() int { return int(max(0, a.most()-1)) }

func (a *acquisition) most() int64 {
	if a.slots == nil {
		return 0
	}
	return int64(*a.slots)
}

// freeSlot returns the slot that most of the refusing nodes have named as free; 0: none. err is the error of an attempt.
func freeSlot(err error) int64 {
	why := quorumError(err)
	if why == nil {
		return 0
	}
	r := why.refusal()
	return r.FreeSlot()
}

// takeSlot makes c, an attempt as the nodes see it, ask for this slot; of is how many the semaphore has. If slot is 0, the
// token decides which, so clients that do not know which slots are free do not all begin with the same one.
func takeSlot(c *lane.Claim, slot int64, of int) {
	if slot == 0 {
		hash := fnv.New32a()
		hash.Write([]byte(c.Token))
		slot = int64(hash.Sum32())%int64(of) + 1
	}
	c.Slot, c.Slots = slot, int64(of)
	c.Keys = slices.Clone(c.Keys)
	c.Keys[len(c.Keys)-1] += strconv.FormatInt(slot, 10)
}
