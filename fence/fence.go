// Package fence lets a resource reject the late write of a holder whose lock has ended.
//
// A lock with a TTL cannot stop a process that was paused: it wakes, and writes after its successor. Each lock
// of package redlock has a fencing token, a number that is larger than those of all earlier locks on the name
// (redlock.Lock.Fence). The holder shows it with each request. The resource keeps the largest number that it has
// seen, and rejects a smaller one: here, with an error that errors.Is finds to be [ErrStale].
//
//	In SQL             Tx, Table; Changed and Found for single rows    PostgreSQL, SQLite
//	in a Redis         HSet, HGetAll; Script
//	behind HTTP        Handler; Send for its clients
//	in memory          Guard, Guards
//
// The package starts no goroutine, and does not import package redlock: a resource needs no lock client.
//
// # What all guards have in common
//
//   - Equal is accepted. One holder may write more than once, and again when an answer was lost. The number
//     orders holders, and not the writes of one holder: wait for the answer to one before you send the next.
//   - The number is compared, stored and used in one step: a transaction, a script, a mutex. It is stored when it
//     is accepted, by reads as well: a holder that writes what follows from what it has read shows its fence
//     already when it reads.
//   - The number is stored with the resource, so that they are lost and restored together. It must not expire.
//   - One name for one resource. Numbers of two names, or of one name on other nodes, cannot be compared.
//   - A fence is from 1 to 2^53-1. Any other is an error that is not ErrStale, and so is an empty name. A Lock
//     that was never acquired has the fence 0.
//   - The resource trusts every number: one that is far too large locks out all later holders. Accept numbers
//     only from clients that may write.
//   - A holder that gets ErrStale must stop. The same fence gets the same answer again.
//
// # Kinds of lock
//
// Exclusive locks, also on folders and on several names, have numbers that a guard can compare. Two kinds have not:
//
//   - A shared lock has as a rule the number of the exclusive lock before it. So its read shuts out all earlier
//     writers but the last one: the late write of that one is accepted. And readers with one number do not
//     exclude each other. Where that matters, read under an exclusive lock.
//   - The slots of one name have numbers without an order: with one guard for all of them, holders of slots at
//     the same time would reject each other. Give each resource that they write to a lock of its own.
package fence

import (
	"errors"
	"fmt"
)

// ErrStale is the answer to a holder that comes too late: a later holder of the lock has been at the resource.
// Nothing was read or written. Do not try again after it. Errors that wrap it name the fence and the resource.
var ErrStale = errors.New("stale fence: a later holder of the lock has been here")

const (
	largest = 1<<53 - 1 // the largest number that Lua, in which a Redis compares them, does not round
	maxName = 1024      // bytes, as of the name of a lock
)

// An inputError says which argument is wrong, and how.
type inputError string

func (e inputError) Error() string { return "fence: " + string(e) }

// check returns an error if fence is less than 1 or larger than any fence can be.
func check(fence int64) error {
	switch {
	case fence < 1:
		return inputError(fmt.Sprintf("the fence is %d, and must be at least 1 (a Lock that was never acquired has the fence 0)", fence))
	case fence > largest:
		return inputError(fmt.Sprintf("the fence is %d, and must be at most %d", fence, int64(largest)))
	}
	return nil
}

// checkNamed returns an error if fence cannot be one (check), or name is empty or too long for a resource. The error
// calls the name what, as the caller's parameter is called.
func checkNamed(what, name string, fence int64) error {
	switch {
	case name == "":
		return inputError("the " + what + " of the resource is empty")
	case len(name) > maxName:
		return inputError(fmt.Sprintf("the %s of the resource has %d bytes, and must have at most %d: %.32q…", what, len(name), maxName, name))
	}
	return check(fence)
}

// stale returns an error that wraps ErrStale and shows the fence, and the name of its resource unless that is "".
func stale(name string, fence int64) error {
	if name == "" {
		return fmt.Errorf("fence %d: %w", fence, ErrStale)
	}
	return fmt.Errorf("%s: fence %d: %w", name, fence, ErrStale)
}
