package resp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// What a reply may have. A server that exceeds it is broken, or hostile: without bounds it could
// make the client use up its memory or its stack. The longest reply is that of inspect.lua, with
// some hundred bytes for each waiter.
const (
	bufferSize = 16 << 10 // a line fits into it: a number, a status, an error
	maxReply   = 16 << 20 // bytes of a reply
	maxDepth   = 4        // arrays within arrays
	minElement = 4        // bytes that an element of an array takes: ":0\r\n" is one
)

// An Error is an error that the server sent in the place of a reply. It is a redis.Error.
type Error string

func (e Error) Error() string { return string(e) }

// RedisError makes it one for go-redis (redis.HasErrorPrefix).
func (Error) RedisError() {}

// A Reader reads replies. After an error that is not an Error, the replies of the connection can no
// longer be told apart, and it must be closed.
type Reader struct{ buf *bufio.Reader }

// Reset makes the Reader read from r, and drops what it has of the reader before.
func (r *Reader) Reset(from io.Reader) {
	if r.buf == nil {
		r.buf = bufio.NewReaderSize(nil, bufferSize)
	}
	r.buf.Reset(from)
}

// Done is called when all replies have been read that were asked for. It fails if more has arrived.
func (r *Reader) Done() error {
	rest, _ := r.buf.Peek(r.buf.Buffered())
	if len(rest) == 0 {
		return nil
	}
	return fmt.Errorf("it sent %.100q, which nothing had asked for", rest)
}

// Wait waits for the first byte of a reply. If that fails, and only because of a deadline, the
// Reader can go on afterwards.
func (r *Reader) Wait() error {
	_, err := r.buf.Peek(1)
	return err
}

// Reply reads a reply: an int64, a string, a []any of replies, or nil. In a list an Error is an
// element like others.
func (r *Reader) Reply() (any, error) {
	room := maxReply
	value, err := r.value(&room, maxDepth)
	if said, ok := value.(Error); ok {
		return nil, said
	}
	return value, err
}

// value reads a reply, which may take room bytes, and takes them from room.
func (r *Reader) value(room *int, depth int) (any, error) {
	line, err := r.line()
	if err != nil {
		return nil, err
	}
	if *room -= len(line) + len("\r\n"); *room < 0 {
		return nil, errLong
	}
	kind, text := line[0], line[1:]
	switch kind {
	case '+':
		return string(text), nil
	case '-':
		return Error(text), nil
	case ':':
		if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
			return n, nil
		}
	case '$', '*':
		n, err := strconv.Atoi(string(text))
		switch {
		case err != nil || n < -1:
		case n == -1:
			return nil, nil
		case kind == '$' && n > *room, kind == '*' && n > *room/minElement:
			return nil, errLong
		case kind == '$':
			*room -= n + len("\r\n")
			return r.bulk(n)
		case depth > 0:
			return r.array(n, room, depth-1)
		}
	}
	return nil, unexpected(line)
}

// array reads n elements. It does not make room for all at once, since they may be announced and
// never come.
func (r *Reader) array(n int, room *int, depth int) (any, error) {
	list := make([]any, 0, min(n, 64))
	for range n {
		value, err := r.value(room, depth)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	return list, nil
}

// bulk reads a string of n bytes.
func (r *Reader) bulk(n int) (value any, err error) {
	var all []byte
	if n+2 <= bufferSize {
		all, err = r.buf.Peek(n + 2)
	} else {
		all = make([]byte, n+2)
		_, err = io.ReadFull(r.buf, all)
	}
	if err != nil {
		return nil, err
	}
	if all[n] != '\r' || all[n+1] != '\n' {
		return nil, unexpected(all[n:])
	}
	value = string(all[:n])
	if n+2 <= bufferSize {
		_, err = r.buf.Discard(n + 2)
	}
	return value, err
}

// line reads a line without its end. It is valid until the next read.
func (r *Reader) line() ([]byte, error) {
	line, err := r.buf.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, unexpected(line)
	}
	if err != nil {
		return nil, err
	}
	text, ended := bytes.CutSuffix(line, []byte("\r\n"))
	if !ended || len(text) == 0 {
		return nil, unexpected(line)
	}
	return text, nil
}

var errLong = fmt.Errorf("it sent a reply of more than %d bytes", maxReply)

// unexpected is the error of a server that sends what is no reply.
func unexpected(got []byte) error {
	return fmt.Errorf("it sent %.100q, which is no reply in RESP2", got)
}
