package aside

import (
	"context"
	"io"
	"sync"
	"time"
)

// A Writer passes what is written to it on to another writer, on a goroutine of its own, so that Write never waits: not
// for a pipe that nobody reads, nor for a terminal that was stopped.
type Writer struct {
	to    io.Writer
	bound int
	told  func(dropped int) string
	queue Queue

	mu      sync.Mutex // protects what follows; nothing is written under it
	waiting int        // bytes
	dropped int        // calls of Write
	err     error      // of the last write that failed
}

// NewWriter returns a Writer to another writer. While bound bytes or more would wait, Write drops what it gets. Once
// there is room again, the Writer first writes told(n), a text about the n calls of Write that were dropped.
func NewWriter(to io.Writer, bound int, told func(dropped int) string) *Writer {
	return &Writer{to: to, bound: bound, told: told}
}

// Write queues all of p for the other writer, or drops all of it, and returns at once. The error is always nil.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting > 0 && w.waiting+len(p) > w.bound {
		w.dropped++
		return len(p), nil
	}
	w.add(p)
	return len(p), nil
}

// add queues p for the other writer, behind the text of told if calls of Write were dropped before. Caller holds w.mu.
func (w *Writer) add(p []byte) {
	var text []byte
	if w.dropped > 0 {
		text = append(text, w.told(w.dropped)...)
		w.dropped = 0
	}
	text = append(text, p...)
	w.waiting += len(text)
	w.queue.Add(Final, "Write", func() {
		_, err := w.to.Write(text)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.waiting -= len(text)
		if err != nil {
			w.err = err
		}
	})
}

// Flush waits until all is written, and returns the error of the last write that ever failed; ctx's cause if ctx ends first.
func (w *Writer) Flush(ctx context.Context) error {
	w.mu.Lock()
	if w.dropped > 0 && w.waiting < w.bound {
		w.add(nil)
	}
	w.mu.Unlock()
	if !w.queue.Wait(ctx) {
		return context.Cause(ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Close waits as Flush does, at most for limit (then the error is context.DeadlineExceeded). What is written later is lost.
func (w *Writer) Close(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	err := w.Flush(ctx)
	w.queue.Close(0)
	return err
}
