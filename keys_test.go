package redlock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
	"github.com/quorumlock/redlock/internal/waitlist"
	"github.com/quorumlock/redlock/internal/wire"
	"github.com/redis/go-redis/v9"
)

var paths = &Options{Separator: "/", MaxTTL: time.Minute}

// refused checks that another holder has the lock.
func refused(t *testing.T, lk *Locker, name string, options ...AcquireOption) {
	t.Helper()
	if l, err := lk.TryAcquire(t.Context(), name, options...); !errors.Is(err, ErrHeld) {
		t.Fatalf("%s: %v, %v; want %v", name, l, err, ErrHeld)
	}
}

// TestEachForItsOwnTime: each of several holders of a key conflicts until its own TTL ends, whichever
// others came before or after it with a longer or shorter one.
func TestEachForItsOwnTime(t *testing.T) {
	type want struct {
		name    string
		options []AcquireOption
	}
	const short, long = time.Second, 10 * time.Second
	const soon = 3 * time.Millisecond
	heartbeat := waitlist.Heartbeat(long) // of a waiter that knows until when one slot is held, and not the other
	shared, slot := []AcquireOption{Shared()}, []AcquireOption{Slots(2)}
	for row, tt := range []struct {
		what        string
		short, long want
		wanted      want
		after, late time.Duration
	}{
		{"readers, and a writer", want{"a", shared}, want{"a", shared}, want{"a", nil}, long, soon},
		{"slots, and who wants it alone", want{"a", slot}, want{"a", slot}, want{"a", nil}, long, soon},
		{"slots, and a third who wants one", want{"a", slot}, want{"a", slot}, want{"a", slot}, short, heartbeat},
		{"two in a folder", want{"a/b", nil}, want{"a/c", nil}, want{"a", nil}, long, soon},
		{"two in a folder, and a reader of it", want{"a/b", nil}, want{"a/c", nil}, want{"a", shared}, long, soon},
		{"two readers in a folder", want{"a/b", shared}, want{"a/c/d", shared}, want{"a", nil}, long, soon},
		{"a writer in a folder, a reader for longer, and a reader of all", want{"a/b", nil}, want{"a/c", shared}, want{"a", shared}, short, soon},
		{"a reader in a folder, a writer for longer, and a reader of all", want{"a/b", shared}, want{"a/c", nil}, want{"a", shared}, long, soon},
		{"a slot in a folder, a reader for longer, and a reader of all", want{"a/b", slot}, want{"a/c", shared}, want{"a", shared}, short, soon},
		{"a reader of a folder, and one in it for longer", want{"a", shared}, want{"a/b", shared}, want{"a", nil}, long, soon},
		{"a reader of a folder for longer than one in it", want{"a/b", shared}, want{"a", shared}, want{"a/b", nil}, long, soon},
		{"several names", want{"b", []AcquireOption{Shared(), Also("a")}}, want{"c", []AcquireOption{Shared(), Also("a")}}, want{"a", nil}, long, soon},
	} {
		for column, first := range []string{"the short one first", "the long one first"} {
			if !need.Sample(row+column, 12) {
				continue
			}
			t.Run(tt.what+", "+first, func(t *testing.T) {
				fences(t, func(f *fenced) {
					t := f.T
					one, two, third, fourth := f.locker(paths), f.locker(paths), f.locker(paths), f.locker(paths)
					begin := time.Now()
					take := func(lk *Locker, w want, ttl time.Duration) {
						acquired(t, lk, w.name, append([]AcquireOption{TTL(ttl)}, w.options...)...)
					}
					if first == "the short one first" {
						take(one, tt.short, short)
						take(two, tt.long, long)
					} else {
						take(two, tt.long, long)
						take(one, tt.short, short)
					}
					for time.Since(begin) < tt.after-tt.after/8 {
						refused(t, third, tt.wanted.name, tt.wanted.options...)
						pass(tt.after / 9)
					}
					time.Sleep(tt.after - time.Since(begin) - time.Millisecond)
					refused(t, third, tt.wanted.name, tt.wanted.options...)
					l, err := fourth.Acquire(t.Context(), tt.wanted.name, tt.wanted.options...)
					if err != nil {
						t.Fatal(err)
					}
					if took := time.Since(begin); took > tt.after+tt.late {
						t.Errorf("had after %v, want %v", took, tt.after)
					}
					f.release(l)
				})
			})
		}
	}
}

