package redlock

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/wire"
)

// TestOptionsAreCheckedTogether: which Options New refuses, with which words, and that the defaults fit each other.
func TestOptionsAreCheckedTogether(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	for _, tt := range []struct {
		name string
		n    int
		opts *Options
		want string // in the error; "" if they are fine
	}{
		{"nil", 5, nil, ""},
		{"zero", 1, &Options{}, ""},
		{"all", 5, &Options{TTL: 30 * s, NodeTimeout: s, Drift: s, MaxTTL: time.Minute, Quorum: 4}, ""},
		{"short TTL", 5, &Options{TTL: 3 * ms}, ""},
		{"negative TTL", 5, &Options{TTL: -s}, "Options.TTL -1s is not a time to live"},
		{"TTL under a millisecond", 5, &Options{TTL: 900 * time.Microsecond}, "Options.TTL 900µs is not a whole number of milliseconds"},
		{"TTL of no whole milliseconds", 5, &Options{TTL: s + 1}, "Options.TTL 1.000000001s is not a whole number of milliseconds"},
		{"drift eats the TTL", 5, &Options{TTL: 2 * ms}, "Options.TTL 2ms leaves nothing after Drift 2.02ms"},
		{"own drift eats the TTL", 5, &Options{Drift: 10 * s}, "Options.TTL 10s leaves nothing after Drift 10s"},
		{"negative drift", 5, &Options{Drift: -1}, "Options.Drift -1ns is negative"},
		{"MaxTTL", 5, &Options{MaxTTL: s}, "Options.MaxTTL 1s is less than TTL 10s"},
		{"MaxTTL of no whole milliseconds", 5, &Options{TTL: s, MaxTTL: s + 1}, "Options.MaxTTL 1.000000001s is not a whole"},
		{"negative NodeTimeout", 5, &Options{NodeTimeout: -s}, "Options.NodeTimeout -1s is negative"},
		{"NodeTimeout eats the TTL", 5, &Options{TTL: s, NodeTimeout: 988 * ms}, "Options.NodeTimeout 988ms leaves nothing of TTL 1s after Drift 12ms"},
		{"long owner", 5, &Options{Owner: strings.Repeat("o", 257)}, "is 257 bytes long"},
		{"quorum that is none", 5, &Options{Quorum: 2}, "Options.Quorum 2 of 5 nodes is no majority"},
		{"half of an even number", 4, &Options{Quorum: 2}, "Options.Quorum 2 of 4 nodes is no majority"},
		{"negative quorum", 3, &Options{Quorum: -1}, "Options.Quorum -1 of 3"},
		{"quorum over N", 3, &Options{Quorum: 4}, "Options.Quorum 4 is more than the 3 nodes"},
		{"skew that is switched off", 3, &Options{MaxNodeSkew: -1}, ""},
		{"skew as large as the quarantine leaves room for", 3, &Options{Quarantine: 21500 * ms, MaxNodeSkew: 10 * s}, ""},
		{"and more", 3, &Options{Quarantine: 21499 * ms, MaxNodeSkew: 10 * s}, "Options.MaxNodeSkew 10s is more than the Quarantine 21.499s leaves room for, which is 9.9995s"},
		{"any skew without a quarantine", 3, &Options{Quarantine: -1, MaxNodeSkew: time.Hour}, ""},
		{"two at once", 3, &Options{Quorum: 4, Drift: -1}, "Options.Drift -1ns is negative\nredlock: Options.Quorum 4"},
		{"no nodes", 0, nil, "no nodes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ms := newModels(tt.n)
				lk, err := ms.start(tt.opts, func(*modelConn) {})
				if err == nil {
					defer lk.Close()
				}
				if got := message(err); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
					t.Errorf("got %q, want %q", got, tt.want)
				}
			})
		})
	}
}

