package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/page"
	"github.com/quorumlock/redlock/internal/memredis"
	"github.com/quorumlock/redlock/internal/redistest/need"
)

// evilName would be markup, if the page took names for it.
const evilName = `<img src=x onerror="document.title='evil'">&amp;`

// crowd has forty owners with a lock each.
func crowd(t *testing.T) *memredis.Cluster {
	t.Helper()
	nodes := started(t, 3)
	for i := range 40 {
		owned(t, nodes, fmt.Sprintf("owner-%02d", i), fmt.Sprintf("jobs/%02d", i))
	}
	owned(t, nodes, "</script><b>", evilName)
	return nodes
}

// servedPage serves what redlock top sees of nodes.
func servedPage(t *testing.T, nodes *memredis.Cluster, server *page.Server) {
	t.Helper()
	var servers []*redis.Options
	for _, n := range nodes.Nodes {
		servers = append(servers, &redis.Options{Addr: n.Addr()})
	}
	cfg := newListFlags()
	prefix := ""
	cfg.prefix = &prefix
	looks := newLooks(lockerOf(t, nodes, "looks"), servers, &cfg)
	t.Cleanup(looks.close)
	p, err := looks.picture(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Show(viewOf(p, "age")); err != nil {
		t.Fatal(err)
	}
}

const topFrame = `<!DOCTYPE html><meta name="color-scheme" content="light dark"><body style="margin:0"><pre id="probe"></pre>
<script>onmessage = e => document.getElementById('probe').textContent = e.data</script><iframe style="border:0;width:%dpx;height:800px" src="/"></iframe>`

const topProbe = `<script>
addEventListener('error', e => parent.postMessage(e.message + ', line ' + e.lineno, '*'));
const wait = new MutationObserver(() => {
	if (!at('locks').rows.length) return;
	wait.disconnect();
	const table = id => Array.from(at(id).rows, r => Array.from(r.cells, c => c.textContent));
	parent.postMessage(JSON.stringify({
		Width: innerWidth, Dark: matchMedia('(prefers-color-scheme: dark)').matches, Title: document.title, Images: document.images.length,
		Page: Math.max(document.documentElement.scrollWidth, document.body.scrollWidth),
		Ink: getComputedStyle(document.body).color, Paper: getComputedStyle(document.body).backgroundColor,
		Summary: at('summary').textContent, Live: document.querySelectorAll('[aria-live]').length, Nodes: table('nodes'), Locks: table('locks'),
	}), '*');
});
wait.observe(at('locks'), {childList: true, subtree: true});
</script></body>`

// TestTopPageInChromium compares what a browser shows with what the nodes have.
func TestTopPageInChromium(t *testing.T) {
	need.Full(t)
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil && browser == "" {
			browser = path
		}
	}
	if browser == "" {
		if os.Getenv("REDLOCK_REQUIRE_CHROMIUM") != "" {
			t.Fatal("there is no chromium")
		}
		t.Skip("there is no chromium")
	}
	nodes := crowd(t)
	server := new(page.Server)
	servedPage(t, nodes, server)
	for _, dark := range []bool{false, true} {
		width := 360
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/frame":
				w.Header().Set("Content-Type", "text/html; charset=utf-8")
				fmt.Fprintf(w, topFrame, width)
			case "/": // the page, with a probe, which its policy does not allow
				rec := httptest.NewRecorder()
				server.ServeHTTP(rec, r)
				w.Header().Set("Content-Type", "text/html; charset=utf-8")
				_, _ = io.WriteString(w, strings.Replace(rec.Body.String(), "</body>", topProbe, 1))
			case "/events": // one event: virtual time stands while a request is under way
				ctx, cancel := context.WithCancel(r.Context())
				server.ServeHTTP(&once{ResponseWriter: w, seen: cancel}, r.WithContext(ctx))
				cancel()
			default:
				http.NotFound(w, r)
			}
		}))
		var seen struct {
			Width, Page                int
			Dark                       bool
			Title, Summary, Ink, Paper string
			Images, Live               int
			Nodes, Locks               [][]string
		}
		lookWith(t, browser, web.URL+"/frame", dark, &seen)
		web.CloseClientConnections()
		web.Close()
		if seen.Width != width || seen.Dark != dark || seen.Page > width {
			t.Errorf("%d wide, dark: %v, and the page is %d wide", seen.Width, seen.Dark, seen.Page)
		}
		if seen.Ink == seen.Paper || seen.Live != 1 || seen.Images != 0 || seen.Title != "redlock top" {
			t.Errorf("%+v", seen)
		}
		if !strings.HasPrefix(seen.Summary, "41 locks held, 0 waiting") || !strings.HasSuffix(seen.Summary, "; 3 of 3 nodes vote") {
			t.Errorf("the summary is %q", seen.Summary)
		}
		if len(seen.Nodes) != 3 || len(seen.Locks) != 41 {
			t.Fatalf("%d nodes and %d locks", len(seen.Nodes), len(seen.Locks))
		}
		for i, n := range nodes.Nodes {
			if seen.Nodes[i][0] != n.Addr() || seen.Nodes[i][1] != "yes" {
				t.Errorf("node %s is %q", n.Addr(), seen.Nodes[i])
			}
		}
		rdb := redis.NewClient(&redis.Options{Addr: nodes.Nodes[1].Addr()})
		for _, name := range append([]string{evilName}, jobs(40)...) {
			token, err := rdb.Get(t.Context(), name).Result()
			if err != nil {
				t.Fatal(err)
			}
			owner := redlock.Identify(token).Owner
			if !slices.ContainsFunc(seen.Locks, func(c []string) bool { return c[0] == name && c[1] == "exclusive" && c[2] == owner }) {
				t.Errorf("%q of %q is not in %q", name, owner, seen.Locks)
			}
		}
		_ = rdb.Close()
	}

	// As it is served, with its policy and a token.
	server.Token = "s3cret"
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		server.ServeHTTP(&once{ResponseWriter: w, seen: cancel}, r.WithContext(ctx))
	}))
	defer web.Close()
	defer web.CloseClientConnections()
	if dom := domOf(t, browser, web.URL+"/?token=s3cret", false); !strings.Contains(dom, "<td>owner-39</td>") || !strings.Contains(dom, "41 locks held") {
		t.Errorf("the page as it is served has\n%s", dom)
	}
}

