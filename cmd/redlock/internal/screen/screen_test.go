package screen_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/locks"
	"github.com/quorumlock/redlock/cmd/redlock/internal/screen"
	"github.com/quorumlock/redlock/internal/printable"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// picture has n locks, of which each third is waited for.
func pictureOf(n int) *screen.Picture {
	p := &screen.Picture{At: noon, Members: redlock.Members{Set: "118dbd2fd6a703a2", Epoch: 3, Nodes: []string{"a:1", "b:1", "c:1"}, Quorum: 2}, Switches: 4}
	for _, name := range p.Members.Nodes {
		p.Nodes = append(p.Nodes, screen.Node{Name: name, Measured: true, RoundTrip: 1234567, Clock: -3 * time.Second, Within: time.Millisecond})
	}
	p.Nodes[1] = screen.Node{Name: "b:1", Err: &redlock.NodeError{Node: "b:1", Outcome: redlock.OutcomeUnreachable, Err: errors.New("dial\x1b[31m")}}
	p.Nodes[2].Err, p.Nodes[2].Clock = &redlock.NodeError{Node: "c:1", Outcome: redlock.OutcomeQuarantined, TTL: 2100 * time.Millisecond, Err: errors.New("it was restarted")}, 0
	for i := range n {
		r := &locks.Row{Names: []string{fmt.Sprintf("jobs/%03d", i)}, State: redlock.StateHeld, Nodes: 3, Left: 9 * time.Second,
			Holders: []redlock.Holder{{Token: fmt.Sprint("t", i), Mode: locks.ModeExclusive, By: redlock.Identity{Owner: fmt.Sprintf("owner-%d", i), Since: noon.Add(-time.Duration(i) * time.Second)}}}}
		if i%3 == 0 {
			r.Waiting = []redlock.Waiter{{Owner: "w", For: time.Duration(i+1) * time.Second}}
		}
		p.Rows = append(p.Rows, r)
	}
	return p
}

func frameText(s *screen.State, columns, rows int) string {
	var lines []string
	for _, l := range s.Frame(columns, rows) {
		lines = append(lines, strings.TrimRight(l.Text, " "))
	}
	return strings.Join(lines, "\n")
}

