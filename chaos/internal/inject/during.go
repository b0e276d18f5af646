package inject

import "time"

// During is d while a fault lasts, and 0 when it is over.
func During(begin bool, d time.Duration) time.Duration {
	if begin {
		return d
	}
	return 0
}
