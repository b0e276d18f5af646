// Package printable makes foreign text safe to show: tokens and owners, which any client of the
// nodes can set, and error texts of servers.
package printable

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Text returns s with every character escaped, in Go's syntax, that is no letter, mark, number, sign or space: control
// characters for terminals (ESC, and CSI and its like in 8 bits), line ends, which would let the text forge a line of
// its own, and characters that change the reading direction.
func Text(s string) string {
	at := strings.IndexFunc(s, escaped)
	if at < 0 {
		return s
	}
	text := []byte(s[:at])
	for rest := s[at:]; rest != ""; {
		r, n := utf8.DecodeRuneInString(rest)
		if escaped(r) {
			quoted := strconv.Quote(rest[:n])
			text = append(text, quoted[1:len(quoted)-1]...)
		} else {
			text = append(text, rest[:n]...)
		}
		rest = rest[n:]
	}
	return string(text)
}

// escaped reports whether Text escapes a character. utf8.RuneError is escaped: a byte that is no UTF-8 is read as it.
func escaped(r rune) bool { return r == utf8.RuneError || !strconv.IsPrint(r) }
