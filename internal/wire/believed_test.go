package wire

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// chain makes the descriptions of a set, one after another, each of the members given.
func chain(set string, members ...string) (all []*Description) {
	for i, m := range members {
		d := &Description{MaxTTL: 10_000, Epoch: 1, Set: set, Members: strings.Fields(m)}
		if i > 0 {
			d = all[i-1].Next()
			d.Members = strings.Fields(m)
		}
		all = append(all, ParseDescription(d.Text()))
	}
	return all
}

func witness(name string, d *Description) Witness {
	w := Witness{Name: name, Met: true}
	if d != nil {
		w.Kept = Kept{Self: name, Description: d}
	}
	return w
}

// TestBelieved: a majority of the witnesses decides, and no node alone.
func TestBelieved(t *testing.T) {
	c := chain("s", "a b c", "a b c d", "b c d", "b c d e", "c d e", "c d e f", "d e f")
	first, second := c[0], c[1]
	evil := second.Copy()
	evil.Members = []string{"a", "evil:1", "b"}
	evil = ParseDescription(evil.Text())
	other := chain("t", "a b c")[0]
	pair := chain("s", "a b", "a b c", "b c")
	forged := c[4].Copy()
	forged.Members = []string{"evil:1", "evil:2", "b"}
	forged = ParseDescription(forged.Text())
	away := Witness{Name: "c"}
	damaged := Witness{Name: "c", Met: true, Kept: Kept{Damage: fmt.Errorf("damaged")}}
	for _, tt := range []struct {
		name  string
		known *Description
		by    []Witness
		want  *Description
	}{
		{"one of three keeps a later one", first, []Witness{witness("a", second), witness("b", first), witness("c", first)}, nil},
		{"one of three keeps a later one, and the others are away", first, []Witness{witness("a", second), {Name: "b"}, away}, nil},
		{"one of three keeps a later one, and the others none", first, []Witness{witness("a", second), witness("b", nil), witness("c", nil)}, nil},
		{"two of three keep it", first, []Witness{witness("a", second), witness("b", second), witness("c", first)}, second},
		{"two keep different ones of an epoch", first, []Witness{witness("a", second), witness("b", evil), witness("c", first)}, nil},
		{"of later ones, the latest for which a majority vouches", first, []Witness{witness("a", c[2]), witness("b", c[4]), witness("c", c[6])}, c[4]},
		{"one that is no part of the chain", first, []Witness{witness("a", c[2]), witness("b", forged), witness("c", c[6])}, c[2]},
		{"none is later", second, []Witness{witness("a", first), witness("b", second), witness("c", second), witness("d", second)}, nil},
		{"new, a majority keeps it", nil, []Witness{witness("a", second), witness("b", second), away}, second},
		{"new, one keeps it, and is a member", nil, []Witness{witness("a", second), witness("b", nil), witness("c", nil)}, nil},
		{"new, the first one of just these nodes", nil, []Witness{witness("a", first), witness("b", nil), away}, first},
		{"new, the first one of other nodes, too", nil, []Witness{witness("a", first), witness("b", nil), witness("x", nil)}, nil},
		{"new, and damaged nodes", nil, []Witness{witness("a", first), {Name: "b"}, damaged}, nil},
		{"another set on a majority", first, []Witness{witness("a", other), witness("b", other), witness("c", first)}, other},
		{"another set on one", first, []Witness{witness("a", other), witness("b", first), away}, nil},
		{"half, and the rest has lost it", second, []Witness{witness("a", c[2]), witness("b", c[2]), witness("c", nil), witness("d", nil)}, c[2]},
		{"half, and the rest keeps the known one", second, []Witness{witness("a", c[2]), witness("b", c[2]), witness("c", second), witness("d", nil)}, nil},
		{"half, and the rest has lost it and is no member any more", pair[0], []Witness{witness("a", nil), witness("b", pair[2])}, pair[2]},
		{"half, and the rest is no member any more and away", pair[0], []Witness{{Name: "a"}, witness("b", pair[2])}, nil},
		{"new, half, and the rest was never a member", nil, []Witness{witness("x", nil), witness("b", pair[1])}, nil},
	} {
		for range 6 { // in whatever order
			by := slices.Clone(tt.by)
			rand.Shuffle(len(by), func(i, j int) { by[i], by[j] = by[j], by[i] })
			if got := Believed(by, tt.known); got != tt.want {
				t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
			}
		}
	}
}

// TestSleeperArrives: a client that has slept through any part of a chain comes to its end, as long as nodes that were
// removed keep the description that removed them. It needs no node that it has not heard of from the step before.
func TestSleeperArrives(t *testing.T) {
	c := chain("s", "a b c", "a b c d", "b c d", "b c d e", "c d e", "c d e f", "d e f", "d e f g", "e f g", "e f g h", "f g h")
	keeps := make(map[string]*Description)
	for _, d := range c {
		for _, m := range append(slices.Clone(d.Members), d.Former...) {
			keeps[m] = d
		}
	}
	for _, from := range c {
		known := from
		for {
			var by []Witness
			for _, m := range known.Members {
				by = append(by, witness(m, keeps[m]))
			}
			next := Believed(by, known)
			if next == nil {
				break
			}
			known = next
		}
		if last := c[len(c)-1]; known != last {
			t.Errorf("from epoch %d it comes to %d", from.Epoch, known.Epoch)
		}
	}
}

// TestMinorityDecidesNothing: whatever fewer than half of the witnesses keep, it is not believed.
func TestMinorityDecidesNothing(t *testing.T) {
	for range 2000 {
		n := 1 + rand.IntN(7)
		var names []string
		for i := range n {
			names = append(names, fmt.Sprint("n", i))
		}
		known := chain("s", strings.Join(names, " "))[0]
		var by []Witness
		wrong := 0
		for _, name := range names {
			d := known
			if 2*(wrong+1) < n && rand.IntN(2) == 0 {
				wrong++
				d = &Description{MaxTTL: 10_000, Epoch: 1 + rand.Int64N(5), Set: []string{"s", "t"}[rand.IntN(2)], Members: []string{name, "evil:1"}}
				d.Members = d.Members[:1+rand.IntN(2)]
			}
			by = append(by, witness(name, d))
		}
		if got := Believed(by, known); got != nil {
			t.Fatalf("%d of %d have %s believed", wrong, n, got.Text())
		}
	}
}

// TestTextStays: what is read is told as it was, with fields that this version does not know.
func TestTextStays(t *testing.T) {
	text := `{"epoch":1,"set":"s","members":["a:1"],"max_ttl_ms":10000, "zones":3,"since_ms":5}`
	told := ParseKept("a:1\n" + text)
	if told.Description == nil || told.Text() != text || told.String() != "a:1\n"+text {
		t.Fatalf("%+v", told)
	}
	if got := told.Fields(); !slices.Equal(got, []string{"zones"}) {
		t.Errorf("it has the fields %q", got)
	}
	next := told.Next()
	if got := next.Fields(); len(got) > 0 || next.Epoch != 2 || next.Past[0] != told.Sum() {
		t.Errorf("%+v", next)
	}
	for range 100 {
		next = next.Next()
	}
	if len(next.Past) != MaxPast || next.Check() != nil {
		t.Errorf("it has %d before it: %v", len(next.Past), next.Check())
	}
}
