package reach

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/internal/dial"
	"github.com/quorumlock/redlock/internal/nodeurl"
)

// ConfigVariable is the environment variable that names the configuration file.
const ConfigVariable = "REDLOCK_CONFIG"

// A config is a configuration file: what all commands on the same nodes have in common. A line is KEY=VALUE. The
// value is all that follows the sign, so a password needs no quotes.
type config struct {
	file   string // "": there is none
	nodes  []string
	values map[string]entry
}

type entry struct {
	value string
	line  int
}

// configKeys are the keys of a configuration file that may stand once; node may be repeated.
var configKeys = []string{"user", "password", "password-file", "tls-ca", "tls-cert", "tls-key", "prefix", "separator", "max-ttl"}

var configHint = "a line is KEY=VALUE, and the keys are node, " + strings.Join(configKeys[:len(configKeys)-1], ", ") + " and " + configKeys[len(configKeys)-1] + "; see redlock help config"

// configFile finds the configuration file: that of --config, that of the environment, or the first in the places of
// the XDG Base Directory Specification. file is "" if there is none. source is how errors name it.
func configFile(flag string, env []string) (file, source string, err error) {
	if flag != "" {
		return flag, "--config", nil
	}
	if file, ok := console.Lookup(env, ConfigVariable); ok {
		if file == "" {
			err = exit.Fail(exit.Usage, "unset it; /dev/null is a file without settings", "%s is set, but empty", ConfigVariable)
		}
		return file, ConfigVariable, err
	}
	home, _ := console.Lookup(env, "XDG_CONFIG_HOME")
	if user, ok := console.Lookup(env, "HOME"); home == "" && ok {
		home = filepath.Join(user, ".config")
	}
	dirs, _ := console.Lookup(env, "XDG_CONFIG_DIRS")
	if dirs == "" {
		dirs = "/etc/xdg"
	}
	for _, dir := range append([]string{home}, filepath.SplitList(dirs)...) {
		if !filepath.IsAbs(dir) { // the specification ignores relative paths
			continue
		}
		file := filepath.Join(dir, "redlock", "redlock.conf")
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) { // readConfig reports any other error
			return file, "the configuration file", nil
		}
	}
	return "", "", nil
}

// readConfig reads the configuration file, if there is one. Errors name the file, the line, the key and the value,
// but never a password, nor a line that may contain one.
func readConfig(c *console.Console, flag string) (*config, error) {
	found := &config{values: make(map[string]entry)}
	file, source, err := configFile(flag, c.Env)
	if err != nil || file == "" {
		return found, err
	}
	text, err := readSmall(file)
	if err != nil {
		return nil, exit.Fail(exit.Usage, "give a file that can be read; see redlock help config", "%s: %v", source, err)
	}
	found.file = file
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		at := fmt.Sprintf("%s:%d", file, n)
		switch before, again := found.values[key]; {
		case !ok || !word.MatchString(key):
			return nil, exit.Fail(exit.Usage, configHint, "%s: the line does not begin with KEY=", at)
		case value == "":
			return nil, exit.Fail(exit.Usage, "leave the line out", "%s: %s has no value", at, key)
		case key == "node":
			urls, err := splitURLs(at+": node", value)
			if err != nil {
				return nil, err
			}
			found.nodes = append(found.nodes, urls...)
		case !slices.Contains(configKeys, key):
			return nil, exit.Fail(exit.Usage, configHint, "%s: unknown key %s", at, key)
		case again:
			return nil, exit.Fail(exit.Usage, "only node may be repeated", "%s: %s is given twice, first in line %d", at, key, before.line)
		default:
			found.values[key] = entry{value, n}
		}
	}
	if err := found.check(); err != nil {
		return nil, err
	}
	if found.get("password") != "" || slices.ContainsFunc(found.nodes, hasPassword) {
		warnOfReaders(c, file)
	}
	return found, readPassword(c, found)
}

