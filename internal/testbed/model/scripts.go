package model

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
	"github.com/redis/go-redis/v9"
)

// do carries out a call as its script of internal/script does, and returns what the node sends: a reply or an error.
func (n *store) do(c *Call) (any, error) {
	if err := n.refusal(c.Keys); err != nil {
		return nil, err
	}
	if c.Op > wire.Set {
		return n.compare(c)
	}
	if c.Op != wire.Set && c.Op != wire.Wake && c.Op != wire.Break && c.Op != wire.Choose && c.Op != wire.Merge && !n.scripts[wire.RunID(c.Mark)] && (c.Op == wire.Acquire || len(n.scripts) == 0) {
		return nil, noScript
	}
	switch c.Op {
	case wire.Acquire:
		return n.acquire(c)
	case wire.Raise:
		return n.raise(c)
	case wire.Extend:
		return n.extend(c)
	case wire.Leave:
		return n.leave(c)
	case wire.Inspect:
		return n.inspect(c)
	case wire.Wake: // sent whole, so it needs no loaded script
		n.wake(c.Keys[0], wire.ModeX, 0)
		return int64(0), nil
	case wire.Break:
		return n.breaks(c)
	case wire.Choose:
		return n.choose(c)
	case wire.Merge:
		return n.merge(c)
	case wire.Set:
		return n.setNX(c)
	}
	return n.giveBack(c)
}

// setNX carries out SET NX PX: the reply is "OK", or the error redis.Nil if the key is there.
func (n *store) setNX(c *Call) (any, error) {
	_, there := n.lookup(c.Keys[0])
	switch {
	case n.full:
		return nil, full
	case n.readOnly:
		return nil, readOnly
	case there:
		return nil, redis.Nil
	}
	n.keys[c.Keys[0]] = entry{token: c.Token, expires: n.now() + c.TTL}
	return "OK", nil
}

// writable returns the error of a script that has something to write, since the node is full or read-only; nil: it may.
func (n *store) writable() error {
	switch {
	case n.full:
		return full
	case n.readOnly:
		return readOnly
	}
	return nil
}

// A holding is what a node finds at a key for a token that wants to hold it: the token that conflicts (there is none if
// there is false), and for how much longer it does; or that this token holds the key already (mine).
type holding struct {
	there bool
	who   string
	rest  time.Duration
	mine  bool
}

func (h holding) list() []any { return []any{h.rest.Milliseconds(), h.who} }

// holder looks for a token that conflicts with this token's holding the key in a mode. An error: the key is no lock.
func (n *store) holder(key string, mode wire.Mode, token string) (holding, error) {
	e, there := n.lookup(key)
	switch {
	case !there:
		return holding{}, nil
	case e.foreign:
		return holding{}, wrongType
	case e.set == nil:
		return holding{true, e.token, e.expires - n.now(), e.token == token}, nil
	}
	if m := e.set[token]; wire.IsSet(mode) && m.mode == mode && m.until >= n.now() {
		return holding{true, token, 0, true}, nil
	}
	for _, other := range wire.Conflicting[mode][1:] {
		var last holding
		for token, m := range e.set {
			left := m.until - n.now()
			if m.mode == wire.Mode(other) && left >= 0 && cmp.Or(cmp.Compare(left, last.rest), cmp.Compare(token, last.who)) > 0 {
				last = holding{true, token, left, false}
			}
		}
		if last.there {
			return last, nil
		}
	}
	return holding{}, nil
}

// hold makes a token a holder of a key, in a mode, from now on for ttl. The caller has made sure that none conflicts.
func (n *store) hold(key string, mode wire.Mode, token string, ttl time.Duration) {
	until := n.now() + ttl
	if !wire.IsSet(mode) {
		n.keys[key] = entry{token: token, expires: until}
		return
	}
	e, _ := n.lookup(key)
	if e.set == nil {
		e.set = make(map[string]mark)
	}
	for token, m := range e.set {
		if m.mode == mode && m.until < n.now() {
			delete(e.set, token)
		}
	}
	e.set[token] = mark{mode, until}
	e.expires = max(e.expires, until)
	n.keys[key] = e
}

// drop removes a token from a key that it holds, and the key if no other token is left.
func (n *store) drop(key, token string) {
	e := n.keys[key]
	if delete(e.set, token); len(e.set) == 0 {
		delete(n.keys, key)
	}
}

