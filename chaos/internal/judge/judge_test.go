package judge

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// TestJudgeSaysIt checks the text of a violation.
func TestJudgeSaysIt(t *testing.T) {
	for _, tt := range []struct{ history, want string }{
		{"1 2/1 ask; 1200 2/1 got token=t7 until=1900; 1300 3/1 ask; 1500 3/1 got token=t9 until=2500; 1900 2/1 told",
			`at 1.5s, exclusion: client 2 had "a" (t7) from 1.2s to 1.9s, and client 3 had it (t9) from 1.5s`},
		{"1 2/1 ask; 2 2/1 got token=t7 until=9; 20 2/1 told", `at 11ms, told: client 2 had "a" (t7) until 9ms, and was told at 20ms, not by 11ms`},
		{"1 2/1 ask; 2 2/1 got token=t7 until=9; 20 - calm", `at 11ms, told: client 2 had "a" (t7) until 9ms, and was not told by 11ms`},
		{"0 - calm; 0 1/1 ask limit=50; 50 1/1 denied why=held", `at 50ms, progress: client 1 asked for "a" at 0s and was denied it at 50ms: held`},
		{"1 1/1 ask; 2 1/1 got until=20; 3 1/1 extend limit=5; 11 1/1 failed", `at 10ms, in time: client 1 had 5ms from 3ms on to extend "a", and it took until 11ms`},
		{"1 2/1 ask shared; 2 2/1 got token=t7 until=9; 3 3/1 ask also=b; 5 3/1 got token=t9 until=9; 9 2/1 told; 9 3/1 told",
			`at 5ms, exclusion: client 2 had "a" as a reader (t7) from 2ms to 9ms, and client 3 had "a" and "b" (t9) from 5ms`},
		{"1 2/1 ask slots=1; 2 2/1 got until=9; 3 3/1 ask slots=1; 5 3/1 got token=t9 until=9; 9 2/1 told; 9 3/1 told",
			`at 5ms, exclusion: client 3 had one of 1 slot of "a" (t9) from 5ms, when 1 had one already`},
		{"1 2/1 ask slots=2; 2 2/1 got fence=4 until=3; 3 2/1 told; 3 3/1 ask; 5 3/1 got fence=4 until=9; 9 3/1 told",
			`at 5ms, fences: client 3 got "a" at 5ms with fence 4, and client 2 got one of 2 slots of "a" at 2ms with fence 4`},
		{"7 - left error=key", `at 7ms, nothing left: key`},
		{"7 1/2 told", `at 7ms, well-formed: client 1, number 2, "told": there is no such lock`},
	} {
		got := Judge(HistoryOf(t, time.Millisecond, "", tt.history)).Violations
		if len(got) != 1 || got[0].String() != tt.want {
			t.Errorf("got %v\nwant [%s]", got, tt.want)
		}
	}
}

