package script

import (
	"strconv"
	"strings"

	"github.com/quorumlock/redlock/internal/wire"
)

// constants are what the scripts and Go have in common, or several scripts: the Lua files have
// a name for each, which begins with a dollar sign. No name begins with another one.
var constants = func() *strings.Replacer {
	text := func(s string) string { return "'" + s + "'" }

	// The scores of a mode begin with a digit of its own, before those of the deadline
	// (wire.Score).
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
		"$signature", text(`%.@%w+[@+]`), // of wire.Sign, for string.find
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