func TestFrame(t *testing.T) {
	s := &screen.State{Order: "name"}
	if got := frameText(s, 80, 4); got != "redlock top: asking the nodes\n\n\nq quit  s sort: name  / filter  up/down select  Enter look into it" {
		t.Errorf("before the first picture:\n%s", got)
	}
	s.See(pictureOf(4))
	s.Press('j')
	want := `redlock top  12:00:00  set 118dbd2fd6a703a2, epoch 3: 3 members, quorum 2
4 locks held, 2 waiting; 4 switches/s; 1 of 3 nodes vote: too few, locks may be missing

node  vote  round trip  quarantine  clock
b:1   no    -           -           -      unreachable: dial\x1b[31m
c:1   no    1.2ms       2.1s        ±1ms   quarantined for 2.1s: it was restarted
a:1   yes   1.2ms       -           -3s

  name      mode       owner    age  left  waiting  note
  jobs/000  exclusive  owner-0  0s   9s    1, 1s
> jobs/001  exclusive  owner-1  1s   9s    -
  jobs/002  exclusive  owner-2  2s   9s    -
  jobs/003  exclusive  owner-3  3s   9s    1, 4s

q quit  s sort: name  / filter  up/down select  Enter look into it`
	if got := frameText(s, 100, 15); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestEverySize: no line is wider than the screen, there are as many as it has rows, and all is printable.
func TestEverySize(t *testing.T) {
	evil := pictureOf(40)
	evil.Rows[3].Names = []string{"日本語の名前\x1b]0;x\x07", "also\u202e"}
	evil.Rows[4].Holders[0].By.Owner = strings.Repeat("広い", 40) + "\n\x9b"
	s := &screen.State{Order: "age", Note: "node down: \x1b[2J"}
	s.See(evil)
	detail := &redlock.Status{Name: "k\x1b", State: redlock.StateHeld, Token: "t\n", TTL: time.Second,
		Waiting: []redlock.Waiter{{Owner: strings.Repeat("長", 60)}}, Nodes: []redlock.NodeStatus{{Node: "a:1", Token: "t\n"}}}
	for _, open := range []string{"", detail.Name} {
		s.Open = open
		s.Look(detail, noon)
		for columns := 1; columns < 140; columns += need.Sized(9, 3, 3) {
			for rows := 1; rows < 60; rows += need.Sized(5, 2, 2) {
				frame := s.Frame(columns, rows)
				if len(frame) != rows {
					t.Fatalf("%d lines on %d rows", len(frame), rows)
				}
				for _, l := range frame {
					if screen.Width(l.Text) > columns || printable.Text(l.Text) != l.Text {
						t.Fatalf("on %d columns: %q", columns, l.Text)
					}
				}
			}
		}
	}
}

// TestWideCharacters: what follows them is in its column, and where they are cut off the line fits.
func TestWideCharacters(t *testing.T) {
	p := pictureOf(4)
	for i, name := range []string{"日本", "é́", "한국어 🔒", "ascii"} {
		p.Rows[i].Names = []string{name}
	}
	s := &screen.State{Order: "name"}
	s.See(p)
	found := 0
	for _, l := range s.Frame(100, 40) {
		before, _, ok := strings.Cut(l.Text, "exclusive")
		if !ok {
			continue
		}
		if found++; screen.Width(before) != 13 {
			t.Errorf("%q is in column %d", l.Text, screen.Width(before))
		}
	}
	if found != 4 {
		t.Errorf("%d locks", found)
	}
	p.Rows[0].Names = []string{"日本語"}
	s.See(p)
	for columns, want := range map[int]string{8: "  日本…", 7: "  日本…", 6: "  日…", 3: "  …", 1: "…"} {
		if got := strings.Split(frameText(s, columns, 40), "\n"); !slices.Contains(got, want) {
			t.Errorf("on %d columns: %q", columns, got)
		}
	}
}

// TestSelection: a lock stays selected while others come and go, and the order changes; when it ends, the
// one in its place is.
func TestSelection(t *testing.T) {
	s := &screen.State{Order: "name"}
	s.See(pictureOf(6))
	for range 3 {
		s.Press(screen.Down)
	}
	selected := func(want string) {
		t.Helper()
		for _, l := range s.Frame(100, 40) {
			if strings.HasPrefix(l.Text, ">") {
				if got := strings.Fields(l.Text)[1]; got != want || !l.Reverse {
					t.Errorf("%s is selected, reverse: %v, want %s", got, l.Reverse, want)
				}
				return
			}
		}
		t.Errorf("nothing is selected, want %s", want)
	}
	selected("jobs/003")
	s.Press('s')
	selected("jobs/003")
	s.Order = "name"
	p := pictureOf(6)
	p.Rows = slices.Delete(p.Rows, 0, 2)
	s.See(p)
	selected("jobs/003")
	p = pictureOf(6)
	p.Rows = slices.Delete(p.Rows, 3, 4)
	s.See(p)
	selected("jobs/001") // jobs/003 was the second
	for _, k := range []screen.Key{'/', 'x', screen.Back, '0', '5'} {
		s.Press(k)
	}
	selected("jobs/005")
	s.Press(screen.Esc)
	s.Press(screen.Home)
	selected("jobs/000")
	s.See(&screen.Picture{})
	if got := frameText(s, 80, 30); !strings.Contains(got, "no locks") {
		t.Errorf("without locks:\n%s", got)
	}
	s.Press(screen.Enter)
	s.Press(screen.Down)
	if s.Open != "" {
		t.Errorf("it looks into %q", s.Open)
	}
	if !s.Press('q') {
		t.Error("q does not quit")
	}
}

func TestKeys(t *testing.T) {
	for _, c := range []struct {
		sent, rest string
		want       []screen.Key
	}{
		{"qj\r", "", []screen.Key{'q', 'j', screen.Enter}},
		{"\x1b[A\x1bOB\x1b[5~\x1b[1;5C", "", []screen.Key{screen.Up, screen.Down, screen.PageUp}},
		{"\x1b", "\x1b", nil},
		{"\x1b[", "\x1b[", nil},
		{"\x1bj", "", []screen.Key{screen.Esc, 'j'}},
		{"\x1b\x1b[B", "", []screen.Key{screen.Esc, screen.Down}},
		{"é日", "", []screen.Key{'é', '日'}},
		{"\xe6\x97", "\xe6\x97", nil},
		{"\xff\x00a\x7f", "", []screen.Key{'a', screen.Back}},
	} {
		keys, rest := screen.Keys([]byte(c.sent))
		if !slices.Equal(keys, c.want) || string(rest) != c.rest {
			t.Errorf("%q: %v, %q", c.sent, keys, rest)
		}
	}
	if got := screen.Last([]byte("\x1b")); !slices.Equal(got, []screen.Key{screen.Esc}) {
		t.Errorf("Esc is %v", got)
	}
}