// TestDefaultSkew: as much as the quarantine leaves room for twice, and the wire.Clamp three times,
// or fences could go back when nodes lose their data.
func TestDefaultSkew(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	for _, tt := range []struct {
		opts Options
		want time.Duration
	}{
		{Options{TTL: s, MaxTTL: s}, 250 * ms}, {Options{TTL: s}, 4301 * ms}, {Options{}, 4301 * ms}, {Options{MaxTTL: time.Minute}, 10 * s},
		{Options{TTL: 50 * ms, MaxTTL: 50 * ms, Quarantine: 60 * ms}, 250 * ms}, {Options{Quarantine: 13 * s}, 5750 * ms}, {Options{Quarantine: -1}, 10 * s}, {Options{MaxNodeSkew: -1}, -1},
	} {
		o, err := tt.opts.withDefaults(3)
		if err != nil || o.MaxNodeSkew != tt.want {
			t.Errorf("%+v: %v, %v; want %v", tt.opts, o.MaxNodeSkew, err, tt.want)
		}
		if o.Quarantine >= 2*s && 2*o.MaxNodeSkew+3*wire.Clamp > o.Quarantine {
			t.Errorf("%+v: %v is too much for a quarantine of %v", tt.opts, o.MaxNodeSkew, o.Quarantine)
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestAcquireOptionsAreChecked: which options of an acquisition are refused, and how long a lock with the others is
// valid.
func TestAcquireOptionsAreChecked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const ms, s = time.Millisecond, time.Second
		lk := newModels(3).locker(t, &Options{TTL: s, MaxTTL: time.Minute})
		for _, tt := range []struct {
			key     string
			options []AcquireOption
			want    string
			valid   time.Duration
		}{
			{"a", nil, "", 988 * ms},
			{"a", []AcquireOption{TTL(time.Minute)}, "", time.Minute - 602*ms},
			{"a", []AcquireOption{TTL(50 * ms)}, "", 47500 * time.Microsecond},
			{"a", []AcquireOption{TTL(time.Minute), MaxHold(2 * s)}, "", 2 * s},
			{"", nil, "redlock: acquire: the name is empty", 0},
			{"a", []AcquireOption{TTL(61 * s)}, `redlock: acquire "a": TTL is 1m1s, and the set allows 1m0s (its MaxTTL): ask for less`, 0},
			{"a", []AcquireOption{TTL(0)}, `redlock: acquire "a": TTL 0s is not a time to live`, 0},
			{"a", []AcquireOption{TTL(s / 3)}, `redlock: acquire "a": TTL 333.333333ms is not a whole number`, 0},
			{"a", []AcquireOption{TTL(2 * ms)}, `redlock: acquire "a": TTL 2ms leaves nothing after Drift 2.02ms`, 0},
			{"a", []AcquireOption{MaxHold(-s)}, `redlock: acquire "a": MaxHold -1s is not a time to hold it for`, 0},
			{"a", []AcquireOption{MaxHold(0)}, `redlock: acquire "a": MaxHold 0s is not a time to hold it for`, 0},
		} {
			for _, acquire := range []func(context.Context, string, ...AcquireOption) (*Lock, error){lk.TryAcquire, lk.Acquire} {
				l, err := acquire(t.Context(), tt.key, tt.options...)
				if got := message(err); (got == "") != (tt.want == "") || !strings.HasPrefix(got, tt.want) {
					t.Errorf("got %q, want %q", got, tt.want)
				}
				if err == nil {
					if got := time.Until(l.Until()); got != tt.valid {
						t.Errorf("%v: valid for %v, want %v", tt.options, got, tt.valid)
					}
					l.Release(t.Context())
				}
			}
		}
	})
}

// seenBy are the requests that the nodes have got.
func (ms models) seenBy() (n int) {
	for _, m := range ms {
		m.mu.Lock()
		n += len(m.seen)
		m.mu.Unlock()
	}
	return n
}

