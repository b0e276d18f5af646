package redisnode

import (
	"strconv"

	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/resp"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
)

// An openAnswer is one without a script, but for the trailer; or, of a second write, one that is still to
// come.
type openAnswer struct {
	request *lane.Request
	plain   *wire.PlainAnswer
	native  *wire.NativeAnswer
	called  bool // the request has its reply, and waiters are called
}

// without gives the requests of answers that have no reply.
func without(answers []openAnswer) (requests []*lane.Request) {
	for _, a := range answers {
		if !a.called {
			requests = append(requests, a.request)
		}
	}
	return requests
}

// writePlain writes the commands of an acquire; see wire.PlainAnswer.
func writePlain(w *resp.Writer, q *lane.Request) {
	c := q.Claim
	key := c.Keys[0] // not c.Key: the lock of a name below it, and of this one, is a lock of this key
	w.Begin("set").String(key).String(c.Token).String("nx").String("px").Int(c.Millis).End()
	w.Begin("zadd").String(script.Fences).String("gt").String("ch").Int(q.Number).String(*script.Bucket(key)).End()
	w.Begin("get").String(key).End()
	w.Begin("exists").String(key + script.QueueSuffix).End()
}

// What the trailer of a write has.
const (
	noTrailer    = iota
	clockTrailer // for extensions: the time, and whether the scripts are there
	wholeTrailer
)

// writeTrailer writes the commands that come last.
func writeTrailer(w *resp.Writer, scripts *hashes, has int) {
	if has == noTrailer {
		return
	}
	if has == wholeTrailer {
		w.Begin("mget").String(script.Marker).String(script.OldMarker).End()
		w.Begin("exists").String(script.Belows).End()
	}
	w.Begin("time").End()
	w.Begin("script").String("exists").String(scripts.acquire).End()
}

// readPlain reads the replies to an acquire, but for the trailer.
func readPlain(in *resp.Reader) (*wire.PlainAnswer, error) {
	r := replies{in: in}
	p := &wire.PlainAnswer{Set: r.text() == "OK"}
	p.Refused = r.failed()
	p.Advanced, p.Holder, p.Queues = r.number(), r.text(), r.number()
	p.Err = r.failed()
	return p, r.broken
}

func readTrailer(in *resp.Reader, has int) (*wire.Trailer, error) {
	r, t := replies{in: in}, new(wire.Trailer)
	if has == noTrailer {
		return t, nil
	}
	if has == wholeTrailer {
		marks := r.list(2)
		t.Marker, _ = marks[0].(string)
		t.OldMarker, _ = marks[1].(string)
		t.Below = r.number()
	}
	time := r.list(2)
	t.Time = decimal(time[0])*1_000_000 + decimal(time[1])
	t.Known, _ = r.list(1)[0].(int64)
	t.Failed = r.failed()
	return t, r.broken
}

func decimal(v any) int64 {
	text, _ := v.(string)
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// replies are those to several commands. Each of the methods takes the next one.
type replies struct {
	in     *resp.Reader
	said   error // the first error that the server sent, since failed was last called
	broken error // why there are no further replies
}

func (r *replies) next() any {
	if r.broken != nil {
		return nil
	}
	v, err := r.in.Reply()
	if err != nil && !wire.IsReply(err) {
		r.broken = err
	} else if err != nil && r.said == nil {
		r.said = err
	}
	return v
}

func (r *replies) number() int64 { n, _ := r.next().(int64); return n }
func (r *replies) text() string  { s, _ := r.next().(string); return s }

// list takes a reply that has n elements. Of any other one it makes n times nothing.
func (r *replies) list(n int) []any {
	list, _ := r.next().([]any)
	if len(list) != n {
		return make([]any, n)
	}
	return list
}

func (r *replies) failed() error {
	err := r.said
	r.said = nil
	return err
}
