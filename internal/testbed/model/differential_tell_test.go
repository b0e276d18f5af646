package model_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/testbed/model"
	"github.com/quorumlock/redlock/internal/wire"
)

// A formatter makes text of the result of a step. With exact, times are compared exactly, since both
// clocks are the same; otherwise a time only has to be about now. The milliseconds that a key has left
// are never compared, only whether there are any: a miniredis does not round as Redis does.
type formatter struct{ exact bool }

func (w formatter) format(c *model.Call, v any, err error) string {
	if p, ok := v.(plainSays); ok {
		return w.plain(p)
	}
	if err != nil {
		word, _, _ := strings.Cut(err.Error(), " ")
		return word
	}
	if list, ok := v.([]any); c.Op == wire.Choose && ok && len(list) == 6 {
		return fmt.Sprintf("%q %v ", list[:4], list[5]) + w.value(list[4], false)
	}
	if c.Op == wire.Choose || c.Op == wire.Merge {
		return fmt.Sprintf("%q", v)
	}
	list, ok := v.([]any)
	if !ok {
		return w.value(v, c.Op != wire.Raise && c.Op != wire.Release)
	}
	words := make([]string, len(list))
	for i, v := range list {
		words[i] = w.value(v, i == min(len(list)-1, 4) && len(list) != 5 || i == 2 || late(list))
		if n, ok := v.(int64); ok && n > 0 && (i == 0 && len(list) >= 3 || i == 0 && c.Op != wire.Acquire || i == 1 && len(list) == 7) {
			words[i] = "time left"
		}
	}
	return strings.Join(words, ", ")
}

// plainSays is the answer to an acquire of plain commands, and the call with the marker that the client
// knows.
type plainSays struct {
	*wire.PlainAnswer
	call model.Call
}

// read is what the library makes of it.
func (p plainSays) read() wire.Reply {
	return p.Read(p.call.Token, p.call.Fence, p.call.Latest, p.call.Mark)
}

func (w formatter) plain(p plainSays) string {
	word := func(err error) string {
		first, _, _ := strings.Cut(fmt.Sprint(err), " ")
		return first
	}
	r := p.read()
	return fmt.Sprint(p.Set, word(p.Refused), p.Advanced, " ", p.Holder, " ", p.Queues, word(p.Err), " ", w.value(p.Marker, false),
		p.Known, word(p.Failed), " ", time.Since(time.UnixMicro(p.Time)).Abs() < time.Minute, " ", r.Status, word(r.Err))
}

// late reports whether a reply says that an acquire came too late: it has the time and the marker.
func late(list []any) bool {
	if len(list) != 2 {
		return false
	}
	_, marker := list[1].(string)
	return marker
}

// value formats one value; the last one of a reply may be the node's time.
func (w formatter) value(v any, last bool) string {
	about := func(t time.Time) bool { return !w.exact && time.Since(t).Abs() < time.Minute }
	switch v := v.(type) {
	case []string: // the messages that were received
		return strings.Join(v, " and ")
	case int64:
		if last && about(time.UnixMicro(v)) {
			return "now"
		}
	case []any: // the waiters
		var all []string
		for i := 0; i < len(v); i += 2 {
			if mode, until := wire.ParseScore(v[i+1].(string)); strings.HasPrefix(v[i].(string), "token.") { // or the holders
				if !w.exact && time.Until(time.UnixMilli(until)) < 2*time.Hour {
					until = 0
				}
				all = append(all, fmt.Sprintf("%s %c %d", v[i], mode, until))
				continue
			}
			e, ok := wire.ParseQueueEntry(v[i].(string), v[i+1].(string))
			if !w.exact && time.Since(time.UnixMilli(e.Deadline)).Abs() < time.Minute {
				e.Deadline = 0
			}
			all = append(all, fmt.Sprint(&e, e.Ticket, ok))
		}
		return strings.Join(all, " and ")
	case string:
		if mark, ok := wire.ParseMarker(v); ok && about(time.UnixMilli(mark.Born)) {
			mark.Born = 0 // the writer's clock shows the same to both
			return mark.String()
		}
	}
	return fmt.Sprintf("%T %v", v, v)
}