// TestWhatIsTooLongIsRefusedUnsent: what would take a node long, or fill its memory, is refused before anything
// is sent, by every verb, and at once; the error says what is too much, of how much, and is
// short itself. What is just within the limits works.
func TestWhatIsTooLongIsRefusedUnsent(t *testing.T) {
	long := strings.Repeat("n", MaxName+1)
	deep := func(parts int) string { return strings.Repeat("p/", parts-1) + "x" }
	names := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprint("also", i))
		}
		return all
	}
	paths := func(n int) (all []string) { // with two folders above them all
		for i := range n {
			all = append(all, fmt.Sprint("x/y/", i))
		}
		return all
	}
	for _, tt := range []struct {
		about             string
		prefix, separator string
		name              string
		options           []AcquireOption
		want              string // in the error; "" if it is fine
	}{
		{about: "the longest name", name: long[1:]},
		{about: "one byte more", name: long, want: `acquire: the name "nnnnnnnnnnnnnnnnnnnn…" is 1025 bytes long: the limit is 1024`},
		{about: "with its prefix", prefix: "p:", name: long[2:], want: `the name "nnnnnnnnnnnnnnnnnnnn…" is 1025 bytes long with Options.Prefix "p:": the limit is 1024`},
		{about: "the longest with its prefix", prefix: "p:", name: long[3:]},
		{about: "a megabyte", name: strings.Repeat("m", 1<<20), want: `is 1048576 bytes long: the limit is 1024`},
		{about: "a megabyte of separators", separator: "/", name: strings.Repeat("/", 1<<20), want: `the limit is 1024`},
		{about: "bytes that are no text", name: strings.Repeat("\xff", 1<<20), want: `is 1048576 bytes long: the limit is 1024`},
		{about: "a long name in Also", name: "a", options: []AcquireOption{Also("b", long)}, want: `acquire "a": Also: the name "nnnnnnnnnnnnnnnnnnnn…" is 1025 bytes long: the limit is 1024`},
		{about: "the deepest path", separator: "/", name: deep(MaxDepth)},
		{about: "one part more", separator: "/", name: deep(MaxDepth + 1), want: `p/x" has 33 parts: the limit is 32`},
		{about: "a path in Also", separator: "/", name: "a", options: []AcquireOption{Also(deep(MaxDepth + 1))}, want: `p/x" has 33 parts: the limit is 32`},
		{about: "hundreds of parts", separator: "/", name: strings.Repeat("/", 500) + "x", want: `acquire: the path "////////////////////…" has 500 parts: the limit is 32`},
		{about: "no path", name: deep(MaxDepth + 1)},
		{about: "as many names as there can be", name: "a", options: []AcquireOption{Also(names(MaxKeys - 1)...)}},
		{about: "one name more", name: "a", options: []AcquireOption{Also(names(MaxKeys)...)}, want: `acquire "a": Also: 257 names have 257 keys: the limit is 256`},
		{about: "4,000 names", name: "a", options: []AcquireOption{Also(names(4000)...)}, want: `Also: 4001 names have 4001 keys: the limit is 256`},
		{about: "a name again and again", name: "a", options: []AcquireOption{Also(slices.Repeat([]string{"b"}, 4000)...)}},
		{about: "as many keys as there can be, with folders", separator: "/", name: "a", options: []AcquireOption{Also(paths(MaxKeys - 3)...)}},
		{about: "too many with folders", separator: "/", name: "a", options: []AcquireOption{Also(paths(MaxKeys - 2)...)}, want: `acquire "a": Also: 255 names have 257 keys, with those of the folders above them: the limit is 256`},
		{about: "readers, too", name: "a", options: []AcquireOption{Shared(), Also(names(MaxKeys)...)}, want: `Also: 257 names have 257 keys: the limit is 256`},
	} {
		t.Run(tt.about, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				nodes := newModels(3)
				lk := nodes.locker(t, &Options{Prefix: tt.prefix, Separator: tt.separator})
				for _, acquire := range []func(context.Context, string, ...AcquireOption) (*Lock, error){lk.TryAcquire, lk.Acquire, func(ctx context.Context, name string, options ...AcquireOption) (*Lock, error) {
					return nil, lk.Do(ctx, name, func(context.Context, *Lock) error { return nil }, options...)
				}, func(ctx context.Context, name string, options ...AcquireOption) (*Lock, error) {
					if len(options) > 0 {
						return lk.TryAcquire(ctx, name, options...)
					}
					_, err := lk.Inspect(ctx, name)
					if err != nil {
						err = fmt.Errorf("%s", strings.Replace(err.Error(), "inspect", "acquire", 1))
					}
					return nil, err
				}} {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					begin := time.Now()
					l, err := acquire(ctx, tt.name, tt.options...)
					cancel()
					if got := message(err); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) || len(got) > 300 {
						t.Errorf("got %q, want %q", got, tt.want)
					}
					if tt.want != "" && (nodes.seenBy() > 0 || time.Since(begin) > 0) {
						t.Errorf("it was refused after %v, and %d requests", time.Since(begin), nodes.seenBy())
					}
					if l != nil {
						_ = l.Release(t.Context())
					}
				}
			})
		})
	}
}

