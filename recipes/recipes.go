// Package recipes shows how a resource refuses the late writes of a holder whose lock
// has ended, by its fence: functions to copy and change, for they know nothing of your
// tables. docs/safety.md quotes them and says why they are as they are. The tests have
// each of them withstand a holder that is stopped for longer than its lock lasts.
package recipes

import "errors"

// ErrStale is the answer to a holder that comes too late. It is not one to try again
// after: the lock is another's.
var ErrStale = errors.New("stale fence: a later holder of the lock has been here")
