// Package load puts load on nodes, and measures what locks cost under it.
package load

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
)

// Breather is how long a caller pauses after a failure. Nodes that are down refuse at once:
// without the pause a caller would measure nothing but itself.
const Breather = 10 * time.Millisecond

// A Tally counts failures by their kind.
type Tally map[string]int

func (t Tally) String() string {
	if len(t) == 0 {
		return "-"
	}
	var parts []string
	for _, kind := range slices.SortedFunc(maps.Keys(t), func(a, b string) int { return cmp.Or(t[b]-t[a], strings.Compare(a, b)) }) {
		parts = append(parts, phrase.Digits(t[kind])+" "+kind)
	}
	return strings.Join(parts, ", ")
}

func (t Tally) Total() (sum int) {
	for _, n := range t {
		sum += n
	}
	return sum
}

// Faults are the failures of several callers.
type Faults struct {
	mu     sync.Mutex
	Failed Tally
	Last   error
}

// note counts an error by its kind, and pauses for a Breather.
func (f *Faults) note(err error) {
	kind := "other"
	for _, of := range []error{redlock.ErrHeld, redlock.ErrNoQuorum, redlock.ErrLost} {
		if errors.Is(err, of) {
			kind = of.Error()
		}
	}
	f.mu.Lock()
	if f.Failed == nil {
		f.Failed = make(Tally)
	}
	f.Failed[kind]++
	f.Last = err
	f.mu.Unlock()
	time.Sleep(Breather)
}

// OwnNames returns a lock's name for each caller: names below key that no other client uses.
func OwnNames(key string, callers int) (names []string) {
	for i := range callers {
		names = append(names, fmt.Sprintf("%s:caller-%d", key, i+1))
	}
	return names
}
