package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/quorumlock/redlock"
)

// quiet is how long we wait for a lock before we say what we are waiting for:
// long enough for ordinary contention to be no news.
const quiet = time.Second

// stragglers is how much longer than for a quorum of new nodes we wait for their votes.
// They have been new since the same moment, or nearly so, and the vote of a node that
// comes too late is none until the lock was extended twice: until then, one of the
// others that is restarted would cost us the lock.
const stragglers = 100 * time.Millisecond

// run is redlock run, and redlock elect, which does it again and again.
func (c *command) run(name string, args []string) (code int, err error) {
	cfg, err := parseRun(name, args)
	if errors.Is(err, errHelp) {
		return 0, c.help([]string{name})
	}
	if err != nil {
		return 0, err
	}
	// Before the lock, not after an hour of waiting for it.
	if cfg.shell {
		cfg.argv = []string{"sh", "-c", strings.Join(cfg.argv, " ")}
	}
	if cfg.path, err = exec.LookPath(cfg.argv[0]); err != nil {
		return 0, notExecutable(cfg.argv[0], err)
	}
	opts, err := cfg.options(c.env)
	if err != nil {
		return 0, err
	}

	signals, restore := catchSignals()
	defer restore()
	urls, stop, err := c.lockNodes(cfg.nodes, cfg.embedded, "lock on")
	if err != nil {
		return 0, err
	}
	defer stop()
	locker, nodes, err := c.connect(urls, opts)
	if err != nil {
		return 0, err
	}
	defer locker.Close()
	for {
		lock, err := c.await(locker, nodes, cfg, signals)
		if err != nil {
			return 0, err
		}
		h := &hold{command: c, cfg: cfg, lock: lock, since: time.Now()}
		code, err = h.run(len(urls), signals)
		if !cfg.elect || h.told || h.group == nil {
			return code, err
		}
		if err != nil {
			c.say("%v", err)
		} else {
			c.say("%q: the command has ended (%v); once more in %v, or whoever is first", cfg.keys[0], h.group, again)
		}
		select {
		case <-time.After(again):
		case sig := <-signals:
			return interrupted{sig}.code(), nil
		}
	}
}

// again is how long redlock elect leaves the lock to others when its command has ended.
const again = time.Second

// run runs the command under the lock, and gives that back.
func (h *hold) run(nodes int, signals <-chan os.Signal) (code int, err error) {
	name := h.cfg.keys[0]
	err = h.supervise(&exec.Cmd{
		Path: h.cfg.path, Args: h.cfg.argv, Env: append(slices.Clone(h.env), variables(h.lock, nodes)...),
		Stdin: h.stdin, Stdout: h.stdout, Stderr: h.stderr,
	}, signals)
	if err == nil && h.ended.IsZero() {
		h.linger(signals)
	}
	gaveBack := h.lock.Release(context.Background())
	if err != nil {
		return 0, err
	}
	if !h.lost && h.ended.IsZero() && errors.Is(gaveBack, redlock.ErrLost) { // in the instant in which the command ended
		h.lost = true
		h.say("lost %q: %s", name, plain(gaveBack))
	}
	switch {
	case h.lost:
		return 0, fail(exitLost, "others may have had the lock while it still ran: look at what it has done before you trust it",
			"%q was not ours to the end of the command (%v)", name, h.group)
	case !h.ended.IsZero():
		return 0, fail(exitLost, "nobody else had the lock before; what it had not done yet it has not done",
			"the command was ended, because %q would have been (%v)", name, h.group)
	}
	return h.group.code(), nil
}

// variables are what the command finds in its environment. They come last: where a name
// is there twice, the later one counts, and in a lock within a lock that has to be the
// inner one's.
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
// about to start the same. A signal ends it.
func (h *hold) linger(signals <-chan os.Signal) {
	rest := time.NewTimer(h.cfg.minHold - time.Since(h.since))
	defer rest.Stop()
	select {
	case <-rest.C:
	case <-signals:
	case <-h.lock.Context(context.Background()).Done():
	}
}

// interrupted is the cause with which a signal ends the waiting.
type interrupted struct{ os.Signal }

func (i interrupted) Error() string { return i.String() }

// code is the exit code for it.
func (i interrupted) code() int {
	number, _ := i.Signal.(syscall.Signal)
	return exitSignal + int(number)
}

