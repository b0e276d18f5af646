package printable

import "fmt"

// Holder is who has a lock: the owner and the beginning of the token, or the token if nothing says who the owner is.
func Holder(owner, token string) string {
	if owner == "" {
		return Text(token)
	}
	if len(token) > 8 {
		token = token[:8] + "…"
	}
	return fmt.Sprintf("%s (token %s)", Text(owner), Text(token))
}
