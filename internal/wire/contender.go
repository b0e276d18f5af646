package wire

import (
	"cmp"
	"strconv"
	"strings"
)

// A Contender is a call that tries for a lock once, and waits only until a split vote (no client got a quorum) is
// settled. Its name stands in all that other contenders see of it, and contains its ticket, the time at which it came:
// so each sees which of two came first.
//
//	TICKET-NONCE.0      in the queues; an ordinary waiter has a number from 1 up in the place of the 0
//	TICKET-NONCE/TRY    the secret of the token of attempt number TRY
//
// The ticket is in base 36, in microseconds.
type Contender struct {
	Ticket int64
	Nonce  string
}

func (c *Contender) name() string { return strconv.FormatInt(c.Ticket, 36) + "-" + c.Nonce }

// Waiter returns the contender's name in the queues of the nodes: TICKET-NONCE.0.
func (c *Contender) Waiter() string { return c.name() + ".0" }

// Secret returns the secret (the part before the identity) of the token of attempt number try, from 1.
func (c *Contender) Secret(try int64) string { return c.name() + "/" + strconv.FormatInt(try, 10) }

// Before reports whether c came before other: its ticket is lower, or the same and its nonce sorts first.
func (c *Contender) Before(other *Contender) bool {
	return cmp.Or(cmp.Compare(c.Ticket, other.Ticket), strings.Compare(c.Nonce, other.Nonce)) < 0
}

// ParseContender reads ticket and nonce of a contender (a call that tries once) from holder: its name in a queue, or
// the token of one of its attempts; ok is false if holder is neither.
func ParseContender(holder string) (c Contender, ok bool) {
	name, queued := strings.CutSuffix(holder, ".0")
	if !queued {
		if _, ours := Identify(holder); !ours {
			return Contender{}, false
		}
		name, _, ok = strings.Cut(Secret(holder), "/")
		if !ok {
			return Contender{}, false
		}
	}
	ticket, nonce, ok := strings.Cut(name, "-")
	number, err := strconv.ParseInt(ticket, 36, 64)
	return Contender{number, nonce}, ok && err == nil && number > 0
}
