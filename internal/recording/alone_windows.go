package recording

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/windows"
)

// alone makes sure that nobody else writes to a record: two would begin new files in the place of each other's. It locks
// a byte far behind the end, since nobody else can read what is locked here.
func alone(file *os.File) error {
	err := windows.LockFileEx(windows.Handle(file.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, 1, 0, &windows.Overlapped{OffsetHigh: 1 << 30})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return fmt.Errorf("another redlock record writes to %s", file.Name())
	}
	return nil // it is locked, or the file system has no locks
}
