//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package proc

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/term"
)

// The keeper is the process between redlock and the command: the command's parent. It ends what the command has started
// if redlock cannot: because redlock was killed, which closes the socket between the two, or because redlock was
// stopped, and has not told it in time that the lock was renewed. It is in a process group of its own, in the
// background of the terminal, so that no signal for redlock's group or for the command reaches it.
//
// On Linux the keeper adopts orphans. So a process without children is the proof that nothing is left of what the
// command has started, whatever sessions and groups it has moved to.
//
// Orders are the first line on the socket. Then redlock writes untilWord and endingWord, and the keeper the words after
// those.
type orders struct {
	Path   []byte // a path and arguments need not be UTF-8
	Args   [][]byte
	Front  bool // the command's group gets the foreground of the terminal
	Report int  // a pipe that gets a byte when the keeper begins to end the command
	Until  int64
	Terms
}

// Terms say how the command ends with its lock.
type Terms struct {
	Margin time.Duration  // the time before the end of the lock that a SIGKILL has to take effect
	Sign   syscall.Signal // the signal that the command gets first
	Grace  time.Duration  // how long after that SIGKILL follows
}

const (
	untilWord  = "until"  // a time in nanoseconds since 1970: the end of the lock
	endingWord = "ending" // redlock has signalled the command

	lateWord    = "late"    // the lock ends too soon for the command to be started
	failedWord  = "failed"  // no process can be started; an error number
	refusedWord = "refused" // the command cannot be executed; an error number
	startedWord = "started" // its process
	stoppedWord = "stopped" // a signal has stopped it
	endedWord   = "ended"   // its status, and 1 if something is left of what it has started
	goneWord    = "gone"    // nothing is left; 1: since a time at which the lock was still valid
)

// earlier returns how long before SIGKILL the keeper sends the first signal, if redlock does not. Redlock itself does
// so a whole grace before. The keeper leaves it a quarter of that, so that the command does not get the signal from
// both, nor from the keeper while redlock is only late with its word.
func earlier(grace time.Duration) time.Duration { return grace - grace/4 }

// keeping is the keeper at work.
type keeping struct {
	orders
	socket *os.File
	until  time.Time // the end of the lock
	pid    int       // of the command
	gone   chan struct{}
}

// Keep is the main function of redlock keep SOCKET, the keeper. It returns the exit code.
func Keep(args, env []string) int {
	if len(args) != 1 {
		return exit.Usage
	}
	fd, err := strconv.Atoi(args[0])
	if err != nil || fd < 3 {
		return exit.Usage
	}
	// The command must inherit neither the socket nor, as ignored, the signals that are for it and not for the keeper.
	syscall.CloseOnExec(fd)
	ignore := make(chan os.Signal, 1)
	for _, sig := range append(Forwarded, syscall.SIGPIPE) {
		if !signal.Ignored(sig) {
			signal.Notify(ignore, sig)
		}
	}
	k := &keeping{socket: os.NewFile(uintptr(fd), "redlock"), gone: make(chan struct{})}
	from := bufio.NewReader(k.socket)
	line, err := from.ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &k.orders) != nil || k.Report < 3 {
		return exit.Usage
	}
	syscall.CloseOnExec(k.Report)
	k.lasts(k.Until)
	if time.Until(k.begin()) <= 0 {
		k.say(lateWord)
		return exit.Lost
	}
	adopt()
	if err := k.start(env); err != nil {
		number, word := syscall.Errno(0), refusedWord
		errors.As(err, &number)
		if number == syscall.EAGAIN || number == syscall.ENOMEM {
			word = failedWord
		}
		k.say(word, int(number))
		return exit.NotExecutable
	}
	k.say(startedWord, k.pid)
	go func() {
		reap(k.pid, k.say)
		close(k.gone)
	}()
	k.watch(from)
	return 0
}

// say sends redlock a word, and the numbers that belong to it.
func (k *keeping) say(words ...any) { fmt.Fprintln(k.socket, words...) }

// lasts sets the end of the lock: until, in nanoseconds since 1970, as a time of both clocks, the wall clock and the
// monotonic one.
func (k *keeping) lasts(until int64) {
	now := time.Now()
	k.until = now.Add(time.Unix(0, until).Sub(now))
}

