//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package proc

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A keeper is the keeper as redlock sees it: a child, at the other end of a socket.
type keeper struct {
	process *exec.Cmd
	socket  *os.File
	from    *bufio.Reader // the socket
	report  *os.File      // has a byte once the keeper has begun to end the command
}

// errKeeper is why a command was not started, though it may be one that can be.
var errKeeper = errors.New("its keeper process was killed")

// ErrLate says that the lock would have ended too soon after the start of the command.
var ErrLate = errors.New("the lock was about to end")

// A Refused is the reason for which a command cannot be executed. Other errors of Start are not the command's fault.
type Refused struct{ Err error }

func (r *Refused) Error() string { return r.Err.Error() }

// startKeeper starts the keeper, which starts child, the command, by the orders; child becomes the keeper's process.
// The keeper has its ends of the socket and the pipe under the numbers that they have here, which are free: a file that
// a shell has opened for the command (3>log) stays what it is.
func startKeeper(child *exec.Cmd, o *orders) (k *keeper, err error) {
	o.Path = []byte(child.Path)
	for _, arg := range child.Args {
		o.Args = append(o.Args, []byte(arg))
	}
	if child.Path, err = self(); err != nil {
		return nil, err
	}
	syscall.ForkLock.Lock() // no other process may have these open
	pair, err := syscall.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(pair[0])
	}
	syscall.ForkLock.Unlock()
	if err != nil {
		return nil, err
	}
	defer syscall.Close(pair[1])
	_ = syscall.SetNonblock(pair[0], true) // for deadlines
	k = &keeper{process: child, socket: os.NewFile(uintptr(pair[0]), "keeper")}
	k.from = bufio.NewReader(k.socket)
	report, reporter, err := os.Pipe()
	if err != nil {
		k.socket.Close()
		return nil, err
	}
	defer reporter.Close()
	k.report = report
	o.Report = int(reporter.Fd())
	text, err := json.Marshal(o)
	if err == nil {
		_, err = unix.FcntlInt(uintptr(o.Report), unix.F_SETFD, 0)
	}
	if err == nil {
		child.Args, child.SysProcAttr = []string{"redlock", KeepVerb, strconv.Itoa(pair[1])}, &syscall.SysProcAttr{Setpgid: true}
		err = child.Start()
	}
	if err != nil {
		k.close()
		return nil, err
	}
	_, _ = k.socket.Write(append(text, '\n'))
	return k, nil
}

// started waits until the lock ends for the keeper's first word, and returns the process of the command. Its error is
// ErrLate; errKeeper: the keeper was killed; a *Refused: the command cannot be executed; or that of the system.
func (k *keeper) started(until time.Time) (pid int, err error) {
	_ = k.socket.SetReadDeadline(until)
	line, err := k.from.ReadString('\n')
	_ = k.socket.SetReadDeadline(time.Time{})
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return 0, ErrLate
	}
	if err != nil {
		return 0, errKeeper
	}
	word, numbers := parseWord(line)
	switch word {
	case startedWord:
		return numbers[0], nil
	case lateWord:
		return 0, ErrLate
	case failedWord:
		return 0, syscall.Errno(numbers[0])
	}
	return 0, &Refused{syscall.Errno(numbers[0])}
}

// parseWord splits a line of the keeper's into its word and up to two numbers; 0 for those that are missing.
func parseWord(line string) (word string, numbers [2]int) {
	_, _ = fmt.Sscan(line, &word, &numbers[0], &numbers[1]) // those that are there
	return word, numbers
}

// lasts tells the keeper until when the lock lasts.
func (k *keeper) lasts(until time.Time) { k.say(untilWord, until.UnixNano()) }

// ending tells the keeper that redlock has signalled the command: the keeper sends only the SIGKILL, when it is due.
func (k *keeper) ending() { k.say(endingWord) }

// say writes a word and its numbers to the keeper. It waits at most a millisecond, and then drops them: a keeper that
// was stopped has not read for thousands of words.
func (k *keeper) say(words ...any) {
	_ = k.socket.SetWriteDeadline(time.Now().Add(time.Millisecond))
	fmt.Fprintln(k.socket, words...)
}

// hasBegun reports whether the keeper has begun to end the command. The keeper writes that before it sends the signal,
// so the answer is right once the command has ended. It does not wait.
func (k *keeper) hasBegun() bool {
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

// dismiss kills the keeper, which then ends nothing, and closes the connection to it.
func (k *keeper) dismiss() {
	_ = k.process.Process.Kill() // before the socket is closed, which would mean that redlock was killed
	k.close()
}

func (k *keeper) close() {
	k.socket.Close()
	k.report.Close()
}
