package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/cmd/redlock/internal/proc"
)

// A session is what run and elect need to run a command under a lock: the nodes, and the
// signals, which are for the command or for redlock.
type session struct {
	*command
	cfg     *holdConfig
	servers []*redis.Options
	locker  *redlock.Locker
	nodes   *quarantines
	signals <-chan os.Signal
	close   func()
}

func (c *command) openSession(cfg *holdConfig) (*session, error) {
	s := &session{command: c, cfg: cfg}
	signals, restore := proc.CatchSignals()
	servers, stop, err := c.lockNodes(&cfg.lockFlags, cfg.embedded, "lock on")
	if err != nil {
		restore()
		return nil, err
	}
	s.signals, s.servers = signals, servers
	opts, err := cfg.options()
	if err == nil {
		s.locker, s.nodes, err = c.connect(servers, opts)
	}
	if err != nil {
		stop()
		restore()
		return nil, err
	}
	s.close = func() {
		s.locker.Close()
		stop()
		restore()
	}
	return s, nil
}

// await waits for the lock, until --timeout or a signal.
func (s *session) await() (*hold, error) {
	lock, err := s.command.await(s.locker, s.nodes, &s.cfg.lockConfig, s.signals)
	if err != nil {
		return nil, err
	}
	return &hold{session: s, lock: lock, since: time.Now()}, nil
}

// A hold is a command that runs under a lock.
type hold struct {
	*session
	lock  *redlock.Lock
	since time.Time
	group *proc.Group

	ended  time.Time   // when it was told to end; zero: it was not
	killer *time.Timer // from then on
	lost   bool        // another client may have held the lock while it ran
	told   bool        // a signal ends redlock, and the command with it
}

// supervise runs the command to its end, passes signals on to it, and ends it when the
// lock ends: before that, where it can be foreseen. If the nodes do not answer, or
// --max-hold is over, no other client gets the lock until its validity ends, and the grace
// is over by then. If the lock turns out to be lost, another client may hold it during the
// grace.
//
// supervise signals the whole process group: a shell does not pass a signal on to what it
// runs. If redlock is killed, or stopped while the validity ends, the keeper does the rest.
func (h *hold) supervise(child *exec.Cmd, signals <-chan os.Signal) (err error) {
	until := h.lock.Until()
	h.group, err = proc.Start(child, until.Add(-h.margin()), h.cfg.sign, h.cfg.grace)
	if err != nil {
		return notExecutable(h.cfg.argv[0], err)
	}
	defer h.group.Close() // that group, whatever h.group is by then

	held := h.lock.Context(context.Background())
	gone := held.Done()
	alarm := time.NewTimer(h.pause(until))
	defer alarm.Stop()
	for {
		select {
		case sig := <-signals:
			h.told = h.told || proc.Ends(sig)
			h.group.Signal(sig)
		case <-h.group.Keys:
			h.group.Stop()
		case by := <-h.group.Stopped:
			h.group.Suspend(by, held)
		case <-alarm.C:
			until = h.lock.Until()
			h.group.KeepUntil(until.Add(-h.margin()))
			if pause := h.pause(until); pause > 0 {
				alarm.Reset(pause)
			} else if h.ended.IsZero() {
				h.endEarly()
			}
		case <-gone:
			gone, h.lost = nil, true
			if h.ended.IsZero() {
				h.end()
				h.say("the lock %q was lost while the command is running, which gets SIG%s now and SIGKILL in %v: %s", h.lock.Name(), h.cfg.signal, h.cfg.grace, phrase.Plain(context.Cause(held)))
			}
		case <-h.group.Exited:
			if h.ended.IsZero() && h.group.EndedByKeeper() { // redlock was stopped
				h.end() // what is left of the group
				h.say("redlock was stopped for too long to renew %q: its keeper process has ended the command, before another client could get the lock", h.lock.Name())
			}
			if !h.ended.IsZero() { // nor may what it has started go on without a lock
				h.group.Drain(h.ended.Add(h.cfg.grace))
				h.killer.Stop()
			}
			if refused := h.group.Refused; refused != nil {
				h.group = nil
				return notExecutable(h.cfg.argv[0], refused)
			}
			return nil
		}
	}
}

