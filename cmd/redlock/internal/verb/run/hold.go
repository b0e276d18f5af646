package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/acquire"
	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/cmd/redlock/internal/proc"
	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
	"github.com/quorumlock/redlock/internal/printable"
)

// A session is what run and elect need to run a command under a lock: nodes, Locker, and the signals, which go to the
// command or end redlock.
type session struct {
	*console.Console
	cfg     *holdConfig
	servers []*redis.Options
	locker  *redlock.Locker
	nodes   *reach.Quarantines
	signals <-chan os.Signal
	close   func()
}

func openSession(c *console.Console, cfg *holdConfig) (*session, error) {
	s := &session{Console: c, cfg: cfg}
	servers, stop, err := reach.RealOrEmbedded(c, &cfg.Flags, cfg.embedded, "lock on") // before CatchSignals: a signal must end the read of a file, which may be a pipe
	if err != nil {
		return nil, err
	}
	signals, restore := proc.CatchSignals()
	reaped := proc.ReapOrphans()
	s.signals, s.servers = signals, servers
	opts, err := cfg.Options()
	if err == nil {
		s.locker, s.nodes, err = reach.Connect(c, servers, opts)
	}
	if err != nil {
		stop()
		reaped()
		restore()
		return nil, err
	}
	s.close = func() {
		s.locker.Close()
		stop()
		reaped()
		restore()
	}
	return s, nil
}

// await acquires the lock. It waits until --timeout or a signal.
func (s *session) await() (*hold, error) {
	lock, err := acquire.Await(s.Console, s.locker, s.nodes, &s.cfg.Config, s.signals)
	if err != nil {
		return nil, err
	}
	return &hold{session: s, lock: lock, since: time.Now()}, nil
}

// A hold is one run of the command under the lock.
type hold struct {
	*session
	lock  *redlock.Lock
	since time.Time
	group *proc.Group // nil: the command was not started

	ended    time.Time        // when the command got its signal because the lock ends; zero: it did not
	killer   *time.Timer      // sends SIGKILL after the grace
	hopeless <-chan time.Time // then, what is left cannot be ended
	lost     bool             // another client may have held the lock while the command ran
	told     bool             // a signal ends redlock, and the command with it
	alone    bool             // all that the command started had ended while the lock was valid
	left     []string         // the processes that could not be ended
	refused  bool             // the command cannot be executed
}

// supervise runs the command to its end, passes signals on to it, and ends it when the lock ends; before that, where
// the end can be foreseen. If the nodes do not answer, or --max-hold is over, no other client gets the lock until its
// validity ends, and the grace is over by then. If the lock turns out to be lost, another client may hold it during
// the grace.
//
// What the command has started ends with the lock, too, and so with the command: see proc.Everything. If redlock is
// killed, or stopped while the validity ends, the keeper does the rest.
func (h *hold) supervise(child *exec.Cmd, signals <-chan os.Signal) (err error) {
	until := h.lock.Until()
	h.Flush() // earlier messages come before the command's output
	h.group, err = proc.Start(child, until, proc.Terms{Margin: h.margin(), Sign: h.cfg.sign, Grace: h.cfg.grace})
	if err != nil {
		return h.notStarted(err)
	}
	defer h.group.Close() // evaluated now: the group that Start returned
	defer func() {
		if h.killer != nil {
			h.killer.Stop()
		}
	}()

	held := h.lock.Context(context.Background())
	gone, exited, orphaned := held.Done(), h.group.Exited, h.group.Orphaned
	var wrapUp <-chan time.Time // the command has finished, and the grace of what it has left running is over
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
			h.group.KeepUntil(until)
			switch pause := h.pause(until); {
			case pause > 0:
				alarm.Reset(pause)
			case !h.ended.IsZero() || h.endedByKeeper():
			case exited == nil: // the command has ended, and what it left running has no time for more than SIGKILL
				h.group.Kill()
			default:
				h.endEarly()
			}
		case <-gone:
			gone = nil
			if h.ended.IsZero() && h.endedByKeeper() {
				continue
			}
			h.lost = true
			if exited == nil {
				h.group.Kill()
			} else if h.ended.IsZero() {
				h.end()
				h.Say("the lock %q was lost while the command is running, which gets SIG%s now and SIGKILL in %v: %s", h.lock.Name(), h.cfg.signal, h.cfg.grace, phrase.Plain(context.Cause(held)))
			}
		case <-orphaned:
			orphaned = nil
			h.orphaned(exited != nil)
		case <-exited:
			exited = nil
			switch {
			case !h.ended.IsZero() || h.endedByKeeper() || !h.group.Left:
			case h.cfg.leave:
				return nil
			default:
				wrapUp = time.After(h.cfg.grace)
			}
		case <-wrapUp:
			names := h.group.Survivors()
			h.endAll()
			h.Note("the command has ended, and what it left running gets SIG%s now and SIGKILL in %v, since the lock ends, too%s: %s", h.cfg.signal, h.cfg.grace, h.cfg.mayLeave, listed(names))
		case <-h.group.Gone:
			h.alone = h.group.Valid || held.Err() == nil
			return nil
		case <-h.hopeless:
			h.left = h.group.Survivors()
			return nil
		}
	}
}

