package recording_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/recording"
	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

const setLine = `{"time":"2026-01-31T03:00:00Z","set":{"nodes":["a"],"quorum":1}}` + "\n"

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func has(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestCutRecordGoesOn: a record goes on, wherever its recorder was killed, or the disk was full.
func TestCutRecordGoesOn(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "",
		"{":                                "",
		setLine[:20]:                       "",
		setLine[:len(setLine)-2]:           "",
		setLine[:len(setLine)-1]:           setLine,
		setLine:                            setLine,
		setLine + setLine[:30]:             setLine + setLine[:30] + "\n",
		setLine + "\x00\x00\x00":           setLine + "\x00\x00\x00\n",
		`{"time":"12:00","milk":1}`:        "no record",
		`{"time":"12:00","milk":1}` + "\n": "no record",
		"buy milk":                         "no record",
		"\n" + setLine:                     "no record",
	} {
		name := filepath.Join(t.TempDir(), "record")
		put(t, name, text)
		rec, err := recording.Create(name, 1<<20)
		if err != nil {
			if want != "no record" || !strings.Contains(err.Error(), "is no record") || has(t, name) != text {
				t.Errorf("%q: %v", text, err)
			}
			continue
		}
		_ = recording.New(rec, "", recording.Every).Close()
		now := has(t, name)
		if before, end := now[:strings.LastIndex(now, `{"time"`)], `"end":true}`+"\n"; before != want || !strings.HasSuffix(now, end) {
			t.Errorf("%q is now %q, and not %q", text, before, want)
		}
	}
}

// TestRecordHasOneRecorder: no other recorder writes to a record, and no other file is replaced by one.
func TestRecordHasOneRecorder(t *testing.T) {
	name := filepath.Join(t.TempDir(), "record")
	file, err := recording.Create(name, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	rec := recording.New(file, "", recording.Every)
	rec.Follow(recording.Set{Nodes: []string{"a"}, Quorum: 1}, nil)
	if _, err := recording.Create(name, 1<<20); err == nil || err.Error() != "another redlock record writes to "+name {
		t.Errorf("a second recorder: %v", err)
	}
	_ = rec.Close()
	put(t, recording.Earlier(name), "buy milk\n")
	if _, err := recording.Create(name, 1<<20); err == nil || !strings.Contains(err.Error(), "would be replaced") {
		t.Errorf("another file in the place of the earlier one: %v", err)
	}
	put(t, recording.Earlier(name), setLine)
	if file, err = recording.Create(name, 1<<20); err != nil {
		t.Fatal(err)
	}
	_ = recording.New(file, "", recording.Every).Close()
	if all, _ := os.ReadDir(filepath.Dir(name)); len(all) != 2 {
		t.Errorf("there are %v", all)
	}
	if os.Geteuid() == 0 || runtime.GOOS == "windows" {
		return // who may write everywhere; or there are no modes
	}
	if err := os.Chmod(filepath.Dir(name), 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(filepath.Dir(name), 0o700) // which the test's end removes
	if _, err := recording.Create(name, 1<<20); err == nil || !strings.Contains(err.Error(), "could not be replaced when it is full") {
		t.Errorf("in a directory of others: %v", err)
	}
}

// TestRecordIsReadWholeThoughAFileBegins: a record is read whole, though a new file begins meanwhile.
func TestRecordIsReadWholeThoughAFileBegins(t *testing.T) {
	if runtime.GOOS == "windows" {
		need.Skip(t, "of files that are renamed while they are open", "Windows does not")
	}
	name := filepath.Join(t.TempDir(), "record")
	put(t, recording.Earlier(name), setLine+`{"node":"first"}`+"\n")
	put(t, name, setLine+`{"node":"second"}`+"\n")
	var nodes []string
	err := recording.Lines(name, func(l *recording.Line) {
		if l.Node != "" {
			nodes = append(nodes, l.Node)
		}
		if l.Node == "first" {
			if err := os.Rename(name, recording.Earlier(name)); err != nil {
				t.Fatal(err)
			}
			put(t, name, setLine+`{"node":"third"}`+"\n")
		}
	})
	if got := strings.Join(nodes, " "); err != nil || got != "first second" {
		t.Errorf("it has %s, %v", got, err)
	}
}

// TestRecordGoesOnWhileItIsRead: the recorder begins new files though somebody reads the record: on Windows, which
// renames and replaces no file that is open, when the old one is twice as large.
func TestRecordGoesOnWhileItIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, redistest.NewBubble(t, 3).Clients())
		lk := d.locker("web")
		put(t, recording.Earlier(d.file), setLine)
		d.begin(6000)
		for i := range 3 {
			for _, name := range []string{d.file, recording.Earlier(d.file)} {
				reader, err := os.Open(name)
				if err != nil {
					t.Fatal(err)
				}
				time.AfterFunc(3*time.Second, func() { reader.Close() })
			}
			earlier := has(t, recording.Earlier(d.file))
			for range 30 {
				l, err := lk.TryAcquire(t.Context(), "a")
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				_ = l.Release(t.Context())
			}
			if has(t, recording.Earlier(d.file)) == earlier {
				t.Fatalf("round %d: no new file has begun", i)
			}
		}
		d.end()
	})
}

// TestLostRecordBeginsAnew: a record that was deleted, replaced or cut begins anew, with all that is known.
func TestLostRecordBeginsAnew(t *testing.T) {
	for _, c := range []struct {
		about string
		lose  func(name string) error
	}{
		{"deleted", os.Remove},
		{"cut", func(name string) error { return os.Truncate(name, 0) }},
		{"moved", func(name string) error { return os.Rename(name, name+".old") }},
	} {
		t.Run(c.about, func(t *testing.T) {
			if runtime.GOOS == "windows" && c.about != "cut" {
				need.Skip(t, "of files that are renamed while they are open", "Windows does not")
			}
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t, redistest.NewBubble(t, 3).Clients())
				lk := d.locker("web")
				l, err := lk.TryAcquire(t.Context(), "a", redlock.AutoRenew())
				if err != nil {
					t.Fatal(err)
				}
				d.begin(1 << 20)
				time.Sleep(time.Second)
				if err := c.lose(d.file); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				_ = l.Release(t.Context())
				time.Sleep(time.Second)
				d.end()
				if s := d.story("a"); len(s.Holds) != 1 || s.Holds[0].How() != recording.EndDeleted || len(s.Nodes) != 3 {
					t.Errorf("%s", tell(s))
				}
			})
		})
	}
}

// TestTokensAreHiddenFromReadersOfAnEarlierFile: a user that may read the file of an earlier record may not read the tokens that follow.
func TestTokensAreHiddenFromReadersOfAnEarlierFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		need.Skip(t, "of file modes", "Windows has none")
	}
	name := filepath.Join(t.TempDir(), "record")
	if err := os.WriteFile(name, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := recording.Create(name, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer recording.New(f, "", time.Second).Close()
	if about, err := os.Stat(name); err != nil || about.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", about.Mode(), err)
	}
}

// TestFileWithoutEventsIsNoRecord: a file in which nothing was recorded is no record of nothing.
func TestFileWithoutEventsIsNoRecord(t *testing.T) {
	name := filepath.Join(t.TempDir(), "record")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{name, os.DevNull} {
		if _, err := recording.Read(name, "a"); err == nil || err.Error() != name+" is empty: nothing was recorded in it" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
