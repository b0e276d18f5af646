package main

import (
	"time"
	"unicode/utf8"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/locks"
	"github.com/quorumlock/redlock/internal/printable"
)

// A nameReport is the name of a lock. JSON cannot carry bytes that are no UTF-8: such a name has them escaped, and as
// base64.
type nameReport struct {
	Name string `json:"name"`
	Odd  []byte `json:"name_base64,omitempty"`
}

func named(name string) nameReport {
	if utf8.ValidString(name) {
		return nameReport{Name: name}
	}
	return nameReport{printable.Text(name), []byte(name)}
}

// An identityReport is what the token of a lock says.
type identityReport struct {
	Owner string     `json:"owner,omitempty"`
	Since *time.Time `json:"since,omitempty"`
	Trace string     `json:"trace,omitempty"`
	Also  []string   `json:"also,omitempty"`
	More  int        `json:"also_more,omitempty"`
}

// identity is what a token says of the lock on this name.
func identity(name string, by redlock.Identity) (r identityReport) {
	r.Owner, r.Trace, r.Also, r.More = by.Owner, by.Trace, locks.Others(name, by), by.More
	if !by.Since.IsZero() {
		since := by.Since.UTC()
		r.Since = &since
	}
	return r
}

type holderReport struct {
	Token string `json:"token"`
	identityReport
	Mode  string `json:"mode"`
	TTL   int64  `json:"ttl_ms"`
	Nodes int    `json:"nodes,omitempty"`
}

type waitReport struct {
	Waiter string `json:"waiter"`
	Owner  string `json:"owner"`
	Trace  string `json:"trace,omitempty"`
	For    int64  `json:"for_ms"`
	Nodes  int    `json:"nodes"`
}

func holderReports(name string, of []redlock.Holder) (all []holderReport) {
	for _, h := range of {
		all = append(all, holderReport{h.Token, identity(name, h.By), string(h.Mode), h.TTL.Milliseconds(), h.Nodes})
	}
	return all
}

func waitReports(of []redlock.Waiter) []waitReport {
	all := make([]waitReport, 0, len(of))
	for _, w := range of {
		all = append(all, waitReport{w.Waiter, w.Owner, w.Trace, w.For.Milliseconds(), w.Nodes})
	}
	return all
}
