package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The scripts of the library are part of the program that uses it, so the library with other
// scripts is another program: this one, built again with other files laid over the library's. So
// that the effects of a separate process are the same for all, all contenders of such a scenario
// are measured in one, and the others in this program built again without changes.

// programs has this program unchanged, and with other scripts.
type programs struct {
	dir, own string
	variants map[string]string // by the contender's name
}

func buildPrograms(ctx context.Context, variants ...variant) (*programs, error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	p := &programs{dir, filepath.Join(dir, "own"), map[string]string{}}
	err = build(ctx, p.own)
	for i, v := range variants {
		if err == nil {
			p.variants[v.contender] = filepath.Join(dir, strconv.Itoa(i))
			err = v.build(ctx, p.variants[v.contender])
		}
	}
	if err != nil {
		p.remove()
		return nil, fmt.Errorf("building this program again, which has to be done in its directory: %w", err)
	}
	return p, nil
}

func (p *programs) remove() { _ = os.RemoveAll(p.dir) }

// of returns the program for a contender.
func (p *programs) of(contender string) string {
	if other, ok := p.variants[contender]; ok {
		return other
	}
	return p.own
}

func build(ctx context.Context, out string, flags ...string) error {
	args := slices.Concat([]string{"go", "build", "-race=false", "-buildvcs=false", "-ldflags=-s -w", "-o", out}, flags,
		[]string{"github.com/quorumlock/redlock/bench"})
	_, err := run(ctx, args...)
	return err
}

// build builds the program with the variant's scripts, and keeps those beside it.
func (v variant) build(ctx context.Context, out string) error {
	text, err := run(ctx, "go", "list", "-f", "{{.Dir}}", "github.com/quorumlock/redlock/internal/script")
	if err != nil {
		return err
	}
	library := strings.TrimSpace(text)
	scripts, err := v.scripts(library)
	if err != nil {
		return err
	}
	replace := map[string]string{}
	for name, source := range scripts {
		file := out + "." + filepath.Base(name)
		if err := os.WriteFile(file, source, 0o600); err != nil {
			return err
		}
		replace[filepath.Join(library, name)] = file
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	overlay := out + ".json"
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		return err
	}
	return build(ctx, out, "-overlay", overlay)
}

// run returns the output of a command.
func run(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, args[0], args[1:]...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	return string(out), err
}
