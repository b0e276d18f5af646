package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/quorumlock/redlock/cmd/redlock/internal/page"
	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
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

// topPageOf has the command serve the page of these nodes, and returns the URL of the page.
func topPageOf(t *testing.T, nodes *memredis.Cluster, args ...string) (cmd *exec.Cmd, url string) {
	t.Helper()
	cmd = exec.Command("redlock", append([]string{"top", "--every", "100ms", "--http", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", reach.NodesVariable+"="+strings.Join(nodes.URLs(), ","))
	var stdout buffer
	cmd.Stdout = &stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if !within(patience, func() bool { return strings.HasSuffix(stdout.String(), "\n") }) {
		t.Fatal("it does not say where the page is")
	}
	return cmd, strings.TrimSpace(stdout.String())
}

// topProbe examines the page from inside.
const topProbe = `(() => {
	const all = (selector, f) => Array.from(document.querySelectorAll(selector), f);
	const table = id => Array.from(document.getElementById(id).rows, r => Array.from(r.cells, c => c.textContent));
	const body = getComputedStyle(document.body);
	return {
		Width: innerWidth, Dark: matchMedia('(prefers-color-scheme: dark)').matches, Title: document.title, Images: document.images.length,
		Page: Math.max(document.documentElement.scrollWidth, document.body.scrollWidth),
		Wider: all('body *', e => e).filter(e => !e.closest('.scroll table') && e.getBoundingClientRect().right > innerWidth).map(e => e.tagName + '.' + e.className),
		Folded: Math.max(...all('th[scope=row]', e => {
			const text = document.createRange();
			text.selectNodeContents(e);
			return new Set(Array.from(text.getClientRects(), r => r.top)).size;
		})),
		Scrolled: all('.scroll', e => e.scrollWidth > e.clientWidth),
		Ink: body.color.match(/\d+/g).map(Number), Paper: body.backgroundColor.match(/\d+/g).map(Number),
		Summary: document.getElementById('summary').textContent, State: document.getElementById('state').textContent,
		Live: document.querySelectorAll('[aria-live]').length, Nodes: table('nodes'), Locks: table('locks'),
	};
})()`

// TestTopPageInChromium compares what a browser shows with what the nodes have: on a phone and on a desk, in the
// dark and in the light. With -update it writes the pictures of the page for the documentation.
func TestTopPageInChromium(t *testing.T) {
	browser := openChromium(t)
	type look struct {
		Width, Page           int
		Dark                  bool
		Title, Summary, State string
		Images, Live          int
		Folded                int // the lines of the name that has most
		Ink, Paper            []int
		Wider                 []string
		Scrolled              []bool // the tables of nodes and of locks
		Nodes, Locks          [][]string
	}
	const high = 800
	for _, c := range []struct {
		name    string
		scene   func() *topScene
		args    []string
		summary string
	}{
		{"crowd", func() *topScene { return sceneOf(t, crowd(t), append(jobs(40), evilName)...) }, []string{"--token", "s3cret"}, `^41 locks held, 0 waiting; \S+ switches/s; 3 of 3 nodes vote$`},
		{"pictured", func() *topScene { return pictured(t) }, nil, `^10 locks held, 3 waiting, 1 leftover; 0 switches/s; 2 of 3 nodes vote$`},
	} {
		scene := c.scene()
		_, url := topPageOf(t, scene.nodes, c.args...)
		if c.args != nil {
			url += "?token=s3cret"
		}
		browser.show(1300, high, false)
		browser.open(url)
		var seen look
		as := regexp.MustCompile(c.summary)
		if !within(patience, func() bool { browser.eval(topProbe, &seen); return as.MatchString(seen.Summary) }) {
			t.Fatalf("%s: the page shows %+v", c.name, seen)
		}
		for _, width := range []int{360, 1300} {
			for _, dark := range []bool{false, true} {
				browser.show(width, high, dark)
				seen = look{}
				browser.eval(topProbe, &seen)
				at := fmt.Sprintf("%s, %d wide, dark %v", c.name, width, dark)
				if seen.Width != width || seen.Dark != dark {
					t.Fatalf("%s: it is %d wide, dark: %v", at, seen.Width, seen.Dark)
				}
				if seen.Page > width || len(seen.Wider) > 0 {
					t.Errorf("%s: the page is %d wide; over the edge: %q", at, seen.Page, seen.Wider)
				}
				if width == 1300 && slices.Contains(seen.Scrolled, true) {
					t.Errorf("%s: a table is wider than the page: %v", at, seen.Scrolled)
				}
				if c.name == "pictured" && (seen.Folded > 2 || width == 1300 && seen.Folded > 1) {
					t.Errorf("%s: a short name takes %d lines", at, seen.Folded)
				}
				if bright := seen.Paper[0] > 127; bright == dark || (seen.Ink[0] > 127) == bright {
					t.Errorf("%s: %v on %v", at, seen.Ink, seen.Paper)
				}
				if seen.Live != 1 || seen.Images != 0 || seen.Title != "redlock top" || seen.State != "" || !as.MatchString(seen.Summary) {
					t.Errorf("%s: %+v", at, seen)
				}
				scene.compare(seen.Nodes, seen.Locks)
				if *update && c.name == "pictured" {
					switch {
					case width == 1300 && !dark:
						browser.draw("top-page.png")
					case width == 360 && dark:
						browser.draw("top-page-phone.png")
					}
				}
			}
		}
	}
	if len(browser.complains) > 0 {
		t.Errorf("the browser complains of %q", browser.complains)
	}
}

func jobs(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("jobs/%02d", i))
	}
	return names
}

// TestTopPage: the command serves the page and its events, and ends at a signal while somebody looks.
func TestTopPage(t *testing.T) {
	need.Full(t) // forty owners
	nodes := crowd(t)
	cmd, url := topPageOf(t, nodes)
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
