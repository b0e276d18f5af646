package contender

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/redlock"
)

// The kinds of lock that are compared with one another.
const (
	Alone  = "alone"
	Folder = "in a folder"
)

// Others is the number of locks that are held beside the one that is measured.
const Others = 10_000

// Kinds returns this library with each kind of lock.
func Kinds() []Contender {
	plain := func(name string) string { return name }
	at := func(folders string) func(string) string {
		return func(name string) string { return folders + strings.ReplaceAll(name, "/", ".") }
	}
	folders := redlock.Options{Separator: "/"}
	also := func(name string) []redlock.AcquireOption { return []redlock.AcquireOption{redlock.Also(name + ".b")} }
	kind := func(name, note string, o redlock.Options, as func(string) string, options func(string) []redlock.AcquireOption) Contender {
		inner := redlockWith(name, note, o)
		open := inner.Open
		inner.Open = func(c Config) (Locker, error) {
			l, err := open(c)
			if err != nil {
				return nil, err
			}
			return &kindLocker{l.(*redlockLocker), as, options}, nil
		}
		return inner
	}
	with := func(options ...redlock.AcquireOption) func(string) []redlock.AcquireOption {
		return func(string) []redlock.AcquireOption { return options }
	}
	among := kind(fmt.Sprintf("in a folder with %d others", Others), "the same, while so many others are locked in that folder", redlock.Options{Separator: "/", MaxTTL: time.Hour, NodeTimeout: 5 * time.Second}, at("full/"), with())
	open := among.Open
	among.Open = func(c Config) (Locker, error) {
		l, err := open(c)
		if err != nil {
			return nil, err
		}
		k := l.(*kindLocker)
		if err := k.fill("full/others."); err != nil {
			_ = l.Close()
			return nil, err
		}
		return l, nil
	}
	return []Contender{
		kind(Alone, "no option: one key, held exclusively", redlock.Options{}, plain, with()),
		kind("shared", "Shared", redlock.Options{}, plain, with(redlock.Shared())),
		kind("two names", "Also, with one more name", redlock.Options{}, plain, also),
		kind("a slot of four", "Slots(4)", redlock.Options{}, plain, with(redlock.Slots(4))),
		kind(Folder, `Options.Separator "/", and a path of two parts`, folders, at("project/"), with()),
		kind("five parts deep", "the same, and a path of five parts", folders, at("a/b/c/d/"), with()),
		among,
	}
}

// A kindLocker asks for names with some options.
type kindLocker struct {
	*redlockLocker
	as      func(name string) string
	options func(name string) []redlock.AcquireOption
}

func (l *kindLocker) Lock(ctx context.Context, name string) (Lock, error) {
	name = l.as(name)
	lock, err := l.TryAcquire(ctx, name, l.options(name)...)
	if err != nil {
		return nil, err
	}
	return lock, nil
}

// fill locks the others, for so long that they need no renewal.
func (l *kindLocker) fill(prefix string) error {
	const workers = 16
	failed := make([]error, workers)
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := w; i < Others && failed[w] == nil; i += workers {
				_, failed[w] = l.TryAcquire(context.Background(), fmt.Sprint(prefix, i), redlock.TTL(time.Hour))
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}
