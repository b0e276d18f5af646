package redisnode

import (
	"github.com/quorumlock/redlock/internal/lane"
	"github.com/quorumlock/redlock/internal/resp"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/wire"
)

// An openAnswer is the answer to a request that needs no script, while its trailer is not read yet.
type openAnswer struct {
	request *lane.Request
	isPlain bool
	plain   wire.PlainAnswer  // to an acquire (isPlain)
	native  wire.NativeAnswer // to an extension or a release
}

// without returns the requests of a batch without a reply, where the connection failed while it was read: first those of
// answers, whose trailer (the replies at the end) is missing, then others, which were not read.
func without(answers []openAnswer, others []*lane.Request) (requests []*lane.Request) {
	for _, a := range answers {
		requests = append(requests, a.request)
	}
	return append(requests, others...)
}

// writePlain writes the commands of an acquire without a script (wire.PlainAnswer), up to the trailer.
func writePlain(w *resp.Writer, q *lane.Request) {
	c := q.Claim
	key := c.Keys[0] // not c.Key: a lock of this folder and of a name below it is one lock of this key
	w.Begin("set").String(key).String(c.Token).String("nx").String("px").Int(c.Millis).End()
	w.Begin("zadd").String(script.Fences).String("gt").String("ch").Int(q.Number).String(*script.Bucket(key)).End()
	w.Begin("getrange").String(key).Int(0).Int(wire.MostOfToken - 1).End()
	w.Begin("exists").String(key + script.QueueSuffix).End()
}

// What the trailer of a write (wire.PlainAnswer) has.
const (
	noTrailer     = iota
	markerTrailer // for extensions: the marker
	wholeTrailer  // for steps without a script: the marker, the time, and whether the server has the scripts
)

// writeTrailer writes the trailer, the commands at the end of a write: none, one that reads the marker, or also the time,
// and whether the server has the acquire script in scripts. has says which: noTrailer, markerTrailer or wholeTrailer.
func writeTrailer(w *resp.Writer, scripts *hashes, has int) {
	if has == noTrailer {
		return
	}
	w.Begin("mget").String(script.Marker).End() // unlike GET, no error if the key has another type
	if has == wholeTrailer {
		w.Begin("time").End()
		w.Begin("script").String("exists").String(scripts.acquire).End()
	}
}

// readPlain reads the replies to the commands of writePlain for this token. An error: the connection failed.
func readPlain(in *resp.Reader, token string) (p wire.PlainAnswer, err error) {
	r := replies{in: in}
	p.Set = r.text(okay) == okay
	p.Refused = r.failed()
	p.Advanced, p.Holder, p.Queues = r.number(), r.text(token), r.number()
	p.Err = r.failed()
	return p, r.broken
}

const okay = "OK"

// readTrailer reads the trailer into t (zero for noTrailer); has says which one was written. It sets *last to the marker
// that it read ("": the node has none), and allocates nothing if that is *last already. An error: the connection failed.
func readTrailer(in *resp.Reader, has int, t *wire.Trailer, last *string) error {
	r := replies{in: in}
	*t = wire.Trailer{}
	if has != noTrailer && r.list(1) {
		t.Marker = r.text(*last)
		*last = t.Marker
	}
	if has == wholeTrailer {
		if r.list(2) {
			t.Time = r.decimal()*1_000_000 + r.decimal()
		}
		if r.list(1) {
			t.Known = r.number()
		}
	}
	t.Failed = r.failed()
	return r.broken
}

// replies reads the replies to several commands: number, decimal, text and list each take the next one (resp.Reader).
type replies struct {
	in     *resp.Reader
	said   error // the first error that the server sent since the last call of failed
	broken error // why there are no further replies: the connection failed
}

func (r *replies) number() int64  { return next(r, r.in.Int) }
func (r *replies) decimal() int64 { return next(r, r.in.Decimal) }
func (r *replies) text(known string) string {
	return next(r, func() (string, error) { return r.in.String(known) })
}
func (r *replies) list(n int) bool { return next(r, func() (bool, error) { return r.in.List(n) }) }

// next returns the next reply, taken by read: zero for an error reply (r.said keeps the first), and once r.broken is set.
func next[T any](r *replies, read func() (T, error)) (v T) {
	if r.broken != nil {
		return v
	}
	v, err := read()
	switch {
	case err == nil:
	case !wire.IsReply(err):
		r.broken = err
	case r.said == nil:
		r.said = err
	}
	return v
}

func (r *replies) failed() error {
	err := r.said
	r.said = nil
	return err
}
