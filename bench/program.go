package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock/bench/contender"
)

// The scripts of the library are part of the program that uses it, so the library
// with other scripts is another program: this one, built again with another file laid
// over the library's. To have whatever a process of its own brings with it on
// everybody's account, all contenders of that scenario are measured in one, and the
// others in this program built again as it is.

//go:embed plain/acquire.lua
var plainAcquire []byte

// programs are the two.
type programs struct{ dir, own, plain string }

func buildPrograms(ctx context.Context) (*programs, error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	p := &programs{dir, filepath.Join(dir, "own"), filepath.Join(dir, "plain")}
	if err := p.build(ctx); err != nil {
		p.remove()
		return nil, fmt.Errorf("building this program again, which has to be done in its directory: %w", err)
	}
	return p, nil
}

func (p *programs) remove() { _ = os.RemoveAll(p.dir) }

func (p *programs) build(ctx context.Context) error {
	scripts, err := run(ctx, "go", "list", "-f", "{{.Dir}}", "github.com/quorumlock/redlock/internal/script")
	if err != nil {
		return err
	}
	file, overlay := filepath.Join(p.dir, "acquire.lua"), filepath.Join(p.dir, "overlay.json")
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(strings.TrimSpace(scripts), "acquire.lua"): file,
	}})
	if err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(file, plainAcquire, 0o600), os.WriteFile(overlay, list, 0o600)); err != nil {
		return err
	}
	build := []string{"go", "build", "-race=false", "-buildvcs=false"}
	for _, args := range [][]string{{"-o", p.own}, {"-overlay", overlay, "-o", p.plain}} {
		if _, err := run(ctx, slices.Concat(build, args, []string{"github.com/quorumlock/redlock/bench"})...); err != nil {
			return err
		}
	}
	return nil
}

// run gives what a command prints.
func run(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, args[0], args[1:]...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	return string(out), err
}

// childArg is the whole command line of a program that is to do as it is told on its
// standard input.
const childArg = "measure-as-told"

// An order is what a child is to measure.
type order struct {
	Contender   string
	Addrs       []string
	TTL, Window time.Duration
}

// ask has a contender measured in a process of its own.
func (p *programs) ask(ctx context.Context, o order) (sample, error) {
	program := p.own
	if o.Contender == contender.Plain {
		program = p.plain
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	child := exec.CommandContext(ctx, program, childArg)
	child.Stdin, child.Stderr = bytes.NewReader(text), os.Stderr
	out, err := child.Output()
	if err != nil {
		return nil, err
	}
	var got sample
	return got, json.Unmarshal(out, &got)
}

// obey is the whole life of a child.
func obey(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	var o order
	if err := json.NewDecoder(stdin).Decode(&o); err != nil {
		return err
	}
	i := slices.IndexFunc(contender.Fenced(), func(c contender.Contender) bool { return c.Name == o.Contender })
	if i < 0 {
		return fmt.Errorf("unknown contender %q", o.Contender)
	}
	contender.Silence()
	e := &env{sizes: sizes{ttl: o.TTL, window: o.Window}, fleet: watchFleet(o.Addrs)}
	defer e.fleet.stop()
	got, err := e.cycles(ctx, contender.Fenced()[i])
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(got)
}
