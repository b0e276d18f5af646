// Package proc runs a command in a process group of its own, which ends when the lock does
// and gets the signals that are meant for it.
package proc

import (
	"context"
	"os"
	"sync"
	"syscall"

	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
)

// KeepVerb is the verb with which Start runs this program again: main hands its arguments on to Keep.
const KeepVerb = "keep"

// An Interrupted is the cause with which a signal ends the waiting.
type Interrupted struct{ os.Signal }

func (i Interrupted) Error() string { return Name(i.Signal) }

// Name returns the name of a signal, such as SIGTERM.
func Name(sig os.Signal) string {
	for name, number := range SignalNames {
		if number == sig {
			return "SIG" + name
		}
	}
	return sig.String()
}

// Code returns the exit code of a process that this signal has ended, as a shell gives it: 128 and its number.
func (i Interrupted) Code() int {
	number, _ := i.Signal.(syscall.Signal)
	return exit.Signal + int(number)
}

// UntilSignal returns a context that the next of signals ends, with an Interrupted as its cause. stop ends it, too, and
// leaves later signals to other readers of the channel.
func UntilSignal(signals <-chan os.Signal) (ctx context.Context, stop func()) {
	ctx, interrupt := context.WithCancelCause(context.Background())
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case sig := <-signals:
			interrupt(Interrupted{Signal: sig})
		case <-done:
		}
	})
	return ctx, func() {
		close(done)
		watch.Wait()
		interrupt(nil)
	}
}
