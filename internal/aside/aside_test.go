package aside_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/aside"
)

// Callbacks run in order, and one that sleeps delays none but those behind it.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q aside.Queue
		var ran []int
		for i := range 100 {
			q.Add(aside.Class(i%3), "count", func() {
				time.Sleep(time.Second)
				ran = append(ran, i)
			})
		}
		begin := time.Now()
		if !q.Wait(context.Background()) || time.Since(begin) != 100*time.Second {
			t.Errorf("waited for %v, want 100 s", time.Since(begin))
		}
		if !slices.IsSorted(ran) || len(ran) != 100 {
			t.Errorf("ran %v, want 0 to 99", ran)
		}
	})
}

// A callback that does not return leaves the newest news, the first details and all that is final, and the
// number of those that were dropped is told once, with the callback that was slow.
func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		q := aside.Queue{Dropped: func(n int, slowest string, took time.Duration) {
			told = append(told, fmt.Sprintf("%d, %s took %v", n, slowest, took))
		}}
		q.Add(aside.News, "sleeper", func() { time.Sleep(time.Hour) })
		synctest.Wait()
		var news, details, finals []int
		for i := range 10_000 {
			q.Add(aside.News, "news", func() { news = append(news, i) })
			q.Add(aside.Detail, "detail", func() { details = append(details, i) })
			if i%2 == 0 {
				q.Add(aside.Final, "final", func() { finals = append(finals, i) })
			}
		}
		if !q.Full() {
			t.Error("there is room for a detail")
		}
		if !q.Wait(context.Background()) || q.Full() {
			t.Error("the queue is not empty")
		}
		if len(news) != 1024 || news[0] != 10_000-1024 || len(details) != 5461 || details[5460] != 5460 || len(finals) != 5000 {
			t.Errorf("ran %d of the news from %d on, %d of the details, %d finals", len(news), news[0], len(details), len(finals))
		}
		want := []string{fmt.Sprintf("%d, sleeper took 1h0m0s", 10_000-1024+10_000-5461+1)}
		if !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}

		// Callbacks that are slow for good are reported once a minute.
		told = nil
		for range 300 {
			for range 1100 {
				q.Add(aside.News, "news", func() { time.Sleep(10 * time.Millisecond) })
			}
			time.Sleep(time.Second)
		}
		q.Wait(context.Background())
		if len(told) < 4 || len(told) > 6 {
			t.Errorf("told %d times in 5 minutes: %q", len(told), told)
		}
	})
}

// Close waits for what was added, for a bounded time, and says what has not run.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q aside.Queue
		ran := 0
		for range 5 {
			q.Add(aside.News, "quick", func() { time.Sleep(100 * time.Millisecond); ran++ })
		}
		if left, stuck := q.Close(time.Second); left != 0 || stuck != "" || ran != 5 {
			t.Errorf("%d left, stuck in %q, %d have run", left, stuck, ran)
		}
		if q.Add(aside.News, "late", func() { ran++ }) || !q.Full() {
			t.Error("a closed queue takes callbacks")
		}

		var stuck aside.Queue
		end := make(chan struct{})
		stuck.Add(aside.News, "stuck", func() { <-end })
		for range 7 {
			stuck.Add(aside.Final, "behind", func() { t.Error("ran after Close") })
		}
		synctest.Wait()
		begin := time.Now()
		left, name := stuck.Close(time.Second)
		if left != 7 || name != "stuck" || time.Since(begin) != time.Second {
			t.Errorf("%d left, stuck in %q, after %v", left, name, time.Since(begin))
		}
		close(end) // the bubble ends only if the goroutine does
	})
}

// A callback that ends its goroutine, as a failed test does, does not end the queue.
func TestGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q aside.Queue
		q.Add(aside.News, "exits", runtime.Goexit)
		ran := false
		q.Add(aside.News, "next", func() { ran = true })
		if q.Wait(context.Background()); !ran {
			t.Error("the callback behind it has not run")
		}
	})
}

// A callback may add others, and wait for none of them.
func TestAddWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q aside.Queue
		var ran []string
		q.Add(aside.News, "outer", func() {
			q.Add(aside.News, "inner", func() { ran = append(ran, "inner") })
			ran = append(ran, "outer")
		})
		synctest.Wait()
		if !slices.Equal(ran, []string{"outer", "inner"}) {
			t.Errorf("ran %q", ran)
		}
	})
}

// A Writer to a pipe that nobody reads never waits, keeps what comes first, and tells how much was dropped.
func TestWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, pipe := io.Pipe()
		w := aside.NewWriter(pipe, 1000, func(n int) string { return fmt.Sprintf("(%d lines were dropped)\n", n) })
		begin := time.Now()
		for i := range 100 {
			fmt.Fprintf(w, "this is line %6d\n", i) // 20 bytes
		}
		if err := w.Close(time.Second); err != context.DeadlineExceeded || time.Since(begin) != time.Second {
			t.Errorf("Close: %v, after %v", err, time.Since(begin))
		}
		r.Close()

		r, pipe = io.Pipe()
		w = aside.NewWriter(pipe, 1000, func(n int) string { return fmt.Sprintf("(%d lines were dropped)\n", n) })
		for i := range 100 {
			fmt.Fprintf(w, "this is line %6d\n", i)
		}
		var got bytes.Buffer
		go io.Copy(&got, r)
		synctest.Wait()
		fmt.Fprintln(w, "the last one")
		if err := w.Close(time.Second); err != nil {
			t.Error(err)
		}
		pipe.Close()
		synctest.Wait()
		lines := strings.Split(strings.TrimSpace(got.String()), "\n")
		if len(lines) != 52 || lines[49] != "this is line     49" || lines[50] != "(50 lines were dropped)" || lines[51] != "the last one" {
			t.Errorf("read %d lines: %q", len(lines), lines[max(0, len(lines)-4):])
		}
	})
}

// A Writer says what was dropped also if nothing else is written, and reports that it could not write.
func TestWriterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, pipe := io.Pipe()
		w := aside.NewWriter(pipe, 10, func(n int) string { return fmt.Sprintf("(%d dropped)", n) })
		for range 4 {
			io.WriteString(w, "0123456789")
		}
		var got bytes.Buffer
		go func() {
			time.Sleep(time.Second)
			io.Copy(&got, r)
		}()
		time.Sleep(2 * time.Second)
		err := w.Close(time.Second)
		if synctest.Wait(); err != nil || got.String() != "0123456789(3 dropped)" {
			t.Errorf("%v; wrote %q", err, got.String())
		}
		pipe.Close()

		r, pipe = io.Pipe()
		r.Close()
		w = aside.NewWriter(pipe, 10, nil)
		io.WriteString(w, "text")
		if err := w.Close(time.Second); err != io.ErrClosedPipe {
			t.Errorf("Close: %v, want %v", err, io.ErrClosedPipe)
		}
	})
}
