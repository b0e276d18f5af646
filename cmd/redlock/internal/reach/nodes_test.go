package reach

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"

	"github.com/redis/go-redis/v9"
)

// FuzzNodeURLs: a password that is escaped in a URL is the one that the server gets, whatever it
// consists of. One that is not escaped is in no message: messages go to logs, and to cron's
// mails.
func FuzzNodeURLs(f *testing.F) {
	for _, password := range []string{"", "a,b", "a b", "a@b", "a:b/c?d#e%f", "%2", "\u00fc\x00", "1,redis://", "://", "[", ",@"} {
		f.Add("redis", "", password, "localhost:6379/1")
		f.Add("rediss", "me", password, "[::1]:6379")
		f.Add("unix", "me", password, "/run/redis.sock?db=1")
	}
	f.Fuzz(func(t *testing.T, scheme, user, password, host string) {
		const hush = "hush"
		if strings.Contains(scheme+user+host, hush) || strings.Contains(host, "@") {
			return
		}
		typed := scheme + "://" + user + ":" + hush + password + hush + "@" + host
		_, err := nodeURLs([]string{typed}, nil)
		if why := new(exit.Failure); err != nil && (!errors.As(err, &why) || strings.Contains(why.Text+why.Hint, hush)) {
			t.Errorf("%q: %v (%s)", typed, err, why.Hint)
		}

		login := strings.ReplaceAll(url.UserPassword(user, password).String(), ",", "%2C")
		urls, err := nodeURLs([]string{"redis://" + login + "@localhost:6379"}, nil)
		if err != nil || len(urls) != 1 {
			t.Fatalf("%q: %q, %v", login, urls, err)
		}
		if o, err := redis.ParseURL(urls[0]); err != nil || o.Username != user || o.Password != password {
			t.Errorf("%q is read as %+v, %v", login, o, err)
		}
	})
}

// TestHintIsAURL: a hint proposes a valid URL, also where the host is missing or the port is out of range.
func TestHintIsAURL(t *testing.T) {
	for host, want := range map[string]string{
		"":                "localhost:6379",
		":7001":           "localhost:7001",
		"a":               "a",
		"a:6380":          "a:6380",
		"a:":              "a:6379",
		"a:0":             "a:6379",
		"127.0.0.1:99999": "127.0.0.1:6379",
		"[::1]:70000":     "[::1]:6379",
	} {
		if got := meant(host); got != want {
			t.Errorf("%q: the hint says %s, want %s", host, got, want)
		}
		if err := CheckURL("--node", "redis://"+meant(host)); err != nil {
			t.Errorf("%q: %v", host, err)
		}
	}
}
