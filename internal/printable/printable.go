// Package printable shows text of others to people: tokens and owners, which any client
// of the nodes can set, and what servers say.
package printable

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Text is s with everything escaped, as Go writes it, that is no letter, mark, number,
// sign or space: what steers terminals (ESC, and in 8 bits CSI and its like), line ends,
// which would begin a line of another's making, and what changes the order of reading.
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

// escaped reports whether a character is not shown as it is. A byte that is no UTF-8 is
// read as utf8.RuneError; so is that character itself.
func escaped(r rune) bool { return r == utf8.RuneError || !strconv.IsPrint(r) }
