package recording_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/recording"
)

// A scribe writes a record by hand, of three nodes.
type scribe struct {
	*testing.T
	lines []recording.Line
}

var dawn = time.Date(2026, 1, 31, 3, 0, 0, 0, time.UTC)

func write(t *testing.T) *scribe {
	s := &scribe{T: t}
	s.add(0, recording.Line{Set: &recording.Set{Nodes: []string{"a", "b", "c"}, Quorum: 2}})
	for _, n := range []string{"a", "b", "c"} {
		s.add(0, recording.Line{Node: n, State: recording.StateAnswers, Tells: true})
		s.add(0, recording.Line{Node: n, State: recording.StateWalked})
	}
	return s
}

func (s *scribe) add(at time.Duration, l recording.Line) *scribe {
	l.Time = dawn.Add(at * time.Millisecond)
	s.lines = append(s.lines, l)
	return s
}

// has writes that nodes have a token, or none, at the nth millisecond.
func (s *scribe) has(at time.Duration, nodes, token string, l recording.Line) *scribe {
	for _, n := range nodes {
		l.Node, l.Name, l.Token, l.TTL = string(n), "x", token, 10_000
		s.add(at, l)
	}
	return s
}

func (s *scribe) read() *recording.Story {
	s.Helper()
	name := filepath.Join(s.TempDir(), "record")
	file, err := os.Create(name)
	if err != nil {
		s.Fatal(err)
	}
	defer file.Close()
	for _, l := range s.lines {
		if err := json.NewEncoder(file).Encode(l); err != nil {
			s.Fatal(err)
		}
	}
	story, err := recording.Read(name, "x")
	if err != nil {
		s.Fatal(err)
	}
	return story
}

const (
	web = "11.@mwxh1y8f@@web"
	db  = "22.@mwxh1y8f@@db"
)

// TestStorySaysHowALockEnded: released, run out, deleted or evicted, by what the nodes told and what was left of its TTL.
func TestStorySaysHowALockEnded(t *testing.T) {
	set, del := recording.Line{By: []string{"set"}}, recording.Line{By: []string{"del"}, Ended: []recording.Ended{{Token: web, Left: 9000}}}
	after := func(left int64, by ...string) recording.Line {
		return recording.Line{By: by, Ended: []recording.Ended{{Token: web, Left: left}}}
	}
	for _, c := range []struct {
		about string
		write func(s *scribe)
		want  string
	}{
		{"released", func(s *scribe) { s.has(100, "abc", web, set).has(500, "abc", "", del) }, "web exclusive 0.1-0.5 on 3: released\n"},
		{"by a minority", func(s *scribe) { s.has(100, "a", web, set).has(500, "a", "", del) }, ""},
		{"half", func(s *scribe) { s.has(100, "ab", web, set).has(500, "a", "", del).has(900, "b", "", del) }, "web exclusive 0.1-0.5 on 2: released\n"},
		{"ran out, as told", func(s *scribe) { s.has(100, "abc", web, set).has(500, "abc", "", after(900, "expired")) }, "web exclusive 0.1-0.5 on 3: ran out\n"},
		{"ran out, and nothing else was told", func(s *scribe) {
			l := after(-3)
			l.Told = true
			s.has(100, "abc", web, set).has(500, "abc", "", l)
		}, "web exclusive 0.1-0.5 on 3: ran out\n"},
		{"released or ran out: nobody has told", func(s *scribe) { s.has(100, "abc", web, set).has(500, "abc", "", after(-3)) }, "web exclusive 0.1-0.5 on 3: gone\n"},
		{"deleted by whom nobody has told", func(s *scribe) { s.has(100, "abc", web, set).has(500, "abc", "", after(900)) }, "web exclusive 0.1-0.5 on 3: deleted\n"},
		{"released at the last moment", func(s *scribe) { s.has(100, "abc", web, set).has(500, "abc", "", after(3, "del")) }, "web exclusive 0.1-0.5 on 3: released\n"},
		{"evicted", func(s *scribe) { s.has(100, "abc", web, set).has(500, "abc", "", after(900, "evicted")) }, "web exclusive 0.1-0.5 on 3: evicted\n"},
		{"replaced", func(s *scribe) { s.has(100, "abc", web, set).has(500, "abc", db, after(900)) }, "web exclusive 0.1-0.5 on 3: replaced\ndb exclusive 0.5-end on 3\n"},
		{"emptied", func(s *scribe) {
			s.has(100, "abc", web, set)
			for _, n := range []string{"a", "b"} {
				s.add(500, recording.Line{Node: n, State: recording.StateForgot})
			}
		}, "web exclusive 0.1-0.5 on 3: forgotten\n"},
		{"by most", func(s *scribe) {
			s.has(100, "abc", web, set).has(500, "a", "", del).has(600, "bc", "", after(-1, "expired"))
		}, "web exclusive 0.1-0.6 on 3: ran out\n"},
		{"still held", func(s *scribe) { s.has(100, "abc", web, set).has(900, "a", web, set) }, "web exclusive 0.1-end on 3\n"},
		{"refilled", func(s *scribe) {
			s.has(100, "ab", web, set).has(500, "b", "", after(5000)).has(600, "c", web, set).has(900, "ac", "", del)
		}, "web exclusive 0.1-0.9 on 3: released\n"},
		{"not refilled once another one has it", func(s *scribe) {
			s.has(100, "ab", web, set).has(500, "ab", "", del).has(600, "bc", db, set).has(700, "bc", "", recording.Line{By: []string{"del"}}).has(800, "ab", web, set)
		}, "web exclusive 0.1-0.5 on 2: released\ndb exclusive 0.6-0.7 on 2: released\nweb exclusive 0.8-end on 2\n"},
		{"between two looks", func(s *scribe) {
			l := after(5000, "del", "set")
			l.First = dawn.Add(300 * time.Millisecond)
			s.has(100, "abc", web, set).has(500, "abc", db, l)
		}, "web exclusive 0.1-0.3 on 3: released\ndb exclusive 0.5-end on 3\n"},
		{"silent, and counts for a TTL", func(s *scribe) {
			s.has(100, "abc", web, set)
			for _, n := range []string{"a", "b"} {
				s.add(1000, recording.Line{Node: n, State: recording.StateSilent, Since: dawn.Add(200 * time.Millisecond), Error: "down"})
			}
			s.has(60_000, "c", web, set)
		}, "web exclusive 0.1-10.2 on 3: unseen\nsilent true 0-end\nsilent true 0-end\n"},
		{"silent for less", func(s *scribe) {
			s.has(100, "abc", web, set)
			for _, n := range []string{"a", "b"} {
				s.add(1000, recording.Line{Node: n, State: recording.StateSilent, Since: dawn.Add(200 * time.Millisecond), Error: "down"})
				s.add(5000, recording.Line{Node: n, State: recording.StateAnswers})
			}
			s.has(5000, "ab", "", after(5000))
		}, "web exclusive 0.1-5 on 3: deleted\nsilent true 0-6\nsilent true 0-6\n"},
		{"the set changes", func(s *scribe) {
			s.has(100, "ab", web, set)
			s.add(400, recording.Line{Set: &recording.Set{Epoch: 2, Nodes: []string{"b", "c", "d"}, Quorum: 2, Again: true}})
			s.has(500, "c", web, set).has(900, "bc", "", del)
		}, "web exclusive 0.1-0.9 on 3: released\n"},
	} {
		t.Run(c.about, func(t *testing.T) {
			s := write(t)
			c.write(s)
			if got := tell(s.read()); got != c.want {
				t.Errorf("got:\n%swant:\n%s", got, c.want)
			}
		})
	}
}

