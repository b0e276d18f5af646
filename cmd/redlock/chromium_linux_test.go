package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// A chromium is a page in a browser without a window, which the test drives by the DevTools protocol: messages in
// JSON over two pipes. Starting it takes a second; looking at the page in another way takes none.
type chromium struct {
	*testing.T
	to        *os.File
	from      *bufio.Reader
	stderr    buffer
	calls     int
	session   string   // of the page
	complains []string // what scripts and the page's policy have had the browser say
}

// browserPatience is how long the browser may take in all.
const browserPatience = 3 * time.Minute

// openChromium starts the browser. It skips the test where there is none, and ends the browser with the test.
func openChromium(t *testing.T) *chromium {
	t.Helper()
	path := need.Chromium(t)
	read, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	run := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--hide-scrollbars",
		"--user-data-dir="+filepath.Join(t.TempDir(), "profile"), "--no-first-run", "--disable-extensions", "--disable-background-networking")
	run.ExtraFiles = []*os.File{read, write} // 3 and 4, as the browser expects them
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	run.WaitDelay = 5 * time.Second
	c := &chromium{T: t, to: to, from: bufio.NewReader(from)}
	run.Stderr = &c.stderr
	err = run.Start()
	_, _ = read.Close(), write.Close()
	t.Cleanup(func() {
		if run.Process != nil { // a browser is many processes; none may outlive the test
			_ = syscall.Kill(-run.Process.Pid, syscall.SIGKILL)
			_ = run.Wait()
		}
		_, _ = to.Close(), from.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	_ = from.SetDeadline(time.Now().Add(browserPatience))
	_ = to.SetDeadline(time.Now().Add(browserPatience))
	var target struct{ TargetID, SessionID string }
	c.call("Target.createTarget", params{"url": "about:blank"}, &target)
	c.call("Target.attachToTarget", params{"targetId": target.TargetID, "flatten": true}, &target)
	c.session = target.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		c.call(domain+".enable", nil, nil)
	}
	return c
}

type params map[string]any

// call calls a method of the protocol.
func (c *chromium) call(method string, p params, result any) {
	c.Helper()
	c.calls++
	call := params{"id": c.calls, "method": method, "params": p}
	if p == nil {
		call["params"] = params{}
	}
	if c.session != "" {
		call["sessionId"] = c.session
	}
	text, err := json.Marshal(call)
	if err != nil {
		c.Fatal(err)
	}
	if _, err := c.to.Write(append(text, 0)); err != nil {
		c.Fatalf("%s: %v; the browser says %s", method, err, c.stderr.String())
	}
	reply := c.receive(method, func(said *message) bool { return said.ID == c.calls })
	if reply.Error != nil {
		c.Fatalf("%s: %s", method, reply.Error)
	}
	if result == nil {
		return
	}
	if err := json.Unmarshal(reply.Result, result); err != nil {
		c.Fatalf("%s: %v: %s", method, err, reply.Result)
	}
}

// A message is the reply to a call, or an event.
type message struct {
	ID                    int
	Method                string
	Params, Result, Error json.RawMessage
}

// receive reads messages until one is the right one.
func (c *chromium) receive(what string, right func(*message) bool) *message {
	c.Helper()
	for {
		text, err := c.from.ReadBytes(0)
		if err != nil {
			c.Fatalf("%s: %v; the browser says %s", what, err, c.stderr.String())
		}
		said := new(message)
		if err := json.Unmarshal(text[:len(text)-1], said); err != nil {
			c.Fatalf("%s: %v: %s", what, err, text)
		}
		if said.Method == "Runtime.exceptionThrown" || said.Method == "Log.entryAdded" {
			c.complains = append(c.complains, string(said.Params))
		}
		if right(said) {
			return said
		}
	}
}

// open opens a page, and waits until its scripts have run.
func (c *chromium) open(url string) {
	c.Helper()
	var result struct{ ErrorText string }
	if c.call("Page.navigate", params{"url": url}, &result); result.ErrorText != "" {
		c.Fatalf("%s: %s", url, result.ErrorText)
	}
	c.receive(url, func(said *message) bool { return said.Method == "Page.loadEventFired" })
}

// show has the page shown in a window of this size, with a dark colour scheme or a light one.
func (c *chromium) show(width, height int, dark bool) {
	c.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	c.call("Emulation.setEmulatedMedia", params{"features": []params{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	c.call("Emulation.setDeviceMetricsOverride", params{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
}

// eval is the value of an expression in the page.
func (c *chromium) eval(expression string, value any) {
	c.Helper()
	var result struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	c.call("Runtime.evaluate", params{"expression": expression, "returnByValue": true}, &result)
	if result.ExceptionDetails != nil {
		c.Fatalf("%s: %s", expression, result.ExceptionDetails)
	}
	if err := json.Unmarshal(result.Result.Value, value); err != nil {
		c.Fatalf("%s: %v: %s", expression, err, result.Result.Value)
	}
}

// draw writes a picture of the page as it is shown, in its whole height, to a file.
func (c *chromium) draw(file string) {
	c.Helper()
	var size [2]int
	c.eval("[innerWidth, Math.ceil(document.documentElement.getBoundingClientRect().height)]", &size)
	var picture struct{ Data []byte }
	c.call("Page.captureScreenshot", params{"format": "png", "captureBeyondViewport": true,
		"clip": params{"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1}}, &picture)
	writePicture(c.T, file, picture.Data)
}
