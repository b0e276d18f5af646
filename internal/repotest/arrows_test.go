package repotest_test

import (
	"maps"
	"math/bits"
	"slices"
	"strings"
	"testing"
)

// core has the packages of the protocol.
var core = strings.Fields(". internal/lane internal/vote internal/set internal/waitlist internal/wire internal/script internal/redisnode internal/renew internal/resp internal/sim")

// mostUp is how many arrows may run back up in the core packages together. It goes down, and never up.
const mostUp = 20

// TestArrows: a package can be read file by file, from the top down, but for a few arrows. An arrow leads from a file to the
// file that declares a name which it uses, and runs back up if that file has been read before. The order of the files is one
// with the fewest such arrows.
func TestArrows(t *testing.T) {
	all, up := graphs(t), 0
	for _, dir := range core {
		g, ok := all[dir]
		if !ok {
			t.Errorf("there is no package %s", dir)
		}
		back := g.up()
		t.Logf("%s: %d %v", dir, len(back), back)
		up += len(back)
	}
	if up > mostUp {
		t.Errorf("%d arrows run back up, and %d are allowed", up, mostUp)
	} else if up < mostUp {
		t.Logf("only %d arrows run back up: mostUp may say so", up)
	}
}

// up gives the arrows that run back up in a best order of the files: the smallest set of arrows without which no two files
// reach each other (a minimum feedback arc set). All of them are within knots.
func (g fileGraph) up() (back [][2]string) {
	for _, knot := range g.knots() {
		back = append(back, g.upIn(knot)...)
	}
	return back
}

// upIn does so for one knot. A set of files is a number with a bit for each. How many arrows run back up within the files that
// are read first depends on the order of these only. So the best order of a set is a best order of all but one of its files, and
// then this one: the best for each set follows from those for the smaller sets, which are smaller numbers.
func (g fileGraph) upIn(knot []string) (back [][2]string) {
	uses := make([]uint, len(knot)) // by file: the files that it uses
	for i, file := range knot {
		for _, to := range g.Edges[file] {
			if j := slices.Index(knot, to); j >= 0 {
				uses[i] |= 1 << j
			}
		}
	}
	least := make([]int, 1<<len(knot)) // by set: how many arrows run back up
	last := make([]int, 1<<len(knot))  // by set: the file that comes last
	for set := uint(1); set < 1<<len(knot); set++ {
		least[set] = len(knot) * len(knot)
		for i := range knot {
			if before := set &^ (1 << i); before != set {
				if n := least[before] + bits.OnesCount(uses[i]&before); n < least[set] {
					least[set], last[set] = n, i
				}
			}
		}
	}
	for set := uint(1)<<len(knot) - 1; set != 0; {
		i := last[set]
		set &^= 1 << i
		for j, to := range knot {
			if uses[i]&set&(1<<j) != 0 {
				back = append(back, [2]string{knot[i], to})
			}
		}
	}
	return back
}

// TestArrowsAreFound: no arrow runs back up without a knot, one does where two circles share it, two in two circles that share
// none, and three among three files that all use each other. Without them there is no knot.
func TestArrowsAreFound(t *testing.T) {
	for want, edges := range map[int]map[string][]string{
		0: {"a": {"b", "c"}, "b": {"c"}},
		1: {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"c"}},
		2: {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a", "e"}, "e": {"d"}},
		3: {"a": {"b", "c"}, "b": {"a", "c"}, "c": {"a", "b"}},
	} {
		g := fileGraph{Files: slices.Sorted(maps.Keys(edges)), Edges: edges}
		back := g.up()
		if len(back) != want {
			t.Errorf("%v of %v run back up, want %d", back, edges, want)
		}
		for _, arrow := range back {
			edges[arrow[0]] = slices.DeleteFunc(edges[arrow[0]], func(to string) bool { return to == arrow[1] })
		}
		if g.largest() > 1 {
			t.Errorf("a knot is left without %v", back)
		}
	}
}
