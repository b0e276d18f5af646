package judge

import (
	"fmt"
	"time"
)

// A Violation is a promise that was not kept.
type Violation struct {
	Rule   string        `json:"rule"`
	At     time.Duration `json:"at_ns"`
	Text   string        `json:"text"`
	Events []int         `json:"events"` // the events that show it, as indexes into History.Events
}

func (v Violation) String() string { return fmt.Sprintf("at %v, %s: %s", v.At, v.Rule, v.Text) }

// A Verdict is the judge's result for a history: the violations, and counts of the events in which
// there could have been one. A history without violations means little if no client held a lock in
// it.
type Verdict struct {
	Violations []Violation `json:"violations"` // by time

	Asks       int `json:"asks"`
	Holds      int `json:"holds"`
	Denials    int `json:"denials"`
	Extensions int `json:"extensions"` // that succeeded
	Losses     int `json:"losses"`     // holders that were told that their lock was lost
	Writes     int `json:"writes"`     // that the resource accepted

	LongestWait     time.Duration `json:"longest_wait_ns"`      // of the waiters that got the lock
	LongestWaitCalm time.Duration `json:"longest_wait_calm_ns"` // of those that asked after all faults were over
}
