package recording_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/fresh"
	"github.com/quorumlock/redlock/internal/recording"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/leaks"
)

func TestMain(m *testing.M) { os.Exit(leaks.Main(m)) }

// A desk has nodes, and a record of them.
type desk struct {
	*testing.T
	file    string
	nodes   []recording.Node
	clients []*redis.Client
	rec     *recording.Recorder
}

func newDesk(t *testing.T, clients []*redis.Client) *desk {
	d := &desk{T: t, file: filepath.Join(t.TempDir(), "record"), clients: clients}
	for _, c := range clients {
		d.nodes = append(d.nodes, recording.Node{Name: c.Options().Addr, Options: c.Options()})
	}
	for _, c := range clients {
		if err := fresh.Settle(context.Background(), c); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func (d *desk) begin(most int64) {
	d.Helper()
	file, err := recording.Create(d.file, most)
	if err != nil {
		d.Fatal(err)
	}
	rec := recording.New(file, "", 100*time.Millisecond)
	d.rec = rec
	d.Cleanup(func() { rec.Close() }) // where the test has failed
	set := recording.Set{Quorum: len(d.nodes)/2 + 1}
	for _, n := range d.nodes {
		set.Nodes = append(set.Nodes, n.Name)
	}
	d.rec.Follow(set, d.nodes)
}

func (d *desk) end() {
	d.Helper()
	if err := d.rec.Close(); err != nil {
		d.Fatal(err)
	}
}

func (d *desk) locker(owner string) *redlock.Locker {
	d.Helper()
	lk, err := redlock.New(d.clients, &redlock.Options{TTL: 10 * time.Second, Owner: owner})
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { lk.Close() })
	return lk
}

func (d *desk) story(name string) *recording.Story {
	d.Helper()
	s, err := recording.Read(d.file, name)
	if err != nil {
		d.Fatal(err)
	}
	return s
}

// tell is a story in some lines, with times in whole tenths of a second from the beginning.
func tell(s *recording.Story) string {
	at := func(t time.Time) string {
		if t.IsZero() {
			return "end"
		}
		return fmt.Sprint(t.Sub(s.From).Round(100 * time.Millisecond).Seconds())
	}
	roughly := func(t time.Time) string { // when a node is asked again depends on how long it takes to dial
		if t.IsZero() {
			return "end"
		}
		return fmt.Sprint(t.Sub(s.From).Round(2 * time.Second).Seconds())
	}
	var b strings.Builder
	for _, h := range s.Holds {
		fmt.Fprintf(&b, "%s %s %s-%s on %d", h.By.Owner, h.Mode, at(h.From), at(h.To), len(h.Nodes))
		if h.Before {
			b.WriteString(" before")
		}
		if how := h.How(); how != "" {
			fmt.Fprintf(&b, ": %s", how)
		}
		b.WriteString("\n")
	}
	for _, w := range s.Waits {
		fmt.Fprintf(&b, "%s waits %s-%s", w.Owner, at(w.Since), at(w.Until))
		if w.Got != nil {
			fmt.Fprintf(&b, ", then %s", w.Got.By.Owner)
		}
		b.WriteString("\n")
	}
	for _, q := range s.Silences {
		fmt.Fprintf(&b, "silent %t %s-%s\n", q.Node != "", roughly(q.From), roughly(q.To))
	}
	return b.String()
}

func (d *desk) tells(name, want string) {
	d.Helper()
	if got := tell(d.story(name)); got != want {
		d.Errorf("of %s:\n%swant:\n%s", name, got, want)
	}
}

// TestNodesThatTellNothingAreLookedAt: nodes that tell of no changes are looked at, and what lasts is seen.
func TestNodesThatTellNothingAreLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := redistest.NewBubble(t, 3)
		d := newDesk(t, nodes.Clients())
		web, db := d.locker("web"), d.locker("db")
		ctx := t.Context()
		take := func(lk *redlock.Locker, name string, o ...redlock.AcquireOption) *redlock.Lock {
			t.Helper()
			l, err := lk.TryAcquire(ctx, name, o...)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		old := take(web, "old", redlock.AutoRenew())
		d.begin(1 << 20)
		time.Sleep(time.Second)
		a := take(web, "a", redlock.AutoRenew())
		time.Sleep(500 * time.Millisecond)
		waits := make(chan *redlock.Lock)
		go func() {
			l, err := db.Acquire(ctx, "a", redlock.TTL(2*time.Second))
			if err != nil {
				t.Error(err)
			}
			waits <- l
		}()
		time.Sleep(1500 * time.Millisecond)
		_ = a.Release(ctx)
		lost := <-waits // and nobody extends it
		s1 := take(web, "s", redlock.Shared())
		time.Sleep(500 * time.Millisecond)
		s2 := take(db, "s", redlock.Shared())
		time.Sleep(2500 * time.Millisecond)
		if err := lost.Extend(ctx); err == nil {
			t.Error("it was not lost")
		}
		_ = s1.Release(ctx)
		nodes.Kill(0)
		time.Sleep(2 * time.Second)
		nodes.Restart(0, true)
		time.Sleep(2 * time.Second)
		_, _ = s2.Release(ctx), old.Release(ctx)
		time.Sleep(time.Second)
		d.end()
		const silent = "silent true 6-8\n"
		d.tells("a", "web exclusive 1-3 on 3: replaced\ndb exclusive 3-5 on 3: gone\ndb waits 1.5-3, then db\n"+silent)
		d.tells("old", "web exclusive 0-10 on 3 before: deleted\n"+silent)
		d.tells("s", "web shared 3-6 on 3: deleted\ndb shared 3.5-10 on 3: deleted\n"+silent)
		d.tells("none", silent)
		s := d.story("a")
		if s.Fenced != 2 || len(s.Unfenced) > 0 || s.Holds[0].Fence == 0 || s.Holds[1].Fence <= s.Holds[0].Fence {
			t.Errorf("fences: %d seen, %d and %d", s.Fenced, s.Holds[0].Fence, s.Holds[1].Fence)
		}
		at := s.At(s.From.Add(2 * time.Second))
		if at.State != redlock.StateHeld || at.By.Owner != "web" || len(at.Waiting) != 1 || at.Waiting[0].Owner != "db" || at.Waiting[0].Nodes != 3 {
			t.Errorf("after 2 s: %+v", at)
		}
		if at := s.At(s.From.Add(6500 * time.Millisecond)); at.State != redlock.StateFree || at.Nodes[0].Err == nil || at.Nodes[1].Err != nil {
			t.Errorf("after 6.5 s: %+v", at)
		}
	})
}

