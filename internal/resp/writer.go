// Package resp writes commands to a Redis server and reads its replies, in version 2 of the protocol
// (https://redis.io/docs/latest/develop/reference/protocol-spec/).
package resp

import "strconv"

// A Writer collects commands in a buffer, which it reuses: it allocates nothing once the buffer is large enough. Each
// command is Begin, its arguments, and End.
type Writer struct {
	buf   []byte
	start int // where the command under way begins
	args  int // how many arguments it has
}

// headroom is the length of the header for which Begin leaves room: as many digits as an int32 has.
const headroom = len("*2147483647\r\n")

// Reset drops all commands.
func (w *Writer) Reset() { w.buf = w.buf[:0] }

// Bytes returns the encoded commands, to be sent. They are valid until another method is called.
func (w *Writer) Bytes() []byte { return w.buf }

// Begin begins a command with its name. Like all methods that add an argument, it returns w.
func (w *Writer) Begin(name string) *Writer {
	w.start, w.args = len(w.buf), 0
	w.buf = append(w.buf, "*2147483647\r\n"...) // End puts the number there
	return w.String(name)
}

// String adds a text as an argument.
func (w *Writer) String(s string) *Writer {
	w.buf = append(append(w.arg(len(s)), s...), '\r', '\n')
	return w
}

// Bulk adds bytes as an argument.
func (w *Writer) Bulk(b []byte) *Writer {
	w.buf = append(append(w.arg(len(b)), b...), '\r', '\n')
	return w
}

// Int adds a number as an argument, in decimal.
func (w *Writer) Int(n int64) *Writer {
	var digits [20]byte
	return w.Bulk(strconv.AppendInt(digits[:0], n, 10))
}

// arg counts an argument of length bytes, and returns w.buf with the argument's header ('$' and the length) appended. The
// caller appends the bytes and a line end, and stores the result in w.buf.
func (w *Writer) arg(length int) []byte {
	w.args++
	if length < 10 { // most arguments are so short
		return append(w.buf, '$', byte('0'+length), '\r', '\n')
	}
	return append(strconv.AppendInt(append(w.buf, '$'), int64(length), 10), '\r', '\n')
}

// End ends the command: it writes the number of arguments, not known before, into the header, and closes the gap.
func (w *Writer) End() {
	rest := w.buf[w.start+headroom:]
	head := append(strconv.AppendInt(append(w.buf[:w.start], '*'), int64(w.args), 10), '\r', '\n')
	w.buf = append(head, rest...)
}