// endedByKeeper reports whether the keeper has ended the command because redlock was stopped. It returns true, and
// tells the user, only once.
func (h *hold) endedByKeeper() bool {
	if !h.group.EndedByKeeper() {
		return false
	}
	h.ended = time.Now()
	h.hopeless = time.After(h.cfg.grace + mortal)
	h.Say("redlock was stopped for too long to renew %q: its keeper process has ended the command", h.lock.Name())
	return true
}

// orphaned handles the death of the keeper, which somebody has killed. running: the command has not ended yet.
func (h *hold) orphaned(running bool) {
	switch {
	case !running || !h.ended.IsZero():
	case proc.Everything:
		h.Say("warning: the keeper process of %q was killed: the command goes on, and nothing would end it if redlock were killed, too, or stopped", h.lock.Name())
	default: // without a keeper redlock would not notice the end of the command
		h.end()
		h.Say("the keeper process of %q was killed: the command gets SIG%s now and SIGKILL in %v", h.lock.Name(), h.cfg.signal, h.cfg.grace)
	}
}

// pause returns the time until the command has to get its signal, if the lock ends at until, and a sixth of the TTL at
// most. After each pause the keeper gets the new deadline if the lock was renewed, as it is every third of the TTL. So
// the keeper's deadline is never older than that, and half of the TTL is left of it.
func (h *hold) pause(until time.Time) time.Duration {
	return min(time.Until(until)-h.cfg.grace-h.margin(), h.cfg.span()/6)
}

// margin returns the time before the end of the lock that SIGKILL has to take effect.
func (h *hold) margin() time.Duration { return h.cfg.span() / 20 }

// mortal is how long a process may take to end after SIGKILL. One that takes longer waits for a device, or belongs to
// another user.
const mortal = time.Second

// end ends the command and all that it has started, because the lock ends.
func (h *hold) end() {
	h.ended = time.Now()
	h.endAll()
}

// endAll ends all that the command has started.
func (h *hold) endAll() {
	h.group.End(h.cfg.sign)
	h.killer = time.AfterFunc(h.cfg.grace, h.group.Kill)
	h.hopeless = time.After(h.cfg.grace + mortal)
}

// endEarly ends the command while the lock is still held.
func (h *hold) endEarly() {
	h.end()
	why := "cannot renew " + strconv.Quote(h.lock.Name()) + " in time"
	if h.maxed() {
		why = "--max-hold " + h.cfg.MaxHold.String() + " is over"
	}
	h.Say("%s: the command gets SIG%s now and SIGKILL in %v, before another client can get the lock", why, h.cfg.signal, h.cfg.grace)
}

// maxed reports whether --max-hold, and not the nodes, is why the lock is about to end.
func (h *hold) maxed() bool {
	return h.cfg.MaxHold > 0 && time.Since(h.since)+h.cfg.grace+h.cfg.span()/10 >= h.cfg.MaxHold
}

// run runs the command under the lock, and releases the lock.
func (h *hold) run() (code int, err error) {
	name := h.cfg.Keys[0]
	err = h.supervise(&exec.Cmd{
		Path: h.cfg.path, Args: h.cfg.argv, Env: append(slices.Clone(h.Env), variables(h.lock, h.locker.Members())...),
		Stdin: h.Stdin, Stdout: h.ForPrograms(), Stderr: h.Stderr,
	}, h.signals)
	if err != nil {
		acquire.Undo(h.locker, h.lock, &h.cfg.Config)
		return 0, err
	}
	finished := h.ended.IsZero() && !h.lost
	sure := finished && h.linger()
	released := h.lock.Release(context.Background())
	switch rest := h.cfg.MinHold - time.Since(h.since); {
	case !finished || released == nil:
	case !errors.Is(released, redlock.ErrLost):
		if sure && rest > 0 && !h.cfg.Lingers {
			h.Say("warning: the lock %q may end before --min-hold %v is over, after the command has finished: %s", name, h.cfg.MinHold, phrase.Plain(released))
		}
	case !sure: // lost in the instant in which the command ended
		h.lost = true
		h.Say("the lock %q was lost: %s", name, phrase.Plain(released))
	case h.cfg.MaxHold != h.cfg.MinHold || rest > h.cfg.span()/10:
		h.Say("warning: the lock %q ended before --min-hold %v was over, after the command had finished: %s", name, h.cfg.MinHold, phrase.Plain(released))
	}
	left := ""
	if len(h.left) > 0 {
		left = phrase.Counted(len(h.left), "process") + " that the command has started cannot be ended, and may run on without the lock: " + listed(h.left)
	}
	switch {
	case h.lost:
		return 0, exit.Fail(exit.Lost, cmp.Or(left, "another client may have held the lock while the command was still running: check what it did before you rely on it"),
			"the lock %q was lost before the command finished (%v)", name, h.group)
	case !h.ended.IsZero():
		return 0, exit.Fail(exit.Lost, cmp.Or(left, h.claim()),
			"the command was ended because the lock %q was about to end (%v)", name, h.group)
	case left != "":
		h.Say("warning: %s", left)
	}
	return h.group.Code(), nil
}

