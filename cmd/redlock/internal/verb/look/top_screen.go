package look

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/cmd/redlock/internal/screen"
	"github.com/quorumlock/redlock/cmd/redlock/internal/term"
)

// A liveScreen is redlock top in a terminal. Goroutines of their own ask the nodes, so a key has its effect at once
// however slow the nodes are.
type liveScreen struct {
	in, out *os.File
	order   string
	every   time.Duration
	notes   <-chan string
	look    func(ctx context.Context) (*screen.Picture, error)
	inspect func(ctx context.Context, name string) (*redlock.Status, error)
}

// An answer is the status of one lock.
type answer struct {
	status *redlock.Status
	at     time.Time
	err    error
}

// run draws until the user presses q or ctx ends. It restores the terminal in any case.
func (s *liveScreen) run(ctx context.Context) error {
	var asking sync.WaitGroup
	defer asking.Wait() // after the terminal was restored
	full, err := term.OpenFull(s.in, s.out)
	if err != nil {
		return exit.Fail(exit.CannotWrite, "redlock top | cat prints what changes, line by line", "the terminal cannot be used: %v", err)
	}
	defer full.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	pictures, answers := make(chan *screen.Picture), make(chan answer)
	open := make(chan string, 1) // the lock whose details are shown
	keys := make(chan screen.Key)
	panics := make(chan string)
	ask := func(ask func()) {
		asking.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					send(ctx, panics, fmt.Sprintf("%v\n\n%s", p, debug.Stack()))
				}
			}()
			ask()
		})
	}
	ask(func() { s.askForAll(ctx, pictures) })
	ask(func() { s.askForOne(ctx, open, answers) })
	var rest []byte
	failed := full.Read(func(sent []byte) {
		var pressed []screen.Key
		if pressed, rest = screen.Keys(append(rest, sent...)); sent == nil {
			pressed, rest = append(pressed, screen.Last(rest)...), nil
		}
		for _, key := range pressed {
			send(ctx, keys, key)
		}
	})

	state := &screen.State{Order: s.order}
	for {
		if err := full.Draw(paint(state, full)); err != nil {
			return exit.Fail(exit.CannotWrite, "", "the terminal: %v", err)
		}
		select {
		case key := <-keys:
			before := state.Open
			if state.Press(key) {
				return nil
			}
			if state.Open != before {
				replace(open, state.Open)
			}
		case p := <-pictures:
			state.See(p)
		case a := <-answers:
			if a.err != nil {
				state.Note = phrase.Plain(a.err)
				break
			}
			state.Look(a.status, a.at)
		case note := <-s.notes:
			state.Note = note
		case sig := <-full.Signals():
			if err := full.Handle(sig); err != nil {
				return exit.Fail(exit.CannotWrite, "", "the terminal: %v", err)
			}
		case err := <-failed:
			return exit.Fail(exit.CannotWrite, "", "the terminal: %v", err)
		case p := <-panics:
			panic(p)
		case <-ctx.Done():
			return nil
		}
	}
}

// askForAll takes pictures until ctx ends.
func (s *liveScreen) askForAll(ctx context.Context, to chan<- *screen.Picture) {
	for {
		p, err := s.look(ctx)
		if err != nil {
			return // ctx has ended
		}
		send(ctx, to, p)
		if !pauseFor(ctx, s.every) {
			return
		}
	}
}

// askForOne inspects the lock whose details are shown, if there is one, until ctx ends.
func (s *liveScreen) askForOne(ctx context.Context, open <-chan string, to chan<- answer) {
	for name := ""; ; {
		var again <-chan time.Time
		if name != "" {
			status, err := s.inspect(ctx, name)
			if ctx.Err() != nil {
				return
			}
			send(ctx, to, answer{status, time.Now(), err})
			timer := time.NewTimer(s.every)
			again = timer.C
		}
		select {
		case name = <-open:
		case <-again:
		case <-ctx.Done():
			return
		}
	}
}

// send sends v, unless ctx ends first.
func send[T any](ctx context.Context, to chan<- T, v T) {
	select {
	case to <- v:
	case <-ctx.Done():
	}
}

// paint renders the screen for the terminal's present size.
func paint(state *screen.State, full *term.Full) []string {
	frame := state.Frame(full.Size())
	lines := make([]string, len(frame))
	for i, line := range frame {
		var style strings.Builder
		if line.Bold {
			style.WriteString("\x1b[1m")
		}
		if line.Reverse {
			style.WriteString("\x1b[7m")
		}
		lines[i] = style.String() + line.Text
	}
	return lines
}
