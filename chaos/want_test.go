package chaos

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock"
)

// TestWantsMeet has the library get each two wants that a plan can have: which of them
// exclude each other the judge must know.
func TestWantsMeet(t *testing.T) {
	var all []want
	for _, w := range slices.Concat(menus...) {
		if !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		excluded := 0
		p, _ := newModelWorld(&Plan{Run: Head{Nodes: 3}, Rates: make([]float64, 3), RTT: time.Millisecond}).enter(1, "c1")
		locker, err := p.locker(&redlock.Options{TTL: time.Minute, Separator: "/", Quarantine: -1})
		if err != nil {
			t.Error(err)
			return
		}
		defer locker.Close()
		for _, a := range all {
			for _, b := range all {
				first, err := locker.TryAcquire(t.Context(), a.Name, a.options()...)
				if err != nil {
					t.Errorf("%v: %v", a, err)
					return
				}
				second, err := locker.TryAcquire(t.Context(), b.Name, b.options()...)
				if want := a.excludes(b, "/"); want != errors.Is(err, redlock.ErrHeld) || !want && err != nil {
					t.Errorf("%v after %v: %v; they exclude each other: %v", b, a, err, want)
				}
				if err == nil {
					_ = second.Release(t.Context())
				} else {
					excluded++
				}
				if err := first.Release(t.Context()); err != nil {
					t.Errorf("%v: %v", a, err)
				}
				time.Sleep(time.Second)
			}
		}
		if excluded < len(all) {
			t.Errorf("%d of %d excluded each other", excluded, len(all)*len(all))
		}
	})
}

func TestWantWords(t *testing.T) {
	for _, tt := range []struct {
		want          want
		words, labels string
	}{
		{want{Name: "a"}, `"a"`, "a"},
		{want{Name: "a\n"}, `"a\n"`, "a\n"},
		{want{Name: "a", Also: "b c", Shared: true}, `"a" and "b" and "c" as a reader`, "a+b+c (r)"},
		{want{Name: "a", Slots: 3}, `one of 3 slots of "a"`, "a 1/3"},
	} {
		if got := tt.want.String(); got != tt.words {
			t.Errorf("%#v is %s, want %s", tt.want, got, tt.words)
		}
		if got := tt.want.label(); got != tt.labels {
			t.Errorf("%#v is %s for short, want %s", tt.want, got, tt.labels)
		}
	}
}

// TestLines: who wants the same stands in the same line.
func TestLines(t *testing.T) {
	lines := make(map[want][]string)
	for _, w := range []want{
		{Name: "a"}, {Name: "a", Also: "a/b a"}, {Name: "a/b", Also: "a"},
		{Name: "a/b"}, {Name: "ab"}, {Name: "a", Shared: true}, {Name: "a/c", Also: "a", Shared: true},
		{Name: "a", Also: "b"}, {Name: "b", Also: "a"}, {Name: "a", Slots: 2}, {Name: "a", Slots: 3},
	} {
		lines[w.line("/")] = append(lines[w.line("/")], w.label())
	}
	var got []string
	for _, l := range lines {
		got = append(got, fmt.Sprint(l))
	}
	slices.Sort(got)
	want := []string{"[a (r) a/c+a (r)]", "[a 1/2 a 1/3]", "[a a+a/b+a a/b+a]", "[a+b b+a]", "[a/b]", "[ab]"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
