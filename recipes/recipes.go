// Package recipes shows how a resource rejects the late writes of a holder whose lock has ended,
// by its fence, and how work is done once: functions to copy and to adapt to your tables.
// docs/safety.md and docs/once.md have the reasons. The tests try each of them with
// holders that are stopped for longer than their lock lasts, lose it, or die.
package recipes

import "errors"

// ErrStale is the answer to a holder that comes too late. Do not try again after it: another
// holder has the lock.
var ErrStale = errors.New("stale fence: a later holder of the lock has been here")