// TestOptionsThatAreTooLongAreRefused: New refuses an Owner or a Prefix that is too long, in an error that does not
// repeat it.
func TestOptionsThatAreTooLongAreRefused(t *testing.T) {
	for _, tt := range []struct {
		opts Options
		want string
	}{
		{Options{Owner: strings.Repeat("o", MaxOwner)}, ""},
		{Options{Owner: strings.Repeat("o", MaxOwner+1)}, `redlock: Options.Owner "oooooooooooooooooooo…" is 257 bytes long: the limit is 256`},
		{Options{Prefix: strings.Repeat("p", MaxName-1)}, ""},
		{Options{Prefix: strings.Repeat("p", MaxName)}, `redlock: Options.Prefix "pppppppppppppppppppp…" is 1024 bytes long: the limit is 1023, since a name comes after it, and a key has 1024 at most`},
		{Options{Prefix: strings.Repeat("p", 1<<20)}, `is 1048576 bytes long`},
	} {
		_, err := tt.opts.withDefaults(3)
		if got := message(err); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) || len(got) > 300 {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// TestReservedKeys: no lock has a key of the library's own, whatever the prefix: the
// key counts, and not the name.
func TestReservedKeys(t *testing.T) {
	for _, tt := range []struct {
		prefix, separator, name string
		want                    string // in the error; "" if it is fine
	}{
		{prefix: "orders:", name: "queue", want: `the name "queue" would be the key of another lock's queue: it must not end in ":queue", with Options.Prefix "orders:" before it`},
		{prefix: "orders:qu", name: "eue", want: `another lock's queue`},
		{prefix: "orders:slot:", name: "3", want: `another lock's slot`},
		{prefix: "orders:slot", name: ":3", want: `another lock's slot`},
		{prefix: "orders:", separator: "/", name: "queue/a", want: `the path "queue/a": the name "queue" would be the key of another lock's queue`},
		{prefix: "orders", name: "queue"},
		{prefix: "orders:", name: "queues"},
		{prefix: "orders:", name: "fence"},
		{name: "redlock"},
		{prefix: "orders:", name: "slot"},
		{name: "redlock:set", want: `the name "redlock:set" is the key of the nodes' description`},
		{name: "redlock:marker", want: `the name "redlock:marker" is the key of the nodes' marker`},
		{prefix: "redlock:", name: "marker", want: `the name "marker" is the key of the nodes' marker, with Options.Prefix "redlock:" before it`},
		{prefix: "red", name: "lock:marker", want: `the nodes' marker`},
		{prefix: "redlock:", name: "fence", want: `the name "fence" `},
		{prefix: "redlock:", name: "below", want: `the name "below" `},
		{name: "redlock:fence", want: `the name "redlock:fence" `},
		{name: "redlock:below", want: `the name "redlock:below" `},
		{name: "redlock:jobs"},
		{name: "redlocks"},
		{prefix: "a:", name: "redlock:marker"},
	} {
		_, err := (&settings{Options: Options{Separator: tt.separator, Prefix: tt.prefix}}).normalizeName(tt.name)
		if got := message(err); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("prefix %q, name %q: %q, want %q", tt.prefix, tt.name, got, tt.want)
		}
	}
}

// TestEachLockHasALocalQueueOfItsOwn: calls for different locks are in different local queues, whatever bytes the names have.
func TestEachLockHasALocalQueueOfItsOwn(t *testing.T) {
	seen := make(map[string][]string)
	for _, names := range [][]string{{"a", "b\x00c"}, {"a\x00b", "c"}, {"a", "b", "c"}, {"a\x00b\x00c\x00xx"}, {"\x00a"}, {"a"}, {"xx1:a1:b"}, {"a", "b"}, {"\x00xx1:a1:b"}, {"1:a", "b"}} {
		for _, options := range [][]AcquireOption{nil, {Shared()}} {
			o := settings{Options: Options{TTL: time.Second, MaxTTL: time.Second}}
			a, err := o.acquisition(names[0], append(options, Also(names[1:]...)))
			if err != nil {
				t.Fatal(err)
			}
			what := append(slices.Clone(a.keys), a.modes)
			if other, there := seen[a.queue]; there {
				t.Errorf("%q and %q stand in one line", other, what)
			}
			seen[a.queue] = what
		}
	}
}

// TestHandlesAreText: a handle goes through JSON unchanged, or not at all: a name that is no text would become
// another one, and the lock could not be released.
func TestHandlesAreText(t *testing.T) {
	for _, tt := range []struct {
		h    Handle
		want string // in the error; "" if it is fine
	}{
		{Handle{Name: "a", Token: "t"}, ""},
		{Handle{Name: "a\x00\n\"ä\u2028<", Also: []string{"\x7f"}, Prefix: "p\t", Separator: "\x1b", Token: "t"}, ""},
		{Handle{Name: "a\xff", Token: "t"}, `redlock: the handle's name "a\xff" is not UTF-8, so JSON cannot carry it`},
		{Handle{Name: "a", Also: []string{"b", "\xc3"}, Token: "t"}, `name "\xc3" is not UTF-8`},
		{Handle{Name: "a", Prefix: "\xff", Token: "t"}, `prefix "\xff" is not UTF-8`},
		{Handle{Name: "a", Separator: "\xff", Token: "t"}, `separator "\xff" is not UTF-8`},
	} {
		for _, v := range []any{tt.h, &tt.h, map[string]Handle{"h": tt.h}} {
			text, err := json.Marshal(v)
			if got := message(err); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("%+v: got %q, want %q", tt.h, got, tt.want)
			}
			var h Handle
			if _, isMap := v.(map[string]Handle); err != nil || isMap {
				continue
			}
			if err := json.Unmarshal(text, &h); err != nil || !reflect.DeepEqual(h, tt.h) {
				t.Errorf("%+v comes out as %+v, %v", tt.h, h, err)
			}
		}
	}
}

