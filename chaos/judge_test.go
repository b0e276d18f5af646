package chaos

import (
	"fmt"
	"testing"
	"time"
)

// at is so many milliseconds after noon; nothing for -1.
func at(ms int) time.Time {
	if ms < 0 {
		return time.Time{}
	}
	return time.Date(2026, 1, 1, 12, 0, 0, ms*int(time.Millisecond), time.UTC)
}

func TestViolations(t *testing.T) {
	type hold [3]int // name, from, to
	for _, tt := range []struct {
		name  string
		holds []hold
		want  int
	}{
		{"none", nil, 0},
		{"one", []hold{{0, 0, 9}}, 0},
		{"one after the other", []hold{{0, 0, 3}, {0, 3, 5}, {0, 7, 9}}, 0},
		{"in any order", []hold{{0, 7, 9}, {0, 0, 3}, {0, 3, 5}}, 0},
		{"other names", []hold{{0, 0, 9}, {1, 1, 5}}, 0},
		{"overlap", []hold{{0, 0, 4}, {0, 3, 5}}, 1},
		{"within", []hold{{0, 0, 9}, {0, 3, 5}, {0, 6, 7}}, 2},
		{"at the same instant", []hold{{0, 3, 5}, {0, 3, 5}}, 1},
		{"never ended", []hold{{0, 0, -1}, {0, 300, 500}}, 1},
		{"never ended, and last", []hold{{0, 0, 3}, {0, 300, -1}}, 0},
	} {
		var history []Hold
		for i, h := range tt.holds {
			history = append(history, Hold{Client: i, Name: fmt.Sprint(h[0]), From: at(h[1]), To: at(h[2])})
		}
		if got := Violations(history); len(got) != tt.want {
			t.Errorf("%s: %v, want %d", tt.name, got, tt.want)
		}
	}
}

// FuzzViolations compares the judge with one that looks at every pair.
func FuzzViolations(f *testing.F) {
	f.Add([]byte{0, 9, 3, 5, 6, 7})
	f.Fuzz(func(t *testing.T, spans []byte) {
		var history []Hold
		for i := 0; i+1 < len(spans) && i < 40; i += 2 {
			from := int(spans[i])
			to := from + 1 + int(spans[i+1]%16)
			if spans[i+1] >= 250 {
				to = -1
			}
			history = append(history, Hold{Client: i, Name: fmt.Sprint(from % 2), From: at(from), To: at(to)})
		}
		bad := false
		for i, a := range history {
			for _, b := range history[i+1:] {
				bad = bad || a.Name == b.Name &&
					(a.To.IsZero() || b.From.Before(a.To)) && (b.To.IsZero() || a.From.Before(b.To))
			}
		}
		if got := Violations(history); (len(got) > 0) != bad {
			t.Errorf("%v: found %v, want any: %v", history, got, bad)
		}
	})
}
