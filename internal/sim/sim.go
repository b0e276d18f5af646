// Package sim is what a simulator may put in the place of chance: tokens, jitter, and which
// goroutine runs next. The chaos harness runs the whole library on it, in virtual time, and can
// repeat a run; programs do not.
package sim

import (
	"math/rand/v2"
	"strings"

	"github.com/google/uuid"
)

// A Host is a process as far as luck is concerned. If the Clock in a Locker's
// options is one, it is asked in the place of [Chance].
type Host interface {
	// Token is a name that nobody else has.
	Token() string

	// Made reports whether a Host of any process may have made a token, or what it begins with
	// up to a dot. Other libraries' clients make theirs in other ways.
	Made(token string) bool

	// Jitter is a number from 0 to 1.
	Jitter() float64

	// Woke is called by a goroutine that has been waiting and goes on now, and
	// returns when the scheduler lets it: after a moment as a rule, and after
	// everything else if the process was stopped in between. Key and n tell the
	// goroutine and the occasion apart from others of its role.
	Woke(as Role, key string, n int)
}

// A Role is what a goroutine does in the library.
type Role uint8

const (
	Caller   Role = iota // waits for a round; key is the lock's token
	Alarm                // is a timer for the end of a lock; key is its token
	Conn                 // works a connection; key is its name
	Renewals             // begins renewals
	Waiter               // stands in line; key is its name
)

// Chance is a Host that leaves it all to chance and the runtime.
type Chance struct{}

func (Chance) Token() string          { return uuid.NewString() }
func (Chance) Jitter() float64        { return rand.Float64() }
func (Chance) Woke(Role, string, int) {}

func (Chance) Made(token string) bool {
	name, _, _ := strings.Cut(token, ".")
	return uuid.Validate(name) == nil
}
