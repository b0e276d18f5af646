// Package sim has what a simulator may replace: tokens, jitter, and which goroutine runs next. The chaos harness runs
// the whole library on it, in virtual time, and can repeat a run. Programs use Chance.
package sim

import (
	"math/rand/v2"

	"github.com/google/uuid"
)

// A Host is the source of chance in a process.
type Host interface {
	// Token returns a name that it has not returned before, in this process or another.
	Token() string

	// Jitter returns a random number from 0 to 1.
	Jitter() float64

	// A goroutine calls Woke when it has waited and goes on now. Woke returns when the simulator lets the goroutine
	// run: usually after a moment; if the process was stopped meanwhile, after everything else. as and key identify the
	// goroutine, and n identifies which of its waits this is.
	Woke(as Role, key string, n int)
}

// A Role is what a goroutine does in the library.
type Role uint8

const (
	Caller   Role = iota // waits for a round; key is the lock's token
	Alarm                // runs when a lock's timer ends; key is the lock's token
	Conn                 // serves a connection; key is its name
	Renewals             // begins renewals
	Waiter               // is in a queue; key is its name
)

// Chance is the Host of real programs: it leaves everything to chance and the Go runtime.
type Chance struct{}

func (Chance) Token() string          { return uuid.NewString() }
func (Chance) Jitter() float64        { return rand.Float64() }
func (Chance) Woke(Role, string, int) {}
