package redlock

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/wire"
)

// TestFolders: the folders above a path, from the top.
func TestFolders(t *testing.T) {
	for _, tt := range []struct {
		separator, name string
		want            string
	}{
		{"/", "a", ""}, {"/", "a/b", "a"}, {"/", "a/b/c", "a a/b"}, {"", "a/b/c", ""}, {"::", "a::b:c::d", "a a::b:c"},
	} {
		got := strings.Join(slices.Collect(folders(tt.separator, tt.name)), " ")
		if got != tt.want {
			t.Errorf("%q in %q: %q, want %q", tt.separator, tt.name, got, tt.want)
		}
	}
	for range folders("/", "a/b/c") {
		break // and no more of them
	}
}

// TestPlanKeys: which keys a lock on some names takes, and in which mode each: a lock in a folder takes the folders
// above in an intention mode.
func TestPlanKeys(t *testing.T) {
	for _, tt := range []struct {
		separator, names string
		mode             wire.Mode
		want             string // keys, and how they are held
	}{
		{"", "a", wire.ModeX, "a:x"},
		{"", "b a", wire.ModeX, "a:x b:x"},
		{"", "b a b a", wire.ModeS, "a:s b:s"},
		{"", "a a/b", wire.ModeX, "a:x a/b:x"},
		{"/", "a", wire.ModeS, "a:s"},
		{"/", "a/b/c", wire.ModeX, "a:w a/b:w a/b/c:x"},
		{"/", "a/b/c", wire.ModeS, "a:r a/b:r a/b/c:s"},
		{"/", "a/b/c", wire.ModeSlots, "a:w a/b:w a/b/c:l"},
		{"/", "a/b a/c d", wire.ModeX, "a:w a/b:x a/c:x d:x"},
		{"/", "a/b/c a", wire.ModeX, "a:x"},
		{"/", "a/b/c a/b a/b/d", wire.ModeS, "a:r a/b:s"},
		{"/", "a a-b a/b", wire.ModeX, "a:x a-b:x"}, // in the order of letters, a-b stands between
		{"/", "a/b a/b-c a/b/c", wire.ModeS, "a:r a/b:s a/b-c:s"},
		{"/", "a/b/c/d a/b/e a/f", wire.ModeX, "a:w a/b:w a/b/c:w a/b/c/d:x a/b/e:x a/f:x"},
	} {
		keys, held := planKeys(tt.separator, strings.Fields(tt.names), tt.mode)
		var got []string
		for i, key := range keys {
			got = append(got, fmt.Sprintf("%s:%c", key, held[i]))
		}
		if got := strings.Join(got, " "); got != tt.want || len(keys) != len(held) {
			t.Errorf("%q, %c: %q, want %q", tt.names, tt.mode, got, tt.want)
		}
	}
}

// TestNormalizeName: how a name becomes a key, and which names are refused.
func TestNormalizeName(t *testing.T) {
	for _, tt := range []struct {
		separator, prefix, name string
		want                    string // with "!": it is refused, in these words
	}{
		{"", "", "a", "a"}, {"", "", "/a/", "/a/"}, {"/", "", "a", "a"}, {"/", "", "/a/b/", "a/b"}, {"/", "", "a b/c", "a b/c"},
		{"::", "", "::a::b", "a::b"}, {"/", "", "a:slot:x", "a:slot:x"}, {"", "", ":slot", ":slot"}, {"", "lock:", "redlock:set", "redlock:set"},
		{"", "", "a:queue:b", "a:queue:b"}, {"", "", "a:fence", "a:fence"}, {"", "", "a/", "a/"},
		{"", "", "", "!the name is empty"},
		{"/", "", "", `!the path "" has an empty part`},
		{"/", "", "/", `!the path "/" has an empty part`},
		{"/", "", "//", `!the path "//" has an empty part`},
		{"/", "", "a//b", `!the path "a//b" has an empty part`},
		{"/", "", "a//", `!the path "a//" has an empty part`},
		{"/", "", "//a", `!the path "//a" has an empty part`},
		{"::", "", "a::::b", `!the path "a::::b" has an empty part`},
		{"", "", "a:queue", `!the name "a:queue" would be the key of another lock's queue: it must not end in ":queue"`},
		{"", "", "a:slot:3", `!the name "a:slot:3" would be the key of another lock's slot: it must not end in ":slot:" and a number`},
		{"/", "", "a:slot:3/b", `!the path "a:slot:3/b": the name "a:slot:3" would be the key of another lock's slot`},
		{"/", "", "/b/a:queue/c", `!the path "/b/a:queue/c": the name "b/a:queue" would be the key of another lock's queue`},
		{"", "", "redlock:set", `!the name "redlock:set" is the key of the nodes' description`}, {"", "redlock:", "fence", `!the name "fence" is the key of the nodes' table of fences`},
		{"", "redlock:", "below", `!the name "below" is the key of the nodes' table of fences`}, {"", "", "redlock:marker", `!the name "redlock:marker" is the key of the nodes' marker`},
		{"", "redlock:", "set", `!the name "set" is the key of the nodes' description`},
		{"/", "", "redlock:set/a", `!the path "redlock:set/a": the name "redlock:set" is the key of the nodes' description`},
	} {
		got, err := (&settings{Options: Options{Separator: tt.separator, Prefix: tt.prefix}}).normalizeName(tt.name)
		switch want, bad := strings.CutPrefix(tt.want, "!"); {
		case bad && !strings.HasPrefix(message(err), want):
			t.Errorf("%q of %q is refused as %q, want %q", tt.name, tt.separator, message(err), want)
		case !bad && (err != nil || got != want):
			t.Errorf("%q of %q: %q, %v, want %q", tt.name, tt.separator, got, err, want)
		}
	}
}

