package trial

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/cmd/redlock/internal/load"
	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
)

// What is advised follows from the figures, and where there are none nothing is.
func TestAdvice(t *testing.T) {
	ms := func(n float64) load.Millis { return load.Millis(n * float64(time.Millisecond)) }
	node := func(name string, p99 float64, failed int) nodeFigures {
		return nodeFigures{Node: name, Spread: load.Spread{Count: 1000, P99: ms(p99)}, Failed: load.Tally{"timeout": failed}}
	}
	measured := func(ttl time.Duration, longest float64, nodes ...nodeFigures) *benchReport {
		return &benchReport{
			TTL: load.Millis(ttl), NodeTimeout: load.Millis(reach.NodeTimeout(ttl)), Quorum: len(nodes)/2 + 1, Nodes: nodes,
			Callers: []callersFigures{{Callers: 1, Spread: load.Spread{Count: 1, Longest: ms(longest / 2)}}, {Callers: 2, Spread: load.Spread{Count: 1, Longest: ms(longest)}}},
		}
	}
	handedOver := func(longest float64, failed load.Tally) *benchReport {
		r := measured(time.Second, 1, node("a", 1, 0))
		r.HandOver = &handOverFigures{PerSecond: 120, HandOver: load.Spread{Count: 9, P50: ms(2), Longest: ms(longest)}, troubles: troubles{Failed: failed}}
		return r
	}
	for _, of := range []struct {
		name   string
		report *benchReport
		says   []string // in this order
		not    string
	}{
		{"nothing was measured", &benchReport{Quorum: 2}, nil, "lock"},
		{"nodes of our own", &benchReport{Embedded: true, Quorum: 1, Nodes: []nodeFigures{node("a", 1, 0)}}, []string{"Nothing for your nodes"}, "a, "},
		{"one", measured(10*time.Second, 1, node("a", 1, 0)), []string{"majority: a, 1.00ms", "No other node may fail", "a TTL of 100ms or more is enough: 10s is long enough"}, "fastest 3"},
		{"three, one far", measured(10*time.Second, 1, node("far", 20, 0), node("b", 2, 0), node("a", 1, 0)),
			[]string{"majority: b, 2.00ms", "If the fastest node fails, that is far, 20.0ms", "NodeTimeout 500ms leaves room: it is 25 times the 20.0ms of far", "a TTL of 800ms or more"}, "fastest 3"},
		{"five", measured(10*time.Second, 1, node("e", 5, 0), node("d", 4, 0), node("c", 3, 0), node("b", 2, 0), node("a", 1, 0)),
			[]string{"majority: c, 3.00ms", "If the fastest 2 fail, that is e, 5.00ms", "fastest 3 nodes alone it would be b, 2.00ms"}, ""},
		{"five, one unwell", measured(10*time.Second, 1, node("e", 5, 11), node("d", 4, 10), node("c", 3, 0), node("b", 2, 0), node("a", 1, 0)),
			[]string{"e is not reliable", "majority: c, 3.00ms", "If the fastest node fails, that is d, 4.00ms"}, "fastest 3"},
		{"no quorum", measured(10*time.Second, 1, node("c", 3, 900), node("b", 2, 900), node("a", 1, 0)), []string{"c, b is not reliable"}, "TTL"},
		{"too far for the TTL", measured(time.Second, 1, node("a", 30, 0)), []string{"NodeTimeout 100ms is too short for a: it should be 4 times 30.0ms", "a TTL of 1.2s or more is enough: 1s is too short"}, "room: it"},
		{"too far for any", measured(10*time.Second, 1, node("a", 200, 0)), []string{"NodeTimeout 500ms is too short", "No TTL has a NodeTimeout of 800ms"}, "or more is enough"},
		{"a long pause", measured(time.Second, 700, node("a", 1, 0)), []string{"leaves room", "a TTL of 1.1s or more is enough: 1s is too short"}, ""},
		{"a very long pause", measured(10*time.Second, 20_000, node("a", 1, 0)), []string{"a TTL of 30s or more is enough: 10s is too short"}, ""},
		{"a long hand-over", handedOver(700, nil), []string{"a TTL of 1.1s or more is enough", "700ms", "One name serves at most 120 holders a second", "the 2.00ms of a hand-over"}, "above failed"},
		{"failures", handedOver(3, load.Tally{"no quorum": 1200}), []string{"1,200 attempts above failed", "leaves room"}, ""},
	} {
		text := strings.Join(of.report.advice(), "\n")
		rest := text
		for _, want := range of.says {
			_, after, found := strings.Cut(rest, want)
			if rest = after; !found {
				t.Errorf("%s: it does not say %q where it should:\n%s", of.name, want, text)
				break
			}
		}
		if of.not != "" && strings.Contains(text, of.not) {
			t.Errorf("%s: it says %q:\n%s", of.name, of.not, text)
		}
	}
}

func TestItems(t *testing.T) {
	long := strings.Repeat("word ", 30)
	got := items([]string{"short", long})
	if want := "- short\n- " + strings.TrimSpace(strings.Repeat("word ", 17)) + "\n  " + strings.TrimSpace(strings.Repeat("word ", 13)) + "\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
