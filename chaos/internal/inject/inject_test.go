package inject_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/inject"
	"github.com/quorumlock/redlock/internal/wire"
)

// did has what a fault does to a host and to the network before it.
type did []string

func (d *did) Kill()                 { *d = append(*d, "kill") }
func (d *did) Step(by time.Duration) { *d = append(*d, "step "+by.String()) }
func (d *did) Cut()                  { *d = append(*d, "cut") }
func (d *did) CutRequests()          { *d = append(*d, "cut requests") }
func (d *did) CutReplies()           { *d = append(*d, "cut replies") }
func (d *did) Heal()                 { *d = append(*d, "heal") }
func (d *did) HealByReset()          { *d = append(*d, "reset") }

func (d *did) Restart(keepData bool) {
	if keepData {
		*d = append(*d, "restart")
	} else {
		*d = append(*d, "restart empty")
	}
}

// TestFaultsOfHostAndLink: what a fault does when it begins and when it is over. A clock that was set is set right again, and
// Cut and Power leave each other's faults alone.
func TestFaultsOfHostAndLink(t *testing.T) {
	for _, tt := range []struct {
		kind        history.FaultKind
		begin, end  string
		power, link bool
	}{
		{history.Kill, "kill", "restart", true, false},
		{history.KillEmpty, "kill", "restart empty", true, false},
		{history.Clock, "step 5s", "step -5s", true, false},
		{history.Boot, "kill, step 5s, restart empty", "step -5s", true, false},
		{history.Cut, "cut", "heal", false, true},
		{history.CutRequests, "cut requests", "heal", false, true},
		{history.CutReplies, "cut replies", "heal", false, true},
		{history.Part, "cut", "reset", false, true},
		{history.Flush, "", "", false, false},
	} {
		f := history.Fault{Kind: tt.kind, By: 5 * time.Second}
		for begin, want := range map[bool]string{true: tt.begin, false: tt.end} {
			d := new(did)
			power, link := inject.Power(d, f, begin), inject.Cut(d, f, begin)
			if got := strings.Join(*d, ", "); got != want || power != tt.power || link != tt.link {
				t.Errorf("%s, begins %v: %q, of the host %v, of the link %v; want %q", tt.kind, begin, got, power, link, want)
			}
		}
	}
	if inject.During(true, time.Second) != time.Second || inject.During(false, time.Second) != 0 {
		t.Error("During is not d while the fault lasts, and 0 afterwards")
	}
}

// TestMisledIsSomethingElse: whichever text is drawn, it is not what the node keeps, and all kinds of texts are drawn. A node
// that keeps nothing is told nothing.
func TestMisledIsSomethingElse(t *testing.T) {
	nodes := []string{"node0", "node1", "node2"}
	kept := wire.Kept{Self: "node0", Description: &wire.Description{Set: "s", Epoch: 3, Members: nodes, MaxTTL: 10_000}}
	damaged, later, others := 0, 0, 0
	for which := range 600 {
		text := inject.Misled(kept, nodes, which)
		told := wire.ParseKept(text)
		switch {
		case text == kept.String() && which%6 != 4: // of the kind that has another member's data, one is its own
			t.Errorf("%d: it is what the node keeps", which)
		case told.Damage != nil:
			damaged++
		case told.Self != "node0" || told.Set != "s":
			others++
		case told.Epoch > 3:
			later++
		}
		if again := inject.Misled(kept, nodes, which); again != text {
			t.Errorf("%d: two texts", which)
		}
	}
	if damaged == 0 || later == 0 || others == 0 {
		t.Errorf("%d are damaged, %d of a later epoch, %d of others", damaged, later, others)
	}
	if text := inject.Misled(wire.Kept{}, nodes, 1); text != "" {
		t.Errorf("a node that keeps nothing is told %q", text)
	}
}

