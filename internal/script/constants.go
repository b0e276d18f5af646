package script

import (
	"strconv"
	"strings"

	"github.com/quorumlock/redlock/internal/wire"
)

// constants replaces the names of constants in the Lua files, which begin with a dollar sign. Scripts and Go share
// these values, or several scripts do. No name may be the beginning of another one.
var constants = func() *strings.Replacer {
	text := func(s string) string { return "'" + s + "'" }

	// begin returns the score at which a mode's range begins, such as 1e13: a digit for the mode, before the deadline.
	begin := func(m wire.Mode) string {
		score := wire.Score(m, 0)
		return score[:1] + "e" + strconv.Itoa(len(score)-1)
	}
	var conflicts []string
	for _, m := range "xoslwr" {
		for _, other := range wire.Conflicting[wire.Mode(m)] {
			conflicts = append(conflicts, string(m)+string(other))
		}
	}
	return strings.NewReplacer(
		"$fences", text(Fences),
		"$belows", text(Belows),
		"$marker", text(Marker),
		"$version", strconv.Itoa(wire.MarkerVersion),
		"$wakeChannel", text(WakeChannel),
		"$broken", text(Broken),
		"$queueSuffix", text(QueueSuffix),
		"$slotInfix", text(SlotInfix),
		"$signature", text(`%.@%w+[@+]`), // of wire.Sign, as a pattern for string.find
		"$lastOfToken", text(strconv.Itoa(wire.MostOfToken-1)),

		"$clamp", strconv.FormatInt(wire.Clamp.Microseconds(), 10),
		"$bornSlack", strconv.FormatInt(wire.MarkerSlack, 10),
		"$maxLease", strconv.Itoa(wire.MaxLease),
		"$window", strconv.Itoa(wire.QueueWindow),
		"$queueTTL", strconv.FormatInt(QueueTTL.Milliseconds(), 10),

		"$conflicts", text(strings.Join(conflicts, ",")),
		"$rangeL", begin(wire.ModeSlots),
		"$rangeW", begin(wire.ModeIX),
		"$rangeR", begin(wire.ModeIS),
		"$setModes", wire.SetModes,
		"$stride", begin(wire.ModeSlots), // the range of s is from 0 to that of l
	)
}()
