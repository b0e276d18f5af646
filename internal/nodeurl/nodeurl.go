// Package nodeurl reads the URLs of nodes. Its errors go to logs and terminals, so they quote no
// part of a URL: if it is not well formed, the password may be anywhere in it.
package nodeurl

import (
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Escapes explains how to write a password in a URL.
const Escapes = "in a password, @ : / ? # % and the comma are written as %40 %3A %2F %3F %23 %25 and %2C, and a space as %20"

var (
	errScheme   = errors.New("it does not begin with redis://, rediss:// or unix://")
	errForm     = errors.New("it is not of the form redis://user:password@host:port/db; " + Escapes)
	errDatabase = errors.New("what follows the host is not the number of a database (redis://host:port/db); " + Escapes)
	errUnix     = errors.New("it is not of the form unix://user:password@/path/to/socket?db=0; " + Escapes)
	errHost     = errors.New("it names no host (redis://host:port); is a variable unset?")
	errAddress  = errors.New("an IPv6 address is written in brackets: redis://[::1]:6379")
	errPort     = errors.New("its port is none from 1 to 65535")
	errOption   = errors.New("it has an option, after ?, that is not known or has no such value; " + Escapes)
)

// Parse reads the URL of a node: redis://user:password@host:port/db, rediss:// or unix://, with go-redis's options
// after a question mark.
//
// A password that should have been escaped, and is not, may still make a valid URL of another host: in
// redis://me:12#34@host the host would be "me", and its port 12. So Parse also checks what follows the host: there must
// be no @, and no fragment.
func Parse(text string) (*redis.Options, error) {
	scheme, _, _ := strings.Cut(text, "://")
	switch strings.ToLower(scheme) {
	case "redis", "rediss", "unix":
	default:
		return nil, errScheme
	}
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Opaque != "", strings.Contains(text, "#"):
		return nil, errForm
	case u.User == nil && strings.Contains(text, "@"), strings.Contains(u.EscapedPath(), "@"):
		return nil, errForm
	case u.Scheme == "unix" && (u.Host != "" || u.Path == ""):
		return nil, errUnix
	case u.Scheme != "unix" && strings.Count(u.Host, ":") > 1 && !strings.HasPrefix(u.Host, "["):
		return nil, errAddress
	case u.Scheme != "unix" && u.Hostname() == "":
		return nil, errHost
	case u.Scheme != "unix" && u.Port() != "" && !isPort(u.Port()):
		return nil, errPort
	case u.Scheme != "unix" && strings.Trim(u.Path, "/0123456789") != "":
		return nil, errDatabase
	}
	o, err := redis.ParseURL(text)
	switch {
	case err == nil:
		return o, nil
	case u.RawQuery != "":
		return nil, errOption
	}
	return nil, errForm
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}
