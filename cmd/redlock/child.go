package main

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/quorumlock/redlock"
)

// A hold is a command that runs under a lock.
type hold struct {
	*command
	cfg   *runConfig
	lock  *redlock.Lock
	since time.Time
	group *group

	ended  time.Time   // when it was told to end; zero: it was not
	killer *time.Timer // from then on
	lost   bool        // others may have had the lock while it ran
	told   bool        // somebody wants us to end, and the command with us
}

// supervise runs the command to its end, passes signals on to it, and ends it when the
// lock does: before, where that can be foreseen. If the nodes do not answer, or
// --max-hold is over, nobody else has the lock until its validity ends, and the command
// has had its grace by then. Where the lock turns out to be gone, others may have it
// during the grace.
//
// All of its process group is signalled: a shell that is told something does not pass
// it on to what it runs. If we are killed, or stand still while the validity ends, the
// keeper does the rest.
func (h *hold) supervise(child *exec.Cmd, signals <-chan os.Signal) (err error) {
	until := h.lock.Until()
	h.group, err = startGroup(child, until.Add(-h.margin()), h.cfg.sign, h.cfg.grace)
	if err != nil {
		return notExecutable(h.cfg.argv[0], err)
	}
	defer h.group.close() // of this one, whatever h.group is by then

	held := h.lock.Context(context.Background())
	gone := held.Done()
	alarm := time.NewTimer(h.pause(until))
	defer alarm.Stop()
	for {
		select {
		case sig := <-signals:
			h.told = h.told || ends(sig)
			h.group.signal(sig)
		case <-h.group.keys:
			h.group.stop()
		case by := <-h.group.stopped:
			h.group.suspend(by, held)
		case <-alarm.C:
			until = h.lock.Until()
			h.group.keepUntil(until.Add(-h.margin()))
			if pause := h.pause(until); pause > 0 {
				alarm.Reset(pause)
			} else if h.ended.IsZero() {
				h.endEarly()
			}
		case <-gone:
			gone, h.lost = nil, true
			if h.ended.IsZero() {
				h.end()
				h.say("lost %q while the command runs, which gets SIG%s, and SIGKILL in %v: %s", h.lock.Name(), h.cfg.signal, h.cfg.grace, plain(context.Cause(held)))
			}
		case <-h.group.exited:
			if !h.ended.IsZero() { // nor may what it has started go on without a lock
				h.group.drain(h.ended.Add(h.cfg.grace))
				h.killer.Stop()
			}
			if refused := h.group.refused; refused != nil {
				h.group = nil
				return notExecutable(h.cfg.argv[0], refused)
			}
			return nil
		}
	}
}

// pause is until there is just time to end the command before the lock ends. At the
// latest, it is until the lock should have been renewed, of which the keeper wants to
// hear.
func (h *hold) pause(until time.Time) time.Duration {
	return min(time.Until(until)-h.cfg.grace-h.margin(), h.cfg.ttl/3)
}

// margin is how long a SIGKILL may take.
func (h *hold) margin() time.Duration { return h.cfg.ttl / 20 }

// end tells the command to end. First the deeds: stderr may be a pipe that nobody
// empties.
func (h *hold) end() {
	h.ended = time.Now()
	h.group.signal(h.cfg.sign)
	h.killer = time.AfterFunc(h.cfg.grace, h.group.kill)
}

// endEarly does it while the lock is still ours.
func (h *hold) endEarly() {
	h.end()
	why := "cannot renew " + strconv.Quote(h.lock.Name()) + " in time"
	if h.maxed() {
		why = "--max-hold " + h.cfg.maxHold.String() + " is over"
	}
	h.say("%s: the command gets SIG%s, and SIGKILL in %v, before others can have the lock", why, h.cfg.signal, h.cfg.grace)
}

// maxed reports whether it is --max-hold that ends the lock.
func (h *hold) maxed() bool {
	return h.cfg.maxHold > 0 && time.Since(h.since)+h.cfg.grace+h.cfg.ttl/10 >= h.cfg.maxHold
}