// TestReaderCrashes: its share ends by itself, although others go on, and leaves nothing in the key that
// they hold.
func TestReaderCrashes(t *testing.T) {
	fences(t, func(f *fenced) {
		t := f.T
		one, two, writer := f.locker(nil), f.locker(nil), f.locker(nil)
		acquired(t, one, "a", Shared(), TTL(2*time.Second))
		l := acquired(t, two, "a", Shared(), TTL(2*time.Second), AutoRenew())
		pass(20 * time.Second)
		if s := inspected(t, writer, "a"); s.State != StateHeld || len(s.Holders) != 1 || s.Holders[0].Token != l.Token() {
			t.Errorf("%+v", s)
		}
		for i := range f.Len() {
			if set, err := f.Mini(i).SortedSet("a"); err != nil || len(set) != 1 {
				t.Errorf("node %d has %v, %v", i, set, err)
			}
		}
		refused(t, writer, "a")
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
		acquired(t, writer, "a")
	})
}

// without returns clients for which this node cannot be reached, as if a link were down.
func (f *fenced) without(node int) []*redis.Client {
	clients := f.Clients()
	opts := f.Options(node)
	opts.Dialer = func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.EHOSTUNREACH}
	}
	clients[node] = redis.NewClient(opts)
	f.Cleanup(func() { clients[node].Close() })
	return clients
}

// A crowd has the holders of slots, and checks their number.
type crowd struct {
	*testing.T
	mu   sync.Mutex
	in   map[*Lock]bool
	most int
}

func (c *crowd) enter(l *Lock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.in[l] = true
	n := 0
	for other := range c.in {
		if !other.Until().After(time.Now()) {
			continue
		}
		if n++; other != l && other.claim.Slot == l.claim.Slot {
			c.Errorf("two have slot %d", l.claim.Slot)
		}
	}
	c.most = max(c.most, n)
}

func (c *crowd) leave(l *Lock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.in, l)
}

// TestSlotsWithLinksDown: three clients that each reach another two of three nodes, so that any two of them
// have one node in common, and no node sees more than two of them. There are never more holders than slots,
// and all clients get one.
func TestSlotsWithLinksDown(t *testing.T) {
	need.Full(t) // TestModelSchedules of the harness has slots while links are down
	for _, slots := range []int{1, 2} {
		bubble(t, func(t *testing.T) {
			leaks.Check(t)
			f := &fenced{t, redistest.NewBubble(t, 3)}
			c := &crowd{T: t, in: make(map[*Lock]bool)}
			var calls sync.WaitGroup
			for i := range f.Len() {
				f.Path(i).SetJitter(3 * time.Millisecond)
				for caller := range 2 {
					lk, err := New(f.without(i), &Options{TTL: 400 * time.Millisecond})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { lk.Close() })
					calls.Go(func() {
						lots := rand.New(rand.NewPCG(uint64(i), uint64(caller)))
						for n := range need.Sized(15, 15, 300) {
							ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
							l, err := lk.Acquire(ctx, "a", Slots(slots))
							cancel()
							if err != nil {
								t.Errorf("client %d: %v", i, err)
								return
							}
							c.enter(l)
							time.Sleep(time.Duration(lots.Int64N(int64(20 * time.Millisecond))))
							c.leave(l)
							if n%10 > 0 { // otherwise it crashes
								l.Release(t.Context())
							}
							time.Sleep(time.Duration(lots.Int64N(int64(20 * time.Millisecond))))
						}
					})
				}
			}
			calls.Wait()
			if c.most != slots {
				t.Errorf("%d had one of %d slots at once", c.most, slots)
			}
		})
	}
}

