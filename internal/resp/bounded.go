package resp

import (
	"bytes"
	"io"
)

// A Bounded is what go-redis reads a server's replies from. go-redis allocates whatever length a server announces, and
// follows lists as deep as they go: "$1000000000000" ends the process. A Bounded hands on a reply when all of it has
// arrived, and only if it is within the bounds of a Reader. After an error within a reply it reads no more.
type Bounded struct {
	in   Reader
	raw  bytes.Buffer // what has arrived and was not handed on
	left int          // how many bytes of raw belong to the reply that is handed on
	err  error
}

// NewBounded returns a Bounded that reads from a connection.
func NewBounded(from io.Reader) *Bounded {
	b := new(Bounded)
	b.in.Reset(io.TeeReader(from, &b.raw))
	return b
}

func (b *Bounded) Read(to []byte) (int, error) {
	if b.left == 0 && b.err == nil {
		if err := b.in.Wait(); err != nil { // maybe a timeout: the next Read waits again
			return 0, err
		}
		_, err := b.in.Reply()
		if _, said := err.(Error); err != nil && !said {
			b.err = err
		} else {
			b.left = b.raw.Len() - b.in.buf.Buffered()
		}
	}
	if b.left == 0 {
		return 0, b.err
	}
	n := copy(to, b.raw.Next(min(len(to), b.left)))
	b.left -= n
	return n, nil
}
