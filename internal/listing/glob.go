package listing

import "strings"

// An element of a pattern matches one byte, or with star any bytes.
type element struct {
	star  bool
	match func(b byte) bool
}

// pattern is a glob pattern, as Redis has it (stringmatchlen), of which no text is invalid.
type pattern []element

// parse reads a glob pattern. Every name that matches begins with head; whole: without a wildcard, only head matches.
func parse(text string) (p pattern, head string, whole bool) {
	literal := make([]byte, 0, len(text))
	whole = true
	for i := 0; i < len(text); i++ {
		b := text[i]
		switch {
		case b == '*':
			whole = false
			if len(p) == 0 || !p[len(p)-1].star {
				p = append(p, element{star: true})
			}
			continue
		case b == '?':
			whole = false
			p = append(p, element{match: func(byte) bool { return true }})
			continue
		case b == '[':
			whole = false
			var set func(byte) bool
			set, i = class(text, i+1)
			p = append(p, element{match: set})
			continue
		case b == '\\' && i+1 < len(text):
			i++
			b = text[i]
		}
		if whole {
			literal = append(literal, b)
		}
		p = append(p, element{match: func(other byte) bool { return b == other }})
	}
	return p, string(literal), whole
}

// class reads a set of bytes whose [ is before index i. match reports whether a byte is in the set. last is the index
// of the closing ]; len(text) if the ] is missing.
func class(text string, i int) (match func(byte) bool, last int) {
	var in [256]bool
	not := i < len(text) && text[i] == '^'
	if not {
		i++
	}
	for ; i < len(text) && text[i] != ']'; i++ {
		switch {
		case text[i] == '\\' && i+1 < len(text):
			i++
			in[text[i]] = true
		case i+2 < len(text) && text[i+1] == '-':
			for b := int(min(text[i], text[i+2])); b <= int(max(text[i], text[i+2])); b++ {
				in[b] = true
			}
			i += 2
		default:
			in[text[i]] = true
		}
	}
	return func(b byte) bool { return in[b] != not }, i
}

// matches reports whether the whole name matches. After a mismatch it goes back to the last star only, so it takes at
// most the product of both lengths.
func (p pattern) matches(name string) bool {
	at, star, from := 0, -1, 0
	for i := 0; i < len(name); {
		switch {
		case at < len(p) && p[at].star:
			star, from = at, i
			at++
		case at < len(p) && p[at].match(name[i]):
			at++
			i++
		case star >= 0:
			from++
			at, i = star+1, from
		default:
			return false
		}
	}
	for at < len(p) && p[at].star {
		at++
	}
	return at == len(p)
}

// Escape returns the pattern that matches text and nothing else.
func Escape(text string) string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `\`, `\\`).Replace(text)
}

// Matcher returns a function that reports whether a name matches a pattern, as in [Query]; "" matches only "".
func Matcher(pattern string) func(name string) bool {
	p, _, _ := parse(pattern)
	return p.matches
}
