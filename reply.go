package redlock

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/facts"
	"github.com/quorumlock/redlock/internal/queue"
	"github.com/quorumlock/redlock/internal/ways"
	"github.com/redis/go-redis/v9"
)

// read takes the script's reply.
func (q *request) read(value any, err error) {
	q.reply = parse(q.op, value, err)
	if q.reply.fence == asProposed {
		q.reply.fence = q.number
	}
	switch {
	case q.op != opAcquire:
	case q.reply.outcome == Granted:
		q.reply.mark = q.mark // or it would not have granted
	case q.reply.outcome == Late && q.reply.mark != q.mark && q.mark != "":
		q.reply.outcome, q.reply.err = Quarantined, errForgot
	}
}

// asProposed is the fence of a grant with the number that was proposed.
const asProposed = -1

// parse reads what the scripts in internal/script reply.
func parse(step op, value any, err error) reply {
	if err != nil {
		return reply{outcome: classify(err), err: err}
	}
	switch v := value.(type) {
	case int64:
		switch {
		case step == opAcquire:
			return reply{outcome: Granted, fence: asProposed, time: v}
		case v == 0:
			return reply{outcome: Expired}
		case step == opExtend:
			return reply{outcome: Granted, time: v}
		}
		return reply{outcome: Granted}
	case []any:
		if r, ok := parseList(step, v); ok {
			return r
		}
	}
	return reply{outcome: Failed, err: fmt.Errorf("unexpected reply %v", value)}
}

func parseList(step op, v []any) (r reply, ok bool) {
	ok = true
	number := func(i int) int64 {
		n, is := v[i].(int64)
		ok = ok && is
		return n
	}
	word := func(i int) string {
		s, is := v[i].(string)
		ok = ok && is
		return s
	}
	switch {
	case step == opInspect && len(v) == 7:
		r = reply{outcome: Granted, holder: word(0), ttl: milliseconds(number(1)), mark: word(3), time: number(4)}
		if v[1] == int64(-1) { // a key without a TTL: nobody's lock, whatever it says
			return reply{outcome: Foreign, time: r.time, err: errNoTTL}, ok
		}
		r.fence, _ = strconv.ParseInt(word(2), 10, 64) // none: 0
		waiting, is := v[5].([]any)
		for i := 0; is && i+1 < len(waiting); i += 2 {
			member, _ := waiting[i].(string)
			score, _ := waiting[i+1].(string)
			if e, well := queue.Parse(member, score); well {
				r.queue = append(r.queue, e)
			}
		}
		members, are := v[6].([]any)
		for i := 0; are && i+1 < len(members); i += 2 {
			token, _ := members[i].(string)
			score, _ := members[i+1].(string)
			way, until := ways.OfScore(score)
			if rest := until - r.time/1000; way != 0 && rest >= 0 {
				r.holders = append(r.holders, Holder{Token: token, How: kinds[way], TTL: milliseconds(rest), Nodes: 1})
			}
		}
		return r, ok && is && are
	case step == opAcquire && len(v) == 2:
		if mark, is := v[0].(string); is {
			return reply{outcome: Quarantined, mark: mark, time: number(1), err: errForgot}, ok
		}
		if mark, is := v[1].(string); is {
			return reply{outcome: Late, mark: mark, time: number(0), err: errLate}, ok
		}
		r = reply{outcome: Granted, fence: number(0), time: number(1)}
		if r.fence < 0 || r.fence >= maxFence {
			r.outcome, r.err = Failed, fmt.Errorf("the lock's counter is at %d, and can only be relied on below %d", r.fence, int64(maxFence))
		}
		return r, ok
	case step == opAcquire && len(v) == 4:
		return reply{outcome: Reserved, holder: word(1), ttl: max(0, milliseconds(number(0))), time: number(2)}, ok
	case step == opAcquire && len(v) == 5:
		r = reply{outcome: Held, holder: word(1), ttl: milliseconds(number(0)), time: number(2), slot: number(4)}
	case step == opAcquire && len(v) == 3:
		r = reply{outcome: Held, holder: word(1), ttl: milliseconds(number(0)), time: number(2)}
	case step != opAcquire && len(v) == 2:
		r = reply{outcome: Stolen, holder: word(1), ttl: milliseconds(number(0))}
	default:
		return r, false
	}
	if r.ttl < 0 { // -1: nobody's lock, for a lock always has a TTL
		return reply{outcome: Foreign, time: r.time, err: errNoTTL}, ok
	}
	return r, ok
}

// milliseconds is a time to live: -1 for none, and a century for what is longer, since a
// key may live for longer than a Duration can say.
func milliseconds(n int64) time.Duration {
	return time.Duration(min(max(n, -1), 100*365*24*3600*1000)) * time.Millisecond
}

var errLate = errors.New("it got the request when its time was up")

var errNoTTL = errors.New("the key has no TTL, so it is no lock; delete it if nobody needs it")

// isReply reports whether err was sent by the server, over a connection that is
// well.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// classify says what an error means for whoever looks at the nodes.
func classify(err error) Outcome {
	var said redis.Error
	var timeout net.Error
	var unfit unfitError
	switch {
	case errors.As(err, &unfit):
		return Unfit
	case errors.As(err, &said):
		return refusal(said.Error())
	case errors.As(err, &timeout) && timeout.Timeout():
		return Timeout
	}
	return Unreachable
}

// refusal says what an error of the server's own means.
func refusal(text string) Outcome {
	switch facts.Code(text) {
	case "LOADING", "MASTERDOWN":
		return Loading
	case "READONLY", "MISCONF", "NOREPLICAS":
		return ReadOnly
	case "OOM":
		return OutOfMemory
	case "NOAUTH", "WRONGPASS", "NOPERM":
		return Denied
	case "BUSY":
		return Busy
	case "WRONGTYPE":
		return Foreign
	}
	switch {
	case strings.HasPrefix(text, "ERR max number of clients reached"):
		return Busy
	case strings.Contains(text, "unauthenticated"): // of proxies
		return Denied
	}
	return Failed
}