// TestLongTTLs: a TTL of centuries is refused: a deadline in milliseconds would have more
// digits than there is room for in the sets of kinds.lua, where a reader would look like
// a slot; and a quarantine of it overflows.
func TestLongTTLs(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, tt := range []struct {
		opts    Options
		withTTL time.Duration
		want    string
	}{
		{Options{TTL: year}, year, ""},
		{Options{TTL: year + time.Millisecond}, 0, "redlock: Options.TTL 8760h0m0.001s is over 8760h0m0s, which is the longest there can be"},
		{Options{MaxTTL: 290 * year}, 0, "redlock: Options.MaxTTL 2540400h0m0s is over 8760h0m0s"},
		{Options{TTL: math.MaxInt64 / 1e6 * 1e6}, 0, "is over 8760h0m0s"},
		{Options{MaxTTL: year}, 290 * year, "is over 8760h0m0s"},
		{Options{MaxTTL: year}, math.MinInt64, "is not a time to live"},
	} {
		o, err := tt.opts.withDefaults(3)
		if err == nil && tt.withTTL != 0 {
			_, err = o.acquisition("a", []AcquireOption{TTL(tt.withTTL)})
		}
		if got := message(err); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%+v, TTL %v: got %q, want %q", tt.opts, tt.withTTL, got, tt.want)
		}
	}
}

// TestMethodsOfZeroValuesReturnErrors: no method of a Locker or a Lock that is nil or zero panics, and each that can return an error does.
func TestMethodsOfZeroValuesReturnErrors(t *testing.T) {
	failure := reflect.TypeFor[error]()
	for _, value := range []any{(*Locker)(nil), new(Locker), (*Lock)(nil), new(Lock)} {
		v := reflect.ValueOf(value)
		for i := range v.NumMethod() {
			method := v.Type().Method(i)
			if method.Name == "Format" { // of fmt
				_ = fmt.Sprintf("%v %+v", value, value)
				continue
			}
			var args []reflect.Value
			for j := 1; j < method.Type.NumIn(); j++ {
				switch in := method.Type.In(j); {
				case in == reflect.TypeFor[context.Context]():
					args = append(args, reflect.ValueOf(t.Context()))
				case method.Type.IsVariadic() && j == method.Type.NumIn()-1:
				default:
					args = append(args, reflect.Zero(in))
				}
			}
			results := v.Method(i).Call(args)
			if n := len(results); n > 0 && method.Type.Out(n-1) == failure && results[n-1].IsNil() {
				t.Errorf("%T.%s returns no error", value, method.Name)
			}
		}
	}
	if cause := context.Cause((*Lock)(nil).Context(t.Context())); cause != errNoLock {
		t.Errorf("the context of a nil Lock ends with %v", cause)
	}
	for v := range State(100) {
		_ = v.String()
	}
	if d := new(QuorumError).RetryAfter(); d != 0 {
		t.Errorf("a zero QuorumError says to wait for %v", d)
	}
}

// TestNilOption: an option that is nil is named, and not called.
func TestNilOption(t *testing.T) {
	bubble(t, func(t *testing.T) {
		lk := newModels(3).locker(t, nil)
		if _, err := lk.Acquire(t.Context(), "a", AutoRenew(), nil); message(err) != `redlock: acquire "a": option 1 is nil` {
			t.Error(err)
		}
		h, err := acquired(t, lk, "a").Detach()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := lk.Attach(t.Context(), h, nil); message(err) != `redlock: attach "a": option 0 is nil` {
			t.Error(err)
		}
	})
}

