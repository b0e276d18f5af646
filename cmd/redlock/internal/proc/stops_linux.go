package proc

import (
	"syscall"
	"unsafe"
)

// passesStops: redlock can pass a Ctrl-Z that it has caught on to the command, and stop all the same. See stopsUs.
const passesStops = true

// stopsUs restores the default action of SIGTSTP until the returned function is called.
// signal.Reset does not: the handler that signal.Notify has installed stays, and swallows the
// signal. SIGSTOP would stop redlock even where no shell could continue it.
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
