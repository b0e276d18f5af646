package page_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/cmd/redlock/internal/page"
)

// TestWhoMaySee: only by an address or the name that was asked for, and with the token.
func TestWhoMaySee(t *testing.T) {
	for _, c := range []struct {
		token, host, path, bearer string
		want                      int
	}{
		{"", "127.0.0.1:8080", "/", "", 200},
		{"", "localhost:8080", "/", "", 200},
		{"", "[::1]:8080", "/", "", 200},
		{"", "evil.example:8080", "/", "", 421},
		{"", "127.0.0.1.evil.example", "/events", "", 421},
		{"", "", "/", "", 421},
		{"", "127.0.0.1", "/other", "", 404},
		{"s3cret", "locks.internal:8080", "/?token=s3cret", "", 200},
		{"s3cret", "127.0.0.1", "/", "Bearer s3cret", 200},
		{"s3cret", "127.0.0.1", "/events", "", 401},
		{"s3cret", "127.0.0.1", "/?token=s3cre", "", 401},
		{"s3cret", "127.0.0.1", "/?token=s3cret", "Bearer wrong", 401},
		{"s3cret", "evil.example", "/?token=s3cret", "", 421},
	} {
		s := &page.Server{Host: "locks.internal", Token: c.token}
		r := httptest.NewRequest(http.MethodGet, c.path, nil)
		if r.Host = c.host; c.bearer != "" {
			r.Header.Set("Authorization", c.bearer)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%+v: %d", c, w.Code)
		}
		if w.Code != 200 && strings.Contains(w.Body.String(), "<html") {
			t.Errorf("%+v: it has the page", c)
		}
		if !strings.Contains(w.Header().Get("Content-Security-Policy"), "default-src 'none'; style-src 'sha256-") {
			t.Errorf("%+v: the policy is %q", c, w.Header())
		}
	}
	w := httptest.NewRecorder()
	new(page.Server).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://127.0.0.1/", nil))
	if w.Code != 405 {
		t.Errorf("POST: %d", w.Code)
	}
}

// TestBodies: a GET whose body never comes is answered, and holds no connection; and of that nothing is logged.
func TestBodies(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- new(page.Server).Serve(ctx, l) }()
	for _, path := range []string{"/", "/events"} {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n", path)
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		reply, err := io.ReadAll(conn) // until the server closes it
		if err != nil || !strings.HasPrefix(string(reply), "HTTP/1.1 400 ") {
			t.Errorf("%s: %q, %v", path, reply, err)
		}
		_ = conn.Close()
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestPage: nothing in the page comes from elsewhere, and nothing is taken for markup.
func TestPage(t *testing.T) {
	w := httptest.NewRecorder()
	new(page.Server).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1/", nil))
	html := w.Body.String()
	for _, not := range []string{"innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "http://", "https://", "src=", "style=\"", "onclick"} {
		if strings.Contains(html, not) {
			t.Errorf("the page has %q", not)
		}
	}
	if strings.Count(html, "<script>") != 1 || strings.Count(html, "<style>") != 1 || strings.Count(html, "aria-live") != 1 {
		t.Error("one script, one style, one part that is read out")
	}
}
