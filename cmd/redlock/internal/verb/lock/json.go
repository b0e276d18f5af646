package lock

import (
	"time"

	"github.com/quorumlock/redlock"
)

// A handleReport is the output of redlock lock --json. extend and unlock accept it in place of the handle.
type handleReport struct {
	Name   string         `json:"name"`
	Also   []string       `json:"also,omitempty"` // the other keys
	Mode   string         `json:"mode"`           // exclusive, shared or slot
	Token  string         `json:"token"`
	Fence  int64          `json:"fence"`
	TTL    int64          `json:"ttl_ms"`
	Left   int64          `json:"left_ms"` // until its validity ends
	Until  time.Time      `json:"until"`
	Handle redlock.Handle `json:"handle"`
}

func describe(h redlock.Handle) handleReport {
	mode := "exclusive"
	switch {
	case h.Shared:
		mode = string(redlock.ModeShared)
	case h.Slots > 0:
		mode = string(redlock.ModeSlot)
	}
	return handleReport{
		Name: h.Name, Also: h.Also, Mode: mode, Token: h.Token, Fence: h.Fence,
		TTL: h.TTL.Milliseconds(), Left: time.Until(h.Until).Milliseconds(), Until: h.Until, Handle: h,
	}
}
