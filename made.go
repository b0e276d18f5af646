package redlock

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// errNoLocker and errNoLock are the errors of methods of values that no function of this package has made. A
// deferred Release of a lock that was not acquired is the usual case.
var (
	errNoLocker = errors.New("redlock: the Locker is nil, or was not made by New or Connect")
	errNoLock   = errors.New("redlock: the Lock is nil, or was not acquired: look at the error of the call that should have acquired it")
)

// made returns an error for a Locker that is nil or zero.
func (lk *Locker) made() error {
	if lk == nil || lk.lanes == nil {
		return errNoLocker
	}
	return nil
}

// acquired reports whether the Lock is neither nil nor zero.
func (l *Lock) acquired() bool { return l != nil && l.locker != nil }

// manyLockers is how many Lockers may be open in a process before a Warning. A program has one for each set of
// nodes, as a rule.
const manyLockers = 100

var (
	openLockers atomic.Int64
	toldLockers atomic.Bool // of too many of them, once in a process
)

// counts adds an open Locker, and warns if a program makes Lockers that it never closes.
func (lk *Locker) counts() {
	if n := openLockers.Add(1); n >= manyLockers && toldLockers.CompareAndSwap(false, true) {
		lk.opts.told.warning(fmt.Errorf("redlock: this process has %d open Lockers, each with its own connections and goroutines: make one Locker for the whole program, and not one for each request or lock; Close those that are no longer used", n))
	}
}
