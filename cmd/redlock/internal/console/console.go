// Package console is what one run of redlock reads and writes: environment, stdin, results on stdout, and messages on
// stderr that never block.
package console

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/term"
	"github.com/quorumlock/redlock/internal/printable"
)

// A Console is one run of redlock: its environment and its files.
type Console struct {
	Env    []string
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer // for the user's command, and for questions; messages go through Say

	Quiet    bool       // --quiet: only errors
	mu       sync.Mutex // protects Stderr, which Divert replaces
	messages *messages
}

// New makes the Console of a run. The caller closes it.
func New(env []string, stdin io.Reader, stdout, stderr io.Writer) *Console {
	c := &Console{Env: env, Stdin: stdin, Stderr: stderr}
	c.Stdout = &output{Writer: stdout, before: c.Flush}
	c.messages = newMessages(c)
	return c
}

// Close waits until all messages are written, for exitWait at most. main calls it last.
func (c *Console) Close() { c.messages.flush(exitWait) }

// Divert sends messages to another writer until the caller calls restore.
func (c *Console) Divert(to io.Writer) (restore func()) {
	replace := func(w io.Writer) (before io.Writer) {
		c.mu.Lock()
		defer c.mu.Unlock()
		before, c.Stderr = c.Stderr, w
		return before
	}
	before := replace(to)
	return func() { replace(before) }
}

// Note writes a message about progress. --quiet suppresses it. Errors go through Say.
func (c *Console) Note(format string, args ...any) {
	if !c.Quiet {
		c.Say(format, args...)
	}
}

// Say writes a message to stderr, in whole lines that begin with "redlock: ", since the user's command writes there
// too. Any goroutine may call it, hooks do: it never waits for a reader of stderr (see messages). It escapes control
// characters except line ends. The caller escapes text that other clients have set.
func (c *Console) Say(format string, args ...any) {
	var out strings.Builder
	for line := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
		out.WriteString("redlock: " + printable.Text(strings.TrimPrefix(line, "redlock: ")) + "\n")
	}
	_, _ = io.WriteString(c.messages, out.String())
}

// Flush waits until all messages are written, for OutputWait at most.
func (c *Console) Flush() { c.messages.flush(OutputWait) }

// An output is the stdout of a verb. It keeps its first error: redlock must not exit with 0 if a result was not
// written.
type output struct {
	io.Writer
	before func() // writes the messages that precede a result
	mu     sync.Mutex
	err    error
}

func (o *output) Write(p []byte) (n int, err error) {
	o.before()
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err = o.Writer.Write(p)
	o.err = cmp.Or(o.err, err)
	return n, err
}

// Unwritten returns the failure of a result that could not be written; nil if all were.
func (c *Console) Unwritten() error {
	o, ok := c.Stdout.(*output)
	if !ok {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		return nil
	}
	return notWritten(o.err)
}

// ForPrograms returns the file or writer behind Stdout, for a program to write to.
func (c *Console) ForPrograms() io.Writer {
	if o, ok := c.Stdout.(*output); ok {
		return o.Writer
	}
	return c.Stdout
}

// Result writes one line to stdout. --quiet suppresses it.
func (c *Console) Result(format string, args ...any) {
	if !c.Quiet {
		fmt.Fprintln(c.Stdout, printable.Text(fmt.Sprintf(format, args...)))
	}
}

// MayAsk returns an error if the verb cannot ask its question because stdin is no terminal. without are the arguments
// with which the verb asks nothing, for the hint.
func (c *Console) MayAsk(verb, without string) error {
	if file, is := c.Stdin.(*os.File); is && term.Width(file) > 0 {
		return nil
	}
	return exit.Fail(exit.Usage, "without a question: redlock "+verb+" "+without, "%s asks a question, and stdin is not a terminal", verb)
}

// Asks writes a question to stderr, after all messages, and reports whether the answer is "yes".
func (c *Console) Asks(question string) bool {
	c.Flush()
	fmt.Fprint(c.Stderr, "\n"+question)
	line, _ := bufio.NewReader(c.Stdin).ReadString('\n')
	return strings.TrimSpace(line) == "yes"
}

// PrintJSON writes a result as indented JSON.
func (c *Console) PrintJSON(v any) error { return c.encode(v, "  ") }

// PrintLine writes a result as JSON in one line, for verbs that print several.
func (c *Console) PrintLine(v any) error { return c.encode(v, "") }

func (c *Console) encode(v any, indent string) error {
	out := json.NewEncoder(c.Stdout)
	out.SetEscapeHTML(false)
	out.SetIndent("", indent)
	if err := out.Encode(v); err != nil {
		return notWritten(err)
	}
	return nil
}

// notWritten is the failure of a write to stdout. If the reader has closed the pipe, as head does, redlock exits
// without a message and with the code of SIGPIPE, as other programs do.
func notWritten(err error) *exit.Failure {
	f := exit.Fail(exit.CannotWrite, "", "stdout: %v", err)
	if readerGone(err) {
		f.Code, f.Silent = exit.Signal+int(syscall.SIGPIPE), true
	}
	return f
}

// readerGone reports whether the reader of a pipe has closed it; Windows has two errors of its own for that
// (ERROR_BROKEN_PIPE, ERROR_NO_DATA).
func readerGone(err error) bool {
	return errors.Is(err, syscall.EPIPE) || runtime.GOOS == "windows" && (errors.Is(err, syscall.Errno(109)) || errors.Is(err, syscall.Errno(232)))
}

// Lookup returns the value of a variable in an environment of NAME=VALUE entries; ok is false if it is not set.
func Lookup(env []string, name string) (value string, ok bool) {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}
