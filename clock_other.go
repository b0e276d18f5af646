//go:build !windows

package redlock

import "time"

func systemTime() time.Time { return time.Now() }