// TestInspectKinds: the holders of a lock that several can hold, their modes, and for how long; and the
// holders of something below it.
func TestInspectKinds(t *testing.T) {
	fences(t, func(f *fenced) {
		t, lk := f.T, f.locker(paths)
		held := func(name string, ttl time.Duration, options ...AcquireOption) *Lock {
			t.Helper()
			return acquired(t, lk, name, append(options, TTL(ttl))...)
		}
		type holder struct {
			lock *Lock
			how  string
			ttl  time.Duration
		}
		look := func(name string, verdict State, want ...holder) *Status {
			t.Helper()
			s := inspected(t, lk, name)
			if s.State != verdict || len(s.Holders) != len(want) || s.Token != "" && len(want) > 0 {
				t.Errorf("%s: %v, %+v; want %d holders", name, s.State, s.Holders, len(want))
				return s
			}
			for _, w := range want {
				holder := Holder{Token: w.lock.Token(), By: Identify(w.lock.Token()), Mode: Mode(w.how), TTL: w.ttl, Nodes: f.Len()}
				if !slices.ContainsFunc(s.Holders, func(h Holder) bool { return reflect.DeepEqual(h, holder) }) {
					t.Errorf("%s: %+v, and no %q by %s for %v", name, s.Holders, w.how, w.lock.Token(), w.ttl)
				}
			}
			return s
		}

		one, two := held("a", 5*time.Second, Shared()), held("a", 10*time.Second, Shared(), Also("b"))
		if s := look("a", StateHeld, holder{one, "shared", 5 * time.Second}, holder{two, "shared", 10 * time.Second}); s.TTL != 10*time.Second {
			t.Errorf("the last of the readers has it for %v", s.TTL)
		}
		look("b", StateHeld, holder{two, "shared", 10 * time.Second})
		pass(6 * time.Second)
		look("a", StateHeld, holder{two, "shared", 4 * time.Second})
		f.release(two)
		look("a", StateFree)
		look("b", StateFree)

		slot, other := held("jobs", 20*time.Second, Slots(3)), held("jobs", 30*time.Second, Slots(3))
		look("jobs", StateHeld, holder{slot, "slot", 20 * time.Second}, holder{other, "slot", 30 * time.Second})
		f.release(slot)
		f.release(other)
		look("jobs", StateFree)

		reader, writer := held("p/A", 20*time.Second, Shared()), held("p/B/c", 30*time.Second)
		look("p", StateHeld, holder{reader, "shared below", 20 * time.Second}, holder{writer, "below", 30 * time.Second})
		look("/p/A/", StateHeld, holder{reader, "shared", 20 * time.Second})
		look("p/B", StateHeld, holder{writer, "below", 30 * time.Second})
		if s := look("p/B/c", StateHeld); s.Token != writer.Token() || s.Fence != writer.Fence() {
			t.Errorf("%+v", s)
		}
		look("p/C", StateFree)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go f.locker(paths).Acquire(ctx, "p")
		pass(500 * time.Millisecond)
		if s := inspected(t, lk, "p"); len(s.Waiting) != 1 || s.Waiting[0].Nodes != f.Len() || len(s.Holders) != 2 {
			t.Errorf("there is a waiter for the folder: %+v", s)
		}
		pass(time.Second)
		f.release(reader)
		f.release(writer)
		look("p", StateFree)
	})
}

// TestInspectKindsDisagree: a token that no quorum has is no holder.
func TestInspectKindsDisagree(t *testing.T) {
	fences(t, func(f *fenced) {
		lk := f.locker(nil)
		l := acquired(f.T, lk, "a", Shared())
		for i := range 3 {
			f.Mini(i).Del("a")
		}
		if s := inspected(f.T, lk, "a"); s.State != StateFree || len(s.Holders) != 1 || s.Holders[0].Nodes != 2 {
			f.Errorf("two of five nodes know of a reader: %+v", s)
		}
		f.Kill(0)
		if s := inspected(f.T, lk, "a"); s.State != StateSplit || len(s.Holders) != 1 || s.Holders[0].Token != l.Token() {
			f.Errorf("two nodes have the token, and two have none: %+v", s)
		}
	})
}

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

