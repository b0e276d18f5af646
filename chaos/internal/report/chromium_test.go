//go:build unix

package report

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// frame is a page in a page: no window of a browser is as narrow as a phone's.
const frame = `<!DOCTYPE html><meta name="color-scheme" content="light dark"><body style="margin:0">
<pre id="probe"></pre><script>onmessage = e => document.getElementById('probe').textContent = e.data</script><iframe style="border:0;width:%dpx;height:%dpx" src="page.html"></iframe>`

// probe examines the page from inside, and reports to the frame.
const probe = `<script>
addEventListener('error', e => parent.postMessage(e.message + ', line ' + e.lineno, '*'));
addEventListener('load', () => {
	const all = (selector, f) => Array.from(document.querySelectorAll(selector), f);
	const rect = e => { const r = e.getBoundingClientRect(); return {l: r.left, r: r.right, t: r.top, b: r.bottom}; };
	const within = (x, y) => x > 0 && x < innerWidth && y > 0 && y < innerHeight;

	// Can it be pointed at, in the middle or, if it is small, anywhere? Each part is
	// scrolled to where it can be seen.
	const seen = (e, owner) => {
		e.scrollIntoView({block: 'center', inline: 'center'});
		const r = e.getBoundingClientRect();
		const points = r.width < 12 ? [.5, .1, .9] : [.5];
		for (const x of points) for (const y of points) {
			const at = [r.left + x * r.width, r.top + y * r.height];
			if (within(...at) && owner.contains(document.elementFromPoint(...at))) return true;
		}
		return false;
	};

	const luminance = colour => {
		const [r, g, b] = colour.match(/[\d.]+/g).slice(0, 3).map(v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
		return .2126 * r + .7152 * g + .0722 * b;
	};
	const contrast = (a, b) => { a = luminance(a) + .05; b = luminance(b) + .05; return Math.max(a, b) / Math.min(a, b); };
	const clear = colour => /, 0\)$/.test(colour) || colour === 'transparent';
	const behind = e => {
		for (; e; e = e.parentElement) {
			const colour = getComputedStyle(e).backgroundColor;
			if (!clear(colour)) return colour;
		}
		return 'rgb(255, 255, 255)';
	};
	const fill = e => getComputedStyle(e).fill;
	const contrasts = [];
	const compare = (what, least, a, b) => contrasts.push({what, least, got: contrast(a, b)});
	all('h1, h2, h3, p, li, a, th, td, dt, dd, code, summary, .pill, .rule, .soft', e => {
		if (!e.closest('svg, .told') && e.innerText) compare('text of ' + e.tagName + '.' + e.className, 4.5, getComputedStyle(e).color, behind(e));
	});
	all('.told', e => compare('what a tap shows', 4.5, getComputedStyle(e).color, getComputedStyle(e).backgroundColor));
	all('.chart text, .labels text', e => {
		const box = e.parentElement.querySelector('text.in ~ rect, .bar, .violation rect');
		const inside = box && (e.matches('.in') || e.closest('.violation'));
		compare('label ' + e.textContent, 4.5, fill(e), inside ? fill(box) : behind(e));
	});
	all('.hold .bar', e => compare('bar', 3, fill(e), behind(e)));
	all('.fault .bar', e => compare('edge of a fault', 3, getComputedStyle(e).stroke, behind(e)));
	all('.violation line', e => compare('line of a violation', 3, getComputedStyle(e).stroke, behind(e)));

	const result = {
		Width: innerWidth, Dark: matchMedia('(prefers-color-scheme: dark)').matches,
		Page: Math.max(document.documentElement.scrollWidth, document.body.scrollWidth),
		Wider: all('body *', e => e).filter(e => !e.closest('.scroll, .events') && e.getBoundingClientRect().right > innerWidth + .5).map(e => e.tagName + '.' + e.className),
		Verdict: document.getElementById('verdict').innerText,
		VerdictSeen: seen(document.getElementById('verdict'), document.getElementById('verdict')),
		Contrasts: contrasts,
		Runs: all('article', run => ({
			Ticks: Array.from(run.querySelectorAll('.axis text:not([aria-hidden])'), e => ({Text: e.textContent, X: (rect(e).l + rect(e).r) / 2})),
			Rows: Array.from(run.querySelectorAll('.rows line'), e => rect(e).t),
			Labels: Array.from(run.querySelectorAll('.labels text'), e => ({Text: e.textContent, At: rect(e)})),
			Items: Array.from(run.querySelectorAll('.chart a'), e => {
				const bar = e.querySelector('.bar') || e.querySelector('use') || e;
				return {ID: e.id, Class: e.getAttribute('class'), Bar: rect(bar), Title: e.querySelector('title').textContent, Line: e.querySelector('line') ? rect(e.querySelector('line')) : null};
			}),
		})),
	};
	result.Hidden = all('.chart a.hold, .chart a.fault, .chart a.violation, .chart a.crash', e => e)
		.filter(e => !seen(e.querySelector('.bar, rect:not(.line), use') || e, e)).map(e => e.id);

	// The label of a row stays where it is when the timeline is scrolled.
	const scroll = document.querySelector('.scroll'), labels = scroll.querySelector('.labels');
	scroll.scrollLeft = 0;
	const left = rect(labels).l;
	scroll.scrollLeft = 1e6;
	result.Scrolled = scroll.scrollLeft;
	result.LabelsMoved = rect(labels).l - left;
	scroll.scrollLeft = 0;

	// A tap shows what the bar is, and moves nothing.
	const bar = document.querySelector('.chart a.hold');
	bar.scrollIntoView({block: 'center'});
	const before = [scrollX, scrollY].join();
	bar.dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true, view: window}));
	setTimeout(() => {
		const told = document.getElementById(bar.id + '-t'), r = rect(told);
		result.Tapped = getComputedStyle(told).display !== 'none' && within(r.l, r.t) && within(r.r, r.b) ? told.firstChild.textContent : '';
		result.TapMoved = before === [scrollX, scrollY].join() ? '' : before + ' to ' + [scrollX, scrollY].join();
		parent.postMessage(JSON.stringify(result), '*');
	}, 50);
});
</script>`

