package fence

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// inputs are arguments that no guard accepts, with what its error says.
var inputs = []struct {
	name  string
	fence int64
	says  string
}{
	{"", 1, "of the resource is empty"},
	{strings.Repeat("a", maxName+1), 1, "of the resource has 1025 bytes, and must have at most 1024"},
	{"a", 0, "the fence is 0, and must be at least 1"},
	{"a", -1, "the fence is -1, and must be at least 1"},
	{"a", largest + 1, "the fence is 9007199254740992, and must be at most 9007199254740991"},
}

// refused checks that err says that an argument cannot be.
func refused(t *testing.T, what string, err error, says string) {
	t.Helper()
	if err == nil || errors.Is(err, ErrStale) || !strings.Contains(err.Error(), says) {
		t.Errorf("%s: got %v, want an error with %q", what, err, says)
	}
	if code := StatusCode(err); code != 400 {
		t.Errorf("%s: status %d, want 400", what, code)
	}
}

func TestGuard(t *testing.T) {
	var g Guard
	broken := errors.New("broken")
	for _, step := range []struct {
		fence int64
		fails error
		want  error
	}{
		{fence: 5}, {fence: 5}, {fence: 4, want: ErrStale}, {fence: 10, fails: broken, want: broken},
		{fence: 9, want: ErrStale}, {fence: largest}, {fence: largest - 1, want: ErrStale},
	} {
		called := false
		err := g.Do(step.fence, func() error { called = true; return step.fails })
		if !errors.Is(err, step.want) || called == (step.want == ErrStale) {
			t.Errorf("fence %d: got %v, called %v, want %v", step.fence, err, called, step.want)
		}
	}
	for _, in := range inputs[2:] {
		refused(t, "Guard", g.Do(in.fence, func() error { t.Error("called"); return nil }), in.says)
	}
	func() {
		defer func() { _ = recover() }()
		_ = g.Do(largest, func() error { panic("f") })
	}()
	if err := g.Do(largest, func() error { return nil }); err != nil {
		t.Errorf("after a panic: %v", err)
	}
}

// TestGuards: each name has a number of its own, and f of one name keeps nobody out of another.
func TestGuards(t *testing.T) {
	g := Guards{Max: 2}
	nothing := func() error { return nil }
	err := g.Do("a", 7, func() error { return g.Do("b", 5, nothing) })
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Do("b", 6, nothing); err != nil {
		t.Errorf("b: %v", err)
	}
	if err := g.Do("a", 6, nothing); !errors.Is(err, ErrStale) || !strings.HasPrefix(err.Error(), "a: fence 6: ") {
		t.Errorf("a: got %v, want ErrStale, and the name and the fence", err)
	}
	called := func() error { t.Error("called"); return nil }
	if err := g.Do("c", 8, called); err == nil || errors.Is(err, ErrStale) || StatusCode(err) != 503 {
		t.Errorf("one name more than Max: %v, status %d", err, StatusCode(err))
	}
	if err := g.Do("a", 6, called); !errors.Is(err, ErrStale) {
		t.Errorf("a is forgotten when there are too many names: %v", err)
	}
	for _, in := range inputs {
		refused(t, "Guards", g.Do(in.name, in.fence, called), in.says)
	}
}

// TestGuardsDefaultMax: without Max, there are as many names as the documentation says.
func TestGuardsDefaultMax(t *testing.T) {
	var g Guards
	for i := range DefaultMax {
		if err := g.Do(fmt.Sprint(i), 1, func() error { return nil }); err != nil {
			t.Fatalf("name %d: %v", i, err)
		}
	}
	if err := g.Do("one more", 1, func() error { return nil }); StatusCode(err) != 503 {
		t.Errorf("one name more: %v", err)
	}
}

// TestGuardsTogether: of holders that come at once, the last one's write stays.
func TestGuardsTogether(t *testing.T) {
	var g Guards
	var last int64
	var all sync.WaitGroup
	for fence := int64(1); fence <= 100; fence++ {
		all.Go(func() {
			err := g.Do("a", fence, func() error { last = fence; return nil })
			if err != nil && (!errors.Is(err, ErrStale) || fence == 100) {
				t.Errorf("fence %d: %v", fence, err)
			}
		})
	}
	all.Wait()
	if last != 100 {
		t.Errorf("in the end it has %d", last)
	}
}
