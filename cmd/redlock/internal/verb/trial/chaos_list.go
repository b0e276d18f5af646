package trial

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/quorumlock/redlock/chaos"
	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
)

// listChaos lists the arenas and the scenarios.
func listChaos(c *console.Console, asJSON bool) error {
	type scenario struct {
		Name     string   `json:"name"`
		About    string   `json:"about"`
		Arenas   []string `json:"arenas"`
		MustFail bool     `json:"must_fail,omitempty"`
		Because  string   `json:"because,omitempty"`
	}
	type arena struct {
		Name    string `json:"name"`
		About   string `json:"about"`
		Missing string `json:"missing,omitempty"` // what it needs and cannot find
	}
	var list struct {
		Arenas    []arena    `json:"arenas"`
		Scenarios []scenario `json:"scenarios"`
	}
	for _, a := range chaos.Arenas {
		entry := arena{Name: a.Name, About: a.About}
		if err := a.Ready(); err != nil {
			entry.Missing = err.Error()
		}
		list.Arenas = append(list.Arenas, entry)
	}
	for _, s := range chaos.Scenarios {
		entry := scenario{Name: s.Name, About: s.About, MustFail: s.Fails != nil, Because: s.Because}
		for _, a := range chaos.Arenas {
			if slices.Contains(a.Scenarios(), s) {
				entry.Arenas = append(entry.Arenas, a.Name)
			}
		}
		list.Scenarios = append(list.Scenarios, entry)
	}
	if asJSON {
		return c.PrintJSON(list)
	}
	var out strings.Builder
	out.WriteString("Arenas:\n")
	for _, a := range list.Arenas {
		fmt.Fprintf(&out, "    %-18s  %s\n", a.Name, a.About)
		if a.Missing != "" {
			fmt.Fprintf(&out, "    %-18s  cannot run here: %s\n", "", a.Missing)
		}
	}
	out.WriteString("\nScenarios:\n")
	for _, s := range list.Scenarios {
		fmt.Fprintf(&out, "    %-18s  %s\n", s.Name, s.About)
		if len(s.Arenas) < len(list.Arenas) {
			fmt.Fprintf(&out, "    %-18s  only in %s\n", "", strings.Join(s.Arenas, " and "))
		}
		if s.MustFail {
			fmt.Fprintf(&out, "    %-18s  must fail: %s\n", "", s.Because)
		}
	}
	_, err := io.WriteString(c.Stdout, out.String())
	return err
}
