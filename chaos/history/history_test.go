package history_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
)

// everyField is a history in which every field has a value of its own.
func everyField() *history.History {
	f := &history.Fault{At: 1, Kind: history.LoseReplies, Node: 2, Client: 3, For: 4, By: -5, Times: 6}
	return &history.History{
		Run: history.Head{Scenario: "s", Arena: "a", Seed: 1 << 63, Nodes: 5, Quorum: 3, Clients: 7, Start: time.Unix(1, 0).UTC(), Owners: []string{"o"}, Addrs: []string{"n"}, Members: 6, Separator: "/", Lag: time.Millisecond, Look: 8, Overlap: 9, Bound: time.Minute, Settle: 10, Idle: 11, Slight: 12, Grace: 13, TTL: 14, MostKeys: 15, MostBytes: 16, MostRequests: 17, Found: true, Exact: true, Settled: true, Planned: true, Forgetful: true, Always: true},
		Events: []history.Event{
			{At: 1, Kind: history.Held, Client: 2, Op: 3, Name: "a<b>&\n", Also: "b c", Shared: true, Slots: 8, Verb: "try", Limit: 4, Token: "t", Fence: 1<<64 - 1, Until: 5, Value: 6, Was: -7, Why: "lost", Error: "é", Fault: f, Weight: &history.Weight{Node: 1, Keys: 2, Bytes: 3, Requests: 4}},
			{Kind: history.Calm},
		},
	}
}

// TestHistoryRoundTrip: a history that is written and read again is the same, with a value in every field.
func TestHistoryRoundTrip(t *testing.T) {
	all := everyField()
	for _, v := range []reflect.Value{reflect.ValueOf(all.Run), reflect.ValueOf(all.Events[0]), reflect.ValueOf(*all.Events[0].Fault), reflect.ValueOf(*all.Events[0].Weight)} {
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("%v.%s has no value here, and may get lost", v.Type(), v.Type().Field(i).Name)
			}
		}
	}
	for _, h := range []*history.History{all, {}, {Run: history.Head{Seed: 1}}} {
		var s bytes.Buffer
		if err := h.Write(&s); err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(s.String(), "\n"); lines != 1+len(h.Events) {
			t.Errorf("%d lines for %d events", lines, len(h.Events))
		}
		got, err := history.Decode(&s)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, h) {
			t.Errorf("wrote %+v\nread  %+v", h, got)
		}
	}
}

// TestHistoryIsForPeople: a history is written without escapes that only a web page needs.
func TestHistoryIsForPeople(t *testing.T) {
	var s strings.Builder
	h := history.History{Events: []history.Event{{At: 5, Kind: history.Left, Error: "a < b"}}}
	if err := h.Write(&s); err != nil {
		t.Fatal(err)
	}
	if _, line, _ := strings.Cut(s.String(), "\n"); line != `{"at":5,"kind":"left","error":"a < b"}`+"\n" {
		t.Errorf("wrote %s", line)
	}
}

// TestHistoryReadErrors: what is no history is refused, and the error names the line.
func TestHistoryReadErrors(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{``, "line 1: EOF"},
		{`{`, "line 1: unexpected EOF"},
		{`{"seed":-1}`, "line 1: "},
		{`{"seeds":1}`, `line 1: json: unknown field "seeds"`},
		{"{}\n{}\n{\"at\":\"noon\"}", "line 3: "},
		{"{}\n{\"what\":1}", `line 2: json: unknown field "what"`},
		{"{}\n{}\n{\"at\":1", "line 3: unexpected EOF"},
	} {
		h, err := history.Decode(strings.NewReader(tt.text))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, %v, want an error with %q", tt.text, h, err, tt.want)
		}
	}
}

type broken struct{ after int }

func (b *broken) Write(p []byte) (int, error) {
	if b.after--; b.after < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

var errBroken = errors.New("broken")

// TestHistoryWriteErrors: the error of the writer is that of Write, whichever line it comes at.
func TestHistoryWriteErrors(t *testing.T) {
	for lines := range 3 {
		if err := everyField().Write(&broken{lines}); err != errBroken {
			t.Errorf("after %d lines: %v", lines, err)
		}
	}
}

// FuzzHistory: a history that was read is the same after it is written and read again.
func FuzzHistory(f *testing.F) {
	var s strings.Builder
	if err := everyField().Write(&s); err != nil {
		f.Fatal(err)
	}
	f.Add(s.String())
	f.Add("{}{}{}")
	f.Fuzz(func(t *testing.T, text string) {
		h, err := history.Decode(strings.NewReader(text))
		if err != nil {
			return
		}
		var s bytes.Buffer
		if err := h.Write(&s); err != nil {
			t.Fatal(err)
		}
		if again, err := history.Decode(&s); err != nil || !reflect.DeepEqual(h, again) {
			t.Errorf("%v\nread  %+v\nagain %+v", err, h, again)
		}
	})
}
