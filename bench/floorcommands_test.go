package main

import (
	"context"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quorumlock/redlock/bench/contender"
)

// TestFloorCommandsAreTheLibrarys: floor-commands is a floor of what this library sends only as long as it
// sends the same.
func TestFloorCommandsAreTheLibrarys(t *testing.T) {
	e := miniature(t)
	ours, floor := e.cycleOf(t, "redlock"), e.cycleOf(t, "floor-commands")
	if !strings.HasPrefix(ours[len(ours)-1], `"evalsha"`) { // the server has a command that releases
		last := slices.IndexFunc(ours, func(c string) bool { return strings.HasPrefix(c, `"script"`) })
		ours, floor = ours[:last+1], floor[:len(floor)-1]
	}
	if !slices.Equal(ours, floor) {
		t.Errorf("floor-commands sends\n%s\nand redlock\n%s", strings.Join(floor, "\n"), strings.Join(ours, "\n"))
	}
}

// cycleOf gives the commands that the first node gets from a contender for one lock and its release,
// without what is another one for each lock and each process.
func (e *env) cycleOf(t *testing.T, name string) (commands []string) {
	t.Helper()
	c, err := named(contender.All(), name)
	if err != nil {
		t.Fatal(err)
	}
	err = e.with(t.Context(), c, e.fleet.addrs(), load{callers: 1, window: e.window}, func(l contender.Locker) error {
		if err := e.fleet.quiet(t.Context()); err != nil {
			return err
		}
		commands, err = e.fleet.executed(t.Context(), func() error {
			lock, err := l.Lock(t.Context(), freshPrefix()+"0:0"+nameEnd)
			if err != nil {
				return err
			}
			if err := e.fleet.quiet(t.Context()); err != nil { // the majority may be without the first node
				return err
			}
			return lock.Release(t.Context())
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range commands {
		for _, v := range varying {
			line = v.form.ReplaceAllString(line, v.as)
		}
		commands[i] = line
	}
	return commands
}

// varying is what is another one for each lock or process, in the order in which it is looked for. The
// length of each is checked.
var varying = []struct {
	form *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`"[0-9a-f-]{36}\.@[0-9a-z]{8}@@[^"@]+"`), "TOKEN"},
	{regexp.MustCompile(`"bench:\d+:`), `"bench:`},
	{regexp.MustCompile(`"[0-9]{16}" "\d+"`), "NUMBER BUCKET"},
	{regexp.MustCompile(`"exists" "[0-9a-f]{40}"`), `"exists" HASH`},
}

// executed gives what clients have the first node execute in the meantime, but for what the fleet's
// watcher asks.
func (f *fleet) executed(ctx context.Context, do func() error) (commands []string, err error) {
	conn, lines, err := monitor(ctx, f.addrs()[0])
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := do(); err != nil {
		return nil, err
	}
	if err := f.quiet(ctx); err != nil {
		return nil, err
	}
	if err := f.watch[0].Echo(ctx, lastWord).Err(); err != nil {
		return nil, err
	}
	for lines.Scan() {
		// +1763755200.123456 [0 127.0.0.1:40000] "evalsha" "<hash>" ..., and [0 lua] for what a script executes
		from, command, _ := strings.Cut(lines.Text(), "] ")
		switch {
		case strings.Contains(command, lastWord):
			return commands, nil
		case !strings.HasSuffix(from, " lua") && !strings.HasPrefix(command, `"info"`):
			commands = append(commands, command)
		}
	}
	return nil, errors.Join(io.ErrUnexpectedEOF, lines.Err())
}