// untilSignal gives a context that a signal ends, and what ends the listening: later
// signals are somebody else's.
func untilSignal(signals <-chan os.Signal) (ctx context.Context, stop func()) {
	ctx, interrupt := context.WithCancelCause(context.Background())
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case sig := <-signals:
			interrupt(interrupted{sig})
		case <-done:
		}
	})
	return ctx, func() {
		close(done)
		watch.Wait()
		interrupt(nil)
	}
}

// await waits for the lock, until cfg.timeout or a signal.
func (c *command) await(locker *redlock.Locker, nodes *quarantines, cfg *runConfig, signals <-chan os.Signal) (*redlock.Lock, error) {
	ctx, stop := untilSignal(signals)
	lock, err := c.acquire(ctx, locker, nodes, cfg)
	stop()
	var by interrupted
	switch {
	case errors.As(context.Cause(ctx), &by):
		if lock != nil { // both at once
			_ = lock.Release(ctx)
		}
		without := "the command was not started"
		if len(cfg.argv) == 0 {
			without = "it is not locked"
		}
		return nil, fail(by.code(), "", "%v ended the waiting for %q; %s", by, cfg.keys[0], without)
	case err != nil:
		return nil, notAcquired(cfg, err)
	}
	return lock, nil
}

// acquire asks once, and then waits. The first answer tells a person who waits
// what for; it also is the better reason where the time runs out in the middle of
// a round, of which one only knows then that the nodes have not answered yet.
func (c *command) acquire(ctx context.Context, locker *redlock.Locker, nodes *quarantines, cfg *runConfig) (*redlock.Lock, error) {
	if cfg.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cfg.timeout)
		defer cancel()
	}
	lock, first := locker.TryAcquire(ctx, cfg.keys[0], cfg.kind()...)
	var why *redlock.QuorumError
	for errors.As(first, &why) && nodes.wait() > 0 {
		if !outlast(ctx, locker, nodes, cfg) {
			return nil, first
		}
		lock, first = locker.TryAcquire(ctx, cfg.keys[0], cfg.kind()...)
	}
	nodes.tell("", "")
	if !errors.As(first, &why) || cfg.timeout == 0 {
		return lock, first
	}
	notice := time.AfterFunc(quiet, func() { c.say("waiting for %s", reason(why)) })
	defer notice.Stop()
	lock, last := locker.Acquire(ctx, cfg.keys[0], cfg.kind()...)
	if last != nil && ctx.Err() != nil && unfinished(last) {
		return nil, first
	}
	return lock, last
}

// outlast waits until enough nodes can have a vote, and says so. Nobody can get the
// lock before, so there is no use in asking for it meanwhile; nor in waiting at all
// if the time will be up first, which it reports by false.
func outlast(ctx context.Context, locker *redlock.Locker, nodes *quarantines, cfg *runConfig) bool {
	// The round before this was over as soon as it could not be won. Now all nodes
	// have time to answer, and to be in what we tell.
	_, _ = locker.Inspect(ctx, cfg.keys[0])
	wait := nodes.wait() + stragglers
	deadline, limited := ctx.Deadline()
	if cfg.timeout == 0 || limited && time.Until(deadline) < wait {
		return false
	}
	nodes.tell(", so the lock has to wait", " (redlock prepare, run once when nodes are deployed, avoids this)")
	select {
	case <-time.After(wait):
		return true
	case <-ctx.Done():
		return false
	}
}

// unfinished reports whether an error is that of a round which the end of the
// time has cut short, so that it says nothing about the nodes.
func unfinished(err error) bool {
	var why *redlock.QuorumError
	if !errors.As(err, &why) {
		return true // there was not even time for one
	}
	for _, n := range why.Nodes() {
		if n.Outcome == redlock.Timeout && n.Err == nil {
			return true
		}
	}
	return false
}

// notExecutable says, with the shell's exit codes, why there is nothing to run.
func notExecutable(name string, err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return fail(exitNotFound, "is it installed, and in PATH? The command and its arguments are separate words: redlock run --key K -- CMD ARG ...",
			"command not found: %s", name)
	}
	hint := "is it a program, and has its file the permission to be executed?"
	if errors.Is(err, syscall.ENOEXEC) {
		hint = "a script needs a first line such as #!/bin/sh"
	}
	var why *exec.Error
	if errors.As(err, &why) {
		err = why.Err
	}
	return fail(exitNotExecutable, hint, "cannot execute %s: %v", name, err)
}
