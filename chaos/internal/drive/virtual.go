package drive

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/client"
	"github.com/quorumlock/redlock/chaos/internal/scenario"
	"github.com/quorumlock/redlock/internal/testbed/model"
)

// run carries a plan out in a world with the caller's time: the clients work while faults begin and
// end, then all faults are over, every client must be served, and nothing may be left.
func run(p *scenario.Plan, w World) (*history.History, error) {
	model.SleepTo(time.Now(), 0) // from then on the faults have places in the slots
	d := New(p, w)
	store := client.NewMemory(d.Recorder.Note)
	d.Join = func(number int, as client.Role) (Member, error) {
		process, err := w.Enter(number, client.ProcessName(number))
		return &client.Client{
			Number: number, Role: as, Plan: p, Process: process, Store: store, Tell: d.Recorder.Note, Start: d.Recorder.Start, Leftovers: d.Leftovers,
		}, err
	}
	d.Settle = func(limit time.Duration, _ func() bool) { model.SleepTo(time.Now().Add(limit), 0) }
	return d.Run(), nil
}

// Virtually carries a plan out in virtual time.
func Virtually(p *scenario.Plan, in func() World) (h *history.History, err error) {
	blocked := Bubble(func() { h, err = run(p, in()) })
	if blocked != nil && h != nil {
		h.Events = append(h.Events, history.Event{At: h.Events[len(h.Events)-1].At, Kind: history.Left, Error: blocked.Error()})
		return h, nil
	}
	return h, errors.Join(err, blocked)
}

// initTesting defines the flags of package testing, which reads them, in a program that is no test.
var initTesting = sync.OnceFunc(testing.Init)

// Bubble runs f in virtual time, in a goroutine of its own, since a test that fails ends its
// goroutine. The error says that something blocks for ever, or that the race detector has found a
// race.
func Bubble(f func()) error {
	ended := make(chan error, 1)
	go func() {
		err := errors.New("the test in the bubble has failed: see what the race detector says")
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("goroutines: %v", p)
			}
			ended <- err
		}()
		initTesting()
		synctest.Test(new(testing.T), func(*testing.T) { f() })
		err = nil
	}()
	return <-ended
}
