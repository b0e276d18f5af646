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

// manyLockers is how many Lockers may be open in a process before a Warning. A program has one for each set of
// nodes, as a rule.
const manyLockers = 100

var (
	openLockers atomic.Int64
	toldLockers atomic.Bool // of too many of them, once in a process
)

// countOpened counts a Locker, and warns if a program makes Lockers that it never closes. countClosed takes one off.
func countOpened(warn func(error)) {
	if n := openLockers.Add(1); n >= manyLockers && toldLockers.CompareAndSwap(false, true) {
		warn(fmt.Errorf("redlock: this process has %d open Lockers, each with its own connections and goroutines: make one Locker for the whole program, and not one for each request or lock; Close those that are no longer used", n))
	}
}

func countClosed() { openLockers.Add(-1) }
