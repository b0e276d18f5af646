package judge

import (
	"fmt"
	"time"
)

// A Violation is a promise that was not kept.
type Violation struct {
	Rule   string        `json:"rule"`
	At     time.Duration `json:"at"`
	Text   string        `json:"text"`
	Events []int         `json:"events"` // those that show it, as indexes into History.Events
}

func (v Violation) String() string { return fmt.Sprintf("at %v, %s: %s", v.At, v.Rule, v.Text) }

// A Verdict is what the judge says of a history: what was wrong, and how much there
// was that could have been. A history without violations says little if no client
// held anything in it.
type Verdict struct {
	Violations []Violation `json:"violations"` // by time

	Asks       int `json:"asks"`
	Holds      int `json:"holds"`
	Denials    int `json:"denials"`
	Extensions int `json:"extensions"` // that succeeded
	Losses     int `json:"losses"`     // holders that were told that the lock is lost
	Writes     int `json:"writes"`     // that the resource took

	LongestWait     time.Duration `json:"longest_wait"`      // of those that got the lock
	LongestWaitCalm time.Duration `json:"longest_wait_calm"` // of those that asked when all was well
}
