package renew

import "container/heap"

// A schedule is a heap of entries, the one with the earliest time first.
type schedule []*Entry

func (s *schedule) add(e *Entry)    { heap.Push(s, e) }
func (s *schedule) remove(e *Entry) { heap.Remove(s, e.index) }

// Len, Less, Swap, Push and Pop are for package heap.
func (s schedule) Len() int           { return len(s) }
func (s schedule) Less(i, j int) bool { return s[i].at.Before(s[j].at) }

func (s schedule) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i, j
}

func (s *schedule) Push(x any) {
	e := x.(*Entry)
	e.index = len(*s)
	*s = append(*s, e)
}

func (s *schedule) Pop() any {
	old := *s
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*s = old[:len(old)-1]
	return e
}
