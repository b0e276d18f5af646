package printable

import "fmt"

// Holder is who has a lock: the owner and the beginning of the token, or the token if nothing says who the owner is.
func Holder(owner, token string) string {
	if owner == "" {
		return Brief(token)
	}
	return fmt.Sprintf("%s (token %s)", Text(owner), Token(token))
}

// Token is the beginning of a token.
func Token(token string) string {
	if len(token) > 8 {
		token = token[:8] + "…"
	}
	return Text(token)
}

// Brief is a token of another library, which is longer than some hundred bytes only if it is none.
func Brief(token string) string {
	if len(token) > 100 {
		token = token[:64] + "…"
	}
	return Text(token)
}
