package redisproc

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// clockTick is the unit of CPU times in /proc. The kernel converts to it for user
// space on every architecture that Go runs on.
const clockTick = time.Second / 100

// dieWithParent also takes the server out of the terminal's reach: Ctrl-C is for
// its parent to handle, which may still want to look at it.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// awaitStopped waits until a SIGSTOP has worked: the kernel records the signal at once, but a thread
// on another core may be halfway through a command.
func (p *process) awaitStopped() error {
	for deadline := time.Now().Add(time.Second); ; time.Sleep(100 * time.Microsecond) {
		fields, err := p.stat()
		if err != nil {
			return err
		}
		if fields[0] == "T" {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("redisproc: process %d is in state %s a second after SIGSTOP", p.pid, fields[0])
		}
	}
}

// cpu is the processor time of the process, user and system, of all threads.
func (p *process) cpu() (time.Duration, error) {
	fields, err := p.stat()
	if err != nil {
		return 0, err
	}
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("redisproc: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick, nil
}

// stat returns the fields of /proc/PID/stat from the third, the state, on: the
// second is the program's name in parentheses and may contain anything.
func (p *process) stat() ([]string, error) {
	name := fmt.Sprintf("/proc/%d/stat", p.pid)
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("redisproc: %w", err)
	}
	var fields []string
	for f := range bytes.FieldsSeq(text[bytes.LastIndexByte(text, ')')+1:]) {
		fields = append(fields, string(f))
	}
	if len(fields) < 13 {
		return nil, fmt.Errorf("redisproc: %s has only %d fields", name, len(fields))
	}
	return fields, nil
}
