package printable_test

import (
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/printable"
)

func TestDurationHasTwoDigits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 7: "7ns", 1234: "1.2µs", 1_723_456: "1.7ms", 99_949_000: "100ms", 500 * time.Millisecond: "500ms",
		9_876 * time.Millisecond: "9.9s", -9_876 * time.Millisecond: "-9.9s", 10 * time.Second: "10s", 59_960 * time.Millisecond: "1m", 62_400 * time.Millisecond: "1m2s",
		99_700 * time.Millisecond: "1m40s", 123 * time.Second: "2m", 138 * time.Second: "2m20s", 754 * time.Second: "13m",
		time.Hour: "1h", 99*time.Minute + 40*time.Second: "1h40m", 2 * time.Hour: "2h", 25*time.Hour + 40*time.Minute: "26h",
	} {
		if got := printable.Duration(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