// TestNoNameIsAnothersKey: no name that we take is a key that the library has made of
// another one, in any mode.
func TestNoNameIsAnothersKey(t *testing.T) {
	for _, given := range []Options{{}, {Separator: "/"}, {Prefix: "p:"}, {Separator: ":"}} {
		o := &settings{Options: given}
		for _, name := range []string{"a", "a/b", "slot", "x:slot", "a:b"} {
			name, err := o.normalizeName(name)
			if err != nil {
				continue
			}
			a := acquisition{name: name, slots: new(int)}
			*a.slots = 3
			if err := a.plan(o); err != nil {
				t.Fatal(err)
			}
			c := lane.Claim{Keys: a.keys, Modes: a.modes}
			takeSlot(&c, 3, 3)
			made := []string{c.Keys[len(c.Keys)-1]}
			for _, key := range c.Keys {
				made = append(made, key+":queue")
			}
			for _, key := range made {
				if known, err := o.normalizeName(strings.TrimPrefix(key, o.Prefix)); err == nil && o.Prefix+known == key {
					t.Errorf("separator %q: %q can be a name, and is a key of %q", o.Separator, key, name)
				}
			}
		}
	}
}

// below reports whether one name is the other, or lies in it, going by their parts.
func below(separator, name, folder string) bool {
	if separator == "" {
		return name == folder
	}
	parts, of := strings.Split(name, separator), strings.Split(folder, separator)
	return len(parts) >= len(of) && slices.Equal(parts[:len(of)], of)
}

// bar reports whether two locks exclude each other by their keys.
func bar(one, other *acquisition) bool {
	at := make(map[string]wire.Mode)
	for i, key := range one.keys {
		at[key] = one.modes[i]
	}
	for i, key := range other.keys {
		if mode := at[key]; mode != 0 && (wire.Conflict(mode, other.modes[i]) || wire.Conflict(other.modes[i], mode)) {
			return true
		}
	}
	return false
}

// FuzzKinds: two locks exclude each other by their keys and how these are held if, and
// only if, they do by what they mean: there is a name that both take in, and not both of
// them share it, or have slots of the same name.
func FuzzKinds(f *testing.F) {
	f.Add("/", "a/b", "a", "", "", byte(0), byte(1))
	f.Add("/", "a/b c", "a/b/d", "", "x", byte(1), byte(1))
	f.Add("", "a", "a", "", "", byte(2), byte(2))
	f.Add("/", "a a-b a/b", "a/b/c", "p:", "", byte(0), byte(1))
	f.Add("ab", "aabab", "aab", "", "", byte(1), byte(0))
	f.Fuzz(func(t *testing.T, separator, one, other, prefix, suffix string, kind, otherKind byte) {
		o := &settings{Options: Options{Separator: separator, Prefix: prefix}}
		locks := make([]acquisition, 2)
		names := make([][]string, 2)
		for i, words := range []string{one, other + suffix} {
			kind := []byte{kind, otherKind}[i] % 3
			a := &locks[i]
			for _, word := range strings.Fields(words) {
				name, err := o.normalizeName(word)
				if err != nil {
					continue
				}
				if again, err := o.normalizeName(name); err != nil || again != name {
					t.Fatalf("%q is known as %q, and that as %q, %v", word, name, again, err)
				}
				names[i] = append(names[i], name)
			}
			if len(names[i]) == 0 {
				return
			}
			a.name, a.also, a.shared = names[i][0], names[i][1:], kind == 1
			if kind == 2 {
				a.slots, a.also, names[i] = new(int), nil, names[i][:1]
				*a.slots = 2
			}
			if err := a.plan(o); err != nil {
				t.Fatal(err)
			}
			if len(a.keys) != len(a.modes) || len(slices.Compact(slices.Sorted(slices.Values(a.keys)))) != len(a.keys) {
				t.Fatalf("%q: %q, %s", names[i], a.keys, a.modes)
			}
		}
		want := false
		for _, a := range names[0] {
			for _, b := range names[1] {
				meet := below(separator, a, b) || below(separator, b, a)
				together := locks[0].shared && locks[1].shared || locks[0].slots != nil && locks[1].slots != nil && a == b
				want = want || meet && !together
			}
		}
		// Which slot it is, is left open here: the last key says nothing.
		for i := range locks {
			if a := &locks[i]; a.slots != nil {
				a.keys, a.modes = a.keys[:len(a.keys)-1], a.modes[:len(a.modes)-1]
			}
		}
		if got := bar(&locks[0], &locks[1]); got != want || bar(&locks[1], &locks[0]) != want {
			t.Errorf("separator %q, %q and %q: they exclude each other: %v, want %v: %q %s, %q %s",
				separator, names[0], names[1], got, want, locks[0].keys, locks[0].modes, locks[1].keys, locks[1].modes)
		}
	})
}

