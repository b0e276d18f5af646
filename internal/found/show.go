package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// show runs the bug's test on the tree before its mend, where it must fail, and on the mend's own, where it
// must pass. Both trees are copies in a temporary folder, which is removed.
func (b bug) show(ctx context.Context, out io.Writer) (err error) {
	temp, err := os.MkdirTemp("", "redlock-found-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if b.Needs != "" {
		if _, err := exec.LookPath(b.Needs); err != nil {
			return fmt.Errorf("it needs %s: %w", b.Needs, err)
		}
	}
	fmt.Fprintf(out, "%s: %s\n", b.Name, b.What)
	for _, tree := range []struct {
		name, commit string
		fails        bool
	}{
		{"before the mend", b.Mend + "^", true},
		{"with the mend", b.Mend, false},
	} {
		dir := filepath.Join(temp, strings.ReplaceAll(tree.name, " ", "-"))
		if err := unpack(ctx, tree.commit, dir); err != nil {
			return err
		}
		if err := b.furnish(ctx, dir); err != nil {
			return err
		}
		began := time.Now()
		said, failed, err := b.run(ctx, filepath.Join(dir, b.Dir))
		if err != nil {
			return err
		}
		if err := b.judge(said, failed, tree.fails); err != nil {
			return fmt.Errorf("%s (%s), %s: %w\n%s", tree.name, tree.commit, b.Run, err, said)
		}
		outcome := "passes"
		if failed {
			outcome = "fails, as it should:\n" + excerpt(said)
		}
		fmt.Fprintf(out, "%s (%s), after %v, %s %s\n", tree.name, tree.commit, time.Since(began).Round(time.Second), b.Run, outcome)
	}
	fmt.Fprintf(out, "shown: %s\n", b.Name)
	return nil
}

// furnish puts the files that show the bug into a tree.
func (b bug) furnish(ctx context.Context, dir string) error {
	for _, path := range b.Files {
		text, err := b.file(ctx, path)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(path))
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, text, 0o600)); err != nil {
			return err
		}
	}
	return nil
}

func (b bug) file(ctx context.Context, path string) ([]byte, error) {
	if b.Kept {
		return os.ReadFile(filepath.Join("internal", "found", "testdata", b.Name, filepath.FromSlash(path)))
	}
	return git(ctx, "show", b.Mend+":"+path)
}

// unpack puts the tree of a commit into a directory.
func unpack(ctx context.Context, commit, dir string) error {
	archive, err := git(ctx, "archive", "--format=tar", commit)
	if err != nil {
		return err
	}
	for files := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := files.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg || !filepath.IsLocal(h.Name) {
			continue
		}
		text, err := io.ReadAll(files)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, h.Name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, text, h.FileInfo().Mode())); err != nil {
			return err
		}
	}
}

// run runs the test in a directory. failed is how it ended; err is for a test that could not be started.
func (b bug) run(ctx context.Context, dir string) (said []byte, failed bool, err error) {
	args := strings.Fields(b.Run)
	cmd := exec.CommandContext(ctx, args[0], append(args[1:len(args):len(args)], "-count=1", "-vet=off", "-trimpath")...) // with -trimpath both trees share what is compiled
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "REDLOCK_SERVERS=1")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	said, err = cmd.CombinedOutput()
	if ctx.Err() != nil {
		return nil, false, ctx.Err()
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return said, true, nil
	}
	return said, false, err
}

// judge says what is wrong with the end of a test; nil: it is as it should be.
func (b bug) judge(said []byte, failed, should bool) error {
	switch {
	case bytes.Contains(said, []byte("[build failed]")) || bytes.Contains(said, []byte("[setup failed]")):
		return errors.New("it is not compiled")
	case bytes.Contains(said, []byte("no tests to run")):
		return errors.New("there is no such test")
	case failed != should && should:
		return errors.New("it passes, but should fail")
	case failed != should:
		return errors.New("it fails, but should pass")
	case failed && !regexp.MustCompile(b.failure()).Match(said):
		return fmt.Errorf("it fails otherwise than by %q", b.failure())
	}
	return nil
}

// failure is what the failing test prints.
func (b bug) failure() string {
	if b.Says != "" {
		return b.Says
	}
	return `(?m)^\s*--- FAIL: (` + test(b.Run) + `)\b`
}

// test is the regular expression of the tests that a go test runs.
func test(run string) string {
	args := strings.Fields(run)
	for i, arg := range args {
		if arg == "-run" && i+1 < len(args) {
			return strings.Trim(args[i+1], "^$")
		}
	}
	return ""
}

// excerpt is the beginning of what a test printed.
func excerpt(said []byte) string {
	const lines = 12
	all := strings.SplitAfter(string(said), "\n")
	if len(all) <= lines {
		return strings.TrimRight(string(said), "\n")
	}
	return strings.Join(all[:lines], "") + "..."
}

func git(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil, fmt.Errorf("%v: %w: %s", cmd.Args, err, bytes.TrimSpace(exit.Stderr))
	}
	return out, err
}
