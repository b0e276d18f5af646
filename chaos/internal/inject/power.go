package inject

import (
	"time"

	"github.com/quorumlock/redlock/chaos/history"
)

// A Host is a node's server and its clock.
type Host interface {
	Kill()
	Restart(keepData bool)
	Step(d time.Duration) // sets the clock forward, or back
}

// Power begins or ends a fault of a host: its server dies, or its clock is wrong, or both. It reports false for
// any other fault.
func Power(h Host, f history.Fault, begin bool) bool {
	switch f.Kind {
	case history.Kill, history.KillEmpty:
		if begin {
			h.Kill()
		} else {
			h.Restart(f.Kind == history.Kill)
		}
	case history.Boot:
		if begin {
			h.Kill()
			h.Step(f.By)
			h.Restart(false)
		} else {
			h.Step(-f.By)
		}
	case history.Clock:
		if begin {
			h.Step(f.By)
		} else {
			h.Step(-f.By)
		}
	default:
		return false
	}
	return true
}
