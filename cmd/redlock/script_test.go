//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/memredis"
	"github.com/quorumlock/redlock/internal/redisproc"
)

// A script is a file in testdata, a command on each line:
//
//	# why
//	[!] exec PROGRAM [ARG ...]   runs it; it must [not] succeed
//	start NAME PROGRAM ...       runs it beside the script
//	await NAME PATTERN           until its stdout or stderr has the pattern
//	wait NAME                    until it ends
//	[!] stdout PATTERN           of what ended last; likewise stderr
//	status N                     its exit code
//
// and those in steps. Words are separated by spaces; $NAME is replaced, except
// between single quotes.
type script struct {
	t        *testing.T
	env      map[string]string
	stdin    string // of the next program
	programs map[string]*program
	last     *program
	nodes    *memredis.Cluster
	servers  []*redisproc.Server
}

func (s *script) run(text string) {
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		words := split(line, func(name string) string { return s.env[name] })
		wanted := words[0] != "!"
		if !wanted {
			words = words[1:]
		}
		step, ok := steps[words[0]]
		err := fmt.Errorf("no such command")
		if ok {
			err = step(s, wanted, words[1:])
		}
		if err != nil {
			if s.last != nil {
				line += fmt.Sprintf("\nlast stdout:\n%slast stderr:\n%s", s.last.stdout.String(), s.last.stderr.String())
			}
			s.t.Fatalf("line %d: %v: %s", i+1, err, line)
		}
	}
}

func split(line string, env func(string) string) (words []string) {
	var word strings.Builder
	quoted, begun := false, false
	for i, part := range strings.Split(line, "'") {
		quoted = i%2 == 1
		begun = begun || quoted
		if quoted {
			word.WriteString(part)
			continue
		}
		for j, field := range strings.Split(part, " ") {
			if j > 0 && (begun || word.Len() > 0) {
				words = append(words, word.String())
				word.Reset()
				begun = false
			}
			word.WriteString(os.Expand(field, env))
		}
	}
	if begun || word.Len() > 0 {
		words = append(words, word.String())
	}
	return words
}

// A program is one that a script has started.
type program struct {
	cmd            *exec.Cmd
	stdout, stderr buffer
	ended          chan struct{}
	err            error
}

func (s *script) start(argv []string) (*program, error) {
	ctx, cancel := context.WithCancel(context.Background())
	p := &program{ended: make(chan struct{})}
	p.cmd = exec.CommandContext(ctx, argv[0], argv[1:]...)
	for name, value := range s.env {
		p.cmd.Env = append(p.cmd.Env, name+"="+value)
	}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = strings.NewReader(s.stdin), &p.stdout, &p.stderr
	p.cmd.WaitDelay = patience / 4 // what still has our pipes then has outlived it
	s.stdin = ""
	if err := p.cmd.Start(); err != nil {
		cancel()
		return nil, err
	}
	go func() {
		defer close(p.ended)
		p.err = p.cmd.Wait()
	}()
	s.t.Cleanup(func() {
		cancel()
		<-p.ended
	})
	return p, nil
}

func (s *script) wait(p *program) error {
	s.last = p
	select {
	case <-p.ended:
	case <-time.After(patience):
		return fmt.Errorf("has not ended")
	}
	if errors.Is(p.err, exec.ErrWaitDelay) {
		return fmt.Errorf("has left something behind")
	}
	return nil
}

// match is the step stdout or stderr.
func match(of func(*program) *buffer) step {
	return func(s *script, wanted bool, args []string) error {
		if regexp.MustCompile(args[0]).MatchString(of(s.last).String()) != wanted {
			return fmt.Errorf("matches: %v", !wanted)
		}
		return nil
	}
}
