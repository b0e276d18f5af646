package recipes

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestDocument: what it says over HTTP.
func TestDocument(t *testing.T) {
	d := new(Document)
	for _, step := range []struct {
		method, fence, body string
		status              int
		reply               string
	}{
		{"GET", "", "", http.StatusPreconditionRequired, ""},
		{"PUT", "", "a", http.StatusPreconditionRequired, ""},
		{"PUT", "seven", "a", http.StatusPreconditionRequired, ""},
		{"GET", "7", "", http.StatusOK, ""},
		{"PUT", "6", "a", http.StatusPreconditionFailed, ""},
		{"PUT", "7", "b", http.StatusOK, "b"},
		{"GET", "6", "", http.StatusPreconditionFailed, ""},
		{"PUT", "8", strings.Repeat("c", 1<<20+1), http.StatusBadRequest, ""},
		{"GET", "7", "", http.StatusOK, "b"}, // what was not carried out raised nothing
	} {
		req := httptest.NewRequest(step.method, "/", strings.NewReader(step.body))
		if step.fence != "" {
			req.Header.Set(FenceHeader, step.fence)
		}
		w := httptest.NewRecorder()
		d.ServeHTTP(w, req)
		if w.Code != step.status || w.Code == http.StatusOK && w.Body.String() != step.reply {
			t.Errorf("%s with %q: %d %q, want %d %q", step.method, step.fence, w.Code, w.Body, step.status, step.reply)
		}
	}
}
