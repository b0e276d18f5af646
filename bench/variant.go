package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/quorumlock/redlock/bench/contender"
)

// A variant is this library with other scripts, by the names of the files that they replace, and
// without the commands that take their place.
type variant struct {
	contender string
	scripts   func(library string) (map[string][]byte, error)
}

var (
	//go:embed plain/acquire.lua
	plainAcquire []byte
	//go:embed plain/release.lua
	plainRelease []byte
)

func plainScripts() variant {
	return variant{contender.Plain, func(library string) (map[string][]byte, error) {
		return byScript(library, map[string][]byte{
			"acquire.lua": plainAcquire, "release.lua": plainRelease,
			"acquire_usual.lua": nil, "release_usual.lua": nil, "kinds.lua": nil, "hold.lua": nil, "drop.lua": nil, "counters.lua": nil, "queue.lua": nil, "give.lua": nil,
		})
	}}
}

// byScript adds to scripts what makes the library use them for every lock: it never knows a number for
// plain commands.
func byScript(library string, scripts map[string][]byte) (map[string][]byte, error) {
	const set = "../set/set.go"
	source, err := os.ReadFile(filepath.Join(library, set))
	if err != nil {
		return nil, err
	}
	never, err := without(string(source), []cut{{"if s.cfg.MaxNodeSkew <= 0 ", ""}})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", set, err)
	}
	scripts[set] = []byte(never)
	return scripts, nil
}

// A cut is a piece of a script, given by its beginning and its end.
type cut struct{ from, to string }

// queueCuts are the parts of the scripts that handle the queue. The arguments stay.
var queueCuts = map[string][]cut{
	"acquire_usual.lua": {{", queue", ""}},
	"release_usual.lua": {{" = redis.pcall('ZRANGE'", "[1]"}},
}

// queueless returns the library's own scripts without the queue.
func queueless() variant {
	return variant{contender.NoQueue, func(library string) (map[string][]byte, error) {
		scripts := map[string][]byte{}
		for name, cuts := range queueCuts {
			source, err := os.ReadFile(filepath.Join(library, name))
			if err != nil {
				return nil, err
			}
			less, err := without(string(source), cuts)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			scripts[name] = []byte(less)
		}
		return byScript(library, scripts)
	}}
}

// without removes the first occurrence of each piece. All must be found: so the variant is without
// the queue also after the scripts have changed.
func without(source string, cuts []cut) (string, error) {
	for _, c := range cuts {
		before, rest, begins := strings.Cut(source, c.from)
		_, after, ends := strings.Cut(rest, c.to)
		if !begins || !ends {
			return "", fmt.Errorf("there is no %q that goes to %q", c.from, c.to)
		}
		source = before + after
	}
	return source, nil
}
