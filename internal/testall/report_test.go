package main

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// played has a report of the packages a, b and so on read what go test says of them.
func played(packages, said string, stopped error) (printed string, ok bool) {
	var out strings.Builder
	began := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	r := newReport(&out, began, nil)
	r.expect(strings.Fields(packages))
	if err := r.read(strings.NewReader(said)); err != nil {
		panic(err)
	}
	ok = r.close(began.Add(72*time.Second), stopped)
	return out.String(), ok
}

const good = `{"Time":"2026-11-27T00:00:05Z","Action":"start","Package":"a"}
{"Action":"run","Package":"a","Test":"TestOne"}
{"Action":"output","Package":"a","Test":"TestOne","Output":"=== RUN   TestOne\n"}
{"Action":"output","Package":"a","Test":"TestOne","Output":"--- PASS: TestOne (0.10s)\n"}
{"Action":"pass","Package":"a","Test":"TestOne","Elapsed":0.1}
{"Action":"output","Package":"a","Output":"PASS\n"}
{"Action":"output","Package":"a","Output":"ok  \ta\t0.102s\n"}
{"Time":"2026-11-27T00:00:09Z","Action":"pass","Package":"a","Elapsed":0.102}
`

// skips skips three tests of one kind, one whose checks another one makes, and one with a reason of its own.
const skips = `{"Action":"start","Package":"b"}
{"Action":"output","Package":"b","Test":"TestOne","Output":"    need.go:99: the tests in Chromium (no chromium in the PATH)\n"}
{"Action":"output","Package":"b","Test":"TestOne","Output":"--- SKIP: TestOne (0.00s)\n"}
{"Action":"skip","Package":"b","Test":"TestOne"}
{"Action":"output","Package":"b","Test":"TestTwo","Output":"    need.go:99: the tests in Chromium (no chromium in the PATH)\n"}
{"Action":"output","Package":"b","Test":"TestTwo","Output":"    script.go:9: what a script logs\n"}
{"Action":"skip","Package":"b","Test":"TestTwo"}
{"Action":"output","Package":"b","Test":"TestThree","Output":"    need.go:99: the tests in tmux (no tmux in the PATH)\n"}
{"Action":"skip","Package":"b","Test":"TestThree"}
{"Action":"output","Package":"b","Test":"TestFour","Output":"    b_test.go:9: elsewhere: TestFive runs it\n"}
{"Action":"skip","Package":"b","Test":"TestFour"}
{"Action":"output","Package":"b","Test":"TestSix","Output":"    b_test.go:9: it rains\n"}
{"Action":"skip","Package":"b","Test":"TestSix"}
{"Action":"output","Package":"b","Output":"ok  \tb\t(cached)\n"}
{"Time":"2026-11-27T00:00:11Z","Action":"pass","Package":"b","Elapsed":0}
`

const bad = `{"Action":"start","Package":"c"}
{"Action":"output","Package":"c","Test":"TestFine","Output":"=== RUN   TestFine\n"}
{"Action":"pass","Package":"c","Test":"TestFine"}
{"Action":"output","Package":"c","Test":"TestBad","Output":"=== RUN   TestBad\n"}
{"Action":"output","Package":"c","Test":"TestBad","Output":"    c_test.go:7: 1, want 2\n"}
{"Action":"output","Package":"c","Test":"TestBad","Output":"--- FAIL: TestBad (0.00s)\n"}
{"Action":"fail","Package":"c","Test":"TestBad"}
{"Action":"output","Package":"c","Test":"TestPanics","Output":"panic: here\n"}
{"Action":"output","Package":"c","Output":"FAIL\tc\t0.004s\n"}
{"Time":"2026-11-27T00:00:12Z","Action":"fail","Package":"c","Elapsed":0.004}
`

const unbuilt = `{"ImportPath":"d [d.test]","Action":"build-output","Output":"./d.go:3:1: undefined: x\n"}
{"ImportPath":"d [d.test]","Action":"build-fail"}
{"Action":"start","Package":"d"}
{"Action":"output","Package":"d","Output":"FAIL\td [build failed]\n"}
{"Time":"2026-11-27T00:00:13Z","Action":"fail","Package":"d","Elapsed":0,"FailedBuild":"d [d.test]"}
`

func TestReport(t *testing.T) {
	for _, c := range []struct {
		name, packages, said string
		stopped              error
		ok                   bool
		want                 string
	}{
		{"all pass", "a", good, nil, true, `ok  	a	0.102s	1 of 1, 9s
all tests passed: 1 packages in 1m12s; skipped: none
`},
		{"some are skipped", "a b", good + skips, nil, true, `ok  	a	0.102s	1 of 2, 9s
ok  	b	(cached)	2 of 2, 11s
all tests passed: 2 packages in 1m12s; skipped: TestSix (it rains), 2 tests in Chromium (no chromium in the PATH), 1 test in tmux (no tmux in the PATH)
`},
		{"a test fails, and another one panics", "a c", good + bad, nil, false, `ok  	a	0.102s	1 of 2, 9s
=== RUN   TestBad
    c_test.go:7: 1, want 2
--- FAIL: TestBad (0.00s)
panic: here
FAIL	c	0.004s	2 of 2, 12s
FAIL: of 2 packages 1 passed in 1m12s; failed: c; skipped: none
`},
		{"a package is not compiled", "a d", good + unbuilt, nil, false, `ok  	a	0.102s	1 of 2, 9s
./d.go:3:1: undefined: x
FAIL	d [build failed]	2 of 2, 13s
FAIL: of 2 packages 1 passed in 1m12s; failed: d; skipped: none
`},
		{"go test says nothing of a package, and something that is no event", "a b", good + "go: no such tool\n", nil, false, `ok  	a	0.102s	1 of 2, 9s
go: no such tool
FAIL	b [it did not end]
FAIL: of 2 packages 1 passed in 1m12s; did not end: b; skipped: none
`},
		{"it is stopped", "a", good, errors.New("interrupt"), false, `ok  	a	0.102s	1 of 1, 9s
stopped: of 1 packages 1 passed in 1m12s; skipped: none
`},
	} {
		printed, ok := played(c.packages, c.said, c.stopped)
		if printed != c.want || ok != c.ok {
			t.Errorf("%s: %v, and printed is\n%s\nwant\n%s", c.name, ok, printed, c.want)
		}
	}
}

// TestTick: where nothing ends for a while, the report says what runs.
func TestTick(t *testing.T) {
	var out strings.Builder
	began := time.Now()
	r := newReport(&out, began, nil)
	r.expect([]string{"example.com/a", "example.com/b"})
	r.tick(began.Add(quiet - time.Second))
	r.tick(began.Add(quiet + time.Second))
	r.add(event{Action: "start", Package: "example.com/b"})
	r.tick(time.Now().Add(quiet + time.Second))
	if got, want := out.String(), "... 0 of 2, 21s: compiling\n... 0 of 2, 21s: running b\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
