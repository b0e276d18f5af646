package printable

import (
	"strings"
	"time"
)

// Round returns a duration with the two digits that matter, for messages: 1.7ms, 9.9s, 1m20s, 12m, 1h40m. Do not use it
// for an option that was given: print that as it was given.
func Round(d time.Duration) time.Duration {
	step := time.Nanosecond
	switch a := d.Abs(); {
	case a >= 10*time.Hour:
		step = time.Hour
	case a >= 100*time.Minute:
		step = 10 * time.Minute
	case a >= 10*time.Minute:
		step = time.Minute
	case a >= 100*time.Second:
		step = 10 * time.Second
	default:
		for a >= 100*step {
			step *= 10
		}
	}
	return d.Round(step)
}

// Millis returns a duration in milliseconds, after Round, for logs as JSON, where a Duration would be a number of
// nanoseconds, and nothing would say so.
func Millis(d time.Duration) float64 { return float64(Round(d).Microseconds()) / 1000 }

// Duration formats a duration for messages, after Round.
func Duration(d time.Duration) string {
	d = Round(d)
	text := d.String()
	if d.Abs() >= time.Minute { // 12m0s, 2h0m0s
		if strings.HasSuffix(text, "m0s") {
			text = strings.TrimSuffix(text, "0s")
		}
		if strings.HasSuffix(text, "h0m") {
			text = strings.TrimSuffix(text, "0m")
		}
	}
	return text
}
