//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package proc

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestMain lets the test binary be the process at the gate.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == BeginVerb {
		os.Exit(Begin(os.Args[2:], os.Environ()))
	}
	os.Exit(m.Run())
}

// A command runs once its gate is open, with the files that were opened for it, and not before;
// never if redlock has ended by then.
func TestGate(t *testing.T) {
	for _, c := range []struct {
		name    string
		path    string
		open    bool
		want    string
		refusal error
	}{
		{"open", "/bin/sh", true, "ran", nil},
		{"redlock has ended", "/bin/sh", false, "", nil},
		{"no program", "/dev/null", true, "", syscall.EACCES},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			child := &exec.Cmd{Path: c.path, Args: []string{"sh", "-c", "printf ran >&3"}, Stdout: &out}
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			child.ExtraFiles = []*os.File{w}
			g, err := startAtGate(child)
			w.Close()
			if err != nil {
				t.Fatal(err)
			}
			if c.open {
				g.open()
			} else {
				g.socket.Close()
			}
			_ = child.Wait()
			got := make([]byte, 10)
			n, _ := r.Read(got)
			if string(got[:n]) != c.want {
				t.Errorf("the command wrote %q, not %q", got[:n], c.want)
			}
			if c.open {
				if err := g.refusal(); err != c.refusal {
					t.Errorf("refused with %v, not %v", err, c.refusal)
				}
			}
		})
	}
}
