package redlock

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/seam"
)

// FuzzReply: what a server says to a step is one of the replies that the headers of the
// scripts name, and is taken for that, or it is Failed. And whatever it says, the wait for
// the next attempt is neither none nor longer than a heartbeat.
//
// The form has a letter for each element of a reply: a number, a string, a list of
// strings, or nil. One that begins with = is no list, but its first element alone.
func FuzzReply(f *testing.F) {
	for i, form := range []string{"=n", "n", "sn", "nn", "nsn", "nsnn", "nsnnn", "ns", "snssnll", "", "=0", "0n", "lss"} {
		for step := range byte(opInspect) + 1 {
			f.Add(step, form, int64(i)-1, int64(1.8e15), "p.1 1800000000100 x me|1.7e15|c|1800000000200")
		}
	}
	f.Add(byte(opAcquire), "nsn", int64(1e13), int64(1.8e15), "a key that stays for longer than durations last")
	f.Add(byte(opAcquire), "nsnn", int64(-1), int64(1.8e15), "p.1")
	f.Add(byte(opInspect), "snssnll", int64(0), int64(0), "a|9999999999999|b|NaN|c|-Inf||")

	f.Fuzz(func(t *testing.T, step byte, form string, first, other int64, words string) {
		s := op(step) % (opInspect + 1)
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

		r := parse(s, value, nil)
		if want := meant(s, form, first); r.outcome != want {
			t.Fatalf("%v: %v is taken for %v, not %v", s, value, r.outcome, want)
		}
		if (r.err == nil) != (r.outcome == Granted || r.outcome == Held || r.outcome == Reserved || r.outcome == Expired || r.outcome == Stolen) {
			t.Errorf("%v: %v is %v, and the error %v", s, value, r.outcome, r.err)
		}
		if r.fence != asProposed && (r.fence < 0 || r.fence >= maxFence) && s == opAcquire && r.outcome == Granted {
			t.Errorf("%v: the fence is %d", value, r.fence)
		}
		if o := r.outcome; (o == Held || o == Reserved || o == Stolen) && (r.ttl < 0 || r.ttl < time.Duration(min(first, 1e9))*time.Millisecond) {
			t.Errorf("%v: %d ms are %v", value, first, r.ttl)
		}
		for _, h := range r.holders {
			if h.TTL < 0 || h.How == "" {
				t.Errorf("%v: holder %+v", value, h)
			}
		}

		e := &QuorumError{Op: s.String(), N: 1, Need: 1, Kind: ErrHeld}
		e.note(&NodeError{Outcome: r.outcome, Holder: r.holder, TTL: r.ttl, Err: r.err, slot: r.slot})
		opts := &Options{host: seam.Chance{}}
		if d := e.patience(0, time.Second, opts); d < time.Millisecond || d > beat(time.Second) {
			t.Errorf("%v: the next attempt is in %v", value, d)
		}
		_ = e.Error()
	})
}

// meant is what the headers of the scripts say that a reply of this form means.
func meant(s op, form string, first int64) Outcome {
	held := Held
	switch {
	case s == opAcquire && form == "=n":
		return Granted
	case form == "=n" && first == 0:
		return Expired
	case form == "=n":
		return Granted
	case s == opInspect && form == "snssnll":
		return Granted
	case s == opAcquire && form == "ns":
		return Late
	case s == opAcquire && form == "sn":
		return Quarantined
	case s == opAcquire && form == "nn" && first >= 0 && first < maxFence:
		return Granted
	case s == opAcquire && len(form) == 4 && form[:3] == "nsn": // the fourth is there to be the fourth
		return Reserved
	case s == opAcquire && (form == "nsn" || len(form) == 5 && form[:3] == "nsn" && form[4] == 'n'):
	case s != opAcquire && form == "ns":
		held = Stolen
	default:
		return Failed
	}
	if first < 0 {
		return Foreign
	}
	return held
}
