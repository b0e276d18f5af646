package redlock

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/lane"
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
				lk, err := ms.start(tt.opts, func(c *modelConn) lane.Server { return c })
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
		{Options{TTL: 50 * ms}, 250 * ms}, {Options{TTL: s}, 250 * ms}, {Options{}, 4301 * ms}, {Options{MaxTTL: time.Minute}, 10 * s},
		{Options{TTL: 50 * ms, Quarantine: 60 * ms}, 250 * ms}, {Options{Quarantine: 13 * s}, 5750 * ms}, {Options{Quarantine: -1}, 10 * s}, {Options{MaxNodeSkew: -1}, -1},
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
			{"a", []AcquireOption{TTL(61 * s)}, `redlock: acquire "a": TTL 1m1s is over Options.MaxTTL 1m0s`, 0},
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