// pause is the time until the command has to be told to end, and at most a sixth of the TTL: then
// the keeper gets the new deadline, if the lock has been renewed, as it is every third of the TTL.
// So what the keeper knows is never older than that, and a half of the TTL is left of it.
func (h *hold) pause(until time.Time) time.Duration {
	return min(time.Until(until)-h.cfg.grace-h.margin(), h.cfg.span()/6)
}

// margin is the time that is left for a SIGKILL to take effect.
func (h *hold) margin() time.Duration { return h.cfg.span() / 20 }

// end signals the command, before anything is printed: stderr may be a full pipe.
func (h *hold) end() {
	h.ended = time.Now()
	h.group.End(h.cfg.sign)
	h.killer = time.AfterFunc(h.cfg.grace, h.group.Kill)
}

// endEarly ends the command while the lock is still held.
func (h *hold) endEarly() {
	h.end()
	why := "cannot renew " + strconv.Quote(h.lock.Name()) + " in time"
	if h.maxed() {
		why = "--max-hold " + h.cfg.maxHold.String() + " is over"
	}
	h.say("%s: the command gets SIG%s now and SIGKILL in %v, before another client can get the lock", why, h.cfg.signal, h.cfg.grace)
}

// maxed reports whether it is --max-hold that ends the lock.
func (h *hold) maxed() bool {
	return h.cfg.maxHold > 0 && time.Since(h.since)+h.cfg.grace+h.cfg.span()/10 >= h.cfg.maxHold
}

// run runs the command under the lock, and releases the lock.
func (h *hold) run() (code int, err error) {
	name := h.cfg.keys[0]
	err = h.supervise(&exec.Cmd{
		Path: h.cfg.path, Args: h.cfg.argv, Env: append(slices.Clone(h.env), variables(h.lock, len(h.servers))...),
		Stdin: h.stdin, Stdout: h.forPrograms(), Stderr: h.stderr,
	}, h.signals)
	if err == nil && h.ended.IsZero() {
		h.linger(h.signals)
	}
	released := h.lock.Release(context.Background())
	if err != nil {
		return 0, err
	}
	if !h.lost && h.ended.IsZero() && errors.Is(released, redlock.ErrLost) { // in the instant in which the command ended
		h.lost = true
		h.say("the lock %q was lost: %s", name, phrase.Plain(released))
	}
	switch {
	case h.lost:
		return 0, exit.Fail(exit.Lost, "another client may have held the lock while the command was still running: check what it did before you rely on it",
			"the lock %q was lost before the command finished (%v)", name, h.group)
	case !h.ended.IsZero():
		return 0, exit.Fail(exit.Lost, "no other client held the lock while the command ran; the command may not have finished its work",
			"the command was ended because the lock %q was about to end (%v)", name, h.group)
	}
	return h.group.Code(), nil
}

// variables are what redlock adds to the command's environment. They come last: where a name
// is there twice, the later one counts, and in a lock within a lock that has to be that of
// the inner lock.
func variables(lock *redlock.Lock, nodes int) []string {
	return []string{
		"REDLOCK_KEY=" + lock.Name(),
		"REDLOCK_TOKEN=" + lock.Token(),
		"REDLOCK_FENCE=" + strconv.FormatInt(lock.Fence(), 10),
		"REDLOCK_EXPIRES=" + strconv.FormatInt(lock.Until().UnixMilli(), 10),
		fmt.Sprintf("REDLOCK_QUORUM=%d/%d", nodes/2+1, nodes),
	}
}

// linger keeps the lock until --min-hold is over: a machine whose clock is behind may be
// about to start the same command. A signal ends the wait.
func (h *hold) linger(signals <-chan os.Signal) {
	rest := time.NewTimer(h.cfg.minHold - time.Since(h.since))
	defer rest.Stop()
	select {
	case <-rest.C:
	case <-signals:
	case <-h.lock.Context(context.Background()).Done():
	}
}

// notExecutable says, with the shell's exit codes, why there is nothing to run.
func notExecutable(name string, err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return exit.Fail(exit.NotFound, "is it installed, and in PATH? The command and its arguments are separate words: redlock run KEY -- CMD ARG ...",
			"command not found: %s", name)
	}
	hint := "is it a program, and does its file have the permission to be executed?"
	if errors.Is(err, syscall.ENOEXEC) {
		hint = "a script needs a first line such as #!/bin/sh"
	}
	var why *exec.Error
	if errors.As(err, &why) {
		err = why.Err
	}
	return exit.Fail(exit.NotExecutable, hint, "cannot execute %s: %v", name, err)
}