// word matches a key that an error may show: it cannot be a part of a URL with a password.
var word = regexp.MustCompile(`^[a-z][a-z_-]*$`)

// where returns how errors name a setting: FILE:LINE: KEY.
func (f *config) where(key string) string {
	return fmt.Sprintf("%s:%d: %s", f.file, f.values[key].line, key)
}

func (f *config) get(key string) string { return f.values[key].value }

// path returns the file that a setting names; "": none. A relative path starts at the configuration file's directory.
func (f *config) path(key string) string {
	if value := f.get(key); value == "" || filepath.IsAbs(value) {
		return value
	}
	return filepath.Join(filepath.Dir(f.file), f.get(key))
}

// check returns an error if settings do not fit together.
func (f *config) check() error {
	has := func(key string) bool { return f.get(key) != "" }
	switch {
	case has("user") && !has("password") && !has("password-file"):
		return exit.Fail(exit.Usage, "give password or password-file, too, or have both in the URLs", "%s %s has no password", f.where("user"), f.get("user"))
	case has("password") && has("password-file"):
		return exit.Fail(exit.Usage, "leave one of them out", "%s %s: there is password, too", f.where("password-file"), f.get("password-file"))
	case has("tls-cert") != has("tls-key"):
		key := "tls-cert"
		if has("tls-key") {
			key = "tls-key"
		}
		return exit.Fail(exit.Usage, "tls-cert is a certificate of this client, and tls-key its key", "%s %s is there without the other one of tls-cert and tls-key", f.where(key), f.get(key))
	}
	for _, key := range []string{"tls-ca", "tls-cert"} {
		encrypts := func(u string) bool { return strings.HasPrefix(strings.ToLower(u), "rediss://") }
		if has(key) && len(f.nodes) > 0 && !slices.ContainsFunc(f.nodes, encrypts) {
			return exit.Fail(exit.Usage, "a URL with TLS begins with rediss://", "%s %s is for nodes with TLS, and no node has it", f.where(key), f.get(key))
		}
	}
	return nil
}

// warnOfReaders warns of a file with a password that every user of the machine can read. It does not reject the file:
// a job that ran yesterday must run today.
func warnOfReaders(c *console.Console, file string) {
	info, err := os.Stat(file)
	if err == nil && info.Mode().Perm()&0o004 != 0 && runtime.GOOS != "windows" {
		c.Say("warning: %s has a password, and every user of this machine can read it: chmod o-r %[1]s", file)
	}
}

// readPassword reads the file that password-file names, if there is one: the password and nothing else.
func readPassword(c *console.Console, f *config) error {
	file := f.path("password-file")
	if file == "" {
		return nil
	}
	password, err := passwordIn(file)
	if err != nil {
		return exit.Fail(exit.Usage, "give a file that has the password and nothing else", "%s: %v", f.where("password-file"), err)
	}
	if password == "" || strings.ContainsAny(password, "\r\n") {
		return exit.Fail(exit.Usage, "give a file that has the password and nothing else", "%s %s does not have one line", f.where("password-file"), f.get("password-file"))
	}
	f.values["password"] = entry{password, f.values["password-file"].line}
	warnOfReaders(c, file)
	return nil
}

// passwordIn returns the password in a file that has nothing else.
func passwordIn(file string) (string, error) {
	text, err := readSmall(file)
	return strings.TrimRight(string(text), "\r\n"), err
}

// mostSettings is how many bytes a file of settings may have: a configuration, nodes, a password or certificates.
const mostSettings = 1 << 20

// readSmall reads a file of at most mostSettings bytes. A device may have no end.
func readSmall(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostSettings+1))
	if err == nil && len(text) > mostSettings {
		err = fmt.Errorf("%s is larger than 1 MiB", file)
	}
	return text, err
}

// credentials returns user and password for a new connection. If the password file is missing or incomplete at that
// moment, the password is that of the start.
func (f *config) credentials() (user, password string) {
	if !f.lasting("password-file") {
		return f.get("user"), f.get("password")
	}
	latest, err := passwordIn(f.path("password-file"))
	if err != nil || latest == "" || strings.ContainsAny(latest, "\r\n") {
		latest = f.get("password")
	}
	return f.get("user"), latest
}

