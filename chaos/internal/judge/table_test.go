package judge

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
)

// HistoryOf makes a history of lines "at client/op kind field=value ...", separated by semicolons.
// Missing fields have the usual values: the name a, the verb acquire, the token of the op; and a
// lock that is got is the one that was asked for.
func HistoryOf(t testing.TB, unit time.Duration, run, text string) *history.History {
	t.Helper()
	h := &history.History{Run: history.Head{Lag: 2 * unit, Bound: 50 * unit, Clients: 3}}
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		return n
	}
	duration := func(s string) time.Duration { return time.Duration(number(s)) * unit }
	for _, field := range strings.Fields(run) {
		switch key, value, _ := strings.Cut(field, "="); key {
		case "paths":
			h.Run.Separator = "/"
		case "always":
			h.Run.Always = true
		case "settled":
			h.Run.Settled = true
		case "ttl":
			h.Run.TTL = duration(value)
		case "planned":
			h.Run.Planned = true
		case "exact":
			h.Run.Exact = true
		case "forgetful":
			h.Run.Forgetful = true
		case "clients":
			h.Run.Clients = number(value)
		case "bound":
			h.Run.Bound = duration(value)
		case "nodes":
			h.Run.Nodes, h.Run.Quorum = number(value), number(value)/2+1
		case "settle":
			h.Run.Settle = duration(value)
		case "idle":
			h.Run.Idle, h.Run.TTL, h.Run.Grace = duration(value), 10*unit, 5*unit
		case "slight":
			h.Run.Slight = duration(value)
		case "keys":
			h.Run.MostKeys = number(value)
		case "bytes":
			h.Run.MostBytes = number(value)
		case "requests":
			h.Run.MostRequests = number(value)
		default:
			t.Fatalf("%q: no such setting", field)
		}
	}
	asked := make(map[string]history.Request)
	for line := range strings.SplitSeq(text, ";") {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		e := history.Event{At: duration(fields[0]), Kind: history.Kind(fields[2])}
		if fields[1] != "-" {
			client, op, _ := strings.Cut(fields[1], "/")
			e.Client, e.Op = number(client), number("0"+op)
		}
		switch e.Kind {
		case "held":
			e.Kind = history.Held
		case history.Ask:
			e.Name, e.Verb = "a", "acquire"
		case history.Got:
			e.Name = "a"
			if w, ok := asked[fields[1]]; ok {
				e = w.Fill(e)
			}
			e.Token = "t" + fields[1]
		case history.Read, history.Wrote, history.Refused, history.Found:
			e.Name = "a"
		case history.Weighed:
			e.Weight = new(history.Weight)
		case history.Struck, history.Healed:
			e.Fault = &history.Fault{At: e.At, Kind: history.Kill}
		}
		for _, field := range fields[3:] {
			switch key, value, _ := strings.Cut(field, "="); key {
			case "name":
				e.Name = value
			case "also":
				e.Also = strings.ReplaceAll(value, ",", " ")
			case "shared":
				e.Shared = true
			case "slots":
				e.Slots = number(value)
			case "alone":
				e.Also, e.Shared, e.Slots = "", false, 0
			case "verb":
				e.Verb = value
			case "limit":
				e.Limit = duration(value)
			case "token":
				e.Token = value
			case "fence":
				e.Fence = uint64(number(value))
			case "until":
				e.Until = duration(value)
			case "value":
				e.Value = number(value)
			case "was":
				e.Was = number(value)
			case "why":
				e.Why = value
			case "error":
				e.Error = value
			case "trouble":
				e.Fault.Kind = history.FaultKind(strings.ReplaceAll(value, "_", " "))
			case "node":
				e.Fault.Node = number(value)
			case "for":
				e.Fault.For = duration(value)
			case "by":
				e.Fault.By = duration(value)
			case "began":
				e.Fault.At = duration(value)
			case "keys":
				e.Weight.Keys = number(value)
			case "bytes":
				e.Weight.Bytes = number(value)
			case "requests":
				e.Weight.Requests = number(value)
			case "nothing":
				e.Fault, e.Weight = nil, nil
			default:
				t.Fatalf("%q: no such field", field)
			}
		}
		if e.Kind == history.Ask {
			asked[fields[1]] = e.Request()
		}
		h.Events = append(h.Events, e)
	}
	return h
}

// brief formats violations as in the tables: "rule at [events]".
func brief(violations []Violation) string {
	var all []string
	for _, v := range violations {
		all = append(all, fmt.Sprintf("%s %d %v", v.Rule, v.At.Nanoseconds(), v.Events))
	}
	return strings.Join(all, "; ")
}

