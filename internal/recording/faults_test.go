package recording_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/recording"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
)

// telling has the nodes say that they tell of changes, which a test does by Publish: miniredis does not.
func telling(t *testing.T, nodes *redistest.Bubble) {
	t.Helper()
	for i := range nodes.Len() {
		if err := nodes.Mini(i).Server().Register("CONFIG", notifies); err != nil {
			t.Fatal(err)
		}
	}
}

func notifies(c *server.Peer, _ string, _ []string) {
	c.WriteLen(2)
	c.WriteBulk("notify-keyspace-events")
	c.WriteBulk(recording.Notify)
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

// TestQuietNodeGoesOnTelling: a node of which no lock changes goes on telling.
func TestQuietNodeGoesOnTelling(t *testing.T) {
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

// TestUnchangedRecordSaysUntilWhen: a record in which nothing changes says until when that was so, also if its recorder is killed then.
func TestUnchangedRecordSaysUntilWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := redistest.NewBubble(t, 3)
		telling(t, nodes)
		d := newDesk(t, nodes.Clients())
		lk := d.locker("web")
		if _, err := lk.TryAcquire(t.Context(), "a", redlock.AutoRenew()); err != nil {
			t.Fatal(err)
		}
		d.begin(1 << 20)
		time.Sleep(time.Minute)
		s := d.story("a")
		if ago := time.Since(s.To); ago > 12*time.Second || len(s.Holds) != 1 {
			t.Errorf("it ends %v ago: %s", ago, tell(s))
		}
		killed, err := os.ReadFile(d.file)
		if err != nil {
			t.Fatal(err)
		}
		d.end()
		if err := os.WriteFile(d.file, killed, 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		d.begin(1 << 20)
		time.Sleep(time.Second)
		d.end()
		s = d.story("b")
		if len(s.Silences) != 1 || s.Silences[0].Node != "" || s.Silences[0].From.Sub(s.From) < 45*time.Second {
			t.Errorf("the gap: %s", tell(s))
		}
		if n := len(d.lines(func(*recording.Line) bool { return true })); n > 40 {
			t.Errorf("%d lines", n)
		}
	})
}

// TestLocksSinceANodeWasEmptiedAreKept: what a node has had since it was emptied is not forgotten, though that it was emptied is noticed later.
func TestLocksSinceANodeWasEmptiedAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := redistest.NewBubble(t, 3)
		telling(t, nodes)
		d := newDesk(t, nodes.Clients())
		lk := d.locker("web")
		if _, err := lk.TryAcquire(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		d.begin(1 << 20)
		time.Sleep(5100 * time.Millisecond)
		for i, c := range d.clients {
			nodes.Mini(i).FlushAll()
			c.Set(t.Context(), "b", web, time.Minute)
			c.Publish(t.Context(), "__keyspace@0__:b", "set")
		}
		time.Sleep(3 * time.Second)
		for _, c := range d.clients {
			c.Del(t.Context(), "b")
			c.Publish(t.Context(), "__keyspace@0__:b", "del")
		}
		time.Sleep(time.Second)
		d.end()
		d.tells("a", "web exclusive 0-5.1 on 3 before: forgotten\n")
		d.tells("b", "web exclusive 5.1-8.1 on 3: released\n")
	})
}

