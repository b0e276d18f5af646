package recipes

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// FenceHeader carries the fence from the holder of a lock to the resource.
const FenceHeader = "X-Fence"

// A Document is a text behind HTTP. It is in memory, and so is its number: a text in a
// database needs its number there, and then no Guard.
type Document struct {
	guard Guard
	body  string
}

// ServeHTTP answers GET and PUT: 428 without a number, 412 if the number is stale.
func (d *Document) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fence, err := strconv.ParseInt(r.Header.Get(FenceHeader), 10, 64)
	if err != nil {
		http.Error(w, FenceHeader+" is required: the fence of the lock", http.StatusPreconditionRequired)
		return
	}
	// Read the whole request before the guard: a client may be stopped halfway.
	sent, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var body string
	err = d.guard.Do(fence, func() error {
		if r.Method == http.MethodPut {
			d.body = string(sent)
		}
		body = d.body
		return nil
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusPreconditionFailed)
		return
	}
	w.Header().Set("Cache-Control", "no-store") // an answer from a cache would not raise the number
	_, _ = io.WriteString(w, body)
}

// ReadHTTP gets a Document, and makes it reject all earlier holders from now on.
func ReadHTTP(ctx context.Context, client *http.Client, url string, fence int64) (body string, err error) {
	return callHTTP(ctx, client, http.MethodGet, url, fence, "")
}

// WriteHTTP puts a Document.
func WriteHTTP(ctx context.Context, client *http.Client, url string, fence int64, body string) error {
	_, err := callHTTP(ctx, client, http.MethodPut, url, fence, body)
	return err
}

func callHTTP(ctx context.Context, client *http.Client, method, url string, fence int64, body string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set(FenceHeader, strconv.FormatInt(fence, 10))
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return "", err
	case resp.StatusCode == http.StatusPreconditionFailed:
		return "", ErrStale
	case resp.StatusCode != http.StatusOK:
		return "", fmt.Errorf("%s %s: %s: %s", method, url, resp.Status, got)
	}
	return string(got), nil
}
