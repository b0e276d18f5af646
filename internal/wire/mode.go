package wire

import (
	"strconv"
	"strings"
)

// A Mode is how a lock holds one of its keys, like the lock modes of a database. A lock has a string of them, one
// letter for each key. internal/script/kinds.lua has the same letters.
type Mode = byte

const (
	ModeX     Mode = 'x' // exclusive
	ModeS     Mode = 's' // shared
	ModeIX    Mode = 'w' // intention exclusive: something below the key is held exclusively, or a slot of it
	ModeIS    Mode = 'r' // intention shared: something below the key is held shared
	ModeSlots Mode = 'l' // one of several slots of the key is held: the key after it says which
	ModeSlot  Mode = 'o' // the key is a slot, held exclusively
)

// Conflicting lists, for each mode, the modes with which it conflicts.
var Conflicting = map[Mode]string{ModeX: "xslwr", ModeSlot: "xslwr", ModeS: "xlw", ModeSlots: "xswr", ModeIX: "xsl", ModeIS: "xl"}

// Conflict reports whether two locks cannot hold a key in these modes at once.
func Conflict(one, other Mode) bool { return strings.IndexByte(Conflicting[one], other) >= 0 }

// MustQueueBehind reports whether a waiter for a key in mode one must let an earlier waiter in mode other go first: if
// the modes conflict; or if both want slots, which do not conflict, since only one slot may be free.
func MustQueueBehind(one, other Mode) bool {
	return Conflict(one, other) || one == ModeSlots && other == ModeSlots
}

// IsSet reports whether a key in this mode is a sorted set of tokens, since several may hold it; false: it is a string.
func IsSet(m Mode) bool { return strings.IndexByte(SetModes, m) >= 0 }

// IsIntention reports whether the mode marks a folder because something below it is held.
func IsIntention(m Mode) bool { return m == ModeIX || m == ModeIS }

// SetModes are the modes in which a key is a sorted set, in the order of their ranges of scores. Each range is a stride long.
const (
	SetModes = "slwr"
	stride   = 1e13
)

// Score is the score, in a key's sorted set, of a token that holds the key in mode m until deadline, in milliseconds.
func Score(m Mode, deadline int64) string {
	return strconv.FormatInt(int64(strings.IndexByte(SetModes, m))*stride+deadline, 10)
}

// ParseScore undoes Score; m is 0, which is no mode, if the text is no such score.
func ParseScore(score string) (m Mode, deadline int64) {
	f, err := strconv.ParseFloat(score, 64)
	if err != nil || !(f >= 0 && f < stride*float64(len(SetModes))) { // the negation also rejects NaN
		return 0, 0
	}
	return SetModes[int(f/stride)], int64(f) % stride
}
