package wire

import (
	"errors"
	"testing"
)

// TestPlainAnswer: an answer is a vote if nothing is wrong with it, and none if any one thing is.
func TestPlainAnswer(t *testing.T) {
	denied := redisError("NOPERM this user has no permissions to run the 'zadd' command")
	for name, tt := range map[string]struct {
		spoil  func(*PlainAnswer)
		want   Status
		absent bool // the token is not at the node
	}{
		"nothing":                         {func(*PlainAnswer) {}, Granted, false},
		"the key was there":               {func(p *PlainAnswer) { p.Set, p.Holder = false, "another" }, Held, true},
		"the key was there for a moment":  {func(p *PlainAnswer) { p.Set, p.Holder = false, "" }, Held, true},
		"SET is denied":                   {func(p *PlainAnswer) { p.Set, p.Refused, p.Holder = false, denied, "" }, Denied, true},
		"SET finds no memory":             {func(p *PlainAnswer) { p.Set, p.Refused, p.Holder = false, redisError("OOM command not allowed"), "" }, OutOfMemory, true},
		"the number did not advance":      {func(p *PlainAnswer) { p.Advanced = 0 }, Void, false},
		"ZADD is denied":                  {func(p *PlainAnswer) { p.Advanced, p.Err = 0, denied }, Void, false},
		"it does not say the time":        {func(p *PlainAnswer) { p.Time = 0 }, Void, false},
		"it is too late":                  {func(p *PlainAnswer) { p.Time = 8 }, Void, false},
		"another client has the key":      {func(p *PlainAnswer) { p.Holder = "another" }, Void, false},
		"the key is gone":                 {func(p *PlainAnswer) { p.Holder = "" }, Void, false},
		"there is a queue":                {func(p *PlainAnswer) { p.Queues = 1 }, Void, false},
		"the node has lost its data":      {func(p *PlainAnswer) { p.Marker = "" }, Void, false},
		"the node is another":             {func(p *PlainAnswer) { p.Marker = "another" }, Void, false},
		"another process":                 {func(p *PlainAnswer) { p.Known = 0 }, Void, false},
		"a command of the trailer failed": {func(p *PlainAnswer) { p.Failed = errors.New("ERR") }, Void, false},
	} {
		p := &PlainAnswer{Set: true, Advanced: 1, Holder: "token", Trailer: &Trailer{Marker: "marker", Time: 7, Known: 1}}
		tt.spoil(p)
		r := p.Read("token", 7, 7, "marker")
		if r.Status != tt.want || (r.Status == Granted) != (r.Fence == 7) || (r.Status == Granted) != (r.Err == nil && r.Status != Held) {
			t.Errorf("%s: %+v, want %v", name, r, tt.want)
		}
		if r.MeansAbsent(Acquire) != tt.absent {
			t.Errorf("%s: that the token is absent is %v", name, !tt.absent)
		}
	}
}
