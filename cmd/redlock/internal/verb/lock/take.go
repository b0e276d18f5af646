package lock

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/explain"
	"github.com/quorumlock/redlock/cmd/redlock/internal/flags"
	"github.com/quorumlock/redlock/cmd/redlock/internal/peek"
	"github.com/quorumlock/redlock/cmd/redlock/internal/phrase"
	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
	"github.com/quorumlock/redlock/internal/wire"
)

// takeConfig has the flags of redlock extend and redlock unlock.
type takeConfig struct {
	reach.Flags
	json  bool
	token string   // unlock --token: names the lock together with a key, without a handle
	also  []string // the keys of that lock
}

// TakeUp is redlock extend and redlock unlock: they take up a lock that another process has acquired.
func TakeUp(c *console.Console, verb string, args []string) (int, error) {
	cfg, f := &takeConfig{Flags: reach.Defaults}, flags.New(verb)
	f.SetInterspersed(true)
	cfg.AddNodes(f)
	if verb == "unlock" {
		cfg.addToken(f)
	} else {
		f.Toggle("json", "", &cfg.json)
	}
	rest, err := f.Parse(args)
	if err != nil {
		return 0, err
	}
	if f.Changed("token") {
		return 0, unlockByToken(c, cfg, rest)
	}
	if len(cfg.also) > 0 || cfg.Separator != "" {
		return 0, exit.Fail(exit.Usage, "the handle of a lock has all its keys, and the separator", "--key and --separator go with --token")
	}
	handle, err := readHandle(c, verb, rest)
	if err != nil {
		return 0, err
	}
	servers, err := reach.Real(c, &cfg.Flags, "ask")
	if err != nil {
		return 0, err
	}
	if f.Changed("prefix") && *cfg.Prefix != handle.Prefix {
		return 0, exit.Fail(exit.Usage, "leave --prefix out: the handle has it", "--prefix %q is not that of the lock, %q", *cfg.Prefix, handle.Prefix)
	}
	if verb == "unlock" { // Attach extends the lock, and the set may allow less by now
		if d := peek.Read(servers, true).Set; d != nil {
			handle.TTL = min(handle.TTL, wire.Milliseconds(d.MaxTTL))
		}
	}
	locker, _, err := reach.Connect(c, servers, &redlock.Options{TTL: min(handle.TTL, reach.DefaultTTL), Prefix: handle.Prefix, Separator: handle.Separator})
	if err != nil {
		return 0, err
	}
	defer locker.Close()
	lock, err := locker.Attach(context.Background(), handle)
	if err == nil && verb == "extend" {
		_, err := handOut(c, lock, cfg.json)
		return 0, err
	}
	return 0, release(lock, handle.Name, err)
}

// release releases the lock that Attach has returned. err is that of Attach: release returns the failure for it.
func release(lock *redlock.Lock, name string, err error) error {
	if err == nil {
		err = lock.Release(context.Background())
	}
	var why *redlock.QuorumError
	switch {
	case errors.Is(err, redlock.ErrLost):
		return exit.Fail(exit.Lost, "another client may hold the lock, or have held it: check what was done under it before you rely on it", "%q is no longer held: %s", name, phrase.Plain(err))
	case errors.As(err, &why):
		return exit.Fail(exit.NoQuorum, explain.Remedy(why.Nodes(), why.Need), "%s", phrase.Plain(err))
	case err != nil:
		return exit.Fail(exit.Usage, "give it the output of redlock lock", "%s", phrase.Plain(err))
	}
	return nil
}

// readHandle reads the output of redlock lock from the argument, or from stdin if there is none.
func readHandle(c *console.Console, verb string, args []string) (handle redlock.Handle, err error) {
	source, text := "the argument", strings.Join(args, "")
	if len(args) == 0 {
		all, err := io.ReadAll(io.LimitReader(c.Stdin, 1<<20))
		if err != nil {
			return handle, exit.Fail(exit.Usage, "", "cannot read stdin: %v", err)
		}
		source, text = "stdin", string(all)
	}
	hint := "lock=$(redlock lock KEY); redlock " + verb + ` "$lock"`
	if len(args) > 1 {
		return handle, exit.Fail(exit.Usage, hint+", in quotes", "%s takes one lock, and was given %d arguments", verb, len(args))
	}
	if verb == "unlock" && !strings.HasPrefix(strings.TrimSpace(text), "{") {
		hint += "; or redlock unlock KEY --token TOKEN"
	}
	var described struct{ Handle *redlock.Handle } // of redlock lock --json
	err = json.Unmarshal([]byte(text), &described)
	if err == nil && described.Handle != nil {
		handle = *described.Handle
	} else if err == nil {
		err = json.Unmarshal([]byte(text), &handle)
	}
	if err != nil {
		return handle, exit.Fail(exit.Usage, hint, "%s is not the output of redlock lock: %v", source, err)
	}
	if !reach.CanBeTTL(handle.TTL) {
		return handle, exit.Fail(exit.Usage, hint, "%s is not the output of redlock lock: its ttl_ns is %d", source, handle.TTL)
	}
	return handle, nil
}

// addToken adds the flags with which unlock needs no handle.
func (cfg *takeConfig) addToken(f *flags.Set) {
	cfg.AddSeparator(f)
	f.Text("token", "redlock status KEY shows it, and redlock run has it in REDLOCK_TOKEN", &cfg.token)
	f.Values("key", func(value string) error {
		cfg.also = append(cfg.also, value)
		return nil
	})
}

// unlockByToken releases a lock by its name and token. The nodes say whether it is a read lock.
func unlockByToken(c *console.Console, cfg *takeConfig, args []string) error {
	if cfg.also = append(args, cfg.also...); len(cfg.also) == 0 || len(args) > 1 || cfg.also[0] == "" {
		return exit.Fail(exit.Usage, "for example: redlock unlock backup --token TOKEN", "unlock --token takes the name of one lock, and was given %q", args)
	}
	name := cfg.also[0]
	servers, err := reach.Real(c, &cfg.Flags, "ask")
	if err != nil {
		return err
	}
	opts := cfg.LookOptions(peek.Read(servers, true))
	locker, _, err := reach.Connect(c, servers, opts)
	if err != nil {
		return err
	}
	defer locker.Close()
	status, err := locker.Inspect(context.Background(), name)
	if err != nil {
		return exit.Fail(exit.Usage, "see redlock help unlock", "%s", phrase.Plain(err))
	}
	if m := locker.Members(); m.Epoch > 0 {
		opts.Separator = m.Separator
	}
	// The release does not use the fence, but the handle of an exclusive lock must have one. The nodes know a bound
	// of it; if they do not have the lock, the release says so.
	fence := max(1, status.Fence)
	handle := redlock.Handle{Name: name, Also: cfg.also[1:], Token: cfg.token, Fence: fence, TTL: opts.TTL, Prefix: opts.Prefix, Separator: opts.Separator}
	for _, h := range status.Holders {
		if h.Token != cfg.token {
			continue
		}
		switch h.Mode {
		case redlock.ModeShared:
			handle.Shared = true
		case redlock.ModeSlot:
			return exit.Fail(exit.Usage, "unlock it by the handle that redlock lock has printed; else it ends with its TTL", "%q: the token is that of a slot, and does not say of which one", name)
		default:
			return exit.Fail(exit.Usage, "name the lock itself: redlock unlock PATH --token TOKEN", "%q: the token is that of a lock below it", name)
		}
	}
	lock, err := locker.Attach(context.Background(), handle)
	return release(lock, name, err)
}