// TestWhatANodeToldIsNotLost: what a node has told of is not lost when it cannot be read for a while.
func TestWhatANodeToldIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := memredis.NewNode(0)
		defer node.Close()
		err := node.Engine.Mini().Server().Register("CONFIG", notifies)
		if err != nil {
			t.Fatal(err)
		}
		c := redis.NewClient(node.Options())
		defer c.Close()
		d := newDesk(t, []*redis.Client{c})
		names := []string{"a", "b", "c", "d"}
		for _, name := range names {
			c.Set(t.Context(), name, web, time.Minute)
		}
		d.begin(1 << 20)
		time.Sleep(5100 * time.Millisecond)
		node.Engine.Refuse(&memredis.Refusal{Error: "ERR not now", Only: []string{"EVAL", "EVALSHA"}})
		for _, name := range names {
			c.Del(t.Context(), name)
			c.Publish(t.Context(), "__keyspace@0__:"+name, "expired")
		}
		time.Sleep(100 * time.Millisecond)
		c.Publish(t.Context(), "__keyspace@0__:a", "set")
		c.Publish(t.Context(), "__keyspace@0__:a", "del")
		time.Sleep(time.Second)
		node.Engine.Refuse(nil)
		time.Sleep(3 * time.Second)
		d.end()
		for _, name := range names {
			if s := d.story(name); len(s.Holds) != 1 || s.Holds[0].How() != recording.EndExpired || len(s.Silences) != 1 {
				t.Errorf("of %s: %s", name, tell(s))
			}
		}
	})
}

// TestNewFileSaysThatItWasInterrupted: a record that goes on in a new file says that it was interrupted.
func TestNewFileSaysThatItWasInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, redistest.NewBubble(t, 3).Clients())
		lk := d.locker("web")
		d.begin(1 << 20)
		time.Sleep(2 * time.Second)
		for i := range 10 {
			l, err := lk.TryAcquire(t.Context(), fmt.Sprint("a", i))
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(300 * time.Millisecond)
			_ = l.Release(t.Context())
		}
		time.Sleep(time.Second)
		d.end()
		time.Sleep(time.Minute)
		d.begin(8000)
		time.Sleep(time.Second)
		d.end()
		if _, err := os.Stat(recording.Earlier(d.file)); err != nil {
			t.Error(err)
		}
		d.tells("a0", "web exclusive 2-2.3 on 3: deleted\nsilent false 6-66\n")
	})
}

// TestLongValueIsNoToken: a value of another program that could be a token, and is far too long for one, is none.
func TestLongValueIsNoToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, redistest.NewBubble(t, 1).Clients())
		d.clients[0].Set(t.Context(), "page", strings.Repeat("x", 1<<20), time.Minute)
		d.clients[0].Set(t.Context(), "a", web, time.Minute)
		d.begin(1 << 16)
		time.Sleep(3 * time.Second)
		d.end()
		d.tells("a", "web exclusive 0-end on 1 before\n")
		d.tells("page", "")
	})
}

// TestNamesMayHaveAnyBytes: a name may have any bytes.
func TestNamesMayHaveAnyBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, redistest.NewBubble(t, 1).Clients())
		names := []string{"a\xff", "a\xfe", "a\ufffd", "a\n\x1b[2J", `a"\`}
		for _, name := range names {
			d.clients[0].Set(t.Context(), name, fmt.Sprintf("1.@mwxh1y8f@@%x", name), time.Minute)
		}
		d.begin(1 << 20)
		time.Sleep(3 * time.Second)
		d.end()
		for _, name := range names {
			d.tells(name, fmt.Sprintf("%x exclusive 0-end on 1 before\n", name))
		}
	})
}

// TestHungNodeHasItsTimeBeforeItIsSilent: a node that hangs is not known to be silent until it has had its time.
func TestHungNodeHasItsTimeBeforeItIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := redistest.NewBubble(t, 3)
		d := newDesk(t, nodes.Clients())
		nodes.Hang(1)
		d.begin(1 << 20)
		time.Sleep(time.Second)
		if silent, mute, known := d.rec.Silent(); len(silent) != 0 || len(mute) != 2 || known {
			t.Errorf("after a second: %v, %v, %t", silent, mute, known)
		}
		time.Sleep(2 * time.Second)
		if silent, mute, known := d.rec.Silent(); len(silent) != 1 || len(mute) != 2 || !known {
			t.Errorf("after three: %v, %v, %t", silent, mute, known)
		}
		nodes.Resume(1) // see redistest.Bubble: a subscription that is being opened could not be closed
		time.Sleep(5 * time.Second)
		d.end()
	})
}
