//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package proc

import (
	"os"
	"syscall"
)

// Everything: see tree_linux.go. Here what a command has started counts as far as it is in the command's process group.
const Everything = false

func adopt() {}

func signalAll(_, group int, sig syscall.Signal) { signalGroup(group, sig) }

func eldest(int) int { return 0 }

func survivors(_, _ int) []string { return nil }

// groupLeft reports whether a process group has members left. Their parent may be another process than this one.
func groupLeft(group int) bool { return syscall.Kill(-group, 0) == nil }

func self() (string, error) { return os.Executable() }
