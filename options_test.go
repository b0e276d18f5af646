package redlock

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/wire"
)

func TestOptions(t *testing.T) {
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
				lk, err := ms.start(tt.opts, func(c *modelConn) execs { return c })
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

func TestAcquireOptions(t *testing.T) {
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
		m.set(func(m *model) { n += len(m.seen) })
	}
	return n
}

// TestLimits: what would take a node long, or fill its memory, is refused before anything
// is sent, by every verb, and at once; the error says what is too much, of how much, and is
// short itself. What is just within the limits works.
func TestLimits(t *testing.T) {
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

// TestLimitsOfOptions: what is too long there is refused by New.
func TestLimitsOfOptions(t *testing.T) {
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

// TestLinesAreApart: calls for different locks are in different local queues, whatever bytes the names have.
func TestLinesAreApart(t *testing.T) {
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