// TestMock: a client that sends nothing is a mock. Without a word the Locker would connect to a real server.
func TestMock(t *testing.T) {
	mock := redis.NewClient(&redis.Options{Addr: "10.0.0.1:6379", MaxRetries: -2}) // as redismock makes them
	defer mock.Close()
	if _, err := New([]*redis.Client{mock}, nil); err == nil || !strings.Contains(err.Error(), "it is a mock") {
		t.Errorf("New: %v", err)
	}
}

// TestManyOpenLockersAreWarnedOfOnce: a program that makes Lockers and never closes them is told, once.
func TestManyOpenLockersAreWarnedOfOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		before, told := openLockers.Swap(0), toldLockers.Swap(false)
		defer func() {
			openLockers.Store(before)
			toldLockers.Store(told)
		}()
		var warned []string
		open := func() *Locker {
			return newModels(1).locker(t, &Options{Hooks: &Hooks{Warning: func(err error) { warned = append(warned, err.Error()) }}})
		}
		for range 2 * manyLockers {
			open().Close()
		}
		if len(warned) > 0 {
			t.Errorf("warned although all are closed: %q", warned)
		}
		var all []*Locker
		for range manyLockers + 20 {
			all = append(all, open())
		}
		for _, lk := range all {
			lk.Close()
		}
		if len(warned) != 1 || !strings.HasPrefix(warned[0], "redlock: this process has 100 open Lockers") {
			t.Errorf("warned %q", warned)
		}
		if n := openLockers.Load(); n != 0 {
			t.Errorf("%d are counted as open", n)
		}
	})
}

// TestNewRefusesUnfitNodes: New refuses nodes that would break a lock, by what they say of
// themselves, and names node and setting (F1).
func TestNewRefusesUnfitNodes(t *testing.T) {
	type info = map[string]string
	for _, tt := range []struct {
		name string
		info map[int]info
		want []string // in the error; none: it opens
		warn string
	}{
		{"all well", nil, nil, ""},
		{"a replica", map[int]info{1: {"role": "slave", "master_host": "10.0.0.9", "master_port": "6379"}},
			[]string{"10.0.0.2:6379: ineligible: must not vote: it is a slave (INFO role) of 10.0.0.9:6379"}, ""},
		{"a cluster node", map[int]info{0: {"cluster_enabled": "1"}},
			[]string{"10.0.0.1:6379: ineligible", "cluster_enabled:1"}, ""},
		{"the same server twice", map[int]info{0: {"run_id": "abc"}, 2: {"run_id": "abc"}},
			[]string{"it is the same server as 10.0.0.", "run_id abc"}, ""},
		{"eviction", map[int]info{2: {"maxmemory": "1000000", "maxmemory_policy": "allkeys-lru"}},
			[]string{"10.0.0.3:6379: ineligible", "maxmemory-policy allkeys-lru may evict locks (maxmemory 1000000): set noeviction"}, ""},
		{"eviction of keys with a TTL", map[int]info{2: {"maxmemory": "1", "maxmemory_policy": "volatile-ttl"}},
			[]string{"volatile-ttl"}, ""},
		{"an old Redis", map[int]info{1: {"redis_version": "6.2.14"}},
			[]string{"10.0.0.2:6379: ineligible: must not vote: it is Redis 6.2.14, and the scripts need Redis 7.0: use Redis 7.0 or later, Valkey or Redict"}, ""},
		{"Dragonfly", map[int]info{2: {"dragonfly_version": "df-v1.40.1"}},
			[]string{"10.0.0.3:6379: ineligible: must not vote: it is Dragonfly df-v1.40.1, which does not say which process it is"}, ""},
		{"Garnet", map[int]info{0: {"garnet_version": "1.0.99"}},
			[]string{"10.0.0.1:6379: ineligible: must not vote: it is Garnet 1.0.99, which does not run scripts atomically"}, ""},
		{"Kvrocks", map[int]info{0: {"kvrocks_version": "2.12.0"}}, []string{"it is Kvrocks 2.12.0, which keeps scripts on disk"}, ""},
		{"Valkey and Redict", map[int]info{0: {"valkey_version": "9.1.2"}, 1: {"redict_version": "7.3.6"}}, nil, ""},
		{"two at once", map[int]info{0: {"role": "slave"}, 1: {"cluster_enabled": "1"}},
			[]string{"10.0.0.1:6379: ineligible", "10.0.0.2:6379: ineligible"}, ""},
		{"no memory limit yet", map[int]info{2: {"maxmemory_policy": "allkeys-lru"}}, nil,
			"redlock: node 10.0.0.3:6379: its maxmemory-policy is allkeys-lru"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				nodes := redistest.NewBubble(t, 3)
				for i, fields := range tt.info {
					for field, value := range fields {
						nodes.SetInfo(i, field, value)
					}
				}
				var told warnings
				lk, err := New(nodes.Clients(), &Options{Hooks: &Hooks{Warning: told.add}})
				if err == nil {
					defer lk.Close()
				}
				if (err == nil) != (tt.want == nil) {
					t.Errorf("got %v, want %q", err, tt.want)
				}
				for _, want := range tt.want {
					if !strings.Contains(message(err), want) {
						t.Errorf("got %v, want %q", err, want)
					}
				}
				if got := told.all(); (got == "") != (tt.warn == "") || !strings.Contains(got, tt.warn) {
					t.Errorf("warned %q, want %q", got, tt.warn)
				}
			})
		})
	}
}