// claim says, for a command that was ended before its lock, whether another client may have held the lock meanwhile.
func (h *hold) claim() string {
	switch {
	case !h.alone:
		return "another client may have held the lock while the command, or what it has started, was still running: check what it did before you rely on it"
	case proc.Everything:
		return "no other client held the lock while the command ran; the command may not have finished its work"
	}
	return "no other client held the lock while the command's process group ran; the command may not have finished its work"
}

// listed returns names as text: the first few, and how many more there are.
func listed(names []string) string {
	const most = 5
	if rest := len(names) - most; rest > 0 {
		names = append(slices.Clone(names[:most]), fmt.Sprintf("and %d more", rest))
	}
	return cmp.Or(printable.Text(strings.Join(names, ", ")), "their names cannot be read")
}

// variables returns what redlock adds to the command's environment. Add them last: of two entries with one name the
// later one counts, and a lock within a lock needs those of the inner one.
func variables(lock *redlock.Lock, set redlock.Members) []string {
	return []string{
		"REDLOCK_KEY=" + lock.Name(),
		"REDLOCK_TOKEN=" + lock.Token(),
		"REDLOCK_FENCE=" + strconv.FormatInt(lock.Fence(), 10),
		"REDLOCK_EXPIRES=" + strconv.FormatInt(lock.Until().UnixMilli(), 10),
		fmt.Sprintf("REDLOCK_QUORUM=%d/%d", set.Quorum, len(set.Nodes)),
	}
}

// linger sees to it that the lock is kept until --min-hold is over, when the command has finished: a machine whose clock
// is behind may be about to start the same command. As a rule the nodes keep it, and the process may end (MinHold). It
// stays, and renews the lock, if the set allows no lock without a process for so long, or too few nodes answer now; a
// signal ends that, also one that came before the command had ended.
//
// The command's status does not depend on the lock any more: linger extends the lock once, and returns true unless the
// nodes have lost it, in which case they had lost it before the command ended. It also returns false if --min-hold is
// over already: the release finds out.
func (h *hold) linger() (sure bool) {
	most := h.cfg.MinHold - time.Since(h.since)
	if most <= 0 {
		return false
	}
	rest := time.NewTimer(most)
	defer rest.Stop()
	until := h.lock.Until()
	err := h.lock.Extend(context.Background())
	switch {
	case errors.Is(err, redlock.ErrLost) && time.Now().Before(until):
		return false // before its validity ended: so the nodes have said it
	case h.told && (h.cfg.Lingers || err != nil): // it is to end, and the signal may have come as the command ended by itself
		return true
	case h.cfg.Lingers:
		h.Note("stays for %s, until --min-hold is over: the set allows no lock without a process for longer than %v. redlock members set max-ttl %v lets redlock end with the command; a node that was restarted has no vote for so long", phrase.Short(most), h.locker.Members().MaxTTL, h.cfg.MinHold)
	case err == nil:
		return true
	}
	select {
	case <-rest.C:
	case <-h.signals:
	case <-h.lock.Context(context.Background()).Done():
	}
	return true
}

// notStarted returns the failure that says why the command was not started.
func (h *hold) notStarted(err error) error {
	var refused *proc.Refused
	switch {
	case errors.As(err, &refused):
		h.refused = true
		return notExecutable(h.cfg.argv[0], refused.Err)
	case errors.Is(err, proc.ErrLate):
		return exit.Fail(exit.System, "is the machine overloaded, or --ttl very short?", "the lock %q was about to end before the command could be started", h.cfg.Keys[0])
	}
	return exit.Fail(exit.System, "the system limits processes and memory (ulimit -u, cgroups); the command is not at fault, and was not started", "cannot start the keeper process of %q: %v", h.cfg.Keys[0], err)
}

// notExecutable returns the failure, with the shell's exit codes, that says why the program cannot be executed.
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
