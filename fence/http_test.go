package fence

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// document is a text behind HTTP, without a guard.
type document struct{ body string }

func (d *document) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	sent, _ := io.ReadAll(r.Body)
	if r.Method == http.MethodPut {
		d.body = string(sent)
	}
	w.Header().Set("Etag", `"it"`)
	_, _ = io.WriteString(w, d.body)
	w.Header().Set("Late", "too late")
}

// TestHandler: what it says over HTTP, and what raises the number.
func TestHandler(t *testing.T) {
	d := new(document)
	h := &Handler{Next: d}
	for _, step := range []struct {
		method, path string
		fences       []string
		body         string
		status       int
		reply        string
	}{
		{"GET", "/a", nil, "", 428, ""},
		{"PUT", "/a", nil, "a", 428, ""},
		{"PUT", "/a", []string{""}, "a", 400, ""},
		{"PUT", "/a", []string{"seven"}, "a", 400, ""},
		{"PUT", "/a", []string{"0"}, "a", 400, ""},
		{"PUT", "/a", []string{"9223372036854775807"}, "a", 400, ""},
		{"PUT", "/a", []string{"7", "7"}, "a", 400, ""},
		{"GET", "/a", []string{"7"}, "", 200, ""},
		{"PUT", "/a", []string{"6"}, "a", 412, ""},
		{"PUT", "/a", []string{"7"}, "b", 200, "b"},
		{"GET", "/a", []string{"6"}, "", 412, ""},
		{"PUT", "/a", []string{"8"}, strings.Repeat("c", 1<<20+1), 413, ""},
		{"GET", "/a", []string{"7"}, "", 200, "b"}, // what was not passed on raised nothing
		{"GET", "/b", []string{"6"}, "", 200, "b"}, // another resource to the Handler
		{"PUT", "/a", []string{"8"}, strings.Repeat("c", 1<<20), 200, strings.Repeat("c", 1<<20)},
	} {
		req := httptest.NewRequest(step.method, step.path, strings.NewReader(step.body))
		req.Header[Header] = step.fences
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		if w.Code != step.status || w.Code == 200 && w.Body.String() != step.reply {
			t.Errorf("%s %s with %q: %d %.80q, want %d %.80q", step.method, step.path, step.fences, w.Code, w.Body, step.status, step.reply)
		}
		if w.Code == 200 && (w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("Etag") != `"it"` || w.Header().Get("Late") != "") {
			t.Errorf("%s with %q has the header %v", step.method, step.fences, w.Header())
		}
	}
}

// TestHandlerFields: names, limits and guards of the caller's.
func TestHandlerFields(t *testing.T) {
	guards := &Guards{Max: 1}
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusAccepted)
	})
	h := &Handler{Next: next, Guards: guards, MaxBody: 3, Name: func(r *http.Request) string { return r.URL.Query().Get("id") }}
	for _, step := range []struct {
		url, body string
		status    int
	}{
		{"/?id=a", "abc", 202}, {"/other?id=a", "", 202}, {"/?id=a", "abcd", 413}, {"/?id=b", "", 503}, {"/", "", 400},
	} {
		req := httptest.NewRequest("PUT", step.url, strings.NewReader(step.body))
		req.Header.Set(Header, "7")
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, req); w.Code != step.status {
			t.Errorf("%s %q: %d %s, want %d", step.url, step.body, w.Code, w.Body, step.status)
		}
	}
	if err := guards.Do("a", 6, func() error { return nil }); !errors.Is(err, ErrStale) {
		t.Errorf("the Guards that were given do not have the number: %v", err)
	}
}

// TestHandlerWaits: a client that sends its request only in part keeps nobody out; one that has gone while its
// request waited has not sent it for later.
func TestHandlerWaits(t *testing.T) {
	begun, finish := make(chan struct{}), make(chan struct{})
	var written []string
	h := &Handler{Next: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		sent, _ := io.ReadAll(r.Body)
		written = append(written, string(sent))
		if string(sent) == "slow" {
			close(begun)
			<-finish
		}
	})}
	serve := func(ctx context.Context, body io.Reader) int {
		req := httptest.NewRequestWithContext(ctx, "PUT", "/", body)
		req.Header.Set(Header, "7")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		return w.Code
	}
	half, rest := io.Pipe()
	stopped := make(chan int)
	go func() { stopped <- serve(t.Context(), half) }()
	_, _ = rest.Write([]byte("half"))
	if code := serve(t.Context(), strings.NewReader("other")); code != 200 {
		t.Errorf("while another client is stopped: %d", code)
	}
	_ = rest.CloseWithError(io.ErrUnexpectedEOF)
	if code := <-stopped; code != 400 {
		t.Errorf("half a request: %d", code)
	}

	slow := make(chan int)
	go func() { slow <- serve(t.Context(), strings.NewReader("slow")) }()
	<-begun
	ctx, gone := context.WithCancel(t.Context())
	waits := make(chan int)
	go func() { waits <- serve(ctx, strings.NewReader("given up")) }()
	time.Sleep(10 * time.Millisecond) // as a rule it waits by then; if not, the outcome is the same
	gone()
	close(finish)
	if code := <-slow; code != 200 {
		t.Errorf("the slow one: %d", code)
	}
	if code := <-waits; code != 503 {
		t.Errorf("the one that was given up: %d", code)
	}
	if got := strings.Join(written, " "); got != "other slow" {
		t.Errorf("what was written is %q", got)
	}
}

func TestSend(t *testing.T) {
	server := httptest.NewServer(&Handler{Next: new(document)})
	defer server.Close()
	put := func(fence int64, body string) error {
		req, err := http.NewRequestWithContext(t.Context(), "PUT", server.URL+"/a", strings.NewReader(body))
		if err != nil {
			return err
		}
		req.URL.User = nil
		resp, err := Send(server.Client(), req, fence)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if got, err := io.ReadAll(resp.Body); err != nil || string(got) != body || resp.StatusCode != 200 {
			t.Errorf("fence %d: %s %q %v", fence, resp.Status, got, err)
		}
		return nil
	}
	if err := put(7, "b"); err != nil {
		t.Error(err)
	}
	err := put(6, "a")
	if want := "PUT " + server.URL + "/a: fence 6: " + ErrStale.Error(); !errors.Is(err, ErrStale) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	for _, in := range inputs[2:] {
		refused(t, "Send", put(in.fence, ""), in.says)
	}
	server.Close()
	if err := put(8, "c"); err == nil || errors.Is(err, ErrStale) {
		t.Errorf("of a server that is gone: %v", err)
	}
	if StatusCode(nil) != 200 || StatusCode(errors.New("any other")) != 500 {
		t.Error("StatusCode of nil, or of any other error")
	}
}