type warnings struct {
	mu   sync.Mutex
	text []string
}

func (w *warnings) add(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, err.Error())
}

func (w *warnings) all() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.text, "\n")
}

// TestUnfitNodeThatComesLaterHasNoVote: a node that was away when New looked, or comes back as
// something else, is checked then, and has no vote while it is unfit.
func TestUnfitNodeThatComesLaterHasNoVote(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes := redistest.NewBubble(t, 3)
		nodes.Kill(0)
		lk, err := New(nodes.Clients(), &Options{Quarantine: -1})
		if err != nil {
			t.Fatal("a node that is down is no reason to refuse:", err)
		}
		defer lk.Close()
		nodes.SetInfo(0, "role", "slave")
		nodes.Restart(0, false)
		pass(2 * time.Second)
		nodes.SetInfo(1, "run_id", "f00")
		nodes.SetInfo(2, "run_id", "f00")
		nodes.Restart(2, true)
		nodes.Restart(1, true)
		pass(2 * time.Second)
		_, err = lk.TryAcquire(t.Context(), "a")
		for _, e := range wantQuorumError(t, err, ErrNoQuorum).Nodes() {
			if e.Outcome != OutcomeIneligible && e.Outcome != OutcomeUnreachable {
				t.Error(e)
			}
		}
		pass(2 * time.Second) // to and fro: each may have been first
		_, err = lk.TryAcquire(t.Context(), "a")
		q := wantQuorumError(t, err, ErrNoQuorum)
		if len(q.Nodes()) < 2 || q.Nodes()[0].Outcome != OutcomeIneligible || !strings.Contains(err.Error(), "same server as") {
			t.Error(err)
		}
		nodes.SetInfo(0, "role", "")
		nodes.SetInfo(1, "run_id", "")
		nodes.SetInfo(2, "run_id", "")
		nodes.Restart(2, false)
		pass(5 * time.Second)
		if _, err := lk.TryAcquire(t.Context(), "a"); err != nil {
			t.Errorf("all are well again: %v", err)
		}
		nodes.SetInfo(0, "maxmemory", "1000000")
		nodes.SetInfo(0, "maxmemory_policy", "allkeys-lru")
		nodes.Restart(0, true)
		_, _ = lk.TryAcquire(t.Context(), "b") // and finds the connection broken
		pass(2 * time.Second)
		if status, err := lk.Inspect(t.Context(), "a"); err != nil || status.Nodes[0].Err == nil || status.Nodes[0].Err.Outcome != OutcomeIneligible {
			t.Errorf("a node that evicts keys by now may vote: %v, %+v", err, status)
		}
	})
}