// A look is the report of probe.
type look struct {
	Width, Page       float64
	Dark, VerdictSeen bool
	Wider, Hidden     []string
	Verdict           string
	Scrolled          float64
	LabelsMoved       float64
	Tapped, TapMoved  string
	Contrasts         []struct {
		What       string
		Least, Got float64
	}
	Runs []struct {
		Ticks []struct {
			Text string
			X    float64
		}
		Rows   []float64
		Labels []struct {
			Text string
			At   edges
		}
		Items []lookItem
	}
}

type lookItem struct {
	ID, Class, Title string
	Bar              edges
	Line             *edges
}

type edges struct{ L, R, T, B float64 }

// lookAt opens a page in the browser, width pixels wide.
func lookAt(t *testing.T, browser, page string, width int, dark bool) (seen look) {
	t.Helper()
	const policy = "default-src 'none'; "
	if strings.Count(page, policy) != 1 {
		t.Fatal("the page has no policy against scripts")
	}
	page = strings.Replace(page, policy, policy+"script-src 'unsafe-inline'; ", 1)
	page = strings.Replace(page, "</body>", probe+"</body>", 1)
	dir := t.TempDir()
	for name, text := range map[string]string{"page.html": page, "frame.html": fmt.Sprintf(frame, width, 800)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	scheme := "1"
	if dark {
		scheme = "0"
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	run := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", "--virtual-time-budget=5000",
		"--user-data-dir="+filepath.Join(dir, "profile"), "--no-first-run", "--disable-extensions", "--disable-background-networking",
		fmt.Sprintf("--window-size=%d,1000", width+40), "--blink-settings=preferredColorScheme="+scheme, "file://"+filepath.Join(dir, "frame.html"))
	// A browser is many processes; none may outlive the test, or write to its
	// directory when that is removed.
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	run.Cancel = func() error { return syscall.Kill(-run.Process.Pid, syscall.SIGKILL) }
	run.WaitDelay = 5 * time.Second
	var stderr bytes.Buffer
	run.Stderr = &stderr
	out, err := run.Output()
	if run.Process != nil {
		_ = syscall.Kill(-run.Process.Pid, syscall.SIGKILL) // what is left of the group, if anything is
	}
	if err != nil {
		t.Fatalf("%v: %v\n%s", run.Args, err, stderr.Bytes())
	}
	_, text, _ := strings.Cut(string(out), `<pre id="probe">`)
	text, _, _ = strings.Cut(text, "</pre>")
	if err := json.Unmarshal([]byte(html.UnescapeString(text)), &seen); err != nil {
		t.Fatalf("the page tells %q: %v", text, err)
	}
	return seen
}

// TestReportInChromium opens the page in a browser, and compares what is visible there with the histories.
func TestReportInChromium(t *testing.T) {
	browser := need.Chromium(t)
	r := reportSample()
	page := written(t, r)
	for _, screen := range []struct {
		name  string
		width int
		dark  bool
	}{
		{"phone, light", 360, false},
		{"phone, dark", 360, true},
		{"desktop, light", 1300, false},
	} {
		t.Run(screen.name, func(t *testing.T) {
			seen := lookAt(t, browser, page, screen.width, screen.dark)
			if seen.Width != float64(screen.width) || seen.Dark != screen.dark {
				t.Fatalf("the page is %v wide, dark: %v", seen.Width, seen.Dark)
			}
			if seen.Page > seen.Width || len(seen.Wider) > 0 {
				t.Errorf("the page is %v wide; over the edge: %q", seen.Page, seen.Wider)
			}
			if want := r.page().Verdict; seen.Verdict != want || !seen.VerdictSeen {
				t.Errorf("the verdict is %q, to be seen: %v, want %q", seen.Verdict, seen.VerdictSeen, want)
			}
			if len(seen.Hidden) > 0 {
				t.Errorf("not to be seen: %q", seen.Hidden)
			}
			told := map[string]bool{}
			for _, c := range seen.Contrasts {
				if c.Got < c.Least && !told[c.What] {
					told[c.What] = true
					t.Errorf("contrast of %s: %.2f, want at least %v", c.What, c.Got, c.Least)
				}
			}
			if len(seen.Contrasts) < 200 {
				t.Errorf("only %d contrasts were measured", len(seen.Contrasts))
			}
			if seen.Scrolled == 0 || math.Abs(seen.LabelsMoved) > 0.5 {
				t.Errorf("scrolled by %v, the labels moved by %v", seen.Scrolled, seen.LabelsMoved)
			}
			if !strings.HasPrefix(seen.Tapped, "Client ") || seen.TapMoved != "" {
				t.Errorf("a tap shows %q, and scrolls from %q", seen.Tapped, seen.TapMoved)
			}
			if len(seen.Runs) != len(r.Shown) {
				t.Fatalf("%d histories", len(seen.Runs))
			}
			for i, run := range r.Shown {
				compareRun(t, fmt.Sprintf("r%d", i+1), run, seen, i)
			}
		})
	}
}

// compareRun measures a timeline by its own axis, as its reader does.
func compareRun(t *testing.T, id string, run ShownRun, seen look, index int) {
	t.Helper()
	v := seen.Runs[index]
	first, last := v.Ticks[0], v.Ticks[len(v.Ticks)-1]
	from, err := time.ParseDuration(first.Text)
	to, err2 := time.ParseDuration(last.Text)
	if err = cmp.Or(err, err2); err != nil || from >= to {
		t.Fatalf("the axis is from %q to %q: %v", first.Text, last.Text, err)
	}
	x := func(at time.Duration) float64 {
		return first.X + float64(at-from)/float64(to-from)*(last.X-first.X)
	}
	items := map[string]lookItem{}
	for _, item := range v.Items {
		items[item.ID] = item
	}
	inRow := func(label string, e edges) bool {
		for i, l := range v.Labels {
			if l.Text == label {
				top, bottom := v.Rows[i], v.Rows[i+1]
				return top <= e.T && e.B <= bottom && top <= l.At.T && l.At.B <= bottom
			}
		}
		return false
	}

	bars := map[int][]lookItem{}
	for _, want := range expectedHolds(run.History) {
		item, ok := items[fmt.Sprintf("%s-h%d", id, want.got)]
		if !ok {
			t.Errorf("event %d: the hold has no bar", want.got)
			continue
		}
		left, right := x(want.from), x(want.to)
		if math.Abs(item.Bar.L-left) > 1 || math.Abs(item.Bar.R-max(right, left+leastBar)) > 1.5 {
			t.Errorf("%s: the bar is at %v to %v, want %v to %v", item.ID, item.Bar.L, item.Bar.R, left, right)
		}
		if !inRow(fmt.Sprintf("client %d", want.client), item.Bar) {
			t.Errorf("%s is not in the row of client %d", item.ID, want.client)
		}
		for _, other := range bars[want.client] {
			a, b := item.Bar, other.Bar
			if a.L+0.3 < b.R && b.L+0.3 < a.R && a.T < b.B && b.T < a.B {
				t.Errorf("%s and %s hide one another", item.ID, other.ID)
			}
		}
		bars[want.client] = append(bars[want.client], item)
		if name := run.History.Events[want.got].Name; !strings.Contains(item.Title, name) {
			t.Errorf("%s: %q does not name %q", item.ID, item.Title, name)
		}
	}

	for i, e := range run.History.Events {
		if e.Kind != history.Struck {
			continue
		}
		item, label := items[fmt.Sprintf("%s-f%d", id, i)], fmt.Sprintf("node %d", e.Fault.Node)
		if e.Fault.Kind.OnClient() {
			label = fmt.Sprintf("client %d", e.Fault.Client)
		}
		if !inRow(label, item.Bar) || !strings.Contains(item.Title, string(e.Fault.Kind)) {
			t.Errorf("%v: in the row of %s there is no %+v", e.Fault, label, item)
		}
		left, right := item.Bar.L, item.Bar.R
		if e.Fault.For == 0 { // a mark, around its instant
			left, right = (left+right)/2, (left+right)/2
		}
		if math.Abs(left-x(e.At)) > 1 || math.Abs(right-x(e.At+e.Fault.For)) > 1.5 {
			t.Errorf("%v is at %v to %v, want %v to %v", e.Fault, left, right, x(e.At), x(e.At+e.Fault.For))
		}
	}

	for i, violation := range run.Verdict.Violations {
		item := items[fmt.Sprintf("%s-flag%d", id, i+1)]
		if item.Line == nil || math.Abs((item.Line.L+item.Line.R)/2-x(violation.At)) > 1 || item.Line.B < v.Rows[len(v.Rows)-1]-1 {
			t.Errorf("violation %d, at %v, is marked by %+v, want it at %v", i+1, violation.At, item, x(violation.At))
		}
		for _, j := range violation.Events {
			if item := items[fmt.Sprintf("%s-h%d", id, j)]; !strings.Contains(item.Class, "shows") {
				t.Errorf("event %d does not stand out", j)
			}
		}
	}
}
