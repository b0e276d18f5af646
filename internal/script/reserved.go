package script

import (
	"strconv"
	"strings"
)

// reserved has the keys of the nodes themselves, which no lock may have, and what each is, for errors.
var reserved = map[string]string{
	Marker: "is the key of the nodes' marker",
	Told:   "is the key of the nodes' description",
	Choice: "is the key of the nodes' next description",
	Fences: "is the key of the nodes' table of fences",
	Belows: "is the key of the nodes' table of fences",
}

// Reserved says what a node uses this key for, to be put behind the key in an error; "": a lock may have the key.
func Reserved(key string) string {
	if strings.HasPrefix(key, Broken) {
		return "is a key by which the nodes note a token that is broken"
	}
	return reserved[key]
}

// Lasting reports whether a key stays when all locks are gone: the node's own keys, and, for a minute, a lock's queue.
func Lasting(key string) bool {
	return Reserved(key) != "" || strings.HasSuffix(key, QueueSuffix)
}

// LockOf returns the key of the lock to which a key on a node belongs. queue: the key is not the lock's own, but that of its
// queue. ok is false for a key of no lock, and for that of one place of a semaphore, whose lock has a key of its own.
func LockOf(key string) (lock string, queue, ok bool) {
	lock, queue = strings.CutSuffix(key, QueueSuffix)
	if lock == "" || Lasting(lock) {
		return "", false, false
	}
	if i := strings.LastIndex(lock, SlotInfix); i >= 0 {
		if _, err := strconv.Atoi(lock[i+len(SlotInfix):]); err == nil {
			return "", false, false
		}
	}
	return lock, queue, true
}
