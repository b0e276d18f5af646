package realarena

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// TestRealFiles: what a node has after a fault of its file. Of two keys the second one is later.
func TestRealFiles(t *testing.T) {
	t.Parallel()
	n, c := startRealNode(t)
	n.diary.keep(n.server.Dir())
	has := func(key string) bool {
		t.Helper()
		all, err := n.keys()
		if err != nil {
			t.Fatal(err)
		}
		return all[key] != ""
	}
	set := func(key string) {
		t.Helper()
		_ = lock(c, key) // may make the connection anew
		if got := lock(c, key); got != "OK" {
			t.Fatal(got)
		}
	}
	size := func() int64 {
		t.Helper()
		name, err := file(n.server.Dir())
		if err != nil {
			t.Fatal(err)
		}
		about, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		return about.Size()
	}
	for _, kind := range []history.FaultKind{history.OldFile, history.PowerCut} {
		set("a")
		before := size()
		for deadline := time.Now().Add(5 * time.Second); n.diary.at(time.Now()) < before; time.Sleep(tick) {
			if time.Now().After(deadline) {
				t.Fatal("the diary has not noted the first key")
			}
		}
		between := time.Now()
		set("b")
		n.must(t, history.Fault{Kind: kind}, true)
		n.must(t, history.Fault{Kind: kind, By: n.died.Sub(between)}, false)
		if !has("a") || has("b") {
			t.Errorf("after %s it has the first key, %v, and the second, %v", kind, has("a"), has("b"))
		}
	}
	whole := size()
	for draw := 1; size() >= whole; draw++ { // the last byte may be the place
		n.must(t, history.Fault{Kind: history.CutFile}, true)
		n.must(t, history.Fault{Kind: history.CutFile, Times: draw}, false)
		if draw > 100 {
			t.Fatal("the file was never cut")
		}
	}
	for draw := range 20 { // it starts with any file
		set("a")
		n.must(t, history.Fault{Kind: history.FlipFile}, true)
		n.must(t, history.Fault{Kind: history.FlipFile, Times: 1 + draw}, false)
	}
}

// TestRealOtherFile: a node with the files of another one keeps what that keeps of its set, and is made to forget it.
func TestRealOtherFile(t *testing.T) {
	t.Parallel()
	n, _ := startRealNode(t)
	other, c := startRealNode(t)
	n.others = []*node{other}
	const key = "of the other"
	if got := lock(c, key); got != "OK" {
		t.Fatal(got)
	}
	if err := other.admin.Set(t.Context(), script.Told, "what it keeps", 0).Err(); err != nil {
		t.Fatal(err)
	}
	n.must(t, history.Fault{Kind: history.OtherFile, Times: 7}, true)
	told, err := n.admin.Get(t.Context(), script.Told).Result()
	if keys, _ := n.keys(); keys[key] == "" || told != "what it keeps" {
		t.Errorf("it has %v and keeps %q: %v", keys, told, err)
	}
	n.must(t, history.Fault{Kind: history.OtherFile, Times: 7}, false)
	if told, err := n.admin.Get(t.Context(), script.Told).Result(); err == nil {
		t.Errorf("it still keeps %q", told)
	}
}

// TestRealDiskFull: a node whose disk is full loses what it has answered when it dies, and refuses the rest; also when it
// is restarted meanwhile.
func TestRealDiskFull(t *testing.T) {
	if runtime.GOOS != "linux" {
		need.Skip(t, "with full disks", "this is not Linux")
	}
	t.Parallel()
	redisproc.IgnoreFileLimit()
	n, c := startRealNode(t)
	n.must(t, history.Fault{Kind: history.DiskFull}, true)
	if got := lock(c, "answered"); got != "OK" {
		t.Fatal(got)
	}
	if got := lock(c, "refused"); !strings.HasPrefix(got, "MISCONF ") {
		t.Errorf("on a full disk: %s", got)
	}
	n.must(t, history.Fault{Kind: history.Kill}, true)
	n.must(t, history.Fault{Kind: history.Kill}, false)
	if keys, err := n.keys(); len(keys) != 0 || err != nil {
		t.Errorf("after a death on a full disk it has %v, %v", keys, err)
	}
	_ = lock(c, "a")
	_ = lock(c, "a")
	if got := lock(c, "a"); !strings.HasPrefix(got, "MISCONF ") {
		t.Errorf("restarted on a full disk: %s", got)
	}
	n.must(t, history.Fault{Kind: history.DiskFull}, false)
	for deadline := time.Now().Add(10 * time.Second); lock(c, "a") != "OK"; time.Sleep(tick) {
		if time.Now().After(deadline) {
			t.Fatalf("with room again: %s", lock(c, "a"))
		}
	}
}

// TestRealSlew: the clock of a node gains what it should, and keeps that.
func TestRealSlew(t *testing.T) {
	need.Servers(t, redisproc.CanStepClock)
	t.Parallel()
	n, err := newNodeBy(redisproc.StartWithClock, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.close)
	ahead := func() time.Duration {
		at, err := n.admin.Time(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		return time.Until(at)
	}
	n.must(t, history.Fault{Kind: history.Slew, By: 500 * time.Millisecond}, true)
	for deadline := time.Now().Add(10 * time.Second); ahead() < 50*time.Millisecond; time.Sleep(tick) {
		if time.Now().After(deadline) {
			t.Fatalf("it is ahead by %v", ahead())
		}
	}
	n.must(t, history.Fault{Kind: history.Slew, By: 500 * time.Millisecond}, false)
	if by := ahead(); by < 40*time.Millisecond {
		t.Errorf("slewed no more, it is ahead by %v", by)
	}
}
