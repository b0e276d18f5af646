package inject

import "time"

func During(begin bool, d time.Duration) time.Duration {
	if begin {
		return d
	}
	return 0
}
