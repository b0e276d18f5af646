// Package ways is how the keys of a lock are held, and what goes together: what
// internal/script/kinds.lua says, for the library and for models of nodes.
package ways

import (
	"strconv"
	"strings"
)

// A Way is how one key is held. The keys of a lock have a word of them, with a letter
// for each.
type Way = byte

const (
	Alone  Way = 'x'
	Shared Way = 's'
	Slots  Way = 'l' // one of several is held: which, says the key after it
	Slot   Way = 'o' // that slot, alone
	Write  Way = 'w' // something below it is held alone, or a slot of it
	Read   Way = 'r' // something below it is held shared
)

// Bars has, for each way to hold a key, those that it does not go together with.
var Bars = map[Way]string{Alone: "xslwr", Slot: "xslwr", Shared: "xlw", Slots: "xswr", Write: "xsl", Read: "xl"}

// Bar reports whether a key cannot be held both ways at once.
func Bar(one, other Way) bool { return strings.IndexByte(Bars[one], other) >= 0 }

// Clash reports whether somebody who waits to hold a key one way has to let an earlier
// one go first who waits to hold it another way. Those who wait for slots have to: there
// may be only one.
func Clash(one, other Way) bool { return Bar(one, other) || one == Slots && other == Slots }

// IsSet reports whether those who hold a key like this are in a set, since there may be
// several. Else it is one token.
func IsSet(w Way) bool { return w != Alone && w != Slot }

// Below reports whether a key is held like this for something that lies below it.
func Below(w Way) bool { return w == Write || w == Read }

// inSets are the ways in the order of their scores in a set, each of which has a range of
// them that is a stride long.
const (
	inSets = "slwr"
	stride = 1e13
)

// Score is what somebody in a set has who counts until then, in milliseconds.
func Score(w Way, deadline int64) string {
	return strconv.FormatInt(int64(strings.IndexByte(inSets, w))*stride+deadline, 10)
}

// OfScore reads it; a way of 0: it is none.
func OfScore(score string) (w Way, deadline int64) {
	f, err := strconv.ParseFloat(score, 64)
	if err != nil || !(f >= 0 && f < stride*float64(len(inSets))) { // nor what is no number
		return 0, 0
	}
	return inSets[int(f/stride)], int64(f) % stride
}
