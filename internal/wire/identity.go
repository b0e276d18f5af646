package wire

import (
	"net/url"
	"strconv"
	"strings"
	"time"
)

// An Identity is what a token says about the attempt that made it.
type Identity struct {
	Owner string    // the label of its process
	Since time.Time // when the attempt began, by the clock of its process, in milliseconds
	Trace string    // the id of the trace that the attempt belongs to; "": none
	Names []string  // of a lock on several names: those that fit into MaxNames bytes
	More  int       // how many names do not fit
}

// A token is SECRET.@SINCE@TRACE@OWNER: a secret that nobody can guess, and then the identity. SINCE is in milliseconds
// since 1970, in base 36. In the token of a lock on several names, +NAME follows SINCE for each of them, and ++NUMBER
// counts those that are left out. A waiter's entry in a queue has the part from the signature on. A client that can
// write to a node can write any identity. Only one decision depends on it: whether a call that tries once asks again.
const signature = ".@"

// MaxTrace is how many bytes of a trace's id, escaped, a token has at most.
const MaxTrace = 64

// MaxNames is how many bytes the names of a lock, escaped, take in a token at most.
const MaxNames = 128

// Signed reports whether a text contains the signature of this library's tokens, as the value of a lock's key does, and
// each member of its sets and queues. The form of what stands before the signature says nothing: other libraries use
// UUIDs, too. The scripts look for the same ($signature).
func Signed(text string) bool {
	_, rest, ok := strings.Cut(text, signature)
	n := strings.IndexFunc(rest, func(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'z') })
	return ok && n > 0 && (rest[n] == '@' || rest[n] == '+')
}

// MostOfToken is how many bytes of a key's value a client reads. No token of this library is that long.
const MostOfToken = 2048

// Sign makes a token: it appends an identity to the secret. now is when the attempt began, names is what List returns,
// trace is the id of the attempt's trace ("": none), and owner is what Label returns.
func Sign(secret string, now time.Time, names, trace, owner string) string {
	b := make([]byte, 0, 160)
	b = append(append(b, secret...), signature...)
	b = append(append(strconv.AppendInt(b, now.UnixMilli(), 36), names...), '@')
	if trace != "" {
		b = append(b, escape(trace, "@", MaxTrace)...)
	}
	b = append(append(b, '@'), owner...)
	return string(b)
}

// Secret returns the part of a token before the identity; all of a token that has no signature.
func Secret(token string) string {
	secret, _, _ := strings.Cut(token, signature)
	return secret
}

// Signature returns the part of a token behind the secret; "" if the token has no signature.
func Signature(token string) string { return token[len(Secret(token)):] }

// Identify reads the identity (who made it, and when) in a token; ok is false if it has none: another library's.
func Identify(token string) (who Identity, ok bool) {
	_, signed, _ := strings.Cut(token, signature)
	part := strings.SplitN(signed, "@", 3)
	if len(part) != 3 {
		return Identity{}, false
	}
	since, names, _ := strings.Cut(part[0], "+")
	ms, err := strconv.ParseInt(since, 36, 64)
	who = Identity{Owner: unescape(part[2]), Since: time.UnixMilli(ms), Trace: unescape(part[1])}
	for left := names != ""; left; {
		var name string
		if name, names, left = strings.Cut(names, "+"); name == "" {
			who.More, _ = strconv.Atoi(names)
			break
		}
		who.Names = append(who.Names, unescape(name))
	}
	return who, err == nil
}

// List returns the names of a lock as Sign puts them into its token: escaped, each behind a "+", in at most MaxNames
// bytes; "++" and a number count those that do not fit. "" for a lock on one name, whose key says the name.
func List(names []string) string {
	if len(names) < 2 {
		return ""
	}
	var b strings.Builder
	for i, name := range names {
		text := escape(name, "+@", 3*len(name))
		if b.Len()+len("+")+len(text) > MaxNames {
			b.WriteString("++" + strconv.Itoa(len(names)-i))
			break
		}
		b.WriteString("+" + text)
	}
	return b.String()
}

// Label returns owner, the label of a process, escaped, as Sign takes it.
func Label(owner string) string { return escape(owner, "", 3*len(owner)) }

// escape replaces each byte that is not plain, and each that is in also, by % and two hexadecimal digits, and cuts the
// result at limit bytes. An escaped token has no space, which would end it in a queue, and no character that a shell
// treats specially, since people copy tokens to a command line.
func escape(s, also string, limit int) string {
	const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:/@+-"
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; strings.IndexByte(plain, c) >= 0 && strings.IndexByte(also, c) < 0 {
			if b.Len()+1 > limit {
				break
			}
			b.WriteByte(c)
		} else {
			if b.Len()+3 > limit {
				break
			}
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}

// unescape undoes escape. A text that escape cannot have made is returned unchanged.
func unescape(s string) string {
	if text, err := url.PathUnescape(s); err == nil {
		return text
	}
	return s
}