// TestEmptiedNodeIsNoticed: a node that is emptied is noticed, though it tells of nothing.
func TestEmptiedNodeIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := redistest.NewBubble(t, 3)
		d := newDesk(t, nodes.Clients())
		lk := d.locker("web")
		d.begin(1 << 20)
		time.Sleep(time.Second)
		l, err := lk.TryAcquire(t.Context(), "a", redlock.TTL(9*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		nodes.Mini(0).FlushAll()
		nodes.Mini(1).FlushAll()
		time.Sleep(2 * time.Second)
		_ = l.Release(t.Context())
		time.Sleep(time.Second)
		d.end()
		s := d.story("a")
		if len(s.Holds) != 1 || s.Holds[0].How() != recording.EndForgot || s.Holds[0].To.Sub(s.From) > 3100*time.Millisecond {
			t.Errorf("it was %s", tell(s))
		}
	})
}

// TestRecordKeepsItsBound: a record keeps its bound, and what there was when it began anew.
func TestRecordKeepsItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, redistest.NewBubble(t, 3).Clients())
		lk := d.locker("web")
		const most = 12_000
		d.begin(most)
		old, err := lk.TryAcquire(t.Context(), "old", redlock.AutoRenew())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		for i := range 30 {
			l, err := lk.TryAcquire(t.Context(), fmt.Sprint("a", i))
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(300 * time.Millisecond)
			_ = l.Release(t.Context())
		}
		time.Sleep(time.Second)
		_ = old.Release(t.Context())
		time.Sleep(time.Second)
		d.end()
		size := int64(0)
		for _, name := range []string{d.file, recording.Earlier(d.file)} {
			about, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			if size += about.Size(); about.Mode().Perm() != 0o600 && runtime.GOOS != "windows" { // which has no modes
				t.Errorf("others can read the tokens: %v", about.Mode())
			}
		}
		if size > most || size < most/2 {
			t.Errorf("%d bytes, of %d", size, most)
		}
		if s := d.story("old"); len(s.Holds) != 1 || s.Holds[0].How() != recording.EndDeleted || len(s.Holds[0].Nodes) != 3 || s.To.Sub(s.From) > 9*time.Second {
			t.Errorf("from %v to %v: %s", s.From, s.To, tell(s))
		}
		if s := d.story("a29"); len(s.Holds) != 1 {
			t.Errorf("the last one: %s", tell(s))
		}
	})
}

// TestRecordIsTooSmallForTheLocks: the locks do not fit.
func TestRecordIsTooSmallForTheLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, redistest.NewBubble(t, 3).Clients())
		lk := d.locker("web")
		for i := range 20 {
			if _, err := lk.TryAcquire(t.Context(), fmt.Sprint(i), redlock.AutoRenew()); err != nil {
				t.Fatal(err)
			}
		}
		d.begin(4000)
		time.Sleep(time.Second)
		<-d.rec.Done()
		if err := d.rec.Close(); err == nil || !strings.Contains(err.Error(), "do not fit into a quarter of the record's size, 1000 bytes") {
			t.Errorf("it ends with %v", err)
		}
		if _, err := os.Stat(recording.Earlier(d.file)); err == nil {
			t.Error("a file with a part of them took the place of what was recorded")
		}
	})
}

