package linear

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/quorumlock/redlock/chaos"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// A change is an event of a lock: a client gets it, or its validity ends.
type change struct {
	name   string
	hold   id
	theirs bool // the client is one of another library
	ends   bool
}

// lockModel is a lock per name. Its state is the holder's id; zero: none.
var lockModel = porcupine.Model{
	Partition: byName(func(input any) string { return input.(change).name }),
	Init:      func() any { return id{} },
	Step: func(state, input, _ any) (bool, any) {
		c := input.(change)
		if c.ends {
			return state == c.hold, id{}
		}
		return state == id{}, c.hold
	},
}

// guardedModel is the same where clients of other libraries may get what others have: only ours get nothing that they
// have. Its state has our holder, and how many of them there are.
var guardedModel = porcupine.Model{
	Partition: lockModel.Partition,
	Init:      func() any { return guarded{} },
	Step: func(state, input, _ any) (bool, any) {
		s, c := state.(guarded), input.(change)
		switch {
		case c.theirs && c.ends:
			s.theirs--
			return s.theirs >= 0, s
		case c.theirs:
			s.theirs++
			return true, s
		case c.ends:
			return s.ours == c.hold, guarded{theirs: s.theirs}
		}
		return s == guarded{}, guarded{ours: c.hold}
	},
}

type guarded struct {
	ours   id
	theirs int
}

// counterModel is a counter per name: a client adds one and gets the sum.
var counterModel = porcupine.Model{
	Partition: byName(func(input any) string { return input.(string) }),
	Init:      func() any { return 0 },
	Step:      func(state, _, output any) (bool, any) { return output == state.(int)+1, output },
}

func byName(name func(input any) string) func([]porcupine.Operation) [][]porcupine.Operation {
	return func(ops []porcupine.Operation) (parts [][]porcupine.Operation) {
		index := make(map[string]int)
		for _, op := range ops {
			i, known := index[name(op.Input)]
			if !known {
				i = len(parts)
				index[name(op.Input)] = i
				parts = append(parts, nil)
			}
			parts[i] = append(parts[i], op)
		}
		return parts
	}
}

// locks returns the operations on locks in a history. A hold whose validity was over at the answer is none.
func locks(h *chaos.History) (ops []porcupine.Operation) {
	for who, o := range holds(h) {
		if o.from < o.to {
			ops = append(ops,
				porcupine.Operation{Input: change{o.name, who, o.theirs, false}, Call: int64(o.asked), Return: int64(o.from)},
				porcupine.Operation{Input: change{o.name, who, o.theirs, true}, Call: int64(o.to), Return: int64(o.to)})
		}
	}
	return ops
}

// additions returns the operations on the counter.
func additions(h *chaos.History) (ops []porcupine.Operation) {
	read := make(map[id]time.Duration)
	for _, e := range h.Events {
		who := id{e.Client, e.Op}
		switch e.Kind {
		case chaos.Read:
			read[who] = e.At
		case chaos.Wrote:
			from, ok := read[who]
			if !ok {
				from = e.At
			}
			ops = append(ops, porcupine.Operation{Input: e.Name, Output: e.Value, Call: int64(from), Return: int64(e.At)})
		}
	}
	return ops
}

// agree compares both judges on a history, and returns their common verdict.
func agree(t *testing.T, h *chaos.History) (exclusive, counted bool) {
	t.Helper()
	broken := make(map[string]string)
	for _, v := range chaos.Judge(h).Violations {
		broken[v.Rule] = v.String()
	}
	if odd := broken["well-formed"]; odd != "" {
		t.Fatalf("not a history: %s", odd)
	}
	exclusive, counted = broken["exclusion"] == "", broken["lost updates"] == ""
	said, all := broken["exclusion"], locks(h)
	switch {
	case !h.Run.Forgetful:
		if got := check(t, lockModel, all); got != exclusive {
			t.Errorf("seed %d: the locks are linearizable: %v; the judge says %q", h.Run.Seed, got, said)
		}
	case exclusive: // ours exclude each other
		all = slices.DeleteFunc(all, func(o porcupine.Operation) bool { return o.Input.(change).theirs })
		if !check(t, lockModel, all) {
			t.Errorf("seed %d: our locks are not linearizable, and the judge says nothing", h.Run.Seed)
		}
	case check(t, guardedModel, all):
		t.Errorf("seed %d: the locks are linearizable, but for those that other libraries' clients got too early; the judge says %q", h.Run.Seed, said)
	}
	if got := check(t, counterModel, additions(h)); got != counted {
		t.Errorf("seed %d: the counter is linearizable: %v; the judge says %q", h.Run.Seed, got, broken["lost updates"])
	}
	return exclusive, counted
}

func check(t *testing.T, model porcupine.Model, ops []porcupine.Operation) bool {
	t.Helper()
	result := porcupine.CheckOperationsTimeout(model, ops, 30*time.Second)
	if result == porcupine.Unknown {
		t.Fatalf("no opinion on %d operations", len(ops))
	}
	return result == porcupine.Ok
}

func TestRandomHistories(t *testing.T) {
	n := need.Sized[uint64](600, 6000, 100_000)
	var exclusive, counted uint64
	for seed := range n {
		e, c := agree(t, random(seed))
		if e {
			exclusive++
		}
		if c {
			counted++
		}
	}
	t.Logf("%d histories: exclusive %d, without lost updates %d", n, exclusive, counted)
	if least := n / 10; min(exclusive, counted) < least || max(exclusive, counted) > n-least {
		t.Errorf("that is too one-sided to say anything")
	}
}

func TestRecordedHistories(t *testing.T) {
	files, err := filepath.Glob("../testdata/histories/*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Log("there are no recorded histories")
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			h, err := chaos.ReadHistory(f)
			if err != nil {
				t.Fatal(err)
			}
			exclusive, counted := agree(t, h)
			t.Logf("%d events: exclusive %v, no lost updates %v", len(h.Events), exclusive, counted)
		})
	}
}
