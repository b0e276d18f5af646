//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// group makes a group of the processes that cmd starts. When cmd's context ends, all of them are interrupted:
// go test alone would wait for its test programs.
func group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
}
