package scenario

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
)

// A workload is a list of requests, of which a plan has some: so few that many clients ask for the
// same lock, or for a conflicting one. A request that is listed twice is made twice as often.
type workload []history.Request

// Workloads has requests that conflict in all ways: paths, locks of several names, slots, and all
// of these at once. The separator is yet to be inserted.
var Workloads = func() (all []workload) {
	const reads = true
	paths := workload{
		{Name: "p"}, {Name: "p"}, {Name: "p", Shared: reads}, {Name: "p/a"}, {Name: "p/a", Shared: reads}, {Name: "p/a/x"}, {Name: "p/a/x"}, {Name: "p/a/x", Shared: reads},
		{Name: "p/b"}, {Name: "p/b", Shared: reads}, {Name: "p/a", Slots: 2}, {Name: "p/a", Slots: 2},
	}
	several := workload{
		{Name: "f"}, {Name: "f", Shared: reads}, {Name: "g"}, {Name: "g", Shared: reads}, {Name: "f", Also: "g"}, {Name: "g", Also: "f"}, {Name: "f", Also: "g", Shared: reads},
		{Name: "g", Also: "f h"}, {Name: "h"},
	}
	slots := workload{{Name: "s"}, {Name: "s", Shared: reads}, {Name: "s", Slots: 2}, {Name: "s", Slots: 2}, {Name: "s", Slots: 2}}
	both := workload{{Name: "p/a", Also: "f"}, {Name: "f", Also: "p/b", Shared: reads}, {Name: "p/b", Also: "p/a"}, {Name: "p", Also: "p/a/x f"}}
	return []workload{paths, several, slots, slices.Concat(paths, several, both), slices.Concat(paths, several, slots, both)}
}()

// flat are the workloads without paths.
var flat = Workloads[1:3]

// mix draws some requests of one workload.
func mix(rng *rand.Rand, of []workload, separator string) (some []history.Request) {
	from, slots := Pick(rng, of), 2+rng.IntN(2)
	for range 3 + rng.IntN(5) {
		w := Pick(rng, from)
		w.Name = strings.ReplaceAll(w.Name, "/", separator)
		w.Also = strings.ReplaceAll(w.Also, "/", separator)
		if w.Slots > 0 {
			w.Slots = slots // all give the same number
		}
		some = append(some, w)
	}
	return some
}

// folder has requests for a folder, and for shared locks below it.
func folder(separator string) []history.Request {
	a, b := "p"+separator+"a", "p"+separator+"b"
	return []history.Request{{Name: "p"}, {Name: a, Shared: true}, {Name: a, Shared: true}, {Name: b, Shared: true}}
}

// Beat is how often the clients of a folder take turns. At each beat two clients ask for a shared lock below the folder,
// within a round trip, so that nodes name either as the holder. While these hold it, others ask once for the folder; a few
// round trips later more readers come, which must not wait for those. Of three holders that nodes name, a client that asks
// once may not see each twice (contend in wait.go), and readers may wait for it: so there are two.
func (p *Plan) Beat() time.Duration { return p.TTL / 16 }

// allNames lists the names of some requests, each once.
func allNames(of []history.Request) (all []string) {
	for _, w := range of {
		all = append(all, w.Name)
		all = append(all, strings.Fields(w.Also)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Draw draws the next request.
func (p *Plan) Draw(rng *rand.Rand) history.Request {
	if p.Wants == nil {
		return history.Request{Name: Pick(rng, p.Names)}
	}
	return Pick(rng, p.Wants)
}

// DrawNew draws a request for names that were not locked before, such as an order or a job.
func (p *Plan) DrawNew(rng *rand.Rand, client, op int) history.Request {
	name := fmt.Sprintf("n%d.%d", client, op)
	switch s := p.Run.Separator; rng.IntN(6) {
	case 0:
		return history.Request{Name: name, Shared: true}
	case 1:
		return history.Request{Name: name + s + "a" + s + "b"}
	case 2:
		return history.Request{Name: name, Also: name + "b " + name + s + "c"}
	case 3:
		return history.Request{Name: name, Slots: 2}
	}
	return history.Request{Name: name}
}

// Within lists the names of a plan that an exclusive holder of a lock has to itself.
func (p *Plan) Within(w history.Request) (all []string) {
	for _, name := range p.Names {
		for _, whole := range append(strings.Fields(w.Also), w.Name) {
			if len(whole) <= len(name) && history.Overlap(whole, name, p.Run.Separator) {
				all = append(all, name)
				break
			}
		}
	}
	return all
}