// TestKindsByBruteForce is what FuzzKinds looks at, of all small trees: each pair of sets
// of two names out of these, of each kind.
func TestKindsByBruteForce(t *testing.T) {
	all := []string{"a", "b", "a/b", "a/c", "a/b/c", "a1", "a-", "a-/b"}
	meaning := make(map[string]bool) // by what a lock is laid as: how often it is the same
	for i := range all {
		for j := range all {
			for _, mode := range []wire.Mode{wire.ModeX, wire.ModeS} {
				keys, held := planKeys("/", []string{all[i], all[j]}, mode)
				again, heldAgain := planKeys("/", []string{all[j], all[i]}, mode)
				if !slices.Equal(keys, again) || held != heldAgain {
					t.Errorf("%q and %q in another order: %q %s", all[i], all[j], keys, held)
				}
				meaning[fmt.Sprint(keys, held)] = true
				for _, name := range all {
					for _, other := range []wire.Mode{wire.ModeX, wire.ModeS, wire.ModeSlots} {
						one := acquisition{keys: keys, modes: held}
						two := acquisition{}
						two.keys, two.modes = planKeys("/", []string{name}, other)
						meet := below("/", name, all[i]) || below("/", name, all[j]) || below("/", all[i], name) || below("/", all[j], name)
						if want := meet && (mode != wire.ModeS || other != wire.ModeS); bar(&one, &two) != want {
							t.Errorf("%q %q %c and %q %c: %v", all[i], all[j], mode, name, other, !want)
						}
					}
				}
			}
		}
	}
	if len(meaning) < 2*len(all) {
		t.Error(slices.Sorted(maps.Keys(meaning)))
	}
}

// TestKindsThatCannotBeAreRefused: what is wrong with what was asked for, and where.
func TestKindsThatCannotBeAreRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		plain, paths := newModels(3).locker(t, nil), newModels(3).locker(t, &Options{Separator: "/"})
		for _, tt := range []struct {
			lk      *Locker
			name    string
			options []AcquireOption
			want    string
		}{
			{plain, "a", []AcquireOption{Slots(0)}, `redlock: acquire "a": Slots 0: there can be 1 to 1000`},
			{plain, "a", []AcquireOption{Slots(-3)}, `redlock: acquire "a": Slots -3: there can be 1 to 1000`},
			{plain, "a", []AcquireOption{Slots(1001)}, `redlock: acquire "a": Slots 1001: there can be 1 to 1000`},
			{plain, "a", []AcquireOption{Slots(2), Shared()}, `redlock: acquire "a": Slots and Shared do not go together`},
			{plain, "a", []AcquireOption{Slots(2), Also("b")}, `redlock: acquire "a": Slots and Also do not go together`},
			{plain, "a", []AcquireOption{Also("b", "")}, `redlock: acquire "a": Also: the name is empty`},
			{plain, "a", []AcquireOption{Also("b:queue")}, `redlock: acquire "a": Also: the name "b:queue" would be`},
			{plain, "a", []AcquireOption{Also("b"), Also("c:slot:1")}, `redlock: acquire "a": Also: the name "c:slot:1" would be`},
			{plain, "a:slot:3", nil, `redlock: acquire: the name "a:slot:3" would be`},
			{plain, "a:queue", nil, `redlock: acquire: the name "a:queue" would be`},
			{paths, "a", []AcquireOption{Also("b//c")}, `redlock: acquire "a": Also: the path "b//c" has an empty part`},
			{paths, "a//b", []AcquireOption{Shared()}, `redlock: acquire: the path "a//b" has an empty part`},
			{paths, "a:queue/b", nil, `redlock: acquire: the path "a:queue/b": the name "a:queue" would be`},
		} {
			if l, err := tt.lk.TryAcquire(t.Context(), tt.name, tt.options...); l != nil || !strings.HasPrefix(message(err), tt.want) {
				t.Errorf("got %q, want %q", message(err), tt.want)
			}
			if l, err := tt.lk.Acquire(t.Context(), tt.name, tt.options...); l != nil || !strings.HasPrefix(message(err), tt.want) {
				t.Errorf("waiting: got %q, want %q", message(err), tt.want)
			}
		}
	})
}
