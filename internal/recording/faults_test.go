package recording_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/quorumlock/redlock/internal/recording"
	"github.com/quorumlock/redlock/internal/redistest"
)

// telling has the nodes say that they tell of changes, which a test does by Publish: miniredis does not.
func telling(t *testing.T, nodes *redistest.Bubble) {
	t.Helper()
	for i := range nodes.Len() {
		err := nodes.Mini(i).Server().Register("CONFIG", func(c *server.Peer, _ string, _ []string) {
			c.WriteLen(2)
			c.WriteBulk("notify-keyspace-events")
			c.WriteBulk(recording.Notify)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// lines are those of a record for which is is true.
func (d *desk) lines(is func(*recording.Line) bool) (all []*recording.Line) {
	d.Helper()
	err := recording.Lines(d.file, func(l *recording.Line) {
		if is(l) {
			all = append(all, l)
		}
	})
	if err != nil {
		d.Fatal(err)
	}
	return all
}

// TestQuiet: a node of which no lock changes goes on telling.
func TestQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := redistest.NewBubble(t, 1)
		telling(t, nodes)
		d := newDesk(t, nodes.Clients())
		d.begin(1 << 20)
		time.Sleep(30 * time.Second)
		d.end()
		all := d.lines(func(l *recording.Line) bool { return l.State == recording.StateAnswers })
		if n := len(all); n == 0 || n > 2 || !all[n-1].Tells {
			t.Errorf("%d times it began to tell of changes, or ended it", n)
		}
	})
}
