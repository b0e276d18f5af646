package resp

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

// TestBounded: replies are handed on byte for byte as they came, and nothing of what is none, or of what comes after.
func TestBounded(t *testing.T) {
	for _, tt := range replies {
		want := "+before\r\n"
		_, said := tt.err.(Error)
		if tt.err == nil || said {
			want += tt.text
		}
		b := NewBounded(strings.NewReader("+before\r\n" + tt.text))
		got, err := io.ReadAll(iotest.HalfReader(b))
		if string(got) != want || (err == nil) != (len(want) > 9 || errors.Is(tt.err, io.EOF)) {
			t.Errorf("%.50q: %.50q, %v", tt.text, got, err)
		}
		if _, again := b.Read(make([]byte, 9)); again == nil || err != nil && again != err {
			t.Errorf("%.50q: %v, and then %v", tt.text, err, again)
		}
	}
}

// endless are replies that do not end, or announce what never comes.
var endless = map[string]io.Reader{
	"strings":            cycle("*999\r\n$16770000\r\n"+strings.Repeat("x", 16770000)+"\r\n", "$9\r\n123456789\r\n"),
	"a string's length":  strings.NewReader("$1000000000000\r\n"),
	"numbers":            cycle("*262000\r\n", ":1000000\r\n"),
	"empty lists":        cycle("*262000\r\n", "*0\r\n"),
	"lists of lists":     cycle("*262000\r\n", "*64\r\n"+strings.Repeat("*1\r\n*0\r\n", 64)),
	"small strings":      cycle("*262000\r\n", "$1\r\nx\r\n"),
	"lists within lists": cycle("", "*1\r\n"),
	"a line":             cycle("+", "x"),
	"a number":           cycle(":", "1"),
	"an error":           cycle("-ERR ", "x"),
	"a list's length":    strings.NewReader("*9223372036854775807\r\n"),
}

// cycle reads a text, and then another one again and again.
func cycle(first, then string) io.Reader {
	return io.MultiReader(strings.NewReader(first), &repeated{text: []byte(strings.Repeat(then, 1+1000/len(then)))})
}

type repeated struct {
	text []byte
	at   int
}

func (r *repeated) Read(to []byte) (int, error) {
	n := copy(to, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}

// mostMemory is what a reply may cost the client, all that it allocates on the way included. SECURITY.md names it.
const mostMemory = 96 << 20

// TestEndlessReplies: a reply that does not end costs the client bounded memory, and is an error.
func TestEndlessReplies(t *testing.T) {
	for what, from := range endless {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		n, err := io.CopyN(io.Discard, NewBounded(from), 1)
		runtime.ReadMemStats(&after)
		if n != 0 || err == nil || !strings.HasPrefix(err.Error(), "it sent ") {
			t.Errorf("%s: %d bytes, %v", what, n, err)
		}
		allocated := after.TotalAlloc - before.TotalAlloc
		t.Logf("%s: %d KB, %v", what, allocated>>10, err)
		if allocated > mostMemory {
			t.Errorf("%s: allocates %d MB", what, allocated>>20)
		}
	}
}

// FuzzBounded: whatever arrives, what is handed on is a beginning of it, and consists of whole replies.
func FuzzBounded(f *testing.F) {
	for _, tt := range replies {
		if len(tt.text) < 1000 {
			f.Add([]byte(tt.text))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, _ := io.ReadAll(NewBounded(bytes.NewReader(data)))
		if !bytes.HasPrefix(data, got) {
			t.Fatalf("%q of %q", got, data)
		}
		var r Reader
		for r.Reset(bytes.NewReader(got)); ; {
			_, err := r.Reply()
			if errors.Is(err, io.EOF) && r.Done() == nil {
				return
			}
			var said Error
			if err != nil && !errors.As(err, &said) {
				t.Fatalf("%q of %q: %v", got, data, err)
			}
		}
	})
}