// kind names the kind of an answer, so that the test can check that each kind occurred.
func kind(s step, v any, err error) string {
	name := s.other
	if name == "" {
		name = s.call.Op.String()
	}
	if err != nil {
		return name + " " + formatter{}.format(&s.call, v, err)
	}
	switch v := v.(type) {
	case plainSays:
		r := v.read()
		if text := fmt.Sprint(r.Err); r.Status == wire.Void {
			return name + " void: " + text
		}
		return fmt.Sprint(name, " ", r.Status)
	case int64:
		return fmt.Sprint(name, " ", min(v, 2)) // 2: a time
	case []any:
		switch c, chose := wire.ParseChosen(v); {
		case s.call.Op != wire.Choose || s.other != "" || !chose:
		case c.Promised == "":
			return name + " no part"
		case c.Promised != s.call.Args[1]:
			return name + " refused"
		case s.call.Args[2] != "" && c.Taken == c.Promised:
			return name + " taken"
		case c.Taken == "":
			return name + " promised"
		default:
			return name + " promised, and has taken one"
		}
		if s.call.Op == wire.Acquire && late(v) {
			return name + " late"
		}
		return fmt.Sprintf("%s %d %T", name, len(v), v[0])
	}
	return name
}

// count counts the kinds of answers, and the messages, by their number of words.
func count(seen map[string]int, s step, v any, err error) {
	seen[kind(s, v, err)]++
	if list, _ := v.([]any); s.other == "join" && err == nil {
		seen[fmt.Sprint("kept ", wire.ParseKept(list[3].(string)).At())]++
	}
	messages, _ := v.([]string)
	for _, m := range messages {
		seen[fmt.Sprint("heard ", len(strings.Split(m, " ")))]++
	}
}

// drawn forgets the calls of the scripted sequences: the drawn ones must have some as well.
func drawn(seen map[string]int) {
	maps.DeleteFunc(seen, func(kind string, _ int) bool { return strings.HasPrefix(kind, "heard ") })
}

// note keeps the last fence of each key.
func note(last map[string]int64, s step, v any) {
	list, _ := v.([]any)
	switch {
	case s.other == "flush", s.other == "flush counters":
		clear(last)
	case s.other != "":
	case s.call.Op == wire.Plain:
		if p := v.(plainSays); p.Advanced == 1 {
			last[s.key()] = s.call.Fence
		}
	case s.call.Op == wire.Raise && v == int64(1):
		last[s.key()] = s.call.Fence
	case s.call.Op == wire.Acquire && v != nil && list == nil:
		last[s.key()] = s.call.Fence
	case s.call.Op == wire.Acquire && len(list) == 2:
		if n, ok := list[0].(int64); ok {
			last[s.key()] = n
		}
	}
}

func tell(all []step) string {
	var lines strings.Builder
	for _, s := range all {
		fmt.Fprintf(&lines, "\t%v\n", s)
	}
	return lines.String()
}

// wantSeen checks that every kind of answer was compared.
func wantSeen(t *testing.T, seen map[string]int, kinds ...string) {
	t.Helper()
	for _, kind := range append(kinds,
		"acquire 2 int64", "acquire 2 string", "acquire late", "acquire 3 int64", "acquire 2", "acquire NOSCRIPT", "acquire WRONGTYPE",
		"raise 0", "raise 1", "raise NOSCRIPT", "raise WRONGTYPE",
		"extend 0", "extend 2", "extend 2 int64", "extend NOSCRIPT", "extend WRONGTYPE",
		"release 0", "release 1", "release 2 int64", "release NOSCRIPT", "release WRONGTYPE",
		"inspect 7 string", "acquire 4 int64", "acquire 5 int64", "leave 0", "leave 1", "yield 0", "yield 1", "yield 2 int64", "inspect NOSCRIPT", "wake 0", "inspect WRONGTYPE", "set", "set redis:",
		"plain granted", "plain held", "plain void: "+wire.ErrForgot.Error(),
		"plain void: "+wire.ErrNoScripts.Error(), "plain void: "+wire.ErrOvertaken.Error(), "plain void: other clients wait for the lock",
		"kept 0", "kept 1", "kept 2", "kept 3", "choose no part", "choose refused", "choose promised", "choose taken", "choose promised, and has taken one",
		"merge 1", "merge 2 []interface {}",
		"join 4 string", "join unmarked 4 string", "foreign", "flush", "flush counters", "flush scripts",
		"listen", "heard", "heard 1") {
		if seen[kind] < 3 {
			t.Errorf("%q was seen %d times: %v", kind, seen[kind], seen)
		}
	}
}
