//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package proc

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
)

// A gate holds a new process back until the keeper watches over it.
//
// The keeper has to know the process group, which exists only once the process does. A command
// that ran from the start would be without a keeper for the time between the two: if redlock
// were killed or stopped just then, nothing would end the command when the lock ends. So the
// process is this program at first. It waits at the gate, and becomes the command when the gate
// is opened. If redlock has ended by then, the socket says so, and the process never becomes the
// command.
type gate struct{ socket *os.File }

// startAtGate starts the process of a command, and not yet the command. The process has its end of
// the socket under the number that it has here, which is free: a file that a shell has opened
// for the command (3>log) stays what it is.
func startAtGate(child *exec.Cmd) (*gate, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, err
	}
	syscall.CloseOnExec(pair[0]) // other processes must not inherit the other end, which says that redlock has ended
	g := &gate{os.NewFile(uintptr(pair[0]), "gate")}
	child.Args = append([]string{"redlock", BeginVerb, strconv.Itoa(pair[1]), child.Path}, child.Args...)
	child.Path = self
	err = child.Start()
	_ = syscall.Close(pair[1])
	if err != nil {
		g.socket.Close()
		return nil, err
	}
	return g, nil
}

// open lets the process become the command. It does not wait for that: in between, Ctrl-Z may stop
// the process, which supervise has to notice.
func (g *gate) open() { _, _ = g.socket.Write([]byte{1}) }

// refusal is why the process, which has ended, could not become the command; nil: it has been
// the command.
func (g *gate) refusal() error {
	defer g.socket.Close()
	var errno [1]byte
	if n, _ := g.socket.Read(errno[:]); n == 0 {
		return nil
	}
	return syscall.Errno(errno[0])
}

// Begin is the process at the gate: redlock begin SOCKET PATH ARG0 [ARG ...].
func Begin(args, env []string) int {
	if len(args) < 3 {
		return exit.Usage
	}
	socket, err := strconv.Atoi(args[0])
	if err != nil {
		return exit.Usage
	}
	syscall.CloseOnExec(socket)
	var word [1]byte
	for {
		n, err := syscall.Read(socket, word[:])
		if err == syscall.EINTR {
			continue
		}
		if n != 1 {
			return exit.Lost // redlock has ended, and its lock ends
		}
		break
	}
	err = syscall.Exec(args[1], args[2:], env)
	if errno, ok := err.(syscall.Errno); ok {
		_, _ = syscall.Write(socket, []byte{byte(errno)})
	}
	return exit.NotExecutable
}
