package console

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/term"
	"github.com/quorumlock/redlock/internal/printable"
)

// A Console is one run of redlock: its environment and files.
type Console struct {
	Env    []string
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer // the user's command has it too; redlock's own lines go through say

	Quiet    bool       // --quiet: only errors
	mu       sync.Mutex // protects stderr, where a verb replaces it
	messages *messages
}

func New(env []string, stdin io.Reader, stdout, stderr io.Writer) *Console {
	c := &Console{Env: env, Stdin: stdin, Stderr: stderr}
	c.Stdout = &output{Writer: stdout, before: c.Flush}
	c.messages = newMessages(c)
	return c
}

// Close waits at the end of redlock until what was said is written, for exitWait at most.
func (c *Console) Close() { c.messages.flush(exitWait) }

// Divert sends what is said to another writer, until the caller calls restore.
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

// Note says what happens meanwhile: --quiet leaves it out. Errors go through say.
func (c *Console) Note(format string, args ...any) {
	if !c.Quiet {
		c.Say(format, args...)
	}
}

// Say writes to stderr: whole lines, each with the name redlock, since the user's command
// writes there too. It does not wait for a reader of stderr: see messages. Hooks call it from any
// goroutine. It escapes what steers terminals, but not line ends: the caller makes printable what other
// clients have set.
func (c *Console) Say(format string, args ...any) {
	var out strings.Builder
	for line := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
		out.WriteString("redlock: " + printable.Text(strings.TrimPrefix(line, "redlock: ")) + "\n")
	}
	_, _ = io.WriteString(c.messages, out.String())
}

// Flush waits until what was said is written, for outputWait at most.
func (c *Console) Flush() { c.messages.flush(OutputWait) }

// An output is stdout for what a verb prints. It keeps its first error: a result that could not be
// written must not end with the exit code of one that was.
type output struct {
	io.Writer
	before func() // what was said before a result is also written before it
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

// Unwritten is the failure of a result that could not be written; nil: there is none.
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

// ForPrograms is stdout itself, for a program to write to.
func (c *Console) ForPrograms() io.Writer {
	if o, ok := c.Stdout.(*output); ok {
		return o.Writer
	}
	return c.Stdout
}

// Result writes a line of a result to stdout, which --quiet leaves out.
func (c *Console) Result(format string, args ...any) {
	if !c.Quiet {
		fmt.Fprintln(c.Stdout, printable.Text(fmt.Sprintf(format, args...)))
	}
}

// MayAsk is the error of a verb that asks a question, where stdin is no terminal on which it could be answered; nil: it is one.
// With the flags in without the command does not ask.
func (c *Console) MayAsk(verb, without string) error {
	if file, is := c.Stdin.(*os.File); is && term.Width(file) > 0 {
		return nil
	}
	return exit.Fail(exit.Usage, "without a question: redlock "+verb+" "+without, "%s asks a question, and stdin is not a terminal", verb)
}

// Asks asks a question, after what was said before, and reports whether the answer is yes.
func (c *Console) Asks(question string) bool {
	c.Flush()
	fmt.Fprint(c.Stderr, "\n"+question)
	line, _ := bufio.NewReader(c.Stdin).ReadString('\n')
	return strings.TrimSpace(line) == "yes"
}

// PrintJSON prints a result as JSON, for people, too.
func (c *Console) PrintJSON(v any) error { return c.encode(v, "  ") }

// PrintLine prints JSON in one line, where there may be several such lines.
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

// notWritten says why a result could not be written. If the reader has closed its end, as head does, it is what
// other programs die of in silence.
func notWritten(err error) *exit.Failure {
	f := exit.Fail(exit.CannotWrite, "", "stdout: %v", err)
	if errors.Is(err, syscall.EPIPE) {
		f.Code, f.Silent = exit.Signal+int(syscall.SIGPIPE), true
	}
	return f
}

func Lookup(env []string, name string) (value string, ok bool) {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}
