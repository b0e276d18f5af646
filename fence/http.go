package fence

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
)

// Header is the HTTP header that carries the fence from the holder of a lock to the resource, as a decimal number.
const Header = "X-Fence"

// Send sends a request with the fence in its [Header]. It returns [ErrStale] for the status 412 Precondition Failed,
// with the answer's body closed: so do not send If-Match, to which 412 is an answer as well. Every other answer and
// error is that of client.Do. The request's context bounds the call; give it the lock's context. Send changes req's
// header.
func Send(client *http.Client, req *http.Request, fence int64) (*http.Response, error) {
	if err := check(fence); err != nil {
		return nil, err
	}
	if req.Header == nil {
		req.Header = make(http.Header)
	}
	req.Header.Set(Header, strconv.FormatInt(fence, 10))
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusPreconditionFailed {
		_, _ = io.CopyN(io.Discard, resp.Body, 4<<10) // so that the connection can be used again
		_ = resp.Body.Close()
		return nil, stale(req.Method+" "+req.URL.Redacted(), fence)
	}
	return resp, nil
}

// FromRequest returns the fence of a request. It is for resources that keep the number elsewhere than a [Handler] does:
// in their database, where it is stored with the data. [StatusCode] of its error is 428 Precondition Required if the
// request has no fence, and 400 Bad Request if it has two, or one that is not a number that a lock can have.
func FromRequest(r *http.Request) (int64, error) {
	values := r.Header.Values(Header)
	if len(values) == 0 {
		return 0, missingError{}
	}
	fence, err := strconv.ParseInt(values[0], 10, 64)
	if err != nil || len(values) > 1 {
		return 0, inputError(fmt.Sprintf("the header %s is %.64q, and must be one number: the fence of the lock", Header, values))
	}
	return fence, check(fence)
}

// A missingError is that of a request without a fence.
type missingError struct{}

func (missingError) Error() string {
	return "fence: the header " + Header + " is required: the fence of the lock"
}

// StatusCode returns the HTTP status for an error of this package: 412 Precondition Failed for [ErrStale], 428
// Precondition Required for a request without a fence, 400 Bad Request for a fence or name that cannot be, 503
// Service Unavailable if [Guards] are full; 500 Internal Server Error for all others, and 200 OK for nil.
func StatusCode(err error) int {
	var input inputError
	var full fullError
	switch {
	case err == nil:
		return http.StatusOK
	case errors.Is(err, ErrStale):
		return http.StatusPreconditionFailed
	case errors.Is(err, missingError{}):
		return http.StatusPreconditionRequired
	case errors.As(err, &input):
		return http.StatusBadRequest
	case errors.As(err, &full):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// A Handler is HTTP middleware: it passes on only requests whose fence is not stale, one at a time for each
// resource. The numbers are in memory, so it is for resources that end with the process; for others see
// [FromRequest]. It answers with [StatusCode] of the error; with 413 Content Too Large, or 400, if it cannot read
// the request's body; and with 503 if the client has gone while the request waited for others. All other requests
// that it does not pass on leave the number of their resource as it is.
//
// A client that is stopped halfway keeps nobody out: the Handler reads the whole body before it passes the request
// on, and sends the answer when Next has returned. So Next can neither flush nor hijack, nor send trailers.
type Handler struct {
	// Next reads or writes the resource. Other requests for the resource wait while it runs, and nothing but Next
	// bounds that wait.
	Next http.Handler

	// Name names the resource of a request, as Guards.Do wants it; nil: the path of its URL. Requests for one
	// resource must have one name: paths that Next takes for the same must be made so by Name.
	Name func(*http.Request) string

	// Guards have the numbers; nil: Guards of this Handler, with DefaultMax names. Set it for another limit, or if
	// several Handlers, or others, access the same resources. Only requests of clients that may write should come
	// here: each name that they use is kept.
	Guards *Guards

	// MaxBody is how many bytes the body of a request may have; 0: 1 MiB.
	MaxBody int64

	own Guards
}

// ServeHTTP passes a request on to h.Next, or answers it with an error, as described at [Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fence, err := FromRequest(r)
	if err != nil {
		http.Error(w, err.Error(), StatusCode(err))
		return
	}
	limit := h.MaxBody
	if limit == 0 {
		limit = 1 << 20
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		code := http.StatusBadRequest
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			code = http.StatusRequestEntityTooLarge
		}
		http.Error(w, err.Error(), code)
		return
	}
	whole := r.WithContext(r.Context()) // a copy
	whole.Body, whole.ContentLength, whole.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil

	name := r.URL.Path
	if h.Name != nil {
		name = h.Name(r)
	}
	guards := h.Guards
	if guards == nil {
		guards = &h.own
	}
	answer := &answer{header: make(http.Header)} // not larger than Next makes it
	err = guards.Do(name, fence, func() error {
		// A holder that has given this request up may have sent another one: this one must not come after it.
		if err := r.Context().Err(); err != nil {
			return err
		}
		h.Next.ServeHTTP(answer, whole)
		return nil
	})
	if err != nil {
		code := StatusCode(err)
		if r.Context().Err() != nil && code == http.StatusInternalServerError {
			code = http.StatusServiceUnavailable
		}
		http.Error(w, err.Error(), code)
		return
	}
	answer.send(w)
}

// An answer keeps what a handler answers.
type answer struct {
	header http.Header // Next's
	sent   http.Header // what it was when Next wrote its code
	code   int         // 0: not written yet
	body   bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(code int) {
	if a.code == 0 && code >= 200 { // those below are only informational
		a.code, a.sent = code, a.header.Clone()
	}
}

func (a *answer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(b)
}

func (a *answer) send(w http.ResponseWriter) {
	a.WriteHeader(http.StatusOK)
	header := w.Header()
	maps.Copy(header, a.sent)
	header.Set("Cache-Control", "no-store") // an answer from a cache would not raise the number
	w.WriteHeader(a.code)
	_, _ = w.Write(a.body.Bytes())
}
