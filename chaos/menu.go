package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// A menu is what there is to be had, of which a plan has some: so few that many want the
// same, or what is in its way. What is there twice is wanted as often.
type menu []want

// menus are what locks of several kinds can have to do with each other: paths, locks of
// several names, slots, and all that at once. The separator is yet to be put in.
var menus = func() (all []menu) {
	const reads = true
	paths := menu{
		{Name: "p"}, {Name: "p"}, {Name: "p", Shared: reads}, {Name: "p/a"}, {Name: "p/a", Shared: reads}, {Name: "p/a/x"}, {Name: "p/a/x"}, {Name: "p/a/x", Shared: reads},
		{Name: "p/b"}, {Name: "p/b", Shared: reads}, {Name: "p/a", Slots: 2}, {Name: "p/a", Slots: 2},
	}
	several := menu{
		{Name: "f"}, {Name: "f", Shared: reads}, {Name: "g"}, {Name: "g", Shared: reads}, {Name: "f", Also: "g"}, {Name: "g", Also: "f"}, {Name: "f", Also: "g", Shared: reads},
		{Name: "g", Also: "f h"}, {Name: "h"},
	}
	slots := menu{{Name: "s"}, {Name: "s", Shared: reads}, {Name: "s", Slots: 2}, {Name: "s", Slots: 2}, {Name: "s", Slots: 2}}
	both := menu{{Name: "p/a", Also: "f"}, {Name: "f", Also: "p/b", Shared: reads}, {Name: "p/b", Also: "p/a"}, {Name: "p", Also: "p/a/x f"}}
	return []menu{paths, several, slots, slices.Concat(paths, several, both), slices.Concat(paths, several, slots, both)}
}()

// dish gives some of one of them.
func dish(rng *rand.Rand, separator string) (some []want) {
	menu, slots := pick(rng, menus), 2+rng.IntN(2)
	for range 3 + rng.IntN(5) {
		w := pick(rng, menu)
		w.Name = strings.ReplaceAll(w.Name, "/", separator)
		w.Also = strings.ReplaceAll(w.Also, "/", separator)
		if w.Slots > 0 {
			w.Slots = slots // all say the same
		}
		some = append(some, w)
	}
	return some
}

// allNames gives those of some wants, each once.
func allNames(of []want) (all []string) {
	for _, w := range of {
		all = append(all, w.Name)
		all = append(all, strings.Fields(w.Also)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// draw is what somebody wants next.
func (p *Plan) draw(rng *rand.Rand) want {
	if p.Wants == nil {
		return want{Name: pick(rng, p.Names)}
	}
	return pick(rng, p.Wants)
}

// unheard is what nobody has wanted before: the order, or the job, of the day.
func (p *Plan) unheard(rng *rand.Rand, client, op int) want {
	name := fmt.Sprintf("n%d.%d", client, op)
	switch s := p.Run.Separator; rng.IntN(6) {
	case 0:
		return want{Name: name, Shared: true}
	case 1:
		return want{Name: name + s + "a" + s + "b"}
	case 2:
		return want{Name: name, Also: name + "b " + name + s + "c"}
	case 3:
		return want{Name: name, Slots: 2}
	}
	return want{Name: name}
}

// within gives those names of a plan that one who has a lock alone has for himself.
func (p *Plan) within(w want) (all []string) {
	for _, name := range p.Names {
		for _, whole := range append(strings.Fields(w.Also), w.Name) {
			if len(whole) <= len(name) && meet(whole, name, p.Run.Separator) {
				all = append(all, name)
				break
			}
		}
	}
	return all
}
