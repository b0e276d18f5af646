package redlock

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/sim"
	"github.com/quorumlock/redlock/internal/waitlist"
	"github.com/quorumlock/redlock/internal/wire"
)

// FuzzReply: what a server says to a step is one of the replies that the headers of the
// scripts name, and is taken for that, or it is Failed. And whatever it says, the wait for
// the next attempt is neither none nor longer than a heartbeat.
//
// The form has a letter for each element of a reply: a number, a string, a list of
// strings, or nil. One that begins with = is no list, but its first element alone.
func FuzzReply(f *testing.F) {
	for i, form := range []string{"=n", "n", "sn", "nn", "nsn", "nsnn", "nsnnn", "ns", "snssnll", "", "=0", "0n", "lss"} {
		for step := range byte(wire.Inspect) + 1 {
			f.Add(step, form, int64(i)-1, int64(1.8e15), "p.1 1800000000100 x me|1.7e15|c|1800000000200")
		}
	}
	f.Add(byte(wire.Acquire), "nsn", int64(1e13), int64(1.8e15), "a key that stays for longer than durations last")
	f.Add(byte(wire.Acquire), "nsnn", int64(-1), int64(1.8e15), "p.1")
	f.Add(byte(wire.Inspect), "snssnll", int64(0), int64(0), "a|9999999999999|b|NaN|c|-Inf||")

	f.Fuzz(func(t *testing.T, step byte, form string, first, other int64, words string) {
		s := wire.Op(step) % (wire.Inspect + 1)
		form, bare := strings.CutPrefix(form, "=")
		v := make([]any, 0, len(form))
		said := strings.Split(words, "|")
		for i := range len(form) {
			var element any
			switch form[i] {
			case 'n':
				element = other
				if !strings.Contains(form[:i], "n") {
					element = first
				}
			case 's':
				element = said[i%len(said)]
			case 'l':
				list := make([]any, len(said))
				for i := range said {
					list[i] = said[i]
				}
				element = list
			}
			v = append(v, element)
		}
		var value any = v
		if bare && len(v) > 0 {
			form = "=" + form[:1]
			value = v[0]
		}

		r := wire.Parse(s, value, nil)
		if want := meant(s, form, first); r.Status != want {
			t.Fatalf("%v: %v is taken for %v, not %v", s, value, r.Status, want)
		}
		if (r.Err == nil) != (r.Status == wire.Granted || r.Status == wire.Held || r.Status == wire.Reserved || r.Status == wire.Expired || r.Status == wire.Stolen) {
			t.Errorf("%v: %v is %v, and the error %v", s, value, r.Status, r.Err)
		}
		if r.Fence != wire.AsProposed && (r.Fence < 0 || r.Fence >= wire.MaxFence) && s == wire.Acquire && r.Status == wire.Granted {
			t.Errorf("%v: the fence is %d", value, r.Fence)
		}
		if o := r.Status; (o == wire.Held || o == wire.Reserved || o == wire.Stolen) && (r.TTL < 0 || r.TTL < time.Duration(min(first, 1e9))*time.Millisecond) {
			t.Errorf("%v: %d ms are %v", value, first, r.TTL)
		}
		for _, h := range r.Holders {
			if h.TTL < 0 || h.Mode == 0 {
				t.Errorf("%v: holder %+v", value, h)
			}
		}

		e := &QuorumError{Op: s.String(), N: 1, Need: 1, Kind: ErrHeld}
		e.note(&NodeError{Outcome: Outcome(r.Status), Holder: r.Holder, TTL: r.TTL, Err: r.Err, slot: r.Slot})
		refusal := e.refusal()
		if d := refusal.RetryIn(0, time.Second, sim.Chance{}); d < time.Millisecond || d > waitlist.Heartbeat(time.Second) {
			t.Errorf("%v: the next attempt is in %v", value, d)
		}
		_ = e.Error()
	})
}

// meant is what the headers of the scripts say that a reply of this form means.
func meant(s wire.Op, form string, first int64) wire.Status {
	held := wire.Held
	switch {
	case s == wire.Acquire && form == "=n":
		return wire.Granted
	case form == "=n" && first == 0:
		return wire.Expired
	case form == "=n":
		return wire.Granted
	case s == wire.Inspect && form == "snssnll":
		return wire.Granted
	case s == wire.Acquire && form == "ns":
		return wire.Late
	case s == wire.Acquire && form == "sn":
		return wire.Quarantined
	case s == wire.Acquire && form == "nn" && first >= 0 && first < wire.MaxFence:
		return wire.Granted
	case s == wire.Acquire && len(form) == 4 && form[:3] == "nsn": // the fourth is there to be the fourth
		return wire.Reserved
	case s == wire.Acquire && (form == "nsn" || len(form) == 5 && form[:3] == "nsn" && form[4] == 'n'):
	case s != wire.Acquire && form == "ns":
		held = wire.Stolen
	default:
		return wire.Failed
	}
	if first < 0 {
		return wire.Foreign
	}
	return held
}
