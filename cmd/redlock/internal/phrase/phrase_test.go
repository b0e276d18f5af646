package phrase_test

import (
	"testing"

	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
)

func TestTable(t *testing.T) {
	got := phrase.Table([][]string{{"a", "number"}, {"long", "1"}, {"b", ""}}, 1)
	if want := "a     number\nlong       1\nb\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestFigures(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", -12345: "-12,345", 1234567: "1,234,567"} {
		if got := phrase.Digits(n); got != want {
			t.Errorf("Digits(%d) is %s", n, got)
		}
	}
	for x, want := range map[float64]string{0: "0", 0.123: "0.12", 9.96: "10", 10.4: "10", 1234.5: "1,235"} {
		if got := phrase.PerSecond(x); got != want {
			t.Errorf("PerSecond(%v) is %s, not %s", x, got, want)
		}
	}
	if got := phrase.Counted(2, "loss") + ", " + phrase.Counted(1, "hold"); got != "2 losses, 1 hold" {
		t.Error(got)
	}
}
