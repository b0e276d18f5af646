package proc

import (
	"syscall"
	"unsafe"
)

// passesStops: Ctrl-Z that is for us can be passed on to the command, since we can be
// stopped all the same. See stopsUs.
const passesStops = true

// stopsUs lets SIGTSTP do what it does by default, until the returned function is called.
// signal.Reset does not: what signal.Notify has put in its place stays there, and swallows
// it. SIGSTOP would stop us as well where no shell is there to continue us.
func stopsUs() (restore func()) {
	var byItself, was [64]byte // more than any machine's sigaction; all zeros is SIG_DFL
	act := func(to, from *[64]byte) syscall.Errno {
		const maskSize = 8
		_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGTSTP), uintptr(unsafe.Pointer(to)), uintptr(unsafe.Pointer(from)), maskSize, 0, 0)
		return errno
	}
	if act(&byItself, &was) != 0 {
		return func() {}
	}
	return func() { act(&was, nil) }
}
