package screen

import (
	"bytes"
	"unicode/utf8"
)

// A Key is what was typed: a character, or one of the keys below.
type Key rune

// The keys that are no characters.
const (
	Up Key = -1 - iota
	Down
	PageUp
	PageDown
	Home
	End
	Enter
	Esc
	Back    // Backspace, or Delete
	Clear   // Ctrl-U
	Redraw  // Ctrl-L
	unknown // a key that has no meaning here
)

var sequences = map[string]Key{
	"A": Up, "B": Down, "H": Home, "F": End,
	"1~": Home, "7~": Home, "4~": End, "8~": End, "5~": PageUp, "6~": PageDown, "3~": Back,
}

// Keys returns the keys that a terminal has sent. rest is the beginning of a key of several bytes. Call Keys with rest
// and what comes next, or Last if nothing comes soon.
func Keys(sent []byte) (keys []Key, rest []byte) {
	for len(sent) > 0 {
		key, n := next(sent)
		if n == 0 {
			return keys, sent
		}
		sent = sent[n:]
		if key != unknown {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// Last returns the keys that a rest stands for after which nothing has come: Esc if it begins with that, else none.
func Last(rest []byte) []Key {
	if len(rest) > 0 && rest[0] == '\x1b' {
		return []Key{Esc}
	}
	return nil
}

// next returns the first key, and how many bytes it has; 0: more bytes must come.
func next(sent []byte) (key Key, n int) {
	switch c := sent[0]; {
	case c == '\x1b':
		return escape(sent)
	case c == '\r' || c == '\n':
		return Enter, 1
	case c == 0x7f || c == '\b':
		return Back, 1
	case c == 'U'-'@':
		return Clear, 1
	case c == 'L'-'@':
		return Redraw, 1
	case c == 'N'-'@':
		return Down, 1
	case c == 'P'-'@':
		return Up, 1
	case c < ' ':
		return unknown, 1
	case !utf8.FullRune(sent):
		return unknown, 0
	}
	r, n := utf8.DecodeRune(sent)
	if r == utf8.RuneError {
		return unknown, n
	}
	return Key(r), n
}

// escape reads a key that begins with ESC: Esc itself, or what follows CSI (ESC [) or SS3 (ESC O). n: see next.
func escape(sent []byte) (key Key, n int) {
	switch {
	case len(sent) == 1:
		return unknown, 0
	case sent[1] != '[' && sent[1] != 'O': // Esc, and another key soon after it
		return Esc, 1
	}
	end := bytes.IndexFunc(sent[2:], func(r rune) bool { return r >= '@' && r <= '~' })
	if end < 0 {
		if len(sent) > 32 { // no key
			return unknown, len(sent)
		}
		return unknown, 0
	}
	if key, ok := sequences[string(sent[2:2+end+1])]; ok {
		return key, 2 + end + 1
	}
	return unknown, 2 + end + 1
}
