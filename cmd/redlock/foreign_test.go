package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
	"github.com/redis/go-redis/v9"
)

// patience is how long a test waits for something that happens by itself.
const patience = 20 * time.Second

// within waits until a condition is true, and returns false if it is not within d.
func within(d time.Duration, cond func() bool) bool {
	for deadline := time.Now().Add(d); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// TestForeignTextIsShownHarmless: any client of the nodes can set a token and an owner.
// It must not steer a terminal, make a line of its own, or reverse the reading order; JSON has
// it unchanged.
func TestForeignTextIsShownHarmless(t *testing.T) {
	const csi8, csi, title, line, bidi = "\x9b2J", "\u009b2J", "\x1b]0;mine\a", "\nredlock: all is well\r\t", "\u202e\u2066"
	const token, owner = "them" + title + csi + line + bidi, "me" + title + csi + line + bidi
	const shown = `\x1b]0;mine\a\u009b2J\nredlock: all is well\r\t\u202e\u2066`
	nodes, err := memredis.Start(3)
	if err != nil {
		t.Fatal(err)
	}
	defer nodes.Close()
	for _, u := range nodes.URLs() {
		o, err := redis.ParseURL(u)
		if err != nil {
			t.Fatal(err)
		}
		rdb := redis.NewClient(o)
		for key, value := range map[string]string{"k": token, "bytes": "them" + csi8, "signed": "x.@1@%1B%5D0;@%1B%5D0%3Bmine%0A%07y", "name" + title + csi8 + line: title} {
			if err := rdb.Set(t.Context(), key, value, time.Minute).Err(); err != nil {
				t.Fatal(err)
			}
		}
		_ = rdb.Close()
	}
	waiter, err := redlock.Connect(nodes.URLs(), &redlock.Options{Owner: owner, Quarantine: -1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	defer func() { stop(); <-done; _ = waiter.Close() }()
	go func() {
		defer close(done)
		if _, err := waiter.Acquire(ctx, "k"); !errors.Is(err, redlock.ErrHeld) || !harmless(err.Error()) || !strings.Contains(err.Error(), "held by them"+shown) {
			t.Errorf("the library's error: %q", err)
		}
	}()
	env := append(os.Environ(), reach.NodesVariable+"="+strings.Join(nodes.URLs(), ","))
	call := func(args ...string) (code int, stdout, stderr string) {
		var out, err strings.Builder
		code = main1(args, env, strings.NewReader(""), &out, &err)
		return code, out.String(), err.String()
	}
	for begin := time.Now(); ; {
		if _, out, _ := call("status", "k"); strings.Contains(out, "1 waiting") {
			break
		} else if time.Since(begin) > patience {
			t.Fatalf("no client waits: %q", out)
		}
	}

	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"status", "k"}, []string{`held by token them` + shown + ", fence", "the first is me" + shown + "\n", "\nme" + shown + " "}},
		{[]string{"status", "bytes"}, []string{`held by token them\x9b2J, fence`}},
		{[]string{"status", "signed"}, []string{`held by \x1b]0;mine\n\ay (token x), fence`, ` \x1b]0; `}},
		{[]string{"run", "--key", "signed", "--timeout", "0", "--", os.Args[0]}, []string{`\x1b]0;mine\n\ay (token x) on `}},
		{[]string{"wait", "k", "--timeout", "1s"}, []string{`token them` + shown, "the first is me" + shown}},
		{[]string{"run", "--key", "k", "--timeout", "0", "--", os.Args[0]}, []string{"token them" + shown + " on "}},
		{[]string{"run", "--key", "bytes", "--timeout", "0", "--", os.Args[0]}, []string{`token them\x9b2J on `}},
		{[]string{"lock", "--key", "k", "--timeout", "1s"}, []string{"token them" + shown + " on "}},
		{[]string{"ls"}, []string{`name\x1b]0;mine\a\x9b2J\nredlock: all is well\r\t  held `, `token \x1b]0;mine`, "token them"}},
		{[]string{"status", "k", "--nodes", "/\x1b[31m\n"}, []string{`/\x1b[31m`}},
	} {
		_, out, err := call(tt.args...)
		if !harmless(out) || !harmless(err) {
			t.Errorf("%q: %q, %q", tt.args, out, err)
		}
		for _, want := range tt.want {
			if !strings.Contains(out+err, want) {
				t.Errorf("%q: %q, %q; want %q", tt.args, out, err, want)
			}
		}
		for text := range strings.Lines(out + err) {
			if text == "redlock: all is well\n" {
				t.Errorf("%q: %q, %q", tt.args, out, err)
			}
		}
	}

	_, out, _ := call("status", "k", "--json")
	var s struct {
		Token   string
		Waiting []struct{ Owner string }
	}
	if err := json.Unmarshal([]byte(out), &s); err != nil || s.Token != token || len(s.Waiting) != 1 || s.Waiting[0].Owner != owner {
		t.Errorf("%q, %v", out, err)
	}
}

// harmless reports whether a text cannot steer a terminal.
func harmless(text string) bool {
	return strings.ToValidUTF8(text, "\x1b") == text && !strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) })
}
