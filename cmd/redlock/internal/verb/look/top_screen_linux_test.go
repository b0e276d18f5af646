package look

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/locks"
	"github.com/quorumlock/redlock/cmd/redlock/internal/screen"
	"github.com/quorumlock/redlock/internal/testbed/pty"
)

// TestTopPanics: the terminal is given back before the program ends.
func TestTopPanics(t *testing.T) {
	for _, where := range []string{"look", "inspect"} {
		keyboard, terminal := pty.Open(t)
		if err := unix.IoctlSetWinsize(int(keyboard.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: 80, Row: 24}); err != nil {
			t.Fatal(err)
		}
		left := make(chan struct{}) // closed: the screen was taken, and given back
		go func() {
			var shown strings.Builder
			for some := make([]byte, 1<<12); ; {
				n, err := keyboard.Read(some)
				if err != nil {
					return
				}
				shown.Write(some[:n])
				if _, after, taken := strings.Cut(shown.String(), "\x1b[?1049h\x1b[?25l"); taken && strings.Contains(after, "\x1b[?25h") && strings.Contains(after, "\x1b[?1049l") {
					close(left)
					return
				}
			}
		}()
		before, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		looks := 0
		live := &liveScreen{
			in: terminal, out: terminal, order: "name", every: time.Millisecond,
			look: func(context.Context) (*screen.Picture, error) {
				if looks++; looks == 3 && where == "look" {
					panic("here")
				} else if looks == 3 { // the picture is drawn
					_, _ = keyboard.WriteString("\r")
				}
				return &screen.Picture{Rows: []*locks.Row{{Names: []string{"k"}}}}, nil
			},
			inspect: func(context.Context, string) (*redlock.Status, error) { panic("here") },
		}
		func() {
			defer func() {
				if p := fmt.Sprint(recover()); !strings.HasPrefix(p, "here\n\ngoroutine ") {
					t.Errorf("it panics with %q", p)
				}
			}()
			_ = live.run(t.Context())
		}()
		if now, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS); err != nil || *now != *before {
			t.Errorf("the terminal's mode is %+v, and was %+v: %v", now, before, err)
		}
		select {
		case <-left:
		case <-time.After(20 * time.Second):
			t.Error("the screen was not given back")
		}
	}
}
