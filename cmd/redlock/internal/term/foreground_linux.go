package term

import "golang.org/x/sys/unix"

func foreground(fd int) (group int, err error) {
	value, err := unix.IoctlGetUint32(fd, unix.TIOCGPGRP) // it has 32 bits, and an int may have more
	return int(value), err
}
