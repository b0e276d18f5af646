// Package inject has helpers that several arenas need to inject faults.
package inject

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/quorumlock/redlock/internal/model"
	"github.com/quorumlock/redlock/internal/script"
)

// A client that may publish to waiters, and subscribe to their channels, but may neither read nor
// write a key, must not be able to make a waiter believe that it has a lock. The forger knows the
// messages so far, the processes that subscribe, and the time, and guesses the rest: the numbers of
// waiters and attempts count up.

// Forged returns messages like the node's last hand-over, but for other waiters: those that each
// process may have now, and their first attempts. The fence is the largest possible one, or the
// time. A message begins with the waiter and the attempt, and ends with fence, time and marker.
func Forged(said []model.Said, processes []string, micros int64) (all []model.Said) {
	var like []string
	last := make(map[string]int) // by process, its last waiter that got a message
	for _, s := range said {
		words := strings.Split(s.Message, " ")
		if len(words) >= 6 {
			like = words
		}
		process := strings.TrimPrefix(s.Channel, script.WakeChannel)
		count, _, _ := strings.Cut(strings.TrimPrefix(words[0], process+"."), ".")
		if n, err := strconv.Atoi(count); err == nil {
			last[process] = max(last[process], n)
		}
	}
	if like == nil {
		return nil // the forger does not know the node's marker
	}
	for _, process := range processes {
		for waiter := max(1, last[process]-1); waiter <= last[process]+3; waiter++ {
			for try := range 3 {
				words := append([]string(nil), like...)
				words[0] = fmt.Sprintf("%s.%d", process, waiter)
				words[1] = fmt.Sprint(try+1) + strings.TrimLeft(words[1], "0123456789")
				number := micros
				if waiter%2 == 0 {
					number = 1<<53 - 1
				}
				end := words[len(words)-4:]
				end[0], end[1], end[2] = fmt.Sprint(number), fmt.Sprint(micros/1e6), fmt.Sprint(micros%1e6)
				all = append(all, model.Said{Channel: script.WakeChannel + process, Message: strings.Join(words, " ")})
			}
		}
	}
	return all
}

// Replayed returns the last messages of the node once more.
func Replayed(said []model.Said, _ []string, _ int64) []model.Said {
	const most = 12
	return said[max(0, len(said)-most):]
}
