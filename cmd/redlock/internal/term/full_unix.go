//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package term

import (
	"bytes"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Full is a terminal whose whole screen the program uses: the alternate screen, without a cursor, and keys
// as they are pressed, without an echo. Ctrl-C, Ctrl-\ and Ctrl-Z are signals, as ever.
type Full struct {
	in, out *os.File
	signals chan os.Signal
	stop    *os.File // closed: the keys end
	wake    *os.File
	reading sync.WaitGroup

	mu    sync.Mutex    // protects what follows
	found *unix.Termios // the mode in which the terminal was
	taken bool
}

// These are sequences that every terminal of today knows: ECMA-48, and of xterm the alternate screen.
const (
	enter = "\x1b[?1049h\x1b[?25l\x1b[2J"
	leave = "\x1b[?25h\x1b[0m\x1b[?1049l"
)

// OpenFull takes the whole screen of a terminal. The caller must call Close in any case, also when it panics.
func OpenFull(in, out *os.File) (*Full, error) {
	f := &Full{in: in, out: out, signals: make(chan os.Signal, 16)}
	stop, wake, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	f.stop, f.wake = stop, wake
	signal.Notify(f.signals, syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT)
	if err := f.take(false); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// take takes the screen: its own mode, an empty alternate screen, no cursor. If it is taken already, it does so only
// with again. A process in the background is stopped by that, until it is in the foreground.
func (f *Full) take(again bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.taken && !again {
		return nil
	}
	if f.found == nil {
		found, err := unix.IoctlGetTermios(int(f.in.Fd()), getMode)
		if err != nil {
			return err
		}
		f.found = found
	}
	mode := *f.found
	mode.Iflag &^= unix.ICRNL | unix.INLCR | unix.IGNCR | unix.ISTRIP
	mode.Lflag &^= unix.ICANON | unix.ECHO | unix.IEXTEN
	mode.Cc[unix.VMIN], mode.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(int(f.in.Fd()), setMode, &mode); err != nil {
		return err
	}
	f.taken = true
	_, err := f.out.WriteString(enter)
	return err
}

// give restores the screen and the mode of the terminal that take has found.
func (f *Full) give() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.taken {
		return
	}
	f.taken = false
	_, _ = f.out.WriteString(leave)
	_ = unix.IoctlSetTermios(int(f.in.Fd()), setMode, f.found)
}

// Close restores the terminal, and ends Read. It may be called again.
func (f *Full) Close() {
	f.give()
	signal.Stop(f.signals)
	_ = f.wake.Close()
	f.reading.Wait()
	_ = f.stop.Close()
}

// Signals returns the channel of the signals with which the caller must call Handle.
func (f *Full) Signals() <-chan os.Signal { return f.signals }

// Handle does what a signal means. Draw the screen again afterwards: it may have another size. Ctrl-Z restores the
// terminal, stops the process, and takes the screen when it goes on.
func (f *Full) Handle(sig os.Signal) error {
	if sig == syscall.SIGTSTP {
		f.give()
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	}
	// After a SIGSTOP from elsewhere the screen counts as taken, and the shell has changed its mode since.
	return f.take(sig == syscall.SIGCONT)
}

// Size returns the size of the screen; 80 by 24 if it is not known.
func (f *Full) Size() (columns, rows int) {
	size, err := unix.IoctlGetWinsize(int(f.out.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 || size.Row == 0 {
		return 80, 24
	}
	return int(size.Col), int(size.Row)
}

// begin and end are around what a terminal that knows them shows at once. The others ignore them.
const (
	begin = "\x1b[?2026h\x1b[H"
	end   = "\x1b[?2026l"
)

// Draw draws the whole screen: lines have no line ends, but may have what styles them. Each line is erased before it is
// written: after a line that is as wide as the screen the cursor is still on its last character, which would be erased,
// too.
func (f *Full) Draw(lines []string) error {
	var out bytes.Buffer
	out.WriteString(begin)
	for i, line := range lines {
		if i > 0 {
			out.WriteString("\r\n")
		}
		erase := "\x1b[K"
		if i == len(lines)-1 {
			erase = "\x1b[J" // and what is below it
		}
		out.WriteString(erase + line + "\x1b[0m")
	}
	out.WriteString(end)
	_, err := f.out.Write(out.Bytes())
	return err
}

// pause is how long the rest of a key's sequence may take: Esc alone is a key, too.
const pause = 50 * time.Millisecond

// Read calls got, on a goroutine, with what the terminal sends, and with nothing when it has then sent nothing more for
// a moment, until Close. failed gets the error that has ended that; nil: it was Close.
func (f *Full) Read(got func(sent []byte)) (failed <-chan error) {
	errs := make(chan error, 1)
	f.reading.Go(func() { errs <- f.read(got) })
	return errs
}

func (f *Full) read(got func(sent []byte)) error {
	in, stop := int(f.in.Fd()), int(f.stop.Fd())
	buf := make([]byte, 256)
	for wait := -1; ; {
		fds := []unix.PollFd{{Fd: int32(in), Events: unix.POLLIN}, {Fd: int32(stop), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, wait)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case fds[1].Revents != 0:
			return nil
		case n == 0:
			got(nil)
			wait = -1
			continue
		}
		n, err = unix.Read(in, buf)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		case err != nil:
			return err
		case n == 0:
			return os.ErrClosed
		}
		got(buf[:n])
		wait = int(pause / time.Millisecond)
	}
}