// TestRecorderGoesOnWithARecord: a recorder goes on with the record of one that was killed.
func TestRecorderGoesOnWithARecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, redistest.NewBubble(t, 3).Clients())
		lk := d.locker("web")
		stays, _ := lk.TryAcquire(t.Context(), "stays", redlock.AutoRenew())
		goes, err := lk.TryAcquire(t.Context(), "goes", redlock.AutoRenew())
		if err != nil {
			t.Fatal(err)
		}
		d.begin(1 << 20)
		time.Sleep(time.Second)
		d.end()
		text, err := os.ReadFile(d.file)
		if err != nil {
			t.Fatal(err)
		}
		cut := text[:strings.LastIndex(string(text[:len(text)-1]), "\n")+20] // in the midst of the last line
		if err := os.WriteFile(d.file, cut, 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		_ = goes.Release(t.Context())
		d.begin(1 << 20)
		time.Sleep(time.Second)
		_ = stays.Release(t.Context())
		time.Sleep(time.Second)
		d.end()
		d.tells("stays", "web exclusive 0-3 on 3 before: deleted\nsilent false 0-2\n")
		d.tells("goes", "web exclusive 0-2 on 3 before: unseen\nsilent false 0-2\n")
	})
}

// TestOtherFilesStayAsTheyAre: a file that is no record is not continued, and not written to.
func TestOtherFilesStayAsTheyAre(t *testing.T) {
	name := filepath.Join(t.TempDir(), "notes")
	if err := os.WriteFile(name, []byte("buy milk\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := recording.Create(name, 1<<20); err == nil || !strings.Contains(err.Error(), name+" exists, and is no record") {
		t.Errorf("it is continued: %v", err)
	}
	if text, _ := os.ReadFile(name); string(text) != "buy milk\n" {
		t.Errorf("it has %q", text)
	}
	if _, err := recording.Read(name, "a"); err == nil || !strings.Contains(err.Error(), "is no record") {
		t.Errorf("it is read: %v", err)
	}
	if _, err := recording.Create(os.DevNull, 1<<20); err == nil || !strings.Contains(err.Error(), "is no regular file") && runtime.GOOS != "windows" { // where NUL.1 is NUL, too
		t.Errorf("%s: %v", os.DevNull, err)
	}
	if _, err := recording.Read(name+"x", "a"); !os.IsNotExist(err) && !strings.Contains(fmt.Sprint(err), "not exist") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestServersTell: a server that tells of changes misses no lock that is held for a moment.
func TestServersTell(t *testing.T) {
	servers := redistest.Servers(t, 3, "--notify-keyspace-events", recording.Notify)
	d := newDesk(t, redistest.Clients(t, servers))
	lk := d.locker("web")
	d.begin(1 << 20)
	known := func(name string, done func(*recording.Story) bool) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); !done(d.story(name)); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("of %s: %s", name, tell(d.story(name)))
			}
		}
	}
	held := func(s *recording.Story) bool { return len(s.Holds) == 1 && len(s.Holds[0].Nodes) == 3 }
	ended := func(how recording.End) func(s *recording.Story) bool {
		return func(s *recording.Story) bool { return held(s) && s.Holds[0].How() == how && len(s.Holds[0].Lost) == 3 }
	}
	for _, kind := range []struct {
		name string
		o    []redlock.AcquireOption
		how  recording.End
	}{
		{"once", nil, recording.EndReleased},
		{"shared", []redlock.AcquireOption{redlock.Shared()}, recording.EndReleased},
		{"slot", []redlock.AcquireOption{redlock.Slots(3)}, recording.EndReleased},
		{"lost", []redlock.AcquireOption{redlock.TTL(100 * time.Millisecond)}, recording.EndExpired},
	} {
		l, err := lk.TryAcquire(t.Context(), kind.name, kind.o...)
		if err != nil {
			t.Fatal(err)
		}
		if kind.how == recording.EndReleased {
			known(kind.name, held)
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		known(kind.name, ended(kind.how))
		if h := d.story(kind.name).Holds[0]; h.Mode == recording.ModeExclusive && h.Fence != l.Fence() {
			t.Errorf("%s: fence %d, and the record has %d", kind.name, l.Fence(), h.Fence)
		}
	}
	// A server that hangs is missing from its last answer on.
	if err := servers[0].Hang(); err != nil {
		t.Fatal(err)
	}
	l, err := lk.TryAcquire(t.Context(), "without")
	if err != nil {
		t.Fatal(err)
	}
	known("without", func(s *recording.Story) bool { return len(s.Holds) == 1 && len(s.Holds[0].Nodes) == 2 })
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if silent, mute, _ := d.rec.Silent(); len(silent) == 1 && len(mute) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nobody notices that it hangs")
		}
	}
	if err := servers[0].Resume(); err != nil {
		t.Fatal(err)
	}
	_ = l.Release(t.Context())
	known("without", func(s *recording.Story) bool {
		return s.Holds[0].How() == recording.EndReleased && len(s.Silences) == 1 && s.Silences[0].Error == "no answer within 2s"
	})
	d.end()
}