// TestStoryNamesFencesThatDidNotRise: a fence that is not above that of the lock before is counted as wrong, unless
// it may have been raised later.
func TestStoryNamesFencesThatDidNotRise(t *testing.T) {
	lock := func(s *scribe, from, to time.Duration, token string, fence, later int64) {
		s.has(from, "abc", token, recording.Line{By: []string{"set"}, Fence: fence})
		s.has(from+10, "abc", token, recording.Line{Fence: later})
		s.has(to, "abc", "", recording.Line{By: []string{"del"}, Fence: fence})
	}
	for _, c := range []struct {
		about         string
		second, later int64
		to            time.Duration
		token         string
		seen, wrong   int
	}{
		{"higher", 8, 8, 9000, db, 2, 0},
		{"equal", 7, 7, 9000, db, 2, 1},
		{"lower", 6, 6, 9000, db, 2, 1},
		{"raised a little later", 7, 9, 9000, db, 1, 0},
		{"perhaps raised later", 7, 7, 6000, db, 1, 0},
		{"the same again", 7, 7, 9000, web, 1, 0},
	} {
		s := write(t)
		lock(s, 100, 4000, web, 7, 7)
		lock(s, 5000, c.to, c.token, c.second, c.later)
		s.has(10_000, "a", "", recording.Line{})
		story := s.read()
		if story.Fenced != c.seen || len(story.Unfenced) != c.wrong {
			t.Errorf("%s: %d seen, %d wrong: %s", c.about, story.Fenced, len(story.Unfenced), tell(story))
		}
	}
}

