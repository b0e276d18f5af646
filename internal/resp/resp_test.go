package resp

import (
	"bytes"
	"errors"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
)

func TestWriter(t *testing.T) {
	var w Writer
	write := func() {
		w.Reset()
		w.Begin("SET").String("").Int(math.MinInt64).Bulk([]byte("a\r\n")).End()
		w.Begin("EVALSHA")
		for range 9 {
			w.Int(7)
		}
		w.End()
	}
	write()
	want := "*4\r\n$3\r\nSET\r\n$0\r\n\r\n$20\r\n-9223372036854775808\r\n$3\r\na\r\n\r\n" +
		"*10\r\n$7\r\nEVALSHA\r\n" + strings.Repeat("$1\r\n7\r\n", 9)
	if got := string(w.Bytes()); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if n := testing.AllocsPerRun(100, write); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// replies are whole replies, and what they mean.
var replies = []struct {
	text  string
	value any
	err   error
}{
	{"+OK\r\n", "OK", nil},
	{"+\r\n", "", nil},
	{":-12\r\n", int64(-12), nil},
	{"$3\r\na\r\n\r\n", "a\r\n", nil},
	{"$3\r\na\r\n\r", nil, io.EOF},
	{"$4\r\na\r\nb\r\n", "a\r\nb", nil},
	{"$0\r\n\r\n", "", nil},
	{"$-1\r\n", nil, nil},
	{"*-1\r\n", nil, nil},
	{"*0\r\n", []any{}, nil},
	{"*4\r\n:1\r\n$-1\r\n-ERR no\r\n*2\r\n$1\r\nx\r\n+y\r\n", []any{int64(1), nil, Error("ERR no"), []any{"x", "y"}}, nil},
	{"-NOSCRIPT No matching script.\r\n", nil, Error("NOSCRIPT No matching script.")},
	{"$20000\r\n" + strings.Repeat("x", 20000) + "\r\n", strings.Repeat("x", 20000), nil},
	{"$20000\r\n" + strings.Repeat("x", 20000) + "\n\r", nil, errSome},

	{":1\n", nil, errSome},
	{"\r\n", nil, errSome},
	{":\r\n", nil, errSome},
	{":1x\r\n", nil, errSome},
	{":9223372036854775808\r\n", nil, errSome},
	{"$-2\r\n", nil, errSome},
	{"$16777217\r\n", nil, errSome},
	{"*9999999\r\n", nil, errSome},
	{"$99999999999999999999\r\n", nil, errSome},
	{strings.Repeat("*1\r\n", maxDepth) + ":1\r\n", []any{[]any{[]any{[]any{int64(1)}}}}, nil},
	{strings.Repeat("*1\r\n", maxDepth+1) + ":1\r\n", nil, errSome},
	{"*2000\r\n" + strings.Repeat("+"+strings.Repeat("x", 10000)+"\r\n", 2000), nil, errLong},
	{"+" + strings.Repeat("x", bufferSize) + "\r\n", nil, errSome},
	{">2\r\n+a\r\n+b\r\n", nil, errSome},
	{"_\r\n", nil, errSome},
	{"HTTP/1.1 400 Bad Request\r\n", nil, errSome},
	{"", nil, io.EOF},
	{"*2\r\n:1\r\n", nil, io.EOF},
	{":1", nil, io.EOF},
	{"$5\r\nabc", nil, io.EOF},
	{"$20000\r\nabc", nil, io.ErrUnexpectedEOF},
}

var errSome = errors.New("some error that is no reply")

func TestReader(t *testing.T) {
	for _, tt := range replies {
		for how, from := range map[string]io.Reader{"at once": strings.NewReader(tt.text), "by bytes": iotest.OneByteReader(strings.NewReader(tt.text))} {
			if how == "by bytes" && len(tt.text) > 1<<20 {
				continue // takes seconds
			}
			var r Reader
			r.Reset(from)
			value, err := r.Reply()
			if tt.err == errSome {
				var said Error
				if err == nil || errors.As(err, &said) || errors.Is(err, io.EOF) {
					t.Errorf("%.50q %s: %v, %v", tt.text, how, value, err)
				}
			} else if !errors.Is(err, tt.err) || err == nil && !reflect.DeepEqual(value, tt.value) {
				t.Errorf("%.50q %s: %v, %v; want %v, %v", tt.text, how, value, err, tt.value, tt.err)
			}
			if err == nil && r.Done() != nil {
				t.Errorf("%.50q %s: %v", tt.text, how, r.Done())
			}
		}
	}
}

// TestErrors: an error that the server sends is told from what is no reply, which is printable.
func TestErrors(t *testing.T) {
	var r Reader
	r.Reset(strings.NewReader("-NOSCRIPT No matching script.\r\n\x00\x1b[31mred\r\n"))
	if _, err := r.Reply(); err != Error("NOSCRIPT No matching script.") {
		t.Error(err)
	}
	if _, err := r.Reply(); err == nil || err.Error() != `it sent "\x00\x1b[31mred", which is no reply in RESP2` {
		t.Error(err)
	}
}

// TestInARow: replies are read one after another, and no more than have arrived.
func TestInARow(t *testing.T) {
	var r Reader
	r.Reset(strings.NewReader("+OK\r\n-OOM no\r\n$-1\r\n:7\r\n+OK\r\n"))
	for _, want := range []struct {
		value any
		err   error
	}{{"OK", nil}, {nil, Error("OOM no")}, {nil, nil}} {
		if value, err := r.Reply(); value != want.value || err != want.err {
			t.Error(value, err)
		}
	}
	if err := r.Done(); err == nil || err.Error() != `it sent ":7\r\n+OK\r\n", which nothing had asked for` {
		t.Error(err)
	}
	if value, err := r.Reply(); value != int64(7) || err != nil {
		t.Error(value, err)
	}
	if value, err := r.Reply(); value != "OK" || err != nil {
		t.Error(value, err)
	}
	if value, err := r.Reply(); value != nil || !errors.Is(err, io.EOF) {
		t.Error(value, err)
	}
}

// readings are the ways to read a reply of a known kind, and what each makes of a value. A list of two
// numbers stands for all lists.
var readings = []struct {
	name string
	read func(*Reader) (any, error)
	want func(value any) any
}{
	{"Int", func(r *Reader) (any, error) { return r.Int() }, func(value any) any { n, _ := value.(int64); return n }},
	{"Decimal", func(r *Reader) (any, error) { return r.Decimal() }, func(value any) any {
		s, _ := value.(string)
		n, _ := strconv.ParseInt(s, 10, 64)
		return n
	}},
	{"String", func(r *Reader) (any, error) { return r.String("OK") }, func(value any) any { s, _ := value.(string); return s }},
	{"List", func(r *Reader) (any, error) {
		is, err := r.List(2)
		if !is || err != nil {
			return "no list", err
		}
		first, said := r.Int()
		if second, err := r.Int(); err != nil && said == nil {
			return []int64{first, second}, err
		} else {
			return []int64{first, second}, said
		}
	}, func(value any) any {
		list, _ := value.([]any)
		if len(list) != 2 {
			return "no list"
		}
		first, _ := list[0].(int64)
		second, _ := list[1].(int64)
		return []int64{first, second}
	}},
}

// checkReadings checks that each way to read a reply agrees with Reply, and takes the same bytes.
func checkReadings(t *testing.T, data []byte) {
	var whole Reader
	from := bytes.NewReader(data)
	whole.Reset(from)
	value, err := whole.Reply()
	rest := from.Len() + whole.buf.Buffered()
	for _, by := range readings {
		var r Reader
		from := bytes.NewReader(data)
		r.Reset(from)
		got, failed := by.read(&r)
		_, said := err.(Error)
		switch _, inList := failed.(Error); {
		case err != nil && !said:
			if failed == nil {
				t.Errorf("%s of %.100q: %v, where Reply says %v", by.name, data, got, err)
			}
			continue
		case said && failed != err, !said && failed != nil && !inList:
			t.Errorf("%s of %.100q: %v, where Reply says %v", by.name, data, failed, err)
		case err == nil && !reflect.DeepEqual(got, by.want(value)):
			t.Errorf("%s of %.100q is %v, want %v", by.name, data, got, by.want(value))
		}
		if left := from.Len() + r.buf.Buffered(); left != rest {
			t.Errorf("%s of %.100q leaves %d bytes, and Reply %d", by.name, data, left, rest)
		}
	}
}

func TestReadings(t *testing.T) {
	for _, tt := range replies {
		checkReadings(t, []byte(tt.text+"+more\r\n"))
	}
	for _, text := range []string{":7\r\n", "$2\r\n42\r\n", "+42\r\n", "*2\r\n:3\r\n:4\r\n", "*2\r\n$1\r\n3\r\n-ERR\r\n", "*2\r\n*1\r\n:1\r\n:2\r\n", "$2\r\nOK\r\n"} {
		checkReadings(t, []byte(text))
	}
}

// TestReadingAllocates: what is read for each lock needs no memory of its own.
func TestReadingAllocates(t *testing.T) {
	const text = "+OK\r\n:1700000000\r\n$5\r\ntoken\r\n*2\r\n$10\r\n1700000000\r\n$6\r\n123456\r\n*1\r\n:1\r\n$-1\r\n"
	var r Reader
	from := strings.NewReader(text)
	r.Reset(from)
	n := testing.AllocsPerRun(100, func() {
		from.Reset(text)
		ok, _ := r.String("OK")
		number, _ := r.Int()
		token, _ := r.String("token")
		two, _ := r.List(2)
		seconds, _ := r.Decimal()
		micros, _ := r.Decimal()
		one, _ := r.List(1)
		known, _ := r.Int()
		none, err := r.String("token")
		if ok != "OK" || number != 1700000000 || token != "token" || !two || seconds != 1700000000 || micros != 123456 || !one || known != 1 || none != "" || err != nil {
			t.Error(ok, number, token, two, seconds, micros, one, known, none, err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzReader: all ways to read a reply agree. FuzzReaderAgainstGoRedis in package redisnode compares what
// it means with go-redis.
func FuzzReader(f *testing.F) {
	for _, tt := range replies {
		if len(tt.text) < 1000 {
			f.Add([]byte(tt.text))
		}
	}
	f.Fuzz(checkReadings)
}