func TestLay(t *testing.T) {
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

func TestNormal(t *testing.T) {
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

// TestBadKinds: what is wrong with what was asked for, and where.
func TestBadKinds(t *testing.T) {
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

// TestSlotsFillUp: a call that asks once for a slot gets one as long as one is free, although it does
// not know which, and a node is down; and a smaller number of slots gives no more.
func TestSlotsFillUp(t *testing.T) {
	for _, n := range need.Sized([]int{7}, []int{1, 2, 40}, []int{1, 2, 40}) {
		fences(t, func(f *fenced) {
			f.Kill(4)
			one, other := f.locker(nil), f.locker(nil)
			var all []*Lock
			taken := make(map[int64]bool)
			for i := range n {
				l, err := []*Locker{one, other}[i%2].TryAcquire(f.Context(), "jobs", Slots(n))
				if err != nil {
					f.Fatalf("slot %d of %d: %v", i+1, n, err)
				}
				if l.claim.Slot < 1 || l.claim.Slot > int64(n) || taken[l.claim.Slot] {
					f.Errorf("slot %d of %d", l.claim.Slot, n)
				}
				taken[l.claim.Slot] = true
				all = append(all, l)
			}
			if _, err := one.TryAcquire(f.Context(), "jobs", Slots(n)); !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), ", and no other slot is free") {
				f.Errorf("slot %d of %d: %v", n+1, n, err)
			}
			if _, err := other.TryAcquire(f.Context(), "jobs"); !errors.Is(err, ErrHeld) || strings.Contains(err.Error(), "slot") {
				f.Errorf("the whole: %v", err)
			}
			if n > 2 {
				refused(f.T, other, "jobs", Slots(2))
			}
			f.release(all[n/2])
			again := acquired(f.T, other, "jobs", Slots(n))
			if again.claim.Slot != all[n/2].claim.Slot {
				f.Errorf("slot %d is free, and slot %d is had", all[n/2].claim.Slot, again.claim.Slot)
			}
			f.release(again)
			for i, l := range all {
				if i != n/2 {
					if err := l.Release(f.Context()); err != nil {
						f.Error(err)
					}
				}
			}
			pass(time.Second)
			f.free(0, 1, 2, 3)
		})
	}
}

// TestMostSlots: as many as there can be, of which hardly any is free.
func TestMostSlots(t *testing.T) {
	fences(t, func(f *fenced) {
		for i := range f.Len() {
			for n := range MaxSlots {
				if n+1 != 777 {
					f.Mini(i).Set(fmt.Sprint("jobs:slot:", n+1), "somebody")
					f.Mini(i).SetTTL(fmt.Sprint("jobs:slot:", n+1), 10*time.Second)
				}
			}
		}
		lk := f.locker(nil)
		if l := acquired(f.T, lk, "jobs", Slots(MaxSlots)); l.claim.Slot != 777 {
			f.Errorf("slot %d", l.claim.Slot)
		}
		refused(f.T, lk, "jobs", Slots(MaxSlots))
	})
}

// TestOneKeyIsLost: a lock of several keys is one. At a node that has lost any of them it is
// gone, and is there again as a whole with the next extension; and it is lost when too many
// nodes have lost one, whichever.
func TestOneKeyIsLost(t *testing.T) {
	for row, tt := range []struct {
		name    string
		options []AcquireOption
		keys    []string
	}{
		{"a", []AcquireOption{Also("b", "c")}, []string{"a", "b", "c"}},
		{"a", []AcquireOption{Also("b"), Shared()}, []string{"a", "b"}},
		{"p/A/x", nil, []string{"p", "p/A", "p/A/x"}},
		{"p/A/x", []AcquireOption{Shared()}, []string{"p", "p/A", "p/A/x"}},
		{"p/jobs", []AcquireOption{Slots(1)}, []string{"p", "p/jobs", "p/jobs:slot:1"}},
	} {
		for i, lost := range tt.keys {
			if !need.Sample(row+i, 6) {
				continue
			}
			t.Run(fmt.Sprint(tt.name, len(tt.options), ", ", lost), func(t *testing.T) {
				fences(t, func(f *fenced) {
					l := acquired(f.T, f.locker(paths), tt.name, tt.options...)
					for node := range 2 {
						f.Mini(node).Del(lost)
					}
					if err := l.Extend(f.Context()); err != nil {
						f.Fatalf("three of five nodes have it: %v", err)
					}
					pass(time.Second)
					for node := range f.Len() {
						if keys := f.Keys(node); fmt.Sprint(keys) != fmt.Sprint(tt.keys) {
							f.Errorf("node %d has %q, want %q", node, keys, tt.keys)
						}
					}
					for node := range 3 { // each has lost another one
						f.Mini(node).Del(tt.keys[(i+node)%len(tt.keys)])
					}
					if err := l.Extend(f.Context()); !errors.Is(err, ErrLost) {
						f.Errorf("two of five nodes have it: %v", err)
					}
					pass(time.Second)
					f.free(0, 1, 2, 3, 4)
				})
			})
		}
	}
}

// TestKindsWaitForPlainRedlock: a client of another library calls no waiter. Waiters for its lock retry
// more often than at their heartbeats, for all kinds of lock.
func TestKindsWaitForPlainRedlock(t *testing.T) {
	for row, tt := range []struct {
		name    string
		options []AcquireOption
	}{
		{"p", nil}, {"p", []AcquireOption{Shared()}}, {"p", []AcquireOption{Slots(2)}}, {"p/A", nil}, {"p/A/x", []AcquireOption{Shared()}}, {"a", []AcquireOption{Also("p")}},
	} {
		if !need.Sample(row+1, 6) {
			continue
		}
		fences(t, func(f *fenced) {
			lk := f.locker(paths)
			for i := range f.Len() {
				f.Mini(i).Set("p", "MTIzNDU2Nzg5MDEyMzQ1Ng==")
				f.Mini(i).SetTTL("p", time.Minute)
			}
			var freed time.Time
			time.AfterFunc(3456*time.Millisecond, func() {
				freed = time.Now()
				for i := range f.Len() {
					f.Mini(i).Del("p")
				}
			})
			l, err := lk.Acquire(f.Context(), tt.name, tt.options...)
			if err != nil {
				f.Fatal(err)
			}
			if took := time.Since(freed); freed.IsZero() || took > waitlist.MaxPause {
				f.Errorf("%s: free for %v", tt.name, took)
			}
			f.release(l)
			f.free(0, 1, 2, 3, 4)
		})
	}
}
