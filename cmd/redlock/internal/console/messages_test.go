package console

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A pipe is a stderr that is read, or not.
type pipe struct {
	text strings.Builder
	read chan struct{} // closed: from now on
}

func (p *pipe) Write(text []byte) (int, error) {
	<-p.read
	return p.text.Write(text)
}

// A stderr that nobody reads delays nobody: messages keep their order, and those that are dropped are
// counted.
func TestMessagesThatNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stderr := &pipe{read: make(chan struct{})}
		c := New(nil, nil, nil, stderr)
		began := time.Now()
		for range 3 * mostQueued / 1000 {
			c.Say("%s", strings.Repeat("x", 1000))
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("say waited for %v", took)
		}
		c.Flush()
		c.Flush() // in vain once more: it does not wait
		if took := time.Since(began); took != OutputWait {
			t.Errorf("two flushes waited for %v, not %v", took, OutputWait)
		}
		close(stderr.read)
		c.Close()
		synctest.Wait()
		c.Say("then")
		c.Close()
		lines := strings.Split(strings.TrimSpace(stderr.text.String()), "\n")
		if n := len(lines); n != mostQueued/1010+2 || lines[n-2] != "redlock: 132 messages dropped here, because stderr was not read" || lines[n-1] != "redlock: then" {
			t.Errorf("%d lines, at the end %q", n, lines[max(0, n-2):])
		}
		if took := time.Since(began); took != OutputWait {
			t.Errorf("flush waited for %v", took)
		}
	})
}

// What was said before a result is written before it.
func TestMessagesComeBeforeResults(t *testing.T) {
	var all strings.Builder
	c := New(nil, nil, &all, &all)
	c.Stdout = &output{Writer: &all, before: c.Close}
	for range 100 {
		c.Say("first")
		c.Result("then")
	}
	if want := strings.Repeat("redlock: first\nthen\n", 100); all.String() != want {
		t.Errorf("%q", all.String())
	}
}