// TestNewsFromBeforeAreJudgedByTheFilesSet: what a node told of before a file began, and was read only then, is judged by the set of the file.
func TestNewsFromBeforeAreJudgedByTheFilesSet(t *testing.T) {
	s := write(t)
	s.has(-5, "abc", web, recording.Line{By: []string{"set"}}).has(-3, "abc", "", recording.Line{By: []string{"del"}})
	s.has(500, "a", db, recording.Line{By: []string{"set"}, First: dawn.Add(-time.Second)})
	if got, want := tell(s.read()), "web exclusive 0-0 on 3: released\n"; got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

// TestStoryHasTheOrderOfWriting: a record that goes on after the clock was set back is told in the order in which it was written.
func TestStoryHasTheOrderOfWriting(t *testing.T) {
	s := write(t)
	s.has(5000, "abc", web, recording.Line{By: []string{"set"}}).has(6000, "abc", "", recording.Line{By: []string{"del"}})
	s.add(2000, recording.Line{Set: &recording.Set{Nodes: []string{"a", "b", "c"}, Quorum: 2}})
	s.has(2100, "abc", db, recording.Line{By: []string{"set"}}).has(5500, "abc", "", recording.Line{By: []string{"del"}})
	if got, want := tell(s.read()), "web exclusive 5-6 on 3: released\ndb exclusive 2.1-5.5 on 3: released\nsilent false 6-2\n"; got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

// TestWaitEndsWhenItsNodesShowIt: a wait ends when the nodes that knew of it show that they do not any more. If they were emptied, or not seen,
// meanwhile, it goes on.
func TestWaitEndsWhenItsNodesShowIt(t *testing.T) {
	waits := recording.Line{By: []string{"set"}, Waiting: []recording.Waiter{{Waiter: "w", Owner: "cron", Since: dawn.Add(time.Second)}}}
	silent := func(s *scribe, at time.Duration) {
		for _, n := range []string{"a", "b", "c"} {
			s.add(at, recording.Line{Node: n, State: recording.StateSilent, Since: dawn.Add(at * time.Millisecond), Error: "down"})
		}
	}
	for _, c := range []struct {
		about  string
		write  func(s *scribe)
		until  time.Duration // -1: it goes on
		unseen bool
	}{
		{"it goes on", func(s *scribe) {}, -1, false},
		{"it left", func(s *scribe) { s.has(3000, "abc", web, recording.Line{}) }, 3 * time.Second, false},
		{"one node lacks it", func(s *scribe) { s.has(3000, "a", web, recording.Line{}) }, -1, false},
		{"the nodes were emptied meanwhile", func(s *scribe) {
			s.has(3000, "abc", "", recording.Line{}).has(5000, "abc", web, waits)
		}, -1, false},
		{"the nodes were not seen", func(s *scribe) {
			silent(s, 3000)
			s.add(4000, recording.Line{Set: &recording.Set{Epoch: 2, Nodes: []string{"d", "e", "f"}, Quorum: 2, Again: true}})
		}, 4 * time.Second, true},
	} {
		s := write(t)
		s.has(1000, "abc", web, waits)
		c.write(s)
		s.add(20_000, recording.Line{})
		all := s.read().Waits
		if len(all) != 1 {
			t.Errorf("%s: %d waits", c.about, len(all))
			continue
		}
		if w := all[0]; w.Until.IsZero() != (c.until < 0) || c.until >= 0 && !w.Until.Equal(dawn.Add(c.until)) || w.Unseen != c.unseen {
			t.Errorf("%s: until %v, unseen %v", c.about, w.Until, w.Unseen)
		}
	}
}

// TestNodeThatLeftCountsNoLonger: what a node had counts no longer when it leaves the set.
func TestNodeThatLeftCountsNoLonger(t *testing.T) {
	s := write(t)
	waits := recording.Line{By: []string{"set"}, Waiting: []recording.Waiter{{Waiter: "w", Owner: "cron", Since: dawn.Add(time.Second)}}}
	s.has(1000, "abc", web, waits)
	s.add(2000, recording.Line{Node: "a", State: recording.StateSilent, Since: dawn.Add(2 * time.Second), Error: "down"})
	s.add(4000, recording.Line{Set: &recording.Set{Epoch: 2, Nodes: []string{"b", "c", "d"}, Quorum: 2, Again: true}})
	s.has(5000, "c", web, recording.Line{})
	s.add(6000, recording.Line{Set: &recording.Set{Epoch: 3, Nodes: []string{"d", "e", "f"}, Quorum: 2, Again: true}})
	s.add(20_000, recording.Line{})
	if got, want := tell(s.read()), "web exclusive 1-6 on 3: unseen\ncron waits 1-6\nsilent true 2-4\n"; got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

// TestNothingIsKnownOfAGap: of an instant at which nothing was recorded nothing is known.
func TestNothingIsKnownOfAGap(t *testing.T) {
	s := write(t).has(1000, "abc", web, recording.Line{By: []string{"set"}})
	s.add(2000, recording.Line{End: true})
	s.add(60_000, recording.Line{Set: &recording.Set{Nodes: []string{"a", "b", "c"}, Quorum: 2}})
	for _, n := range []string{"a", "b", "c"} {
		s.add(60_000, recording.Line{Node: n, State: recording.StateAnswers}).add(60_000, recording.Line{Node: n, State: recording.StateWalked})
	}
	story := s.read()
	for at, want := range map[int]redlock.State{1500: redlock.StateHeld, 30_000: redlock.StateUnknown, 60_000: redlock.StateFree} {
		got := story.At(dawn.Add(time.Duration(at) * time.Millisecond))
		if unseen := got.Nodes[0].Err != nil; got.State != want || unseen != (want == redlock.StateUnknown) {
			t.Errorf("after %d ms: %+v", at, got)
		}
	}
}