// TestSwappedAddressesAreTwoServers: two servers have changed their addresses, and each is where the other
// was. That is no reason to keep them out; but one that is at both addresses is in once.
func TestSwappedAddressesAreTwoServers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes := redistest.NewBubble(t, 3)
		ids := []string{"aaa", "bbb", "ccc"}
		for i, id := range ids {
			nodes.SetInfo(i, "run_id", id)
		}
		lk, err := New(nodes.Clients(), &Options{Quarantine: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer lk.Close()
		nodes.SetInfo(0, "run_id", ids[1])
		nodes.SetInfo(1, "run_id", ids[0])
		nodes.Restart(0, true)
		nodes.Restart(1, true)
		_, _ = lk.TryAcquire(t.Context(), "any") // and finds the connections broken
		pass(3 * time.Second)
		status, err := lk.Inspect(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range status.Nodes {
			if n.Err != nil {
				t.Errorf("swapped: %v", n.Err)
			}
		}

		nodes.SetInfo(0, "run_id", ids[0])
		nodes.Restart(0, true)
		_, _ = lk.TryAcquire(t.Context(), "any")
		pass(3 * time.Second)
		if status, err = lk.Inspect(t.Context(), "a"); err != nil || status.Nodes[0].Err == nil || status.Nodes[0].Err.Outcome != OutcomeIneligible || status.Nodes[1].Err != nil {
			t.Errorf("the same server twice: %v, %+v", err, status)
		}
	})
}

// TestNewRefusesClientsOfSeveralServers: what is no client of one server is refused before anything
// is sent.
func TestNewRefusesClientsOfSeveralServers(t *testing.T) {
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer cluster.Close()
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	defer ring.Close()
	one := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer one.Close()
	open := func(nodes ...redis.UniversalClient) error {
		lk, err := New(nodes, nil)
		if err == nil {
			lk.Close()
		}
		return err
	}
	connect := func(urls ...string) error {
		lk, err := Connect(urls, nil)
		if err == nil {
			lk.Close()
		}
		return err
	}
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"cluster", open(one, cluster), "node 1: a *redis.ClusterClient is no"},
		{"ring", open(ring), "node 0: a *redis.Ring is no"},
		{"nil", open(one, nil), "node 1: a <nil> is no"},
		{"typed nil", open((*redis.Client)(nil)), "node 0: the *redis.Client is nil"},
		{"none", open(), "no nodes"},
		{"the same address twice", open(one, one), "nodes 0 and 1 are both 127.0.0.1:1"},
		{"no addresses", connect(), "no nodes"},
		{"the same URL twice", connect("redis://127.0.0.1:1", "redis://user@127.0.0.1:1"), "nodes 0 and 1 are both 127.0.0.1:1"},
	} {
		if !strings.Contains(message(tt.err), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, tt.err, tt.want)
		}
	}
	for _, tt := range []struct{ url, want string }{
		{"http://user:secret@h:1", "node 1"},
		{"redis://user:secret@h:port", "node 1"},
		{"redis://user:sec%ret@h", "node 1"},
		{"redis://h:1/x", "node 1"},
		{"h:6379", "node 1"},
		{"redis://user:sec/ret@h", "node 1"},
		{"redis://user:sec#ret@h", "node 1"},
		{"redis://user:sec?ret@h", "node 1"},
		{"redis://user:12/sec@h", "node 1"},
		{"redis://user:12#sec@h", "node 1"},
		{"redis://user:12?sec@h", "node 1"},
		{"", "node 1"},
	} {
		_, err := Connect([]string{"redis://127.0.0.1:1", tt.url}, nil)
		if got := message(err); !strings.Contains(got, tt.want) || strings.Contains(got, "sec") {
			t.Errorf("%q: got %q, want %q and no password", tt.url, got, tt.want)
		}
	}
}

// TestEvenNumberIsUnwise: a Locker over an even number of nodes works, and warns: it survives no more failures than
// one node fewer would.
func TestEvenNumberIsUnwise(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var told warnings
		newModels(4).locker(t, &Options{Hooks: &Hooks{Warning: told.add}})
		if !strings.Contains(told.all(), "4 nodes: an even number") {
			t.Errorf("warned %q", told.all())
		}
	})
}

// TestOpeningWithAHungNode: one node that hangs costs a Locker that is opened and
// closed little, and not a NodeTimeout each.
func TestOpeningWithAHungNode(t *testing.T) {
	for hung, want := range []time.Duration{0, 50 * time.Millisecond, 50 * time.Millisecond, time.Second} {
		bubble(t, func(t *testing.T) {
			ms := newModels(5)
			for _, m := range ms[:hung] {
				m.hang()
			}
			begin := time.Now()
			lk := ms.locker(t, nil)
			if took := time.Since(begin); took != want {
				t.Errorf("%d of 5 hung: opened after %v, want %v", hung, took, want)
			}
			lk.Close()
			if took := time.Since(begin); took != want {
				t.Errorf("%d of 5 hung: opened and closed after %v, want %v", hung, took, want)
			}
		})
	}
}