// counter returns the name of the counter, in counts, for the fence of a lock that holds a key in this mode.
func counter(key string, mode wire.Mode) string {
	if wire.IsIntention(mode) {
		return below(key)
	}
	return fence(key)
}

// fence returns the name of the counter for locks on a key, and below of the one for locks on something below the key.
func fence(key string) string { return script.Fences + " " + *script.Bucket(key) }
func below(key string) string { return script.Belows + " " + *script.Bucket(key) }

// clamp is how far from its time a node accepts a proposed fence, in microseconds.
const clamp = int64(wire.Clamp / time.Microsecond)

func (n *store) acquire(c *Call) (any, error) {
	now := n.micros()
	if c.Latest > 0 && now > c.Latest {
		return []any{now, n.marker}, nil
	}
	mine, held, err := n.refused(c, now)
	if held != nil || err != nil {
		return held, err
	}
	number, least := n.numbers(c, now)
	switch {
	case mine == len(c.Keys) && least == 0:
		return []any{"", now}, nil // it has lost its counters
	case mine == len(c.Keys):
		return []any{least, now}, nil
	case c.Mark != "" && c.Mark != n.marker:
		return []any{n.marker, now}, nil
	}
	for i, key := range c.Keys {
		if c.Modes[i] == wire.ModeSlot {
			continue
		}
		if other, rest := n.queue(key).Admits(now, c.Ticket, c.Waiter, c.Modes[i]); other != nil {
			if err := n.enter(c); err != nil {
				return nil, err
			}
			return []any{rest, other.Waiter, now, int64(0)}, nil
		}
	}
	if err := n.writable(); err != nil {
		return nil, err
	}
	for i, key := range c.Keys {
		n.count(counter(key, c.Modes[i]), number)
	}
	for i, key := range c.Keys {
		n.hold(key, c.Modes[i], c.Token, c.TTL)
		if c.Ticket > 0 && n.queue(key).Leave(c.Waiter, c.Ticket) {
			if next := n.queue(key).Follows(now, c.Modes[i]); next != nil {
				n.publish(next.Waiter, next.Waiter)
			}
		}
	}
	if c.Slots > 0 {
		key := c.Keys[len(c.Keys)-2]
		if slot := n.another(key, c.Slots); slot > 0 {
			n.wake(key, wire.ModeSlots, int(slot))
		}
	}
	if number == c.Fence {
		return now, nil
	}
	return []any{number, now}, nil
}

// refused returns the reply to an acquire if another token holds a key, and puts the call's waiter into the queues;
// else reply is nil, and mine is how many of the keys this token holds already. now is the node's time in microseconds.
func (n *store) refused(c *Call, now int64) (mine int, reply []any, _ error) {
	for i, key := range c.Keys {
		h, err := n.holder(key, c.Modes[i], c.Token)
		switch {
		case err != nil:
			return 0, nil, err
		case h.mine:
			mine++
		case h.there:
			if err := n.enter(c); err != nil {
				return 0, nil, err
			}
			if c.Modes[i] == wire.ModeSlot {
				return 0, append(h.list(), now, int64(0), n.another(c.Keys[i-1], c.Slots)), nil
			}
			return 0, append(h.list(), now), nil
		}
	}
	return mine, nil, nil
}

// numbers returns the fence of a grant at now, the node's time in microseconds, and least, the smallest number in the
// counters in which a grant stores it; 0: the node has lost one of them. It changes nothing.
func (n *store) numbers(c *Call, now int64) (number, least int64) {
	count, least, alone := int64(0), int64(math.MaxInt64), false
	for i, key := range c.Keys {
		alone = alone || !wire.IsSet(c.Modes[i])
		count = max(count, n.counts[fence(key)])
		if !wire.IsIntention(c.Modes[i]) {
			count = max(count, n.counts[below(key)])
		}
		least = min(least, n.counts[counter(key, c.Modes[i])])
	}
	number = max(min(c.Fence, now+clamp), count, 1)
	if alone {
		number = max(min(max(c.Fence, now-clamp), now+clamp), count+1)
	}
	return number, least
}

// count raises a counter to a number, if that is larger. counter and below return its name.
func (n *store) count(name string, number int64) {
	n.counts[name] = max(n.counts[name], number)
}

// another returns a free slot of the semaphore with this key and number of slots, from 1; 0: none is free.
func (n *store) another(key string, slots int) int64 {
	for i := range slots {
		e, there := n.lookup(key + script.SlotInfix + fmt.Sprint(i+1))
		if !there || e.foreign || e.set != nil { // to MGET, whatever is no string is nothing
			return int64(i + 1)
		}
	}
	return 0
}

