//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package proc

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
)

// A keeper is a second process that ends the command if redlock cannot: because redlock was
// killed, which closes the pipe that the keeper reads from, or because redlock was stopped,
// and has not told it in time that the lock was renewed. It is in a session of its own, so
// that no signal for redlock's group or terminal reaches it.
type keeper struct {
	process *exec.Cmd
	pipe    io.WriteCloser
}

// startKeeper returns nil if no keeper can be started: the command runs without one.
func startKeeper(group int, until time.Time, sign syscall.Signal, grace time.Duration) *keeper {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	k := &keeper{process: exec.Command(self, KeepVerb, strconv.Itoa(group), strconv.Itoa(int(sign)), grace.String())}
	k.process.Args[0] = "redlock"
	k.process.Dir, k.process.SysProcAttr = "/", &syscall.SysProcAttr{Setsid: true}
	if k.pipe, err = k.process.StdinPipe(); err != nil || k.process.Start() != nil {
		return nil
	}
	k.until(until)
	return k
}

// until tells it by when the command must have ended.
func (k *keeper) until(t time.Time) {
	if k != nil {
		fmt.Fprintln(k.pipe, t.UnixNano())
	}
}

// dismiss ends it, since the command has ended.
func (k *keeper) dismiss() {
	if k != nil {
		_ = k.process.Process.Kill() // before the pipe is closed, which would mean that redlock was killed
		k.pipe.Close()
		_ = k.process.Wait()
	}
}

// Keep is the keeper. Signals that are for the command must not end it.
func Keep(args []string, from io.Reader) int {
	signal.Ignore(append(Forwarded, syscall.SIGPIPE)...)
	if len(args) != 3 {
		return exit.Usage
	}
	group, err := strconv.Atoi(args[0])
	number, badSignal := strconv.Atoi(args[1])
	grace, badGrace := time.ParseDuration(args[2])
	if err != nil || badSignal != nil || badGrace != nil || group < 2 {
		return exit.Usage
	}
	words := make(chan string)
	go func() {
		defer close(words)
		for lines := bufio.NewScanner(from); lines.Scan(); {
			words <- lines.Text()
		}
	}()
	over := time.NewTimer(time.Hour)
	for {
		select {
		case word, alive := <-words:
			if !alive {
				signalGroup(group, syscall.Signal(number))
				if !goneBy(group, time.Now().Add(grace)) {
					signalGroup(group, syscall.SIGKILL)
				}
				return 0
			}
			if nano, err := strconv.ParseInt(word, 10, 64); err == nil {
				over.Reset(time.Until(time.Unix(0, nano)))
			}
		case <-over.C:
			signalGroup(group, syscall.SIGKILL) // its grace is over
		}
	}
}
