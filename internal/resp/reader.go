package resp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Bounds of a reply: without them, a broken or hostile server could make the client use up its memory or its stack. The
// longest reply is that of inspect.lua, with some hundred bytes for each waiter.
const (
	bufferSize = 16 << 10 // a line fits into it: a number, a status, an error
	maxReply   = 16 << 20 // bytes of a reply, and element for each of its values
	maxDepth   = 4        // arrays within arrays
	element    = 64       // bytes that a value takes in memory besides its text, at most
)

// An Error is an error that the server sent in the place of a reply. It is a redis.Error.
type Error string

func (e Error) Error() string { return string(e) }

// RedisError marks an Error as one of the server, for go-redis (redis.HasErrorPrefix). It does nothing.
func (Error) RedisError() {}

// A Reader reads replies. An Error was sent by the server in the place of a reply. After any other error, the caller
// must close the connection: where the next reply begins is not known any more.
type Reader struct{ buf *bufio.Reader }

// Reset makes the Reader read from another connection, and drops what it has buffered.
func (r *Reader) Reset(from io.Reader) {
	if r.buf == nil {
		r.buf = bufio.NewReaderSize(nil, bufferSize)
	}
	r.buf.Reset(from)
}

// Done returns an error if the server has sent more than was read. Call it when all replies to all commands were read.
func (r *Reader) Done() error {
	rest, _ := r.buf.Peek(r.buf.Buffered())
	if len(rest) == 0 {
		return nil
	}
	return fmt.Errorf("it sent %.100q, which nothing had asked for", rest)
}

// Wait waits until a reply begins, and reads nothing. After an error that is only a timeout, the Reader can go on.
func (r *Reader) Wait() error {
	_, err := r.buf.Peek(1)
	return err
}

// Reply reads a reply: an int64, a string, a []any of replies, or nil. In a list, an Error is an element.
func (r *Reader) Reply() (any, error) {
	room := maxReply
	value, err := r.value(&room, maxDepth)
	if said, ok := value.(Error); ok {
		return nil, said
	}
	return value, err
}

// Int reads a reply that is a number; 0 and no error for others, an Error for an error reply.
func (r *Reader) Int() (int64, error) {
	t, err := r.only(":")
	return t.number, err
}

// Decimal reads a reply that is a string with a decimal number; 0 and no error for others, an Error for an error reply.
func (r *Reader) Decimal() (int64, error) {
	t, err := r.only("$+")
	n, _ := strconv.ParseInt(string(t.text), 10, 64) // which makes no copy
	return n, err
}

// String reads a reply that is a string, known without allocating; "" and no error for others, an Error for an error reply.
func (r *Reader) String(known string) (string, error) {
	t, err := r.only("$+")
	if string(t.text) == known {
		return known, err
	}
	return string(t.text), err
}

// List begins to read a list of n replies: the caller then reads these. False, without an error: the reply is something else
// (no error reply), or a list of another length, and List has read all of it.
func (r *Reader) List(n int) (bool, error) {
	t, is, err := r.begin("*")
	switch {
	case err != nil || !is:
		return false, err
	case t.number == int64(n):
		return true, nil
	}
	room := maxReply
	_, err = r.rest(t, &room, maxDepth)
	return false, err
}

// only reads a reply that is one token (no list), of one of these kinds (token.kind). If the reply is something else,
// it returns a zero token; an Error if the server sent one.
func (r *Reader) only(kinds string) (token, error) {
	t, is, err := r.begin(kinds)
	if !is {
		t = token{}
	}
	return t, err
}

// begin reads the first token of a reply. If is is true, its kind is one of kinds (token.kind), and the caller reads the
// rest. Else begin has read and dropped the whole reply, and t means nothing; err is an Error if the server sent one.
func (r *Reader) begin(kinds string) (t token, is bool, err error) {
	room := maxReply
	if t, err = r.token(&room); err != nil {
		return token{}, false, err
	}
	switch {
	case strings.IndexByte(kinds, t.kind) >= 0:
		return t, true, nil
	case t.kind == '-':
		return token{}, false, Error(t.text)
	}
	_, err = r.rest(t, &room, maxDepth)
	return t, false, err
}

// A token is the first line of a reply, and the string behind it if it announces one.
type token struct {
	kind   byte   // + - : $ *
	number int64  // of a ':'; the length of a '*' or '$'; -1: a null
	text   []byte // of a '+', '-' or '$'; valid until the next read
}

// token reads the next token: a line, and the string that it announces. room is how many bytes the reply may still
// take: token subtracts what it reads.
func (r *Reader) token(room *int) (t token, err error) {
	line, err := r.line()
	if err != nil {
		return t, err
	}
	if *room -= element + len(line) + len("\r\n"); *room < 0 {
		return t, errLong
	}
	t.kind, t.text = line[0], line[1:]
	switch t.kind {
	case '+', '-':
		return t, nil
	case ':', '$', '*':
		t.number, err = strconv.ParseInt(string(t.text), 10, 64)
		switch {
		case err != nil || t.kind != ':' && t.number < -1:
			return t, unexpected(line)
		case t.kind == '$' && t.number > int64(*room), t.kind == '*' && t.number > int64(*room)/element:
			return t, errLong
		}
		t.text = nil
		if t.kind == '$' && t.number >= 0 {
			*room -= int(t.number) + len("\r\n")
			t.text, err = r.bulk(int(t.number))
		}
		return t, err
	}
	return t, unexpected(line)
}

// value reads a whole reply, of at most room bytes and with lists at most depth levels deep, and subtracts from room
// what it reads. It returns one of the types of Reply, or an Error, which is a value here.
func (r *Reader) value(room *int, depth int) (any, error) {
	t, err := r.token(room)
	if err != nil {
		return nil, err
	}
	return r.rest(t, room, depth)
}

// rest reads what follows t, the first token of a reply, and returns the whole reply, as value does.
func (r *Reader) rest(t token, room *int, depth int) (any, error) {
	switch {
	case t.kind == '-':
		return Error(t.text), nil
	case t.kind == ':':
		return t.number, nil
	case t.number == -1:
		return nil, nil
	case t.kind != '*':
		return string(t.text), nil
	case depth == 0:
		return nil, unexpected(fmt.Appendf(nil, "*%d", t.number))
	}
	return r.array(int(t.number), room, depth-1)
}

// array reads the n elements of a list. It does not allocate for all at once: they may be announced and never come.
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

// bulk reads a string of n bytes and the line end after it. The string is valid until the next read.
func (r *Reader) bulk(n int) (all []byte, err error) {
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
	if n+2 <= bufferSize {
		_, err = r.buf.Discard(n + 2)
	}
	return all[:n], err
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

// unexpected returns the error for bytes that are no reply.
func unexpected(got []byte) error {
	return fmt.Errorf("it sent %.100q, which is no reply in RESP2", got)
}
