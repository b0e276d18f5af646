package nodeurl_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/quorumlock/redlock/internal/nodeurl"
)

// TestURLsTellNoPassword: whatever is wrong with a URL, its error has no part of the password, and no
// part of a password that is not escaped is ever taken for a host.
func TestURLsTellNoPassword(t *testing.T) {
	for _, sign := range []string{"/", "#", "?", "@", ":", "%", " ", ",", "[", "]", "\\", "\x00", "\u00fc", "//", "@/", "/@", "#@", "?@", "?db=", "&", ";", "://"} {
		for _, form := range []string{
			"redis://me:PASS@host:6379/0", "rediss://:PASS@host", "redis://PASS@host", "redis://me:PASS", "redis://me:1PASS@host", "redis://me:12SIGN34hush@host",
			"unix://me:PASS@/run/redis.sock", "unix://:12SIGN34hush@/run/redis.sock", "http://me:PASS@host", "redis:me:PASS@host", "me:PASS@host", "PASS", "redis://host/PASS", "redis://host?PASS", "redis://host?db=PASS", "redis://host?read_timeout=PASS", "redis://me:PASS@host?hush=1",
		} {
			if strings.HasPrefix(sign, "@") && form == "redis://me:PASS" {
				continue // the rest is a password and a host
			}
			text := strings.ReplaceAll(strings.ReplaceAll(form, "PASS", "hushSIGNhush"), "SIGN", sign)
			o, err := nodeurl.Parse(text)
			switch {
			case err != nil && strings.Contains(err.Error(), "hush"):
				t.Errorf("%q: %v", text, err)
			case err == nil && (strings.Contains(o.Addr, "hush") || strings.Contains(o.Addr, "12") || strings.Contains(o.Addr, "34")):
				t.Errorf("%q is the address %q", text, o.Addr)
			}
		}
		login := url.UserPassword("me", "hush"+sign+"hush").String()
		if o, err := nodeurl.Parse("redis://" + login + "@host:1/2"); err != nil || o.Password != "hush"+sign+"hush" || o.Addr != "host:1" || o.DB != 2 {
			t.Errorf("%q is not read: %v", login, err)
		}
	}
}

// TestParsedURLs: what go-redis accepts is accepted, and what is wrong is named.
func TestParsedURLs(t *testing.T) {
	for _, tt := range []struct{ text, addr, why string }{
		{"redis://host", "host:6379", ""},
		{"redis://", "", "names no host"},
		{"redis://:6379", "", "names no host"},
		{"rediss://user:password@/0", "", "names no host"},
		{"redis://::1", "", "brackets"},
		{"redis://fe80::1:6379", "", "brackets"},
		{"redis://[::1]", "[::1]:6379", ""},
		{"redis://host:99999", "", "port"},
		{"redis://host:0", "", "port"},
		{"REDIS://host:1/", "host:1", ""},
		{"rediss://user:password@[::1]:6380/3?dial_timeout=2s&client_name=a@b", "[::1]:6380", ""},
		{"unix://user:password@/run/redis.sock?db=1", "/run/redis.sock", ""},
		{"unix:///run/redis@home.sock", "", "redis://user:password@host:port"}, // write %40
		{"unix:///run/redis%40home.sock", "/run/redis@home.sock", ""},
		{"unix://run/redis.sock", "", "unix://user:password@/path"},
		{"unix://", "", "unix://user:password@/path"},
		{"host:6379", "", "does not begin with"},
		{"", "", "does not begin with"},
		{"http://host", "", "does not begin with"},
		{"redis:host", "", "does not begin with"},
		{"redis://host:port", "", "redis://user:password@host:port"},
		{"redis://host:1/x", "", "number of a database"},
		{"redis://host:1/1/2", "", "redis://user:password@host:port"},
		{"redis://host:1?what=1", "", "option"},
		{"redis://host:1?read_timeout=x", "", "option"},
	} {
		o, err := nodeurl.Parse(tt.text)
		switch {
		case tt.why == "" && (err != nil || o.Addr != tt.addr):
			t.Errorf("%q: %v, %v", tt.text, o, err)
		case tt.why != "" && (err == nil || !strings.Contains(err.Error(), tt.why)):
			t.Errorf("%q: %v, want %q", tt.text, err, tt.why)
		}
	}
}
