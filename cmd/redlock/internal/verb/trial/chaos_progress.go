package trial

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/redlock/chaos"
	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/cmd/redlock/internal/term"
)

// How often progress is reported: on a terminal one line is redrawn, elsewhere a line is added.
var (
	redrawEvery = 200 * time.Millisecond
	LineEvery   = 5 * time.Second
)

// A progress reports how far a chaosRun is. Its goroutine runs until end.
type progress struct {
	*console.Console
	terminal *os.File // nil: stderr is no terminal
	quiet    bool
	done     chan struct{}
	ended    sync.WaitGroup

	mu    sync.Mutex // locked before that of the Console
	part  *part
	since time.Time
	last  chaos.Progress
	drawn bool // a line is on the terminal, to be cleared before anything else is written
}

func newProgress(c *console.Console, quiet bool) *progress {
	p := &progress{Console: c, quiet: quiet, done: make(chan struct{})}
	every := LineEvery
	if f, ok := c.Stderr.(*os.File); ok {
		if kind, _ := console.Lookup(c.Env, "TERM"); kind != "dumb" && term.Width(f) > 0 {
			p.terminal, every = f, redrawEvery
		}
	}
	if quiet {
		return p
	}
	p.ended.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.tell()
			case <-p.done:
				return
			}
		}
	})
	return p
}

// begin makes the reports be about next, the part of the run that begins.
func (p *progress) begin(next *part) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.part, p.since, p.last = next, time.Now(), chaos.Progress{}
}

// note is the callback Progress of a campaign: it keeps what the next report says.
func (p *progress) note(now chaos.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = now
}

// end stops the reports and clears the line.
func (p *progress) end() {
	close(p.done)
	p.ended.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

// say clears the line that shows the progress, and prints a message, as Console.Say does.
func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	p.Console.Say(format, args...)
	p.Console.Flush() // before the line is drawn again
}

// news is say, but prints nothing if --json was given.
func (p *progress) news(format string, args ...any) {
	if !p.quiet {
		p.say(format, args...)
	}
}

// clear clears the line. The caller holds p.mu.
func (p *progress) clear() {
	if p.drawn {
		io.WriteString(p.terminal, "\r\x1b[K")
		p.drawn = false
	}
}

func (p *progress) tell() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.part == nil {
		return
	}
	now, took := p.last, time.Since(p.since)
	rate := 0.0
	if now.Elapsed > 0 {
		rate = float64(now.Done) / now.Elapsed.Seconds()
	}
	total := p.part.Schedules
	// The part ends with its schedules or its time, whichever comes first.
	share, left := 0.0, time.Duration(-1)
	if total > 0 {
		share = float64(now.Done) / float64(total)
		if rate > 0 {
			left = time.Duration(float64(total-now.Done) / rate * float64(time.Second))
		}
	}
	if limit := p.part.limit; limit > 0 {
		share = max(share, took.Seconds()/limit.Seconds())
		if rest := max(limit-took, 0); left < 0 || rest < left {
			left = rest
		}
	}
	words := []string{phrase.PerSecond(rate) + "/s", phrase.Counted(now.Violations, "violation")}
	if left >= 0 {
		words = append(words, left.Round(time.Second).String()+" left")
	}
	name := p.part.Arena.Name
	if p.terminal == nil {
		of := phrase.Counted(now.Done, "schedule")
		if total > 0 {
			of = phrase.Digits(now.Done) + " of " + phrase.Counted(total, "schedule")
		}
		p.Console.Say("%s: %s, %s", name, of, strings.Join(words, ", "))
		return
	}
	of := phrase.Digits(now.Done)
	if total > 0 {
		of += "/" + phrase.Digits(total)
	}
	line := fmt.Sprintf("%s [%s] %s  %s", name, bar(share), of, strings.Join(words, "  "))
	line = line[:min(len(line), max(term.Width(p.terminal)-1, 0))] // a line that wraps could not be redrawn
	io.WriteString(p.terminal, "\r"+line+"\x1b[K")
	p.drawn = true
}

// bar returns a bar that shows a share from 0 to 1.
func bar(share float64) string {
	const length = 20
	full := min(int(share*length), length)
	return strings.Repeat("#", full) + strings.Repeat(".", length-full)
}
