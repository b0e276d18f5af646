package trial

import (
	"os"
	"strings"
	"testing"

	"github.com/quorumlock/redlock/chaos"
	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
)

// So much wrong is enough to look at.
func TestChaosSavesSomeOnly(t *testing.T) {
	h := &chaosRun{Console: console.New(nil, nil, nil, new(strings.Builder)), cfg: &chaosConfig{save: t.TempDir()}, bad: make(map[string]int)}
	h.watch = newProgress(h.Console, true)
	defer h.watch.end()
	p := &part{Campaign: &chaos.Campaign{Arena: chaos.Model}}
	verdict := chaos.Verdict{Violations: make([]chaos.Violation, 1)}
	for seed := range uint64(mostSaved + 20) {
		for _, name := range []string{"a b", "a"} {
			h.save(p, &chaos.History{Run: chaos.Head{Arena: "model", Scenario: name, Seed: seed}}, verdict)
		}
	}
	files, err := os.ReadDir(h.cfg.save)
	if err != nil || len(files) != 2*mostSaved || len(h.saved) != 2*mostSaved {
		t.Errorf("%v: %d files, and %d are said to be saved", err, len(files), len(h.saved))
	}
}
