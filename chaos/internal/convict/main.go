// Command convict runs one scenario until it finds a violation, and prints the number of the
// schedule: convict ARENA SCENARIO FIRST LAST, where schedules count from 1. The tests build it
// with a mutant of the library. With one more argument it prints the histories instead.
package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/quorumlock/redlock/chaos"
	"github.com/redis/go-redis/v9"
)

func main() {
	arena, scenario, first, last := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	redis.SetLogger(silence{}) // it logs each dial that fails
	if err := run(arena, scenario, first, last); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run prints the number of the first schedule with a violation, the rule, and the violation; or
// nothing if there is none.
func run(arena, scenario, first, last string) error {
	from, err := strconv.Atoi(first)
	if err != nil {
		return err
	}
	to, err := strconv.Atoi(last)
	if err != nil {
		return err
	}
	a := slices.IndexFunc(chaos.Arenas, func(a *chaos.Arena) bool { return a.Name == arena })
	s := slices.IndexFunc(chaos.Scenarios, func(s *chaos.Scenario) bool { return s.Name == scenario })
	if a < 0 || s < 0 {
		return fmt.Errorf("there is no arena %q or no scenario %q", arena, scenario)
	}
	for seed := from - 1; seed < to; seed++ {
		h, verdict, err := chaos.Arenas[a].Replay(chaos.Scenarios[s], uint64(seed), nil)
		if err != nil {
			return err
		}
		if len(os.Args) > 5 { // histories are wanted, not violations
			if err := h.Write(os.Stdout); err != nil {
				return err
			}
			continue
		}
		for _, v := range verdict.Violations {
			if !slices.Contains(chaos.Scenarios[s].Fails, v.Rule) {
				fmt.Printf("%d\t%s\t%s\n", seed+1, v.Rule, v.Text)
				return nil
			}
		}
	}
	return nil
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}