// judgeCases are histories at the edges of each rule, with the judge's verdicts. Lag is 2, Bound 50.
var judgeCases = []struct{ name, run, history, want string }{
	{"nothing", "", "", ""},
	{"all is well", "", `1 1/1 ask limit=9; 2 1/1 got until=30; 3 1/1 read; 4 1/1 wrote value=1; 5 1/1 extend limit=5; 7 1/1 extended until=35;
		8 1/1 read value=1; 9 1/1 wrote value=2 was=1; 10 1/1 release until=35; 11 1/1 told until=35 why=released; 12 1/1 released; 99 - calm`, ""},

	{"one after the other", "", "1 1/1 ask; 2 1/1 got until=9; 9 1/1 told; 9 2/1 ask; 9 2/1 got until=20; 10 2/1 release; 10 2/1 released", ""},
	{"overlap", "", "1 1/1 ask; 2 1/1 got until=9; 3 2/1 ask; 8 2/1 got until=20; 9 1/1 told; 10 2/1 release; 10 2/1 released", "exclusion 8 [1 3]"},
	{"overlap, and a clock was wrong for a moment", "", "1 1/1 ask; 2 1/1 got until=9; 3 2/1 ask; 4 - struck trouble=step for=2; 6 - healed trouble=step for=2 began=4; 8 2/1 got until=20; 9 1/1 told; 10 2/1 release; 10 2/1 released", ""},
	{"overlap, and a clock was wrong before", "", "0 - struck trouble=step for=2; 2 - healed trouble=step for=2 began=0; 3 1/1 ask; 4 1/1 got until=9; 5 2/1 ask; 8 2/1 got until=20; 9 1/1 told; 10 2/1 release; 10 2/1 released", "exclusion 8 [3 5]"},
	{"overlap, and a clock stays wrong", "", "1 1/1 ask; 2 1/1 got until=9; 3 2/1 ask; 4 - struck trouble=step; 8 2/1 got until=20; 9 1/1 told; 10 2/1 release; 10 2/1 released", "exclusion 8 [1 4]"},
	{"from the same instant on", "", "1 1/1 ask; 1 2/1 ask; 2 1/1 got until=9; 2 2/1 got until=7; 4 1/1 release; 4 2/1 release; 5 1/1 released; 5 2/1 released", "exclusion 2 [2 3]"},
	{"other names", "", "1 1/1 ask; 2 1/1 got until=9; 3 2/1 ask name=b; 8 2/1 got name=b until=20; 9 1/1 told; 10 2/1 release; 10 2/1 released", ""},
	{"given back before", "", "1 1/1 ask; 2 1/1 got until=30; 3 1/1 release; 3 2/1 ask; 3 2/1 got until=20; 4 1/1 released; 10 2/1 release; 10 2/1 released", ""},
	{"told before", "", "1 1/1 ask; 2 1/1 got until=30; 3 1/1 told why=lost; 3 2/1 ask; 3 2/1 got until=20; 10 2/1 release; 10 2/1 released", ""},
	{"told after", "", "1 1/1 ask; 2 1/1 got until=30; 3 2/1 ask; 3 2/1 got until=20; 4 1/1 told why=lost; 10 2/1 release; 10 2/1 released", "exclusion 3 [1 3]"},
	{"dead before", "", "1 1/1 ask; 2 1/1 got until=30; 3 1 crashed; 3 2/1 ask; 3 2/1 got until=20; 10 2/1 release; 10 2/1 released", ""},
	{"dead after", "", "1 1/1 ask; 2 1/1 got until=30; 3 2/1 ask; 3 2/1 got until=20; 4 1 crashed; 10 2/1 release; 10 2/1 released", "exclusion 3 [1 3]"},
	{"another client dead", "", "1 1/1 ask; 2 1/1 got until=30; 2 3 crashed; 3 2/1 ask; 3 2/1 got until=20; 10 2/1 release; 10 2/1 released; 11 1/1 told", "exclusion 3 [1 4]"},
	{"got by the dead", "", "1 1/1 ask; 2 1 crashed; 3 1/1 got until=30; 4 2/1 ask; 4 2/1 got until=20; 10 2/1 release; 10 2/1 released; 90 - calm", ""},
	{"overlap by an extension", "", "1 1/1 ask; 2 1/1 got until=9; 3 1/1 extend; 4 1/1 extended until=12; 5 2/1 ask; 11 2/1 got until=20; 12 1/1 told; 13 2/1 release; 13 2/1 released", "exclusion 11 [1 5]"},
	{"overlap by a renewal", "", "1 1/1 ask; 2 1/1 got until=9; 4 1/1 renewed until=12; 5 2/1 ask; 11 2/1 got until=20; 12 1/1 told; 13 2/1 release; 13 2/1 released", "exclusion 11 [1 4]"},
	{"overlap by what came to light at the end", "", "1 1/1 ask; 2 1/1 got until=9; 5 2/1 ask; 11 2/1 got until=20; 12 1/1 told until=12; 13 2/1 release; 13 2/1 released", "exclusion 11 [1 3]"},
	{"overlap by what came to light at the release", "", "1 1/1 ask; 2 1/1 got until=9; 5 2/1 ask; 11 2/1 got until=20; 12 1/1 release until=14; 12 1/1 released; 13 2/1 release; 13 2/1 released", "exclusion 11 [1 3]"},
	{"the end is not moved back", "", "1 1/1 ask; 2 1/1 got until=9; 5 2/1 ask; 8 2/1 got until=20; 9 1/1 told until=7; 13 2/1 release until=5; 13 2/1 released", "exclusion 8 [1 3]"},
	{"valid for no time", "", "1 1/1 ask; 2 1/1 got until=9; 3 2/1 ask; 3 2/1 got until=20; 3 2/1 release; 4 2/1 released; 9 1/1 told", ""},
	{"an empty one hides none", "", `1 1/1 ask; 2 1/1 got until=9; 3 2/1 ask; 3 2/1 got until=20; 3 2/1 release; 4 2/1 released;
		5 3/1 ask; 5 3/1 got until=6; 6 3/1 release; 6 3/1 released; 9 1/1 told`, "exclusion 5 [1 7]"},
	{"each with the one that reaches farthest", "", `1 1/1 ask; 1 2/1 ask; 1 3/1 ask; 1 2/2 ask; 2 1/1 got until=9; 3 2/1 got until=5; 4 3/1 got until=9; 8 2/2 got until=10;
		8 2/1 told until=5; 9 1/1 told; 9 3/1 told; 10 2/2 told`, "exclusion 3 [4 5]; exclusion 4 [4 6]; told 7 [5 8]; exclusion 8 [4 7]"},
	{"in the order of time, not of lines", "", "1 2/1 ask; 6 2/1 got until=20; 1 1/1 ask; 2 1/1 got until=9; 9 1/1 told; 10 2/1 release; 11 2/1 released",
		"well-formed 1 [2]; exclusion 6 [3 1]"},

	{"no token", "", "1 1/1 ask; 2 1/1 got token= until=9; 3 1/1 release; 3 1/1 released", "tokens 2 [1]"},
	{"no token, twice", "", "1 1/1 ask; 2 1/1 got token= until=9; 3 1/1 release; 3 1/1 released; 4 1/2 ask; 4 1/2 got token= until=9; 5 1/2 release; 5 1/2 released", "tokens 2 [1]; tokens 4 [5]"},
	{"the same token", "", `1 1/1 ask; 2 1/1 got token=t until=9; 3 1/1 release; 3 1/1 released; 4 2/1 ask name=b; 5 2/1 got name=b token=t until=9; 6 2/1 release; 6 2/1 released;
		7 2/2 ask; 7 2/2 got token=t until=9; 8 2/2 release; 8 2/2 released`, "tokens 5 [1 5]; tokens 7 [1 9]"},

	{"told just in time", "", "1 1/1 ask; 2 1/1 got until=9; 11 1/1 told; 99 - calm", ""},
	{"told too late", "", "1 1/1 ask; 2 1/1 got until=9; 12 1/1 told; 99 - calm", "told 11 [1 2]"},
	{"never told", "", "1 1/1 ask; 2 1/1 got until=9; 12 - calm", "told 11 [1]"},
	{"not told when the history ends", "", "1 1/1 ask; 2 1/1 got until=9; 11 - calm", ""},
	{"released just before", "", "1 1/1 ask; 2 1/1 got until=9; 11 1/1 release; 12 1/1 released", ""},
	{"released later, and not told", "", "1 1/1 ask; 2 1/1 got until=9; 12 1/1 release; 13 1/1 released error=lost", "told 11 [1]"},
	{"died just before", "", "1 1/1 ask; 2 1/1 got until=9; 11 1 crashed; 99 - calm", ""},
	{"died later, and not told", "", "1 1/1 ask; 2 1/1 got until=9; 12 1 crashed; 99 - calm", "told 11 [1]"},
	{"died with what late answers may have extended", "", "1 1/1 ask; 2 1/1 got until=9; 3 1/1 extend; 4 1/1 failed; 30 1 crashed; 99 - calm", ""},
	{"told too late of what was not extended, and died", "", "1 1/1 ask; 2 1/1 got until=9; 3 1/1 extend; 4 1/1 failed; 12 1/1 told until=9; 30 1 crashed; 99 - calm", "told 11 [1 4]"},
	{"told of an extended one", "", "1 1/1 ask; 2 1/1 got until=9; 3 1/1 extend; 4 1/1 extended until=20; 22 1/1 told; 99 - calm", ""},
	{"told of a renewed one", "", "1 1/1 ask; 2 1/1 got until=9; 22 1/1 told until=20; 99 - calm", ""},
	{"never told of what it knew of", "", "1 1/1 ask; 2 1/1 got until=9; 3 1/1 extend; 4 1/1 extended until=8; 12 - calm", "told 11 [1]"},
	{"died with what was renewed last", "", "1 1/1 ask; 2 1/1 got until=9; 5 1/1 renewed until=20; 30 1 crashed; 99 - calm", ""},
	{"died with what was to be renewed", "", "1 1/1 ask why=renewed; 2 1/1 got until=9; 30 1 crashed; 99 - calm", ""},
	{"died with what do renews", "", "1 1/1 ask verb=do; 2 1/1 got until=9; 30 1 crashed; 99 - calm", ""},
	{"told too late of what was renewed, and died", "", "1 1/1 ask why=renewed; 2 1/1 got until=9; 12 1/1 told until=9; 30 1 crashed; 99 - calm", "told 11 [1 2]"},
	{"released too late what was renewed, and died", "", "1 1/1 ask why=renewed; 2 1/1 got until=9; 12 1/1 release until=9; 30 1 crashed; 99 - calm", "told 11 [1]"},
	{"never told of what was to be renewed", "", "1 1/1 ask why=renewed; 2 1/1 got until=9; 99 - calm", "told 11 [1]"},
	{"told when it goes on", "", "1 1/1 ask; 2 1/1 got until=9; 8 1 held until=15; 17 1/1 told; 99 - calm", ""},
	{"told too late after it went on", "", "1 1/1 ask; 2 1/1 got until=9; 8 1 held until=15; 18 1/1 told; 99 - calm", "told 17 [1 3]"},
	{"stopped before it had to be told", "", "1 1/1 ask; 2 1/1 got until=9; 11 1 held until=15; 17 1/1 told; 99 - calm", ""},
	{"stopped after it had to be told", "", "1 1/1 ask; 2 1/1 got until=9; 12 1 held until=15; 17 1/1 told; 99 - calm", "told 11 [1 3]"},
	{"stopped until just before", "", "1 1/1 ask; 2 1/1 got until=9; 3 1 held until=8; 12 1/1 told; 99 - calm", "told 11 [1 3]"},
	{"stopped again and again", "", "1 1/1 ask; 2 1/1 got until=9; 8 1 held until=15; 17 1 held until=20; 21 1 held until=25; 27 1/1 told; 99 - calm", ""},
	{"stopped again, and too late", "", "1 1/1 ask; 2 1/1 got until=9; 8 1 held until=15; 18 1 held until=20; 20 1/1 told; 99 - calm", "told 17 [1 4]"},
	{"stopped within a stop", "", "1 1/1 ask; 2 1/1 got until=9; 3 1 held until=25; 4 1 held until=6; 27 1/1 told; 99 - calm", ""},
	{"another client stopped", "", "1 1/1 ask; 2 1/1 got until=9; 8 2 held until=15; 17 1/1 told; 99 - calm", "told 11 [1 3]"},
	{"stopped when the history ends", "", "1 1/1 ask; 2 1/1 got until=9; 8 1 held until=50; 52 - calm", ""},

	{"got in time", "", "1 1/1 ask; 8 1/1 got until=9; 9 1/1 told", ""},
	{"got too late", "", "1 1/1 ask; 9 1/1 got until=9; 9 1/1 told", "late success 9 [0 1]"},
	{"got too late, and stopped", "", "1 1/1 ask; 3 1 held until=8; 9 1/1 got until=9; 9 1/1 told", ""},
	{"got too late, and stopped in the end", "", "1 1/1 ask; 9 1 held until=9; 9 1/1 got until=9; 9 1/1 told", ""},
	{"got too late, and stopped before", "", "0 1 held until=1; 2 1/1 ask; 9 1/1 got until=9; 9 1/1 told", "late success 9 [1 2]"},
	{"got too late, and stopped until then", "", "0 1 held until=1; 1 1/1 ask; 9 1/1 got until=9; 9 1/1 told", ""},
	{"got too late, and another stopped", "", "1 1/1 ask; 3 2 held until=8; 9 1/1 got until=9; 9 1/1 told", "late success 9 [0 2]"},
	{"extended in time", "", "1 1/1 ask; 2 1/1 got until=9; 3 1/1 extend; 8 1/1 extended until=12; 12 1/1 told", ""},
	{"extended too late", "", "1 1/1 ask; 2 1/1 got until=9; 3 1/1 extend; 9 1/1 extended until=12; 12 1/1 told", "late success 9 [1 2 3]"},
	{"extended too late for the second time", "", "1 1/1 ask; 2 1/1 got until=9; 3 1/1 extend; 4 1/1 extended until=12; 5 1/1 extend; 12 1/1 extended until=15; 15 1/1 told", "late success 12 [1 4 5]"},
	{"extended in time for the second time", "", "1 1/1 ask; 2 1/1 got until=9; 3 1/1 extend; 4 1/1 extended until=12; 5 1/1 extend; 11 1/1 extended until=15; 15 1/1 told", ""},
	{"extended too late, and stopped", "", "1 1/1 ask; 2 1/1 got until=9; 3 1/1 extend; 9 1 held until=10; 10 1/1 extended until=12; 12 1/1 told", ""},
	{"extended after one that failed", "", "1 1/1 ask; 2 1/1 got until=9; 3 1/1 extend; 5 1/1 failed; 8 1/1 extend; 9 1/1 extended until=12; 12 1/1 told", ""},
	{"extended too late, and stopped before", "", "1 1/1 ask; 2 1/1 got until=9; 2 1 held until=3; 4 1/1 extend; 9 1/1 extended until=12; 12 1/1 told", "late success 9 [1 3 4]"},
	{"not extended in the end", "", "1 1/1 ask; 2 1/1 got until=9; 3 1/1 extend; 9 1/1 told; 10 1/1 failed error=lost", ""},
	{"extended what is renewed anyway", "", "1 1/1 ask why=renewed; 2 1/1 got until=9; 3 1/1 extend; 9 1/1 extended until=12; 12 1/1 told", ""},
	{"extended what is renewed by do", "", "1 1/1 ask verb=do; 2 1/1 got until=9; 3 1/1 extend; 9 1/1 extended until=12; 12 1/1 told", ""},
	{"extended what has been renewed", "", "1 1/1 ask; 2 1/1 got until=7; 3 1/1 renewed until=9; 3 1/1 extend; 9 1/1 extended until=12; 12 1/1 told", ""},
	{"extended what will be renewed", "", "1 1/1 ask; 2 1/1 got until=9; 3 1/1 extend; 9 1/1 extended until=12; 10 1/1 renewed until=13; 12 1/1 told", ""},
	{"released in time", "", "1 1/1 ask; 2 1/1 got until=9; 11 1/1 told; 11 1/1 release; 13 1/1 released", ""},
	{"released too late", "", "1 1/1 ask; 2 1/1 got until=9; 9 1/1 told; 12 1/1 release; 13 1/1 released", "late success 13 [1 3 4]"},
	{"released too late, and heard of it", "", "1 1/1 ask; 2 1/1 got until=9; 9 1/1 told; 12 1/1 release; 13 1/1 released error=lost", ""},
	{"released too late, and stopped", "", "1 1/1 ask; 2 1/1 got until=9; 9 1/1 told; 12 1/1 release; 12 1 held until=13; 13 1/1 released", ""},
	{"released what was renewed", "", "1 1/1 ask; 2 1/1 got until=9; 12 1/1 release until=20; 13 1/1 released; 99 - calm", ""},
	{"released twice", "", "1 1/1 ask; 2 1/1 got until=9; 3 1/1 release; 4 1/1 released; 20 1/1 release; 21 1/1 released", ""},

	{"got too late, and stopped, but exact", "exact", "1 1/1 ask; 3 1 held until=8; 9 1/1 got until=9; 9 1/1 told", "late success 9 [0 2]"},
	{"extended too late, and stopped, but exact", "exact", "1 1/1 ask; 2 1/1 got until=9; 3 1/1 extend; 9 1 held until=10; 10 1/1 extended until=12; 12 1/1 told", "late success 10 [1 2 4]"},
	{"released too late, and stopped, but exact", "exact", "1 1/1 ask; 2 1/1 got until=9; 9 1/1 told; 12 1/1 release; 12 1 held until=13; 13 1/1 released", "late success 13 [1 3 5]"},

	{"extended what another has had for no time", "", "1 1/1 ask; 2 1/1 got until=8; 5 2/1 ask; 6 2/1 got until=8; 6 2/1 release; 6 2/1 released; 7 1/1 extend; 7 1/1 extended until=30; 30 1/1 told", ""},
	{"extended what another has had for a while", "", "1 1/1 ask; 2 1/1 got until=8; 5 2/1 ask; 6 2/1 got until=8; 7 2/1 release; 7 2/1 released; 7 1/1 extend; 7 1/1 extended until=30; 30 1/1 told", "exclusion 6 [1 3]; continuity 7 [1 3 6 7]"},
	{"extended what another has had early on", "", "1 1/1 ask; 2 1/1 got until=8; 5 2/1 ask; 5 2/1 got until=8; 7 2/1 release; 7 2/1 released; 7 1/1 extend; 7 1/1 extended until=30; 30 1/1 told", "exclusion 5 [1 3]; continuity 7 [1 3 6 7]"},
	{"began to extend it before", "", "1 1/1 ask; 2 1/1 got until=8; 5 2/1 ask; 5 1/1 extend; 6 2/1 got until=8; 7 2/1 release; 7 2/1 released; 7 1/1 extended until=30; 30 1/1 told", "exclusion 6 [1 4]"},
	{"began to extend it at that instant", "", "1 1/1 ask; 2 1/1 got until=8; 5 2/1 ask; 6 2/1 got until=8; 6 1/1 extend; 7 2/1 release; 7 2/1 released; 7 1/1 extended until=30; 30 1/1 told", "exclusion 6 [1 3]"},
	{"extended what another had before", "", "1 2/1 ask; 1 2/1 got until=9; 2 2/1 release; 2 2/1 released; 2 1/1 ask; 2 1/1 got until=20; 6 1/1 extend; 7 1/1 extended until=30; 30 1/1 told", ""},
	{"did not extend what another has had", "", "1 1/1 ask; 2 1/1 got until=8; 5 2/1 ask; 6 2/1 got until=8; 7 2/1 release; 7 2/1 released; 7 1/1 extend; 7 1/1 failed; 8 1/1 told", "exclusion 6 [1 3]"},
	{"extended, and another has another", "", "1 1/1 ask; 2 1/1 got until=8; 5 2/1 ask name=b; 6 2/1 got name=b until=8; 7 2/1 release; 7 2/1 released; 7 1/1 extend; 7 1/1 extended until=30; 30 1/1 told", ""},

	{"lost what is renewed", "exact", "1 1/1 ask verb=do; 2 1/1 got until=9; 9 1/1 told why=lost", "kept 9 [1 2]"},
	{"lost what is renewed, and nodes are ill", "exact", "1 1/1 ask verb=do; 2 1/1 got until=9; 9 - struck; 9 1/1 told why=lost", ""},
	{"lost what is renewed, and the set is changed", "exact", "1 1/1 ask verb=do; 2 1/1 got until=9; 8 2/1 changing; 9 1/1 told why=lost", ""},
	{"lost what is renewed, and the set is changed as planned", "exact planned", "1 1/1 ask verb=do; 2 1/1 got until=9; 8 2/1 changing; 9 1/1 told why=lost", "kept 9 [1 3]"},
	{"lost what is renewed when the set was changed as planned", "exact planned", "0 2/1 changing; 0 2/1 changed; 1 1/1 ask verb=do; 2 1/1 got until=9; 9 1/1 told why=lost", "kept 9 [3 4]"},
	{"lost what is renewed, and a node is down as planned", "exact planned", "1 1/1 ask verb=do; 2 1/1 got until=9; 8 - struck; 9 1/1 told why=lost", "kept 9 [1 3]"},
	{"lost what is renewed, and a node went down when it was new", "exact planned ttl=3", "1 1/1 ask verb=do; 2 1/1 got until=9; 5 - struck; 9 1/1 told why=lost", ""},
	{"lost what is renewed, and a node went down when it was new no more", "exact planned ttl=3", "1 1/1 ask verb=do; 2 1/1 got until=9; 6 - struck; 9 1/1 told why=lost", "kept 9 [1 3]"},
	{"lost what is renewed, and a node went down before", "exact planned ttl=3", "1 - struck; 1 1/1 ask verb=do; 2 1/1 got until=9; 9 1/1 told why=lost", "kept 9 [2 3]"},
	{"lost what is renewed as planned, and was stopped", "exact planned", "1 1/1 ask verb=do; 2 1/1 got until=9; 3 1 held until=8; 8 2/1 changing; 9 1/1 told why=lost", ""},
	{"lost what is not renewed, and the set is changed as planned", "exact planned", "1 1/1 ask; 2 1/1 got until=9; 8 2/1 changing; 9 1/1 told why=lost", ""},
	{"lost as planned on a busy machine", "planned", "1 1/1 ask verb=do; 2 1/1 got until=9; 8 2/1 changing; 9 1/1 told why=lost", ""},
	{"lost what is renewed before nodes are ill", "exact", "1 1/1 ask verb=do; 2 1/1 got until=9; 9 1/1 told why=lost; 10 - struck", "kept 9 [1 2]"},
	{"lost what is renewed, on a busy machine", "", "1 1/1 ask verb=do; 2 1/1 got until=9; 9 1/1 told why=lost", ""},
	{"lost what is not renewed", "exact", "1 1/1 ask; 2 1/1 got until=9; 9 1/1 told why=lost", ""},
	{"released what is renewed", "exact", "1 1/1 ask verb=do; 2 1/1 got until=9; 9 1/1 told why=released", ""},
	{"lost what is renewed, and was stopped", "exact", "1 1/1 ask verb=do; 2 1/1 got until=9; 3 1 held until=8; 9 1/1 told why=lost", ""},

	{"a write after the other", "", "1 1/1 ask; 2 1/1 got until=9; 3 1/1 wrote value=1; 4 1/1 wrote value=2 was=1; 5 1/1 wrote name=b value=1; 9 1/1 told", ""},
	{"a lost update", "", "1 1/1 ask; 2 1/1 got until=9; 3 1/1 read; 4 1/1 wrote value=1; 4 1/1 read; 5 1/1 wrote value=1 was=1; 9 1/1 told", "lost updates 5 [4 5]"},
	{"a lost update that comes without a read", "", "1 1/1 ask; 2 1/1 got until=9; 3 1/1 wrote value=2; 9 1/1 told", "lost updates 3 [2]"},
	{"a write by the dead", "", "1 1/1 ask; 2 1/1 got until=9; 3 1 crashed; 4 1/1 wrote value=1; 5 2/1 ask; 6 2/1 got until=9; 7 2/1 wrote value=2 was=1; 9 2/1 told", ""},
	{"refused", "", "1 1/1 ask; 2 1/1 got until=9; 3 1/1 refused value=7 was=3; 9 1/1 told", ""},

	{"fences rise", "", "1 1/1 ask; 2 1/1 got fence=3 until=9; 3 1/1 wrote value=1 fence=3; 4 1/1 wrote value=2 was=1 fence=3; 5 1/1 release; 5 1/1 released; 6 2/1 ask; 7 2/1 got fence=4 until=9; 8 2/1 wrote value=3 was=2 fence=4; 9 2/1 told", ""},
	{"the same fence", "", "1 1/1 ask; 2 1/1 got fence=3 until=9; 5 1/1 release; 5 1/1 released; 6 2/1 ask; 7 2/1 got fence=3 until=9; 9 2/1 told", "fences 7 [1 5]"},
	{"the same fence for another name", "", "1 1/1 ask; 2 1/1 got fence=3 until=9; 5 1/1 release; 5 1/1 released; 6 2/1 ask name=b; 7 2/1 got name=b fence=3 until=9; 9 2/1 told", ""},
	{"lower than the highest", "", "1 1/1 ask; 2 1/1 got fence=3 until=9; 3 1/1 release; 3 1/1 released; 4 2/1 ask; 4 2/1 got until=9; 5 2/1 release; 5 2/1 released; 6 2/2 ask; 7 2/2 got fence=1 until=9; 8 2/2 release; 8 2/2 released; 9 2/3 ask; 9 2/3 got fence=2 until=10; 10 2/3 told", "fences 7 [1 9]; fences 9 [1 13]"},
	{"no order at one instant", "", "1 1/1 ask; 2 1/1 got fence=4 until=9; 2 1/1 release; 2 1/1 released; 2 2/1 ask; 2 2/1 got fence=3 until=9; 9 2/1 told", ""},
	{"written with a lower fence", "", "1 1/1 ask; 2 1/1 got fence=3 until=9; 3 1/1 wrote value=1 fence=3; 4 1/1 wrote value=2 was=1 fence=2; 5 1/1 wrote value=3 was=2; 6 1/1 wrote value=4 was=3 fence=3; 9 1/1 told", "fences 4 [2 3]"},
	{"written with a lower fence elsewhere", "", "1 1/1 ask; 2 1/1 got fence=3 until=9; 3 1/1 wrote value=1 fence=3; 4 1/1 wrote name=b value=1 fence=2; 9 1/1 told", ""},

	{"waits long enough", "", "0 - calm; 0 1/1 ask limit=50; 52 1/1 got until=60; 60 1/1 told", ""},
	{"waits too long", "", "0 - calm; 0 1/1 ask limit=60; 53 1/1 got until=60; 60 1/1 told", "progress 52 [1 2]"},
	{"waits too long, by do", "", "0 - calm; 0 1/1 ask verb=do limit=60; 53 1/1 got until=60; 60 1/1 told", "progress 52 [1 2]"},
	{"waits for less than the bound", "", "0 - calm; 0 1/1 ask limit=49; 49 1/1 denied", ""},
	{"denied", "", "0 - calm; 0 1/1 ask limit=50; 50 1/1 denied", "progress 50 [1 2]"},
	{"denied later", "", "0 - calm; 0 1/1 ask limit=60; 60 1/1 denied", "progress 52 [1 2]"},
	{"neither", "", "0 - calm; 0 1/1 ask limit=60; 53 - calm", "progress 52 [1]"},
	{"neither when the history ends", "", "0 - calm; 0 1/1 ask limit=60; 52 - calm", ""},
	{"asks before all is well", "", "0 1/1 ask limit=60; 1 - calm; 60 1/1 denied", ""},
	{"asks before all is well, and enough is", "always", "0 1/1 ask limit=60; 1 - calm; 60 1/1 denied", "progress 52 [0 2]"},
	{"asks just when all is well", "", "0 - calm; 0 1/1 ask limit=50; 50 1/1 denied; 50 - calm", "progress 50 [1 2]"},
	{"there is no bound", "always bound=0", "0 1/1 ask limit=60; 60 1/1 denied", ""},
	{"stopped while it waits", "", "0 - calm; 0 1/1 ask limit=50; 10 1 held until=15; 57 1/1 got until=60; 60 1/1 told", ""},
	{"stopped while it waits, and too long", "", "0 - calm; 0 1/1 ask limit=60; 10 1 held until=15; 58 1/1 got until=60; 60 1/1 told", "progress 57 [1 3]"},
	{"dies while it waits", "", "0 - calm; 0 1/1 ask limit=50; 52 1 crashed; 99 - calm", ""},
	{"dies later", "", "0 - calm; 0 1/1 ask limit=60; 53 1 crashed; 99 - calm", "progress 52 [1]"},
	{"tries", "always", "0 1/1 ask verb=try limit=50; 50 1/1 denied", ""},
	{"tries alone", "always exact clients=1", "0 1/1 ask verb=try limit=50; 50 1/1 denied", "progress 50 [0 1]"},
	{"tries alone while its lost lock is given back", "always exact clients=1", "0 1/1 ask verb=try; 1 1/1 got until=9; 3 1/1 told why=late; 3 1/1 release limit=4; 3 1/1 released; 6 1/2 ask verb=try limit=50; 7 1/2 denied", ""},
	{"tries alone after its lost lock was given back", "always exact clients=1", "0 1/1 ask verb=try; 1 1/1 got until=9; 3 1/1 told why=late; 3 1/1 release limit=4; 3 1/1 released; 7 1/2 ask verb=try limit=50; 8 1/2 denied", "progress 8 [5 6]"},
	{"tries alone after it gave back its lock", "always exact clients=1", "0 1/1 ask verb=try; 1 1/1 got until=9; 3 1/1 release limit=4; 3 1/1 told why=released; 3 1/1 released; 6 1/2 ask verb=try limit=50; 7 1/2 denied", "progress 7 [5 6]"},
	{"waits alone while its lost lock is given back", "always exact clients=1", "0 1/1 ask verb=try; 1 1/1 got until=9; 3 1/1 told why=late; 3 1/1 release limit=4; 3 1/1 released; 6 1/2 ask limit=50; 7 1/2 denied", "progress 7 [5 6]"},
	{"tries alone on a busy machine", "always clients=1", "0 1/1 ask verb=try limit=50; 50 1/1 denied", ""},
	{"tries alone when all is well", "exact clients=1", "0 - calm; 0 1/1 ask verb=try limit=50; 50 1/1 denied", ""},
	{"tries, and nobody has it", "settled", "0 1/1 ask verb=try limit=9; 1 2/1 ask verb=try limit=9; 3 2/1 denied; 4 1/1 denied", "progress 3 [1 2]; progress 4 [0 3]"},
	{"tries, and another one gets it", "settled", "0 1/1 ask verb=try limit=9; 1 2/1 ask verb=try limit=9; 3 2/1 denied; 4 1/1 got until=9; 5 1/1 release; 5 1/1 released", ""},
	{"tries while it is given back", "settled", "0 1/1 ask; 1 1/1 got until=9; 3 1/1 release; 3 2/1 ask verb=try limit=9; 4 1/1 released; 5 2/1 denied", ""},
	{"tries when it was given back", "settled", "0 1/1 ask; 1 1/1 got until=9; 3 1/1 release; 4 1/1 released; 5 2/1 ask verb=try limit=9; 6 2/1 denied", "progress 6 [4 5]"},
	{"tries while another lock is held", "settled", "0 1/1 ask name=b; 1 1/1 got name=b until=9; 5 2/1 ask verb=try limit=9; 6 2/1 denied; 9 1/1 told", "progress 6 [2 3]"},
	{"is of another library", "always clients=1", "0 1/1 ask verb=plain limit=50; 50 1/1 denied", ""},

	{"another library's client gets what is held", "", "0 1/1 ask; 1 1/1 got until=9; 2 2/1 ask verb=plain; 3 2/1 got until=9; 9 1/1 told; 20 - calm", "exclusion 3 [1 3]"},
	{"the same, of a node that forgets", "forgetful", "0 1/1 ask; 1 1/1 got until=9; 2 2/1 ask verb=plain; 3 2/1 got until=9; 9 1/1 told; 20 - calm", ""},
	{"two of other libraries, the same", "forgetful", "0 1/1 ask verb=plain; 1 1/1 got until=9; 2 2/1 ask verb=plain; 3 2/1 got until=9; 20 - calm", ""},
	{"asks when another library's client has it", "forgetful", "0 2/1 ask verb=plain; 1 2/1 got until=9; 2 1/1 ask; 3 1/1 got until=12; 12 1/1 told", "exclusion 3 [1 3]"},
	{"asked before another library's client got it", "forgetful", "0 2/1 ask verb=plain; 1 1/1 ask; 2 2/1 got until=9; 3 1/1 got until=12; 12 1/1 told", ""},
	{"asks at that instant", "forgetful", "0 2/1 ask verb=plain; 2 1/1 ask; 2 2/1 got until=9; 3 1/1 got until=12; 12 1/1 told", ""},
	{"gets it when another library's client had it", "forgetful", "0 2/1 ask verb=plain; 1 2/1 got until=3; 2 1/1 ask; 3 1/1 got until=12; 12 1/1 told", ""},
	{"the one that has it longest", "forgetful", "0 2/1 ask verb=plain; 0 3/1 ask verb=plain; 1 2/1 got until=8; 1 3/1 got until=9; 2 1/1 ask; 3 1/1 got until=12; 12 1/1 told", "exclusion 3 [3 5]"},
	{"two of ours, the same", "forgetful", "0 1/1 ask; 1 1/1 got until=9; 2 2/1 ask; 3 2/1 got until=9; 9 1/1 told; 9 2/1 told", "exclusion 3 [1 3]"},
	{"extends what another library's client has had", "forgetful", "0 1/1 ask; 1 1/1 got until=9; 2 2/1 ask verb=plain; 3 2/1 got until=5; 6 1/1 extend; 7 1/1 extended until=12; 12 1/1 told", "continuity 7 [1 3 4 5]"},
	{"another library's client extends so", "forgetful", "0 1/1 ask verb=plain; 1 1/1 got until=9; 2 2/1 ask; 3 2/1 got until=5; 5 2/1 told; 6 1/1 extend; 7 1/1 extended until=12; 20 - calm", "exclusion 3 [1 3]"},
	{"another library's client is told by nobody", "", "0 1/1 ask verb=plain; 1 1/1 got until=9; 20 - calm", ""},
	{"another library's client extends late", "", "0 1/1 ask verb=plain; 1 1/1 got until=9; 8 1/1 extend; 10 1/1 extended until=18; 20 1/1 release; 21 1/1 released", ""},

	{"ends in time", "", "0 1/1 ask limit=5; 7 1/1 denied", ""},
	{"ends too late", "", "0 1/1 ask limit=5; 8 1/1 denied", "in time 7 [0 1]"},
	{"succeeds too late", "", "0 1/1 ask verb=try limit=5; 8 1/1 got until=9; 9 1/1 told", "in time 7 [0 1]"},
	{"does not end", "", "0 1/1 ask limit=5; 8 - calm", "in time 7 [0]"},
	{"does not end before the history does", "", "0 1/1 ask limit=5; 7 - calm", ""},
	{"needs not end", "", "0 1/1 ask; 99 - calm", ""},
	{"ends late, and was stopped", "", "0 1/1 ask limit=5; 7 1 held until=10; 10 1/1 denied", ""},
	{"ends too late, and was stopped", "", "0 1/1 ask limit=5; 7 1 held until=10; 11 1/1 denied", "in time 10 [0 2]"},
	{"was stopped when it began", "", "0 1 held until=4; 2 1/1 ask limit=5; 11 1/1 denied", ""},
	{"was stopped when it began, and ends too late", "", "0 1 held until=4; 2 1/1 ask limit=5; 12 1/1 denied", "in time 11 [1 2]"},
	{"was stopped twice at once", "", "0 1/1 ask limit=5; 3 1 held until=8; 4 1 held until=10; 15 1/1 denied", "in time 14 [0 3]"},
	{"dies in time", "", "0 1/1 ask limit=5; 7 1 crashed; 9 - calm", ""},
	{"dies too late", "", "0 1/1 ask limit=5; 8 1 crashed; 9 - calm", "in time 7 [0]"},
	{"another dies", "", "0 1/1 ask limit=5; 7 2 crashed; 9 - calm", "in time 7 [0]"},
	{"extends too long", "", "1 1/1 ask; 2 1/1 got until=20; 3 1/1 extend limit=5; 11 1/1 failed error=late; 20 1/1 told", "in time 10 [2 3]"},
	{"extends, and does not end", "", "1 1/1 ask; 2 1/1 got until=20; 3 1/1 extend limit=5; 20 1/1 told", "in time 10 [2]"},
	{"releases too long", "", "1 1/1 ask; 2 1/1 got until=20; 3 1/1 release limit=5; 11 1/1 released error=late", "in time 10 [2 3]"},

	{"something is left", "", "3 - left error=key; 4 - left error=key", "nothing left 3 [0]; nothing left 4 [1]"},

	{"broken, and had by the next", "", "1 1/1 ask; 2 1/1 got until=12; 3 9/1 break token=t1/1 limit=5; 4 9/1 broke token=t1/1 until=13; 5 2/1 ask; 6 2/1 got until=9; 9 2/1 told; 12 1/1 told", ""},
	{"had by the next while it is being broken", "", "1 1/1 ask; 2 1/1 got until=12; 3 9/1 break token=t1/1; 5 2/1 ask; 6 2/1 got until=9; 7 9/1 broke token=t1/1 until=17; 9 2/1 told; 12 1/1 told", ""},
	{"had by the next, and broken for the most part", "", "1 1/1 ask; 2 1/1 got until=12; 3 9/1 break token=t1/1; 5 2/1 ask; 6 2/1 got until=9; 7 9/1 broke token=t1/1 why=quorum; 9 2/1 told; 12 1/1 told", ""},
	{"had by the next before it is broken", "", "1 1/1 ask; 2 1/1 got until=12; 3 2/1 ask; 4 2/1 got until=9; 5 9/1 break token=t1/1; 6 9/1 broke token=t1/1 until=17; 9 2/1 told; 12 1/1 told", "exclusion 4 [1 3]"},
	{"another one was broken", "", "1 1/1 ask; 2 1/1 got until=12; 3 9/1 break token=t7; 4 9/1 broke token=t7 until=14; 5 2/1 ask; 6 2/1 got until=9; 9 2/1 told; 12 1/1 told", "exclusion 6 [1 5]"},
	{"to be broken, and had ended", "", "1 1/1 ask; 2 1/1 got until=12; 3 9/1 break token=t1/1; 4 9/1 broke token=t1/1 why=lost; 5 2/1 ask; 6 2/1 got until=9; 9 2/1 told; 12 1/1 told", "exclusion 6 [1 5]"},
	{"extended after it was broken", "", "1 1/1 ask; 2 1/1 got until=12; 3 9/1 break token=t1/1; 4 9/1 broke token=t1/1 until=13; 5 1/1 extend; 6 1/1 extended until=14; 14 1/1 told", "broken 6 [1 3 4 5]"},
	{"extended while it was being broken", "", "1 1/1 ask; 2 1/1 got until=12; 3 9/1 break token=t1/1; 4 1/1 extend; 4 9/1 broke token=t1/1 until=13; 6 1/1 extended until=14; 14 1/1 told", ""},
	{"believed in for too long after it was broken", "", "1 1/1 ask why=renewed; 2 1/1 got until=12; 3 9/1 break token=t1/1; 4 9/1 broke token=t1/1 until=13; 14 1/1 renewed until=16; 16 1/1 told", "broken 15 [1 3]"},
	{"broken while it was acquired, and got behind the next", "", "1 1/1 ask; 2 9/1 break token=t1/1; 3 9/1 broke token=t1/1 until=13; 4 2/1 ask; 5 2/1 got fence=7 until=9; 6 1/1 got fence=6 until=11; 9 2/1 told; 11 1/1 told", ""},
	{"broken, and a fence that is lower", "", "1 1/1 ask; 2 1/1 got fence=7 until=12; 3 9/1 break token=t1/1; 4 9/1 broke token=t1/1 until=13; 4 2/1 ask; 5 2/1 got fence=6 until=9; 9 2/1 told; 12 1/1 told", "fences 5 [1 5]"},
	{"broken for too long", "", "1 9/1 break token=t7 limit=5; 9 9/1 broke token=t7 until=12", "in time 8 [0 1]"},
	{"broken, and not begun", "", "1 9/1 broke token=t7; 2 9/2 break token=t7; 3 9/2 broke token=t7 until=9; 4 9/2 broke token=t7; 5 9/2 break token=t7; 6 0/1 break", "well-formed 1 [0]; well-formed 4 [3]; well-formed 5 [4]; well-formed 6 [5]"},
	{"unknown", "", "3 1/1 sung", "well-formed 3 [0]"},
	{"time goes back", "", "3 - calm; 2 - calm; 3 - calm", "well-formed 2 [1]"},
	{"before the start", "", "-1 - calm", "well-formed -1 [0]"},
	{"no client", "", "0 0/1 ask; 1 -1/1 ask; 2 1/0 ask; 3 0 crashed; 3 0 held until=9", "well-formed 0 [0]; well-formed 1 [1]; well-formed 2 [2]; well-formed 3 [3]; well-formed 3 [4]"},
	{"no fault", "", "0 - struck nothing=; 1 - healed nothing=; 2 - struck; 3 - healed", "well-formed 0 [0]; well-formed 1 [1]"},
	{"a stop that ends before it begins", "", "3 1 held until=2", "well-formed 3 [0]"},
	{"no name, no verb", "", "3 1/1 ask name=; 4 1/2 ask verb=sing", "well-formed 3 [0]; well-formed 4 [1]"},
	{"asked twice", "", "3 1/1 ask; 4 1/1 ask", "well-formed 4 [1]"},
	{"asked twice, and died in between", "", "3 1/1 ask; 4 1 crashed; 5 1/1 ask", "well-formed 5 [2]"},
	{"got and did not ask", "", "4 1/1 got until=9; 5 2/1 ask; 6 2/1 got until=9; 9 1/1 told; 9 2/1 told", "well-formed 4 [0]; exclusion 6 [0 2]"},
	{"denied and did not ask", "", "4 1/1 denied", "well-formed 4 [0]"},
	{"got twice", "", "3 1/1 ask; 4 1/1 got until=9; 5 1/1 got until=99; 9 1/1 told", "well-formed 5 [2]"},
	{"got and denied", "", "3 1/1 ask; 4 1/1 got until=9; 5 1/1 denied; 9 1/1 told", "well-formed 5 [2]"},
	{"denied and got", "", "3 1/1 ask; 4 1/1 denied; 5 1/1 got until=9; 12 1/1 release; 12 1/1 released error=lost", "well-formed 5 [2]; told 11 [2]"},
	{"got something else", "", "3 1/1 ask; 4 1/1 got name=b until=9; 9 1/1 told", "well-formed 4 [1]"},
	{"does not say again what it got", "", "3 1/1 ask; 4 1/1 got name= until=9; 9 1/1 told", ""},
	{"there is no lock", "", `0 1/1 extend; 1 1/1 extended; 2 1/1 failed; 3 1/1 renewed; 4 1/1 release; 5 1/1 released; 6 1/1 told; 7 1/1 read; 8 1/1 wrote value=1; 9 1/1 refused; 10 1/1 ask; 11 1/1 extend`,
		"well-formed 0 [0]; well-formed 1 [1]; well-formed 2 [2]; well-formed 3 [3]; well-formed 4 [4]; well-formed 5 [5]; well-formed 6 [6]; well-formed 7 [7]; well-formed 8 [8]; well-formed 9 [9]; well-formed 11 [11]"},
	{"begun and ended twice", "", `3 1/1 ask; 4 1/1 got until=90; 5 1/1 extend; 5 1/1 extend; 6 1/1 extended until=91; 6 1/1 extended until=92; 6 1/1 failed;
		7 1/1 release; 7 1/1 release; 8 1/1 released; 8 1/1 released; 9 1/1 told; 9 1/1 told`,
		"well-formed 5 [3]; well-formed 6 [5]; well-formed 6 [6]; well-formed 7 [8]; well-formed 8 [10]; well-formed 9 [12]"},
	{"the dead say nothing", "", "1 1/1 ask; 2 1/1 got until=9; 3 1 crashed; 4 1/1 extended until=99; 5 1/1 told; 5 1/1 told; 6 1/1 got until=99; 200 - calm", ""},
	{"a write in the place of another", "", "1 1/1 ask; 2 1/1 got until=9; 3 1/1 wrote value=1; 4 1/1 wrote value=3 was=2; 5 1/1 wrote value=4 was=3; 9 1/1 told", "well-formed 4 [3]"},
	{"a first write in the place of another", "", "1 1/1 ask; 2 1/1 got until=9; 3 1/1 wrote value=1; 4 1/1 wrote name=b value=2 was=1; 9 1/1 told", "well-formed 4 [3]"},
	{"writes at one instant", "", "1 1/1 ask; 2 1/1 got until=9; 3 1/1 wrote value=2 was=1; 3 1/1 wrote value=3 was=2; 3 1/1 wrote value=1; 4 1/1 wrote value=4 was=3; 9 1/1 told", ""},
	{"writes at one instant, and one is missing", "", "1 1/1 ask; 2 1/1 got until=9; 3 1/1 wrote value=1; 3 1/1 wrote value=3 was=2; 4 1/1 wrote value=4 was=3; 9 1/1 told", "well-formed 3 [2 3]"},
}

func TestJudgeTable(t *testing.T) {
	fires := make(map[string]int)
	for _, tt := range slices.Concat(judgeCases, waitCases, kindCases, memoryCases, stallCases) {
		h := HistoryOf(t, 1, tt.run, tt.history)
		got := Judge(h).Violations
		if brief(got) != tt.want {
			t.Errorf("%s:\n got %s\nwant %s\n%v", tt.name, brief(got), tt.want, got)
		}
		for _, v := range got {
			fires[v.Rule]++
		}
		compareWithTwin(t, h)
	}
	for _, r := range Rules {
		if fires[r.Name] == 0 {
			t.Errorf("no history breaks the rule %q", r.Name)
		}
		if r.Says == "" || fires[r.Name] == len(judgeCases) {
			t.Errorf("the rule %q says %q", r.Name, r.Says)
		}
		delete(fires, r.Name)
	}
	for name := range maps.Keys(fires) {
		t.Errorf("%q is no rule", name)
	}
}
