package inject

import "github.com/quorumlock/redlock/chaos/history"

// A Link is the network before a node. It has one cut at a time.
type Link interface {
	Cut()
	CutRequests()
	CutReplies()
	Heal()
	HealByReset()
}

// Cut begins or ends a cut of a link. It reports false for any other fault.
func Cut(l Link, f history.Fault, begin bool) bool {
	switch f.Kind {
	case history.Cut, history.CutRequests, history.CutReplies, history.Part:
	default:
		return false
	}
	switch {
	case !begin && f.Kind == history.Part:
		l.HealByReset()
	case !begin:
		l.Heal()
	case f.Kind == history.CutRequests:
		l.CutRequests()
	case f.Kind == history.CutReplies:
		l.CutReplies()
	default:
		l.Cut()
	}
	return true
}
