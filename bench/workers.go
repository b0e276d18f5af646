package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

// ask measures a contender in a process of its own.
func (p *programs) ask(ctx context.Context, contender string, o order) (sample, error) {
	c, err := p.hire(ctx, contender, 1)
	if err != nil {
		return nil, err
	}
	got, err := c.all(func(int) order { return o })
	if err = errors.Join(err, c.dismiss()); err != nil {
		return nil, err
	}
	return got[0].Sample, nil
}

// Workers are processes that carry out orders, one after the other.
type workers struct{ members []*member }

type member struct {
	process *exec.Cmd
	stdin   io.WriteCloser
	orders  *json.Encoder
	answers *json.Decoder
}

// hire starts n processes of the contender's program.
func (p *programs) hire(ctx context.Context, contender string, n int) (*workers, error) {
	c := &workers{}
	for range n {
		process := exec.CommandContext(ctx, p.of(contender), childArg)
		process.Stderr = os.Stderr
		in, err1 := process.StdinPipe()
		out, err2 := process.StdoutPipe()
		if err := errors.Join(err1, err2, ctx.Err()); err != nil {
			return nil, errors.Join(err, c.dismiss())
		}
		if err := process.Start(); err != nil {
			return nil, errors.Join(err, c.dismiss())
		}
		c.members = append(c.members, &member{process, in, json.NewEncoder(in), json.NewDecoder(out)})
	}
	return c, nil
}

// dismiss ends the input of the processes, and returns when they have ended.
func (c *workers) dismiss() error {
	var err error
	for _, m := range c.members {
		err = errors.Join(err, m.stdin.Close())
	}
	for _, m := range c.members {
		err = errors.Join(err, m.process.Wait())
	}
	c.members = nil
	return err
}

// all gives each member its order, and returns when all have answered.
func (c *workers) all(orderOf func(i int) order) ([]answer, error) {
	got, failed := make([]answer, len(c.members)), make([]error, len(c.members))
	var done sync.WaitGroup
	for i, m := range c.members {
		done.Go(func() {
			if failed[i] = m.orders.Encode(orderOf(i)); failed[i] == nil {
				failed[i] = m.answers.Decode(&got[i])
			}
			if failed[i] == nil && got[i].Err != "" {
				failed[i] = errors.New(got[i].Err)
			}
			if failed[i] != nil {
				failed[i] = fmt.Errorf("process %d of %d: %w", i+1, len(c.members), failed[i])
			}
		})
	}
	done.Wait()
	return got, errors.Join(failed...)
}

// open opens the contender in all processes.
func (c *workers) open(o order) error {
	o.Task = taskOpen
	prefix := freshPrefix()
	_, err := c.all(func(i int) order {
		o := o
		o.Name = prefix + strconv.Itoa(i) + nameEnd
		return o
	})
	return err
}

// muster is the time for the orders to reach all processes before they begin.
const muster = 30 * time.Millisecond

// contend makes all processes acquire one name repeatedly, beginning at once or one after the
// other, and returns the history.
func (c *workers) contend(o order, apart, length time.Duration) (*history, error) {
	begin := time.Now().Add(muster)
	o.Task, o.Name, o.Until = taskAcquire, freshPrefix()+"waiting"+nameEnd, begin.Add(length)
	got, err := c.all(func(i int) order {
		o := o
		o.At = begin.Add(time.Duration(i) * apart)
		return o
	})
	if err != nil {
		return nil, err
	}
	return newHistory(got, begin, o.Until)
}
