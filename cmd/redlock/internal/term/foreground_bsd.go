//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package term

import "golang.org/x/sys/unix"

func foreground(fd int) (group int, err error) { return unix.IoctlGetInt(fd, unix.TIOCGPGRP) }
