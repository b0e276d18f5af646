package printable

import "fmt"

// Holder returns who has a lock, for messages: the owner and the beginning of the token; without an owner, the token.
func Holder(owner, token string) string {
	if owner == "" {
		return Brief(token)
	}
	return fmt.Sprintf("%s (token %s)", Text(owner), Token(token))
}

// Token returns the first eight bytes of a token, for messages: who knows the whole token can release the lock.
func Token(token string) string {
	if len(token) > 8 {
		token = token[:8] + "…"
	}
	return Text(token)
}

// Brief returns a token that names no owner, for messages: of one over 100 bytes, longer than libraries make it, 64 and "…".
func Brief(token string) string {
	if len(token) > 100 {
		token = token[:64] + "…"
	}
	return Text(token)
}
