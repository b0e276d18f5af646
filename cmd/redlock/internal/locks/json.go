package locks

import (
	"time"
	"unicode/utf8"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/printable"
)

// A NameReport is the name of a lock as JSON. JSON cannot carry bytes that are not UTF-8: such a name is escaped, and
// also there in base64.
type NameReport struct {
	Name string `json:"name"`
	Odd  []byte `json:"name_base64,omitempty"`
}

// Named returns the NameReport of a name.
func Named(name string) NameReport {
	if utf8.ValidString(name) {
		return NameReport{Name: name}
	}
	return NameReport{printable.Text(name), []byte(name)}
}

// An IdentityReport is what the token of a lock says, as JSON.
type IdentityReport struct {
	Owner string     `json:"owner,omitempty"`
	Since *time.Time `json:"since,omitempty"`
	Trace string     `json:"trace,omitempty"`
	Also  []string   `json:"also,omitempty"`
	More  int        `json:"also_more,omitempty"`
}

// IdentityOf returns as JSON what the token of the lock on this name says (by).
func IdentityOf(name string, by redlock.Identity) (r IdentityReport) {
	r.Owner, r.Trace, r.Also, r.More = by.Owner, by.Trace, Others(name, by), by.More
	if !by.Since.IsZero() {
		since := by.Since.UTC()
		r.Since = &since
	}
	return r
}

// A HolderReport is a holder of a lock as JSON.
type HolderReport struct {
	Token string `json:"token"`
	IdentityReport
	Mode  string `json:"mode"`
	TTL   int64  `json:"ttl_ms"`
	Nodes int    `json:"nodes,omitempty"`
}

// A WaitReport is a client that waits for a lock, as JSON.
type WaitReport struct {
	Waiter string `json:"waiter"`
	Owner  string `json:"owner"`
	Trace  string `json:"trace,omitempty"`
	For    int64  `json:"for_ms"`
	Nodes  int    `json:"nodes"`
}

// HolderReports returns the holders of the lock on this name, as JSON.
func HolderReports(name string, of []redlock.Holder) (all []HolderReport) {
	for _, h := range of {
		all = append(all, HolderReport{h.Token, IdentityOf(name, h.By), string(h.Mode), h.TTL.Milliseconds(), h.Nodes})
	}
	return all
}

// WaitReports returns those who wait, as JSON; never nil.
func WaitReports(of []redlock.Waiter) []WaitReport {
	all := make([]WaitReport, 0, len(of))
	for _, w := range of {
		all = append(all, WaitReport{w.Waiter, w.Owner, w.Trace, w.For.Milliseconds(), w.Nodes})
	}
	return all
}
