package lane

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/wire"
)

// Other goroutines may go on while an answer is taken in.

// between calls a function when a node was heard of, and its marker is not known yet.
type between struct {
	circle
	then func(kept wire.Told)
}

func (b *between) heard(m *incarnation, kept wire.Told, mark wire.Marker, sent time.Time) {
	b.circle.heard(m, kept, mark, sent)
	b.then(kept)
}

// warned takes warnings, and does nothing with them.
type warned struct{ Events }

func (warned) Warning(error) {}

func kept(set string, epoch int64, members ...string) wire.Told {
	d := &wire.Description{MaxTTL: 10_000, Epoch: epoch, Set: set, Members: members}
	return wire.Told{Self: members[0], Description: wire.ParseDescription(d.Text())}
}

// shows is what a node says whose marker is so old.
func shows(k wire.Told, ago time.Duration) wire.Mark {
	at := time.Now().Add(-ago).UnixMilli()
	text := wire.Marker{RunID: "r", Born: at, Writer: at, Epoch: k.At()}.String()
	return wire.Mark{Value: text, Before: text, Now: time.Now().UnixMicro(), Told: k}
}

func describedConfig() Config {
	cfg := testConfig()
	cfg.Described, cfg.Quorum, cfg.Accept = true, 2, func(*wire.Description) error { return nil }
	cfg.Events = warned{cfg.Events}
	return cfg
}

// TestOlderAnswerInBetween: an answer that is older than the one that is just taken in does not leave what the node
// kept together with the marker that it has now. By that, a grant of another set would count.
func TestOlderAnswerInBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := describedConfig()
		m := testIncarnation(&cfg)
		m.set.(*Set).cfg = cfg
		before, now := shows(kept("k", 2, "a:1", "b:1"), time.Hour), shows(kept("t", 2, "a:1", "b:1"), time.Minute)
		m.Joined(before, m.Now())
		once := true
		m.set = &between{m.set, func(k wire.Told) {
			if once && k.Set == "t" {
				once = false
				m.Joined(before, m.Now())
			}
		}}
		m.Joined(now, m.Now())
		q := &Request{Op: wire.Acquire, Claim: &Claim{}, By: before.Told.Description}
		m.answers(q, wire.Reply{Status: wire.Granted, Mark: now.Value}, "")
		if q.Mark == now.Value && q.Reply.Status == wire.Granted {
			t.Error("a grant of a node of the set t counts by the description of the set k")
		}
	})
}