// begin returns when the keeper begins to end the command, if it hears nothing else from redlock.
func (k *keeping) begin() time.Time { return k.until.Add(-k.Margin - earlier(k.Grace)) }

// start starts the command, in a process group of its own. The command gets redlock's open files. The keeper keeps none
// of them open.
func (k *keeping) start(env []string) (err error) {
	args := make([]string, len(k.Args))
	for i, arg := range k.Args {
		args[i] = string(arg)
	}
	attr := &syscall.ProcAttr{Env: env, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setpgid: true}}
	if tty := term.Open(); tty != nil && k.Front {
		defer tty.Close()
		attr.Sys.Foreground, attr.Sys.Ctty = true, tty.FD()
	} else {
		tty.Close()
	}
	k.pid, _, err = syscall.StartProcess(string(k.Path), args, attr)
	if err != nil {
		return err
	}
	_ = os.Chdir("/")
	if null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0); err == nil {
		for fd := range 3 {
			_ = unix.Dup2(int(null.Fd()), fd)
		}
		null.Close()
	}
	return nil
}

// watch does what redlock says (from), and ends the command if redlock is killed, or does not extend the lock in time.
// It returns when nothing is left of what the command has started.
func (k *keeping) watch(from io.Reader) {
	words := make(chan string)
	go func() {
		defer close(words)
		for lines := bufio.NewScanner(from); lines.Scan(); {
			words <- lines.Text()
		}
	}()
	var (
		signalled bool             // the command has had its signal
		kill      <-chan time.Time // SIGKILL is due
		pause     = time.Millisecond
		over      = time.NewTimer(time.Until(k.begin()))
	)
	end := func(killed time.Time) {
		over.Stop()
		if !signalled {
			signalAll(os.Getpid(), k.pid, k.Sign)
		}
		signalled, kill = true, time.After(time.Until(killed))
	}
	for {
		select {
		case <-k.gone:
			now, valid := time.Now(), 0
			if now.Before(k.until) && now.Round(0).Before(k.until.Round(0)) {
				valid = 1
			}
			k.say(goneWord, valid)
			return
		case word, alive := <-words:
			switch text, until := strings.CutPrefix(word, untilWord+" "); {
			case !alive: // redlock was killed
				words = nil
				if kill == nil {
					signalled = false // it may have been killed before it had signalled
					end(time.Now().Add(k.Grace))
				}
				continue
			case word == endingWord:
				signalled = true
			case until:
				if nano, err := strconv.ParseInt(text, 10, 64); err == nil {
					k.lasts(nano)
				}
			}
			begin := k.begin()
			if signalled {
				begin = k.until.Add(-k.Margin)
			}
			if kill == nil {
				over.Reset(time.Until(begin))
			}
		case <-over.C: // redlock has not said anything else in time
			_, _ = syscall.Write(k.Report, []byte{1})
			end(k.until.Add(-k.Margin))
		case <-kill: // again and again: what forks meanwhile may have been missed
			signalAll(os.Getpid(), k.pid, syscall.SIGKILL)
			kill, pause = time.After(pause), min(2*pause, time.Second)
		}
	}
}

// reap waits for the children of this process until there are none, and says what becomes of the command, whose process
// and group have the number pid. No other goroutine may wait for a child meanwhile.
func reap(pid int, say func(words ...any)) {
	for {
		var status syscall.WaitStatus
		switch child, err := syscall.Wait4(-1, &status, syscall.WUNTRACED, nil); {
		case err == syscall.EINTR || err == nil && child != pid:
		case err != nil: // there is no child
			for groupLeft(pid) {
				time.Sleep(time.Millisecond)
			}
			return
		case status.Stopped():
			say(stoppedWord, int(status.StopSignal()))
		default:
			left := 0
			if anyLeft(pid) {
				left = 1
			}
			say(endedWord, int(status), left)
		}
	}
}

// anyLeft reports whether this process has children that have not ended, or the process group members.
func anyLeft(group int) bool {
	for {
		switch child, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); {
		case err == syscall.EINTR || err == nil && child > 0:
		case err == nil:
			return true
		default:
			return groupLeft(group)
		}
	}
}
