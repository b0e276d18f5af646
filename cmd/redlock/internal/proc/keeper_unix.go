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
	report  *os.File // has a byte once the keeper has begun to end the command
}

// What redlock writes to the keeper: a time, in nanoseconds since 1970, by when the command must
// have ended; or that redlock is ending the command itself.
const endingWord = "end"

// startKeeper returns nil if no keeper can be started: the command runs without one.
func startKeeper(group int, until time.Time, sign syscall.Signal, grace time.Duration) *keeper {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	k := &keeper{process: exec.Command(self, KeepVerb, strconv.Itoa(group), strconv.Itoa(int(sign)), grace.String())}
	k.process.Args[0] = "redlock"
	k.process.Dir, k.process.SysProcAttr = "/", &syscall.SysProcAttr{Setsid: true}
	if k.pipe, err = k.process.StdinPipe(); err != nil {
		return nil
	}
	report, reporter, err := os.Pipe()
	if err != nil {
		return nil
	}
	k.report, k.process.Stdout = report, reporter
	err = k.process.Start()
	reporter.Close()
	if err != nil {
		report.Close()
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

// ending tells it that the command has its signal: it only has to see to the end.
func (k *keeper) ending() {
	if k != nil {
		fmt.Fprintln(k.pipe, endingWord)
	}
}

// hasBegun reports whether it has begun to end the command. It writes that before it sends the
// signal, so the answer is right once the command has ended. It does not wait.
func (k *keeper) hasBegun() bool {
	if k == nil {
		return false
	}
	conn, err := k.report.SyscallConn()
	if err != nil {
		return false
	}
	n := 0
	_ = conn.Read(func(fd uintptr) bool { // a pipe of Go's does not block
		n, _ = syscall.Read(int(fd), make([]byte, 1))
		return true
	})
	return n > 0
}

// dismiss ends it, since the command has ended.
func (k *keeper) dismiss() {
	if k != nil {
		_ = k.process.Process.Kill() // before the pipe is closed, which would mean that redlock was killed
		k.pipe.Close()
		k.report.Close()
		_ = k.process.Wait()
	}
}

// earlier is how long before the command's end the keeper sends the signal. Redlock itself does so a
// whole grace before. The keeper leaves it a quarter of that, so that the command does not get the
// signal from both, nor from the keeper while redlock is only late with its word.
func earlier(grace time.Duration) time.Duration { return grace - grace/4 }

// Keep is the keeper. Signals that are for the command must not end it.
func Keep(args []string, from io.Reader, report io.Writer) int {
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
	sign := syscall.Signal(number)
	words := make(chan string)
	go func() {
		defer close(words)
		for lines := bufio.NewScanner(from); lines.Scan(); {
			words <- lines.Text()
		}
	}()
	end := time.Now().Add(time.Hour) // the command must have ended by then
	over := time.NewTimer(time.Hour)
	early := earlier(grace) // 0: the command has had its signal
	for {
		select {
		case word, alive := <-words:
			if !alive {
				endGroup(group, sign, time.Now().Add(grace))
				return 0
			}
			if word == endingWord {
				early = 0
			} else if nano, err := strconv.ParseInt(word, 10, 64); err == nil {
				end = time.Unix(0, nano)
			}
			over.Reset(time.Until(end) - early)
		case <-over.C: // redlock has not said anything else in time
			_, _ = report.Write([]byte{1})
			if early == 0 {
				sign = syscall.SIGKILL
			}
			endGroup(group, sign, end)
			for range words { // until redlock dismisses it, or has been killed
			}
			return 0
		}
	}
}

// endGroup signals a group, and kills what is left of it later.
func endGroup(group int, sign syscall.Signal, later time.Time) {
	signalGroup(group, sign)
	if !goneBy(group, later) {
		signalGroup(group, syscall.SIGKILL)
	}
}
