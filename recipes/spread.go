package recipes

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/quorumlock/redlock"
)

// A Spread has several sets of nodes, for more locks than one set can bear. Each name has one of the sets, by
// rendezvous hashing: if a set is added, names move to it and to no other. All programs must have the same sets and
// Separator at all times: two that differ may both have a lock on one name.
type Spread struct {
	Sets      map[string]*redlock.Locker // by a name for each set, which stays the same
	Separator string                     // names that are the same up to it have one set; "": the whole name counts
}

// Locker returns the Locker for a lock on these names. It is an error if they have different sets: a lock, also one
// with Also, is at one Locker.
func (s Spread) Locker(name string, also ...string) (*redlock.Locker, error) {
	set := s.set(name)
	for _, other := range also {
		if s.set(other) != set {
			return nil, fmt.Errorf("%q and %q are at different sets of nodes: no lock can be on both", name, other)
		}
	}
	if s.Sets[set] == nil {
		return nil, errors.New("a Spread without sets of nodes")
	}
	return s.Sets[set], nil
}

// set returns the set whose hash with the name is the largest.
func (s Spread) set(name string) (best string) {
	if s.Separator != "" { // as in Options.Separator, one at the beginning does not count
		name, _, _ = strings.Cut(strings.TrimPrefix(name, s.Separator), s.Separator)
	}
	var largest [sha256.Size]byte
	for set := range s.Sets {
		hash := sha256.Sum256(fmt.Appendf(nil, "%q %q", set, name))
		if bytes.Compare(hash[:], largest[:]) > 0 {
			best, largest = set, hash
		}
	}
	return best
}
