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

// A Refused is the reason for which a command cannot be executed. Other errors of Start are not the
// command's fault.
type Refused struct{ Err error }

func (r *Refused) Error() string { return r.Err.Error() }

// startKeeper starts the keeper, with the files of the command. The keeper has its ends of the socket and
// the pipe under the numbers that they have here, which are free: a file that a shell has opened for the
// command (3>log) stays what it is.
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

// started waits for the first word of the keeper, and returns the process of the command.
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

// parseWord takes a line of the keeper's apart.
func parseWord(line string) (word string, numbers [2]int) {
	_, _ = fmt.Sscan(line, &word, &numbers[0], &numbers[1]) // those that are there
	return word, numbers
}

// lasts tells it until when the lock lasts.
func (k *keeper) lasts(until time.Time) { k.say(untilWord, until.UnixNano()) }

// ending tells it that the command has its signal: it only has to see to the end.
func (k *keeper) ending() { k.say(endingWord) }

// say writes to the keeper. It does not wait for one that was stopped, and has not read for thousands of
// words.
func (k *keeper) say(words ...any) {
	_ = k.socket.SetWriteDeadline(time.Now().Add(time.Millisecond))
	fmt.Fprintln(k.socket, words...)
}

// hasBegun reports whether it has begun to end the command. It writes that before it sends the
// signal, so the answer is right once the command has ended. It does not wait.
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

// dismiss ends it.
func (k *keeper) dismiss() {
	_ = k.process.Process.Kill() // before the socket is closed, which would mean that redlock was killed
	k.close()
}

func (k *keeper) close() {
	k.socket.Close()
	k.report.Close()
}