func (n *store) raise(c *Call) (any, error) {
	for i, key := range c.Keys {
		h, err := n.holder(key, c.Modes[i], c.Token)
		if err != nil {
			return nil, err
		} else if !h.mine {
			return int64(0), nil
		}
	}
	var behind []string
	for i, key := range c.Keys {
		name := counter(key, c.Modes[i])
		ahead := n.counts[name] > c.Fence
		if n.counts[name] == 0 || ahead && !wire.IsSet(c.Modes[i]) {
			return int64(0), nil
		}
		if !ahead {
			behind = append(behind, name)
		}
	}
	if len(behind) > 0 {
		if err := n.writable(); err != nil {
			return nil, err
		}
	}
	for _, name := range behind {
		n.count(name, c.Fence)
	}
	return int64(1), nil
}

func (n *store) breaks(c *Call) (any, error) {
	err := n.writable()
	if err == nil {
		n.keys[script.Broken+c.Token] = entry{token: "1", expires: n.now() + c.Broken}
	}
	said, failed := n.giveBack(c)
	if err != nil {
		return nil, err
	}
	return said, failed
}

// isBroken reports whether the node has noted that an operator has broken the token's lock.
func (n *store) isBroken(token string) bool {
	_, noted := n.lookup(script.Broken + token)
	return noted
}

func (n *store) extend(c *Call) (any, error) {
	if n.isBroken(c.Token) {
		return int64(0), nil
	}
	for i, key := range c.Keys {
		h, err := n.holder(key, c.Modes[i], c.Token)
		switch {
		case err != nil:
			return nil, err
		case h.mine:
		case !h.there:
			return int64(0), nil
		default:
			return h.list(), nil
		}
	}
	if n.readOnly {
		return nil, readOnly
	}
	for i, key := range c.Keys {
		n.hold(key, c.Modes[i], c.Token, c.TTL)
	}
	return n.micros(), nil
}

// giveBack deletes the keys that the call's token holds, puts the waiter of a yield back into the queue, and calls the
// waiters that are next. The reply is that of release.lua and yield.lua.
func (n *store) giveBack(c *Call) (any, error) {
	var dropped []int
	var other holding
	var failed error
	for i, key := range c.Keys {
		h, err := n.holder(key, c.Modes[i], c.Token)
		m, marked := n.keys[key].set[c.Token] // perhaps its time is over
		switch {
		case err != nil:
			failed = err
		case h.mine && n.readOnly, marked && n.readOnly:
			return nil, readOnly
		case h.mine, marked && m.mode == c.Modes[i]:
			n.drop(key, c.Token)
			dropped = append(dropped, i)
		case h.there:
			other, failed = h, nil
		}
	}
	if c.Op == wire.Yield && len(dropped) > 0 && n.micros() <= c.Latest {
		_ = n.enter(c) // no error: the node takes writes
	}
	for _, i := range dropped {
		n.wake(c.Keys[i], c.Modes[i], c.Slot)
	}
	switch {
	case len(dropped) == len(c.Keys):
		return int64(1), nil
	case failed != nil:
		return nil, failed
	case other.there:
		return other.list(), nil
	}
	return int64(0), nil
}

func (n *store) inspect(c *Call) (any, error) {
	key := c.Keys[0]
	e, there := n.lookup(key)
	if there && e.foreign {
		return nil, wrongType
	}
	pttl, number, marker := int64(-2), "", ""
	if there {
		pttl = (e.expires - n.now()).Milliseconds()
	}
	if last := n.counts[fence(key)]; last > 0 {
		number = fmt.Sprint(last)
	}
	if c.Mark != "" {
		marker = n.marker
	}
	waiting, others := []any{}, []any{}
	for _, e := range *n.queue(key) {
		waiting = append(waiting, e.String(), fmt.Sprint(e.Ticket))
	}
	score := func(token string) string {
		return wire.Score(e.set[token].mode, n.start.Add(e.set[token].until).UnixMilli())
	}
	for _, token := range slices.SortedFunc(maps.Keys(e.set), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(score(a)), len(score(b))), cmp.Compare(score(a), score(b)), cmp.Compare(a, b)) // as numbers
	}) {
		others = append(others, token, score(token))
	}
	return []any{e.token, pttl, number, marker, n.micros(), waiting, others}, nil
}