// TestSnapshotIsOfTheBeginningOrOfAnotherSet: of the same members, so that nobody can tell it by them.
func TestSnapshotIsOfTheBeginningOrOfAnotherSet(t *testing.T) {
	d := &wire.Description{Set: "s", Epoch: 3, Members: []string{"node0", "node1"}, MaxTTL: 10_000}
	kept, first := wire.Kept{Self: "node0", Description: d}, wire.Kept{Self: "node0", Description: &wire.Description{Set: "f", Epoch: 1, Members: []string{"node0"}, MaxTTL: 10_000}}
	for which := range 20 {
		text := inject.Snapshot(kept, first, which)
		told := wire.ParseKept(text)
		if which%2 == 0 {
			if text != first.String() {
				t.Errorf("%d: it is not the first one: %q", which, text)
			}
		} else if told.Description == nil || told.Set == "s" || !slices.Equal(told.Members, d.Members) || told.Epoch < d.Epoch {
			t.Errorf("%d: it is %q", which, text)
		}
	}
	if text := inject.Snapshot(wire.Kept{}, first, 1); text != first.String() {
		t.Errorf("a node that keeps nothing is restored to %q", text)
	}
}

// TestRestored: a set is restored if it was changed, no majority of its members keeps it, and all of them answer.
func TestRestored(t *testing.T) {
	set := func(name string, epoch int64, members ...string) wire.Kept {
		return wire.Kept{Description: &wire.Description{Set: name, Epoch: epoch, Members: members, MaxTTL: 10_000}}
	}
	none, all := wire.Kept{}, []string{"a", "b", "c", "d", "e"}
	now, before, first := set("s", 3, "a", "b", "c"), set("s", 2, "a", "b", "c", "d"), set("s", 1, "a", "b", "c")
	four := set("s", 3, "a", "b", "c", "d")
	for _, tt := range []struct {
		name    string
		kept    map[string]wire.Kept
		given   []string
		members string // of the new set
		epoch   int64
		lost    string
		answer  bool
	}{
		{"well", map[string]wire.Kept{"a": now, "b": now, "c": now}, all, "", 0, "", true},
		{"a minority has lost it", map[string]wire.Kept{"a": now, "b": none, "c": now}, all, "", 0, "", true},
		{"a majority has lost it", map[string]wire.Kept{"a": now, "b": none, "c": none}, all, "[a b c]", 4, "[b c]", true},
		{"and others keep earlier ones", map[string]wire.Kept{"a": now, "b": none, "c": none, "d": before, "e": first}, all, "[a b c]", 4, "[b c]", true},
		{"half of them have lost it", map[string]wire.Kept{"a": four, "b": four, "c": none, "d": none}, all, "[a b c d]", 4, "", true},
		{"a majority keeps it or an earlier one", map[string]wire.Kept{"a": now, "b": before, "c": none}, all, "[a b c]", 4, "", true},
		{"the operator knows an earlier one", map[string]wire.Kept{"a": first, "b": now, "c": now, "d": before}, []string{"a", "b", "d"}, "", 0, "", true},
		{"and the last one is elsewhere", map[string]wire.Kept{"a": four, "b": set("s", 4, "a", "b", "c"), "c": none, "d": none}, []string{"a"}, "[a b c]", 5, "", true},
		{"one keeps another set", map[string]wire.Kept{"a": now, "b": set("t", 1, "b"), "c": none}, all, "[a b c]", 4, "", true},
		{"only a node keeps it that was removed", map[string]wire.Kept{"a": none, "b": none, "c": none, "d": before}, all, "[a b c d]", 3, "[a b c]", true},
		{"it was never changed", map[string]wire.Kept{"a": first, "b": none, "c": none}, all, "", 0, "", true},
		{"all have lost it", map[string]wire.Kept{"a": none, "b": none, "c": none}, all, "", 0, "", true},
		{"a member does not answer", map[string]wire.Kept{"a": now, "b": none}, all, "", 0, "", false},
		{"another node does not answer", map[string]wire.Kept{"a": now, "b": none, "c": none}, []string{"a", "b"}, "[a b c]", 4, "[b c]", true},
		{"the operator does not know the node that keeps it", map[string]wire.Kept{"a": now, "b": none, "c": none}, []string{"b", "c"}, "", 0, "", true},
	} {
		set, lost, answer := inject.Restored(tt.kept, tt.given)
		members, epoch := "", int64(0)
		if set != nil {
			members, epoch = fmt.Sprint(set.Members), set.Epoch
		}
		if len(lost) == 0 {
			lost = nil
		}
		if got := fmt.Sprint(lost); members != tt.members || epoch != tt.epoch || got != cmp.Or(tt.lost, "[]") || answer != tt.answer {
			t.Errorf("%s: the members %s, epoch %d, lost by %s, %v", tt.name, members, epoch, got, answer)
		}
	}
}
