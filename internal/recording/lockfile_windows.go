package recording

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockFile locks the file of a record until it is closed, if the file system has locks. taken: another process has locked it.
// Nobody else can read what is locked here, so it locks a byte far behind the end.
func lockFile(file *os.File) (taken bool) {
	err := windows.LockFileEx(windows.Handle(file.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, 1, 0, &windows.Overlapped{OffsetHigh: 1 << 30})
	return errors.Is(err, windows.ERROR_LOCK_VIOLATION)
}