// lasting reports whether the files that these keys name can be read again later: a second read of a pipe would block
// forever.
func (f *config) lasting(keys ...string) bool {
	for _, key := range keys {
		if file := f.path(key); file != "" {
			if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
				return false
			}
		}
	}
	return true
}

// options returns the connection settings of the nodes with these URLs. User and password go to nodes whose URL has
// none, certificates to nodes with TLS.
func (f *config) options(urls []string) ([]*redis.Options, error) {
	secured, err := f.tls()
	if err != nil {
		return nil, err
	}
	nodes := make([]*redis.Options, len(urls))
	for i, u := range urls {
		o, err := nodeurl.Parse(u)
		if err != nil {
			return nil, err // cannot happen: it was parsed before
		}
		if o.Username == "" && o.Password == "" && f.get("password") != "" {
			if o.TLSConfig == nil && o.Network != "unix" && !slices.Contains(f.nodes, u) && f.encrypted() {
				return nil, exit.Fail(exit.Usage, "name it with rediss://, or give it a password in its URL", "the password of %s is for nodes with TLS, and would be sent to %s without", f.file, o.Addr)
			}
			o.Username, o.Password = f.get("user"), f.get("password")
			if f.get("password-file") != "" { // the file may be replaced while the command runs
				o.CredentialsProvider = f.credentials
			}
		}
		if o.TLSConfig != nil {
			given := o.TLSConfig
			given.RootCAs, given.Certificates = secured.RootCAs, secured.Certificates
			given.ServerName = "" // that of the host that is dialled, which may be a member that was not given
			o.Dialer = dial.Secure(cmp.Or(o.DialTimeout, 5*time.Second), func() (*tls.Config, error) {
				now := given.Clone()
				if f.lasting("tls-ca", "tls-cert", "tls-key") {
					if latest, err := f.tls(); err == nil { // these files may be replaced as well, and be incomplete for a moment
						now.RootCAs, now.Certificates = latest.RootCAs, latest.Certificates
					}
				}
				return now, nil
			})
		}
		nodes[i] = o
	}
	return nodes, nil
}

// encrypted reports whether the file names nodes, all with TLS.
func (f *config) encrypted() bool {
	return len(f.nodes) > 0 && !slices.ContainsFunc(f.nodes, func(u string) bool { return !strings.HasPrefix(strings.ToLower(u), "rediss://") })
}

// keyPair reads a certificate and its key.
func keyPair(cert, key string) (tls.Certificate, error) {
	certText, err := readSmall(cert)
	if err != nil {
		return tls.Certificate{}, err
	}
	keyText, err := readSmall(key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(certText, keyText)
}

// tls returns the settings for TLS, with the certificates that the file names.
func (f *config) tls() (*tls.Config, error) {
	secured := new(tls.Config)
	if ca := f.path("tls-ca"); ca != "" {
		text, err := readSmall(ca)
		if err != nil {
			return nil, exit.Fail(exit.Usage, "it is a file of certificates, in PEM", "%s: %v", f.where("tls-ca"), err)
		}
		secured.RootCAs = x509.NewCertPool()
		if !secured.RootCAs.AppendCertsFromPEM(text) {
			return nil, exit.Fail(exit.Usage, "it is a file of certificates, in PEM", "%s %s has no certificate", f.where("tls-ca"), ca)
		}
	}
	if cert := f.path("tls-cert"); cert != "" {
		pair, err := keyPair(cert, f.path("tls-key"))
		if err != nil {
			return nil, exit.Fail(exit.Usage, "tls-cert is a certificate of this client, and tls-key its key, both in PEM", "%s %s: %v", f.where("tls-cert"), cert, err)
		}
		secured.Certificates = []tls.Certificate{pair}
	}
	return secured, nil
}