func TestJudgeCounts(t *testing.T) {
	got := Judge(HistoryOf(t, time.Millisecond, "", `1 1/1 ask; 4 1/1 got until=30; 5 1/1 extend; 6 1/1 extended until=40; 6 1/1 extend; 7 1/1 failed error=x; 8 1/1 wrote value=1; 9 1/1 told why=lost;
		10 2/1 ask; 11 2/1 denied; 12 2/2 ask; 14 2/2 got until=50; 15 2/2 wrote value=2 was=1; 15 2/2 refused; 16 2/2 release; 16 2/2 told why=released; 17 2/2 released;
		20 - calm; 20 1/2 ask; 22 1/2 got until=30; 23 1/2 release; 23 1/2 released`))
	want := Verdict{
		Asks: 4, Holds: 3, Denials: 1, Extensions: 1, Losses: 1, Writes: 2,
		LongestWait: 3 * time.Millisecond, LongestWaitCalm: 2 * time.Millisecond,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestJudgeFindsOps(t *testing.T) {
	for _, tt := range []struct{ clients, numbers int }{{1000, 2}, {2, 1000}, {50, 40}} {
		r := &record{index: newIndex(2000), number: make(map[history.Request]int)}
		for client := range tt.clients {
			for number := range tt.numbers {
				e := &history.Event{Client: client - 10, Op: number*number - 10}
				if k := r.find(e); k != -1 {
					t.Fatalf("%d/%d is %d already", client, number, k)
				}
				if k := r.add(0, e); k != client*tt.numbers+number || r.find(e) != k {
					t.Fatalf("%d/%d: added as %d, found as %d", client, number, k, r.find(e))
				}
			}
		}
		for k, o := range r.ops {
			if got := r.find(&history.Event{Client: o.client, Op: o.number}); got != k {
				t.Errorf("%d/%d: found as %d, not %d", o.client, o.number, got, k)
			}
		}
	}
}

// TestJudgeIsPure: it changes nothing, and gives the same verdict again.
func TestJudgeIsPure(t *testing.T) {
	for seed := range uint64(200) {
		h := generate(randomBytes(seed, 400))
		before := slices.Clone(h.Events)
		first := fmt.Sprint(Judge(h))
		if second := fmt.Sprint(Judge(h)); first != second {
			t.Fatalf("%s\n%s", first, second)
		}
		if !slices.Equal(before, h.Events) {
			t.Fatal("it has changed the history")
		}
	}
}

// TestTalesAreWritten: the histories of these tests can be written and read again.
func TestTalesAreWritten(t *testing.T) {
	h := generate(randomBytes(1, 500))
	var s bytes.Buffer
	if err := h.Write(&s); err != nil {
		t.Fatal(err)
	}
	if got, err := history.Decode(&s); err != nil || !reflect.DeepEqual(got, h) {
		t.Errorf("wrote %+v\nread  %+v, %v", h, got, err)
	}
}

// TestJudgeAgainstItsTwin is FuzzJudgeAgainstItsTwin without a fuzzer.
func TestJudgeAgainstItsTwin(t *testing.T) {
	n := need.Sized[uint64](150, 1000, 100_000)
	breaks := make(map[string]int)
	for seed := range n {
		broken := make(map[string]bool)
		for _, v := range compareWithTwin(t, generate(randomBytes(seed, 100+int(seed%500)))) {
			broken[v.Rule] = true
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		for rule := range broken {
			breaks[rule]++
		}
	}
	// Agreement means something only if each rule is sometimes broken.
	for _, r := range Rules {
		if some := int(n / 100); breaks[r.Name] < some || breaks[r.Name] > int(n)-some {
			t.Errorf("%d of %d histories break the rule %q", breaks[r.Name], n, r.Name)
		}
	}
}

func randomBytes(seed uint64, n int) []byte {
	rng := rand.New(rand.NewPCG(seed, 1))
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	return data
}

func FuzzJudgeAgainstItsTwin(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(randomBytes(seed, 300))
	}
	f.Fuzz(func(t *testing.T, data []byte) { compareWithTwin(t, generate(data)) })
}

// FuzzJudgeAnything: the judge reads and judges any history.
func FuzzJudgeAnything(f *testing.F) {
	for _, tt := range slices.Concat(judgeCases, waitCases, kindCases, memoryCases, stallCases) {
		var s strings.Builder
		if err := HistoryOf(f, 1, tt.run, tt.history).Write(&s); err != nil {
			f.Fatal(err)
		}
		f.Add(s.String())
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, err := history.Decode(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, v := range Judge(h).Violations {
			if v.Rule == "" || v.Text == "" || len(v.Events) == 0 {
				t.Errorf("%+v", v)
			}
			for _, i := range v.Events {
				if i < 0 || i >= len(h.Events) {
					t.Errorf("%+v: there are %d events", v, len(h.Events))
				}
			}
		}
	})
}

func BenchmarkJudge(b *testing.B) {
	for _, n := range []int{100, 500, 1000} {
		h := ordinary(n)
		if v := Judge(h).Violations; len(v) > 0 {
			b.Fatal(v)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Judge(h)
			}
		})
	}
}

// ordinary returns a history of n events without violations.
func ordinary(n int) *history.History {
	h := &history.History{Run: history.Head{Lag: time.Millisecond, Bound: time.Minute, Clients: 8, Always: true}}
	values := make(map[string]int)
	for op := 0; len(h.Events) < n; op++ {
		client, name, at := 1+op%8, string(rune('a'+op%2)), time.Duration(op)*time.Second
		for i, e := range []history.Event{
			{Kind: history.Ask, Verb: "acquire", Limit: time.Minute}, {Kind: history.Got, Until: at + 900*time.Millisecond, Token: "c" + strconv.Itoa(client) + "." + strconv.Itoa(op)},
			{Kind: history.Read, Value: values[name]}, {Kind: history.Wrote, Was: values[name], Value: values[name] + 1},
			{Kind: history.Extend, Limit: time.Second}, {Kind: history.Extended, Until: at + 999*time.Millisecond},
			{Kind: history.Release, Until: at + 999*time.Millisecond}, {Kind: history.Told, Until: at + 999*time.Millisecond, Why: "released"}, {Kind: history.Released},
		} {
			e.At, e.Client, e.Op, e.Name = at+time.Duration(i)*time.Millisecond, client, 1+op/8, name
			h.Events = append(h.Events, e)
		}
		values[name]++
	}
	return h
}
