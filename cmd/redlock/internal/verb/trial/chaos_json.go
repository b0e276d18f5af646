package trial

import (
	"time"

	"github.com/quorumlock/redlock/chaos"
	"github.com/quorumlock/redlock/cmd/redlock/internal/build"
	"github.com/quorumlock/redlock/cmd/redlock/internal/load"
)

// The output of --json.
type (
	summary struct {
		Verdict     string           `json:"verdict"` // "kept", "violated" or "nothing was run"
		Interrupted bool             `json:"interrupted,omitempty"`
		Seed        uint64           `json:"seed"`
		Version     string           `json:"version"`
		Took        load.Millis      `json:"took_ms"`
		Arenas      []arenaSummary   `json:"arenas"`
		Skipped     []string         `json:"skipped,omitempty"`
		Findings    []findingSummary `json:"findings"`
		Saved       []string         `json:"saved,omitempty"`

		Coverage *chaos.CoverageReport `json:"coverage,omitempty"`
	}
	arenaSummary struct {
		Name      string      `json:"name"`
		Schedules int         `json:"schedules"`
		Took      load.Millis `json:"took_ms"`
	}
	findingSummary struct {
		chaos.Finding
		Outcome string         `json:"outcome"`
		OK      bool           `json:"ok"`
		Error   string         `json:"error,omitempty"`
		Shown   []shownSummary `json:"shown"`
	}
	shownSummary struct {
		Seed       uint64            `json:"seed"`
		Violations []chaos.Violation `json:"violations"`
		Faults     []string          `json:"faults,omitempty"` // of a replayed schedule
		Events     int               `json:"events"`
		Digest     string            `json:"digest"`
		Replay     string            `json:"replay"`
	}
)

func (h *chaosRun) summary(verdict string) *summary {
	s := &summary{
		Verdict: verdict, Interrupted: h.stopped != nil, Seed: h.cfg.seed, Version: build.Line(),
		Took: load.Millis(time.Since(h.begin)), Skipped: h.skipped, Saved: h.saved,
	}
	for i := range h.findings {
		f := &h.findings[i]
		found := findingSummary{Finding: *f, Outcome: f.Outcome(), OK: f.OK(), Shown: []shownSummary{}}
		if f.Error != nil {
			found.Error = f.Error.Error()
		}
		for _, shown := range f.Shown {
			entry := shownSummary{
				Seed: shown.History.Run.Seed, Violations: append([]chaos.Violation{}, shown.Verdict.Violations...),
				Events: len(shown.History.Events), Digest: shown.History.Digest(), Replay: shown.Replay,
			}
			if h.cfg.replays() {
				entry.Faults = faultsOf(shown.History)
			}
			found.Shown = append(found.Shown, entry)
		}
		s.Findings = append(s.Findings, found)
	}
	for _, p := range h.parts {
		a := arenaSummary{Name: p.Arena.Name, Took: load.Millis(p.took)}
		for i := range h.findings {
			if h.findings[i].Arena == a.Name {
				a.Schedules += h.findings[i].Schedules
			}
		}
		s.Arenas = append(s.Arenas, a)
	}
	return s
}