func jobs(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("jobs/%02d", i))
	}
	return names
}

// A once ends a stream after its first event.
type once struct {
	http.ResponseWriter
	seen func()
}

func (o *once) Unwrap() http.ResponseWriter { return o.ResponseWriter }

func (o *once) Write(p []byte) (int, error) {
	if bytes.HasPrefix(p, []byte("data: ")) {
		defer o.seen()
	}
	return o.ResponseWriter.Write(p)
}

// lookWith opens a page in the browser, and reads what its probe tells.
func lookWith(t *testing.T, browser, url string, dark bool, seen any) {
	t.Helper()
	_, text, _ := strings.Cut(domOf(t, browser, url, dark), `<pre id="probe">`)
	text, _, _ = strings.Cut(text, "</pre>")
	if err := json.Unmarshal([]byte(html.UnescapeString(text)), seen); err != nil {
		t.Fatalf("the page tells %q: %v", text, err)
	}
}

// domOf is a page as the browser has it after a moment.
func domOf(t *testing.T, browser, url string, dark bool) string {
	t.Helper()
	scheme := "1"
	if dark {
		scheme = "0"
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	run := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", "--virtual-time-budget=3000",
		"--user-data-dir="+filepath.Join(t.TempDir(), "profile"), "--no-first-run", "--disable-extensions", "--disable-background-networking",
		"--window-size=500,1000", "--blink-settings=preferredColorScheme="+scheme, url)
	// A browser is many processes; none may outlive the test.
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	run.Cancel = func() error { return syscall.Kill(-run.Process.Pid, syscall.SIGKILL) }
	run.WaitDelay = 5 * time.Second
	var stderr bytes.Buffer
	run.Stderr = &stderr
	out, err := run.Output()
	if run.Process != nil {
		_ = syscall.Kill(-run.Process.Pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatalf("%v: %v\n%s", run.Args, err, stderr.Bytes())
	}
	return string(out)
}

// TestTopPage: the command serves the page and its events, and ends at a signal while somebody looks.
func TestTopPage(t *testing.T) {
	nodes := crowd(t)
	cmd := exec.Command("redlock", "top", "--every", "100ms", "--http", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", nodesVariable+"="+strings.Join(nodes.URLs(), ","))
	var stdout buffer
	cmd.Stdout = &stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	if !within(patience, func() bool { return strings.HasSuffix(stdout.String(), "/\n") }) {
		t.Fatal("it does not say where the page is")
	}
	url := strings.TrimSpace(stdout.String())
	client := &http.Client{Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	reply, err := client.Get(url + "events")
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	lines := bufio.NewScanner(reply.Body)
	lines.Buffer(nil, 1<<20)
	for views := 0; views < 2 && lines.Scan(); {
		text, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		views++
		var v page.View
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if len(v.Locks) != 41 || len(v.Nodes) != 3 || !strings.HasPrefix(v.Summary, "41 locks held") {
			t.Errorf("it shows %s", text)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("it ends with %d", code)
	}
}
