package wire

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestIdentity: what a token says is what its process said, byte by byte, and the token has nothing in it that a
// queue, a shell or an older version would take for something else.
func TestIdentity(t *testing.T) {
	now := time.UnixMilli(1795680000123)
	for _, tt := range []struct{ owner, trace, token string }{
		{"web-1:4242", "", "u-1.@mwx9ibnf@@web-1:4242"},
		{"web-1:4242", "4bf92f35", "u-1.@mwx9ibnf@4bf92f35@web-1:4242"},
		{"", "", "u-1.@mwx9ibnf@@"},
		{"a@b .@%\x00\n\xffé'", "x@y", "u-1.@mwx9ibnf@x%40y@a@b%20.@%25%00%0A%FF%C3%A9%27"},
	} {
		token := Sign("u-1", now, "", tt.trace, Label(tt.owner))
		if token != tt.token {
			t.Errorf("%q: %s", tt.owner, token)
		}
		want := Identity{Owner: tt.owner, Since: now, Trace: tt.trace}
		if who, ok := Identify(token); !ok || !reflect.DeepEqual(who, want) {
			t.Errorf("%s: %+v, %v", token, who, ok)
		}
		e := QueueEntry{Waiter: "process.3", Ticket: 3, Deadline: 5, Mode: ModeX, Identity: Signature(token)}
		if back, ok := ParseQueueEntry(e.String(), "3"); !ok || back != e || !reflect.DeepEqual(back.By(), want) || !Signed(e.String()) {
			t.Errorf("%q: %+v, %v", e.String(), back, ok)
		}
	}
	long := Sign("u", now, "", strings.Repeat("ab ", 100), "o")
	if who, ok := Identify(long); !ok || who.Owner != "o" || len(long) > 64+len("u.@mwx9ibnf@@o") || !strings.HasPrefix(who.Trace, "ab ab ") {
		t.Errorf("%s: %+v, %v", long, who, ok)
	}
	for _, token := range []string{"", "e3b0c442-98fc-4c14-9afb-f4c8996fb924", "u.@", "u.@1@", "u.@!@@o", "x.1.u"} {
		if who, ok := Identify(token); ok {
			t.Errorf("%q: %+v", token, who)
		}
	}
	for _, tt := range []struct {
		names []string
		token string
		left  int
	}{
		{[]string{"a"}, "u.@mwx9ibnf@@o", 1},
		{[]string{"a", "b+@ %"}, "u.@mwx9ibnf+a+b%2B%40%20%25@@o", 0},
		{[]string{"a", strings.Repeat("b", 125), "c"}, "u.@mwx9ibnf+a+" + strings.Repeat("b", 125) + "++1@@o", 1},
		{[]string{"a", strings.Repeat("b", 126), "c"}, "u.@mwx9ibnf+a++2@@o", 2},
		{[]string{strings.Repeat("b", 128), "c"}, "u.@mwx9ibnf++2@@o", 2},
	} {
		token := Sign("u", now, List(tt.names), "", "o")
		who, ok := Identify(token)
		if shown := tt.names[:len(tt.names)-tt.left]; !ok || token != tt.token || !slices.Equal(who.Names, shown) || len(tt.names) > 1 && who.More != tt.left || who.Owner != "o" {
			t.Errorf("%q: %s, %+v", tt.names, token, who)
		}
	}
	if got := Secret("x.1.u-1.@mwx9ibnf@@.@o"); got != "x.1.u-1" {
		t.Error(got)
	}
}
