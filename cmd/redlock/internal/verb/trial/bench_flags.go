package trial

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/flags"
	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
)

// A benchConfig is the command line of redlock bench.
type benchConfig struct {
	reach.Flags
	embedded bool
	callers  []int
	length   time.Duration // of each measurement
	key      string
	json     bool
}

const (
	// leastLength is the shortest measurement. A garbage collection, or another program on the processor, takes tens
	// of milliseconds; a shorter measurement would show only that.
	leastLength = 100 * time.Millisecond

	// mostCallers limits the effect of a typing error.
	mostCallers = 10_000

	// defaultCallers are those of the comparison in bench/: one caller, some, and enough to keep a small machine busy.
	defaultCallers = "1,16,128"

	// easyCallers are for nodes inside this process, which are slow: they interpret each script.
	easyCallers = "1,4,16"
)

// parseBench reads the arguments of redlock bench.
func parseBench(args []string) (*benchConfig, error) {
	cfg := &benchConfig{Flags: reach.Defaults, length: 2 * time.Second}
	f := flags.New("bench")
	cfg.AddNodes(f)
	cfg.AddTTL(f)
	cfg.AddTimeout(f)
	f.Toggle("embedded", "", &cfg.embedded)
	f.Toggle("json", "", &cfg.json)
	f.Value("callers", "", func(value string) (err error) {
		cfg.callers, err = parseCallers(value)
		return err
	})
	f.Value("for", "", func(value string) (err error) {
		if cfg.length, err = flags.Duration("--for", value); err == nil && cfg.length < leastLength {
			return exit.Fail(exit.Usage, "the default is 2s", "--for %s is too short: the least is %v", value, leastLength)
		}
		return err
	})
	f.Text("key", "without it the names are ones that no other client uses", &cfg.key)
	rest, err := f.Parse(args)
	switch {
	case err != nil:
		return nil, err
	case len(rest) > 0:
		return nil, exit.Fail(exit.Usage, "see redlock help bench", "bench takes flags only, and was given %q", rest[0])
	}
	if cfg.key == "" { // a new key each time: two runs at once must not wait for each other
		cfg.key = fmt.Sprintf("redlock:bench:%08x", rand.Uint32())
	}
	return cfg, nil
}

// parseCallers parses a list of numbers of callers.
func parseCallers(value string) (all []int, err error) {
	const hint = "it is the number of callers, or several such numbers: the default is " + defaultCallers
	for word := range strings.SplitSeq(value, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		switch {
		case err != nil || n < 1 || n > mostCallers:
			return nil, exit.Fail(exit.Usage, hint, "--callers %s: %q is not a number from 1 to %d", value, word, mostCallers)
		case slices.Contains(all, n):
			return nil, exit.Fail(exit.Usage, hint, "--callers %s: %d is there twice", value, n)
		}
		all = append(all, n)
	}
	return all, nil
}
