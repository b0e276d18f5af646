package proc

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Everything says whether the end of a lock reaches all that a command has started: here the keeper
// adopts what has lost its parent, so that no process leaves the tree below it.
const Everything = true

// adopt makes this process the parent of every process below it whose own parent ends.
func adopt() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// A process is a line of /proc.
type process struct {
	pid, parent, group int
	started            string // when: two processes with one number differ in it
	name               string
	dead               bool // a zombie
}

// look reads a process from /proc; ok is false if no process has this number.
func look(pid int) (p process, ok bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	from, to := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')') // the name may have both
	if err != nil || from < 0 || to < from {
		return p, false
	}
	field := strings.Fields(string(stat[to+1:])) // from the state on, the third of proc(5)
	if len(field) < 20 {
		return p, false
	}
	p = process{pid: pid, name: string(stat[from+1 : to]), dead: field[0] == "Z" && field[17] == "1", started: field[19]}
	p.parent, _ = strconv.Atoi(field[1])
	p.group, _ = strconv.Atoi(field[2])
	return p, true
}

// below returns the processes below root in the tree of parents, and the groups to which (foreign) other processes
// belong. ok is false if processes cannot be listed here.
func below(root int) (tree []process, foreign map[int]bool, ok bool) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, nil, false
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, nil, false
	}
	children := make(map[int][]process)
	for i := len(names) - 1; i >= 0; i-- { // the youngest first: it may not live for long
		if pid, err := strconv.Atoi(names[i]); err == nil {
			if p, ok := look(pid); ok {
				children[p.parent] = append(children[p.parent], p)
			}
		}
	}
	if len(children) == 0 {
		return nil, nil, false
	}
	for next := []int{root}; len(next) > 0; {
		parent := next[0]
		for _, p := range children[parent] {
			tree, next = append(tree, p), append(next, p.pid)
		}
		next = next[1:]
		delete(children, parent)
	}
	foreign = make(map[int]bool)
	for _, rest := range children {
		for _, p := range rest {
			foreign[p.group] = true
		}
	}
	return tree, foreign, true
}

// signalAll signals all processes below root. A group of theirs gets the signal as a whole, which none of its members
// escapes by a fork in between. A process in a group with others gets it alone. group gets it if there is no list of
// processes.
func signalAll(root, group int, sig syscall.Signal) {
	tree, foreign, ok := below(root)
	if !ok {
		signalGroup(group, sig)
		return
	}
	done := make(map[int]bool)
	for _, p := range tree {
		switch {
		case p.group <= 1 || foreign[p.group]: // 0: a group of an outer namespace
			p.signal(sig)
		case !done[p.group]:
			done[p.group] = true
			signalGroup(p.group, sig)
		}
	}
}

// signal sends a signal to this process, unless it has ended and its number is now that of a later one.
func (p process) signal(sig syscall.Signal) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err == nil {
		defer unix.Close(fd)
	}
	if now, ok := look(p.pid); !ok || now.started != p.started {
		return
	}
	send := func(sig syscall.Signal) {
		if err == nil {
			_ = unix.PidfdSendSignal(fd, sig, nil, 0)
		} else { // a kernel before 5.3
			_ = syscall.Kill(p.pid, sig)
		}
	}
	send(sig)
	if sig != syscall.SIGKILL {
		send(syscall.SIGCONT)
	}
}

// eldest returns the child of parent that was started first; 0: parent has no child.
func eldest(parent int) (pid int) {
	tree, _, _ := below(parent)
	first := uint64(math.MaxUint64)
	for _, p := range tree {
		if at, err := strconv.ParseUint(p.started, 10, 64); err == nil && p.parent == parent && at < first {
			pid, first = p.pid, at
		}
	}
	return pid
}

// survivors returns names and numbers of the processes below root that have not ended.
func survivors(root, _ int) (names []string) {
	tree, _, _ := below(root)
	for _, p := range tree {
		if !p.dead {
			names = append(names, fmt.Sprintf("%s (process %d)", p.name, p.pid))
		}
	}
	return names
}

// groupLeft reports whether a process group has members left. On Linux reap has waited for all, so it is false.
func groupLeft(int) bool { return false }

// self returns the path of this program, which leads to it even if its file was replaced or deleted since the start.
func self() (string, error) {
	const exe = "/proc/self/exe"
	if _, err := os.Stat(exe); err == nil {
		return exe, nil
	}
	return os.Executable()
}
