// Package recipes shows how a resource rejects the late writes of a holder whose lock has ended,
// by its fence: functions to copy and to adapt to your tables. docs/safety.md quotes them and has
// the reasons. The tests try each of them with a holder that is stopped for longer than its lock
// lasts.
package recipes

import "errors"

// ErrStale is the answer to a holder that comes too late. Do not try again after it: another
// holder has the lock.
var ErrStale = errors.New("stale fence: a later holder of the lock has been here")
