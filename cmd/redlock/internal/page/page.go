// Package page serves what redlock top shows as a page for a browser, and its changes as server-sent events.
// The page is one file, and has every name as text, never as markup.
package page

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

//go:embed page.html
var html string

// policy allows the style and the script of the page, by their hashes, and the connection to its own server.
var policy = "default-src 'none'; style-src '" + hash("style") + "'; script-src '" + hash("script") +
	"'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func hash(tag string) string {
	_, text, _ := strings.Cut(html, "<"+tag+">")
	text, _, _ = strings.Cut(text, "</"+tag+">")
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// A View is what the page shows.
type View struct {
	Time    time.Time  `json:"time"`
	Set     string     `json:"set"`
	Summary string     `json:"summary"`
	Order   string     `json:"order"`
	Nodes   [][]string `json:"nodes"`
	Locks   []Lock     `json:"locks"`
}

// A Lock is a row of the table of locks.
type Lock struct {
	Names []string `json:"names"`
	Cells []string `json:"cells"`
	Age   int64    `json:"age_ms"`  // -1: not known
	Wait  int64    `json:"wait_ms"` // -1: nobody waits
}

// A Server serves the page.
type Server struct {
	Host  string // which was asked for: requests may name it, besides addresses and localhost
	Token string // "": none is needed

	mu        sync.Mutex
	latest    []byte // nil: there is none yet
	listeners map[chan []byte]bool
}

// Show sends a view to all browsers that have the page open, and later to those that open it.
func (s *Server) Show(v *View) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latest = text
	for to := range s.listeners {
		put(to, text)
	}
	return nil
}

// put puts a text into a channel of capacity one, in the place of one that was not read. Caller holds s.mu.
func put(to chan []byte, text []byte) {
	select {
	case <-to:
	default:
	}
	to <- text
}

func (s *Server) listen() chan []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	to := make(chan []byte, 1)
	if s.latest != nil {
		to <- s.latest
	}
	if s.listeners == nil {
		s.listeners = make(map[chan []byte]bool)
	}
	s.listeners[to] = true
	return to
}

func (s *Server) leave(to chan []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, to)
}

// grace is how long requests under way may take when the server ends.
const grace = time.Second

// Serve answers the requests of l until ctx ends, and returns nil then. Any other end is an error.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 1 << 14,
		ErrorLog:    log.New(io.Discard, "", 0), // a browser that goes away is no news
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	var ending sync.WaitGroup
	stop := context.AfterFunc(ctx, func() {
		within, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		if server.Shutdown(within) != nil {
			_ = server.Close()
		}
		ending.Done()
	})
	ending.Add(1)
	err := server.Serve(l)
	if stop() { // ctx goes on
		_ = server.Close()
		return err
	}
	ending.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// ServeHTTP answers GET / with the page and GET /events with the stream of its views, if Host and token are right.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer") // the URL may have the token
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	switch {
	case !s.known(r.Host):
		http.Error(w, "this server is not known by that name", http.StatusMisdirectedRequest)
	case !s.allowed(r):
		h.Set("WWW-Authenticate", "Bearer")
		http.Error(w, "the token is missing or wrong", http.StatusUnauthorized)
	case r.Method != http.MethodGet:
		h.Set("Allow", http.MethodGet)
		http.Error(w, "there is only GET", http.StatusMethodNotAllowed)
	case r.ContentLength != 0: // its body may never come, and the connection would be kept for it
		h.Set("Connection", "close")
		http.Error(w, "a GET has no body here", http.StatusBadRequest)
	case r.URL.Path == "/":
		h.Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(html))
	case r.URL.Path == "/events":
		s.events(w, r)
	default:
		http.Error(w, "there is nothing here", http.StatusNotFound)
	}
}

// known reports whether a Host header may name this server. A page of somebody else's can have a name of its
// own resolve to this address (DNS rebinding), but it cannot take an address for a name.
func (s *Server) known(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	_, err := netip.ParseAddr(host)
	return err == nil || host == "localhost" || s.Host != "" && strings.EqualFold(host, s.Host)
}

func (s *Server) allowed(r *http.Request) bool {
	if s.Token == "" {
		return true
	}
	given, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !bearer {
		given = r.URL.Query().Get("token")
	}
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(s.Token)) // of one length
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// patience is how long a browser may leave an event unread.
const patience = 10 * time.Second

func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	_ = out.SetReadDeadline(time.Time{}) // the request is read, and its events have no end
	news := s.listen()
	defer s.leave(news)
	alive := time.NewTicker(patience)
	defer alive.Stop()
	text := ":\n\n"
	for {
		_ = out.SetWriteDeadline(time.Now().Add(patience))
		if _, err := fmt.Fprint(w, text); err != nil {
			return
		}
		if out.Flush() != nil {
			return
		}
		select {
		case latest := <-news:
			text = "data: " + string(latest) + "\n\n" // JSON has no line ends
		case <-alive.C:
			text = ":\n\n"
		case <-r.Context().Done():
			return
		}
	}
}
