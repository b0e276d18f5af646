package coverage

import (
	"slices"
	"strings"

	"github.com/quorumlock/redlock/chaos/history"
)

// The steps of clients that last for a while: a fault may begin meanwhile. Those of a request are its verb, and those of a
// change of the set the first word of its name.
const (
	holding   = "hold"
	extending = "extend"
	handingOn = "hand on"
	releasing = "release"
	breaking  = "break"
	over      = "" // nothing is under way, but more may follow
)

var faults = &Table{
	Name: "faults", About: "a fault begins, a step is under way",
	Rows: func() (all []string) {
		for _, kind := range []history.FaultKind{
			history.Kill, history.KillEmpty, history.Hang, history.Slow, history.Jitter, history.Cut, history.CutRequests, history.CutReplies,
			history.Part, history.Reset, history.LoseReplies, history.TearReplies, history.Repeat, history.RepeatLate, history.Flush, history.Evict,
			history.Full, history.ReadOnly, history.Loading, history.Locked, history.Crowded, history.FlushScripts, history.Busy, history.Foreign,
			history.Values, history.Forget, history.Step, history.Mute, history.Deafen, history.Churn, history.Clock, history.Still,
			history.Mislead, history.Restore, history.Copy, history.Remake, history.Boot, history.Pause, history.Suspend, history.Crash, history.Skew,
			history.CutFile, history.FlipFile, history.OldFile, history.OtherFile, history.PowerCut, history.DiskFull, history.Slew,
		} {
			all = append(all, string(kind))
		}
		return all
	}(),
	Columns: []string{"try", "acquire", "do", "plain", holding, extending, handingOn, releasing, "add", "remove", "quorum", "max-ttl", breaking},
}

// What happens to the client of a lock, and not to the lock.
const (
	crashed   = "crashed"
	stopped   = "stopped"
	suspended = "suspended"
)

var kinds = &Table{
	Name: "kinds", About: "an event, a kind of lock",
	Rows: []string{
		"got", "denied: held", "denied: no quorum", "denied: cancelled", "denied: refused", "denied: other",
		"renewed", "extended", "failed: lost", "failed: max hold", "failed: no quorum", "failed: cancelled", "failed: other",
		"handed on", "not handed on", "told: released", "told: lost", "told: max hold", "told: other",
		"released", "released: lost", "released: max hold", "released: no quorum", "released: other",
		"wrote", "refused", "broke", "broke: other",
		"holder " + crashed, "waiter " + crashed, "holder " + stopped, "waiter " + stopped, "holder " + suspended, "waiter " + suspended,
	},
	Columns: []string{"exclusive", "shared", "slot", "several names", "several names, shared", "in a folder", "in a folder, shared"},
}

// kindOf returns the column of a request in kinds.
func kindOf(w history.Request, separator string) (kind string) {
	switch {
	case w.Slots > 0:
		return "slot"
	case w.Also != "":
		kind = "several names"
	case separator != "" && strings.Contains(w.Name, separator):
		kind = "in a folder"
	case w.Shared:
		return "shared"
	default:
		return "exclusive"
	}
	if w.Shared {
		kind += ", shared"
	}
	return kind
}

// An op is an operation of a client: an acquisition with all that follows, a change, or a break.
type op struct {
	step, kind, verb string // of a change or a break, kind is ""
	got, told        bool
}

// A reader goes through a history.
type reader struct {
	*Sheet
	separator string
	ops       map[[2]int]*op    // those under way, by client and number
	kinds     map[string]string // of locks, by token
}

// History counts the situations of a history.
func (s *Sheet) History(h *history.History) {
	r := reader{s, h.Run.Separator, make(map[[2]int]*op), make(map[string]string)}
	for i := range h.Events {
		e := &h.Events[i]
		switch e.Kind {
		case history.Struck:
			for _, o := range r.ops {
				if o.step != over {
					r.mark(faults, string(e.Fault.Kind), o.step)
				}
			}
		case history.Crashed, history.Held:
			r.stops(e)
		case history.Changing, history.Changed, history.Break, history.Broke:
			r.operates(e)
		default:
			if e.Client > 0 && e.Op > 0 {
				r.locks(e)
			}
		}
	}
}

// happens marks an event of a lock of a kind.
func (r *reader) happens(e *history.Event, kind string) {
	row := string(e.Kind)
	if e.Why != "" {
		if row += ": " + e.Why; !slices.Contains(kinds.Rows, row) {
			row = string(e.Kind) + ": other"
		}
	}
	if slices.Contains(kinds.Rows, row) {
		r.mark(kinds, row, kind)
	}
}

// locks takes an event of a lock.
func (r *reader) locks(e *history.Event) {
	key := [2]int{e.Client, e.Op}
	if e.Kind == history.Ask {
		r.ops[key] = &op{step: e.Verb, kind: kindOf(e.Request(), r.separator), verb: e.Verb}
		return
	}
	o := r.ops[key]
	if o == nil {
		return
	}
	switch {
	case o.step == handingOn && e.Kind == history.Extended:
		r.mark(kinds, "handed on", o.kind)
	case o.step == handingOn && e.Kind == history.Failed:
		r.mark(kinds, "not handed on", o.kind)
	default:
		r.happens(e, o.kind)
	}
	switch e.Kind {
	case history.Got:
		o.step, o.got = holding, true
		r.kinds[e.Token] = o.kind
	case history.Denied:
		delete(r.ops, key)
	case history.Extend:
		if o.step = extending; e.Verb == history.VerbHandOn {
			o.step = handingOn
		}
	case history.Extended, history.Failed:
		if o.step = holding; o.told {
			o.step = over
		}
	case history.Release:
		o.step = releasing
	case history.Told:
		if o.told = true; o.step == holding {
			o.step = over // it may still be released
		}
	case history.Released:
		if o.step = over; o.told || o.verb == "plain" {
			delete(r.ops, key)
		}
	}
}

// operates takes an event of an operator.
func (r *reader) operates(e *history.Event) {
	key := [2]int{e.Client, e.Op}
	switch e.Kind {
	case history.Changing:
		what, _, _ := strings.Cut(e.Name, " ")
		r.ops[key] = &op{step: what}
	case history.Break:
		r.ops[key] = &op{step: breaking}
	case history.Broke:
		if kind := r.kinds[e.Token]; kind != "" {
			r.happens(e, kind)
		}
		fallthrough
	case history.Changed:
		delete(r.ops, key)
	}
}

// stops takes the crash of a client, or that it is held up.
func (r *reader) stops(e *history.Event) {
	how := crashed
	switch {
	case e.Why == history.WhySuspended:
		how = suspended
	case e.Kind == history.Held:
		how = stopped
	}
	for key, o := range r.ops {
		switch {
		case key[0] != e.Client:
			continue
		case o.got:
			r.mark(kinds, "holder "+how, o.kind)
		case o.kind != "":
			r.mark(kinds, "waiter "+how, o.kind)
		}
		if e.Kind == history.Crashed {
			delete(r.ops, key)
		}
	}
}
