package chaos

import (
	"fmt"
	"slices"
	"testing"

	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// TestAttemptsAreFew: a waiter makes an attempt when the lock may be free. It takes between two and
// three attempts for a lock, heartbeats included; if the first message woke it, and not the
// messages of a quorum, it would be twenty.
func TestAttemptsAreFew(t *testing.T) {
	s := Scenarios[slices.IndexFunc(Scenarios, func(s *Scenario) bool { return s.Name == "waiting" })]
	attempts, holds := 0, 0
	for seed := range need.Sized[uint64](3, 6, 6) {
		h, verdict, err := Model.Replay(s, seed, nil)
		if err != nil {
			t.Fatal(err)
		}
		holds += verdict.Holds
		last := make(map[int]int) // the number of a client's last token
		for _, e := range h.Events {
			var client, number int
			if _, err := fmt.Sscanf(e.Token, "c%d.%d", &client, &number); err == nil && e.Kind == Got {
				last[client] = max(last[client], number)
			}
		}
		for _, number := range last {
			attempts += number
		}
	}
	if holds == 0 || attempts > 5*holds {
		t.Errorf("%d attempts for %d locks", attempts, holds)
	}
	t.Logf("%d attempts for %d locks", attempts, holds)
}
