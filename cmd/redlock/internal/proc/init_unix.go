//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package proc

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// orphans is about the children that redlock has not started: as process 1 of a container it has those of
// all that enters the container.
var orphans struct {
	sync.Mutex
	taken bool // another goroutine waits for all children
}

// takeOver ends what ReapOrphans does: the caller waits for all children of this process from now on.
func takeOver() {
	orphans.Lock()
	defer orphans.Unlock()
	orphans.taken = true
}

// ReapOrphans makes redlock, if it is process 1, wait for its children until stop is called, as process 1 has to: the
// kernel keeps a zombie of each until then. One of these may be the keeper: nothing else waits for it, as only its
// socket matters.
func ReapOrphans() (stop func()) {
	if os.Getpid() != 1 {
		return func() {}
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	go func() {
		for range ended {
			orphans.Lock()
			for !orphans.taken {
				if child, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err == nil && child > 0 || err == syscall.EINTR {
					continue
				}
				break
			}
			orphans.Unlock()
		}
	}()
	return func() {
		signal.Stop(ended)
		close(ended)
	}
}
