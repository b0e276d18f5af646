// Package reach finds out which nodes a command line means, from flags, environment and configuration file, and opens
// a Locker over them that reports to the operator what happens to them.
package reach

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/internal/nodeurl"
)

const (
	NodesVariable = "REDLOCK_NODES"
	FilesVariable = "REDLOCK_NODES_FILE"

	// EmbeddedNodes is how many nodes --embedded starts: as many as are usual in production.
	EmbeddedNodes = 5
)

// nodeURLs returns the URLs that the flags or the environment name; nil if neither does. An empty value, such as that
// of a variable that was not set, is an error: it must not lead to a lock that excludes no other process.
func nodeURLs(flags, env []string) ([]string, error) {
	source, values := "--node", flags
	if flags == nil {
		value, ok := console.Lookup(env, NodesVariable)
		file, inFile := console.Lookup(env, FilesVariable)
		switch {
		case ok:
			source, values = NodesVariable, []string{value}
		case inFile:
			found, err := readNodes(FilesVariable, file)
			if err != nil {
				return nil, err
			}
			source, values = FilesVariable, found
		default:
			return nil, nil
		}
	}
	var urls []string
	for _, value := range values {
		found, err := splitURLs(source, value)
		if err != nil {
			return nil, err
		}
		urls = append(urls, found...)
	}
	return urls, nil
}

// splitURLs returns the URLs in one value, which commas or spaces separate. Errors name source.
func splitURLs(source, value string) ([]string, error) {
	found := strings.FieldsFunc(value, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	if len(found) == 0 {
		return nil, exit.Fail(exit.Usage, "name the Redis servers: redis://HOST:PORT,...", "%s is set, but empty", source)
	}
	for i, u := range found {
		err := CheckURL(source, u)
		if err != nil && len(found) > 1 && strings.ContainsRune(value, '@') {
			// The comma may be a part of a password, and so may each piece.
			err = exit.Fail(exit.Usage, escapes, "%s: number %d of %d URLs, which commas or spaces separate, is not a Redis URL", source, i+1, len(found))
		}
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// escapes is the hint for a text that is no URL and may contain a password.
const escapes = "write redis://user:password@host:port; in a password, @ : / ? # % and the comma are written as %40 %3A %2F %3F %23 %25 and %2C, and a space as %20"

// howToName is the hint if no nodes are named.
const howToName = "name them with --node redis://HOST:PORT,..., in " + NodesVariable + " or in a configuration file (redlock help config)"

// Real returns the nodes that are named, for verbs to which nodes inside this process are of no use. If none are, its
// error is "there are no nodes to", and todo.
func Real(c *console.Console, flags *Flags, todo string) ([]*redis.Options, error) {
	return Nodes(c, flags, exit.Fail(exit.Usage, howToName, "there are no nodes to %s", todo))
}

// Nodes returns the nodes that are named by flags, the environment or the configuration file, in this order. It
// completes the flags from the latter two. If no nodes are named, it returns the error none.
func Nodes(c *console.Console, flags *Flags, none error) ([]*redis.Options, error) {
	c.Quiet = flags.Quiet
	urls, err := nodeURLs(flags.nodes, c.Env)
	if err != nil {
		return nil, err
	}
	warnOfFiles(c, flags, urls)
	file, err := readConfig(c, flags.config)
	if err != nil {
		return nil, err
	}
	if err := flags.complete(c.Env, file); err != nil {
		return nil, err
	}
	if urls == nil {
		urls = file.nodes
	}
	if urls == nil {
		return nil, none
	}
	return file.options(urls)
}

// RealOrEmbedded returns the nodes that are named, or with --embedded (own) new ones inside this process, which stop
// ends. Without either it fails: a lock on nodes of one process excludes no other one, and two jobs with such locks
// would both run.
func RealOrEmbedded(c *console.Console, flags *Flags, own bool, todo string) (nodes []*redis.Options, stop func(), err error) {
	if own {
		c.Quiet = flags.Quiet
		if flags.config != "" {
			return nil, nil, exit.Fail(exit.Usage, "--embedded is for a lock on nodes inside this process, which excludes no other process", "--embedded and --config do not go together")
		}
		if flags.nodes != nil {
			return nil, nil, exit.Fail(exit.Usage, "--embedded is for a lock on nodes inside this process, which excludes no other process", "--embedded and --node do not go together")
		}
		cluster, err := startEmbedded(c)
		if err != nil {
			return nil, nil, err
		}
		nodes, err := new(config).options(cluster.URLs()) // without password and certificates
		if err == nil {
			err = flags.complete(c.Env, new(config))
		}
		if err != nil {
			cluster.Close()
		}
		return nodes, cluster.Close, err
	}
	nodes, err = Nodes(c, flags, exit.Fail(exit.Usage, howToName+"; --embedded tries it out on nodes inside this process, with a lock that excludes no other process", "there are no nodes to %s", todo))
	return nodes, func() {}, err
}

// readNodes reads a file of URLs, one a line. Lines that begin with # are comments. source is how errors name the file.
func readNodes(source, file string) (urls []string, err error) {
	text, err := readSmall(file)
	if err != nil {
		return nil, exit.Fail(exit.Usage, "give a file with the URL of a Redis server on each line", "%s: %v", source, err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			urls = append(urls, line)
		}
	}
	if len(urls) == 0 {
		return nil, exit.Fail(exit.Usage, "give a file with the URL of a Redis server on each line", "%s: no server is named in %s", source, file)
	}
	return urls, nil
}

// warnOfFiles warns of files of nodes that have a password and that every user can read. urls are those of all nodes.
// It does not read the files again: they may be pipes.
func warnOfFiles(c *console.Console, flags *Flags, urls []string) {
	files := flags.secret
	if _, ok := console.Lookup(c.Env, NodesVariable); flags.nodes == nil && !ok && slices.ContainsFunc(urls, hasPassword) {
		if file, ok := console.Lookup(c.Env, FilesVariable); ok {
			files = []string{file}
		}
	}
	for _, file := range files {
		warnOfReaders(c, file)
	}
}

// hasPassword reports whether a text with URLs may contain a user or a password.
func hasPassword(url string) bool { return strings.Contains(url, "@") }

// CheckURL returns an error if the URL of a node is wrong. It never shows the password. source is how it names the URL.
func CheckURL(source, text string) error {
	_, err := nodeurl.Parse(text)
	if err == nil {
		return nil
	}
	if at := strings.LastIndexByte(text, '@'); at >= 0 {
		// err may quote a part of the password.
		return exit.Fail(exit.Usage, escapes, "%s: the one at %q is not a Redis URL", source, text[at+1:])
	}
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		scheme, rest = "", text
	}
	host, _, _ := strings.Cut(rest, "/")
	if !address.MatchString(host) {
		// The text may be a user and a password without a host.
		return exit.Fail(exit.Usage, escapes, "%s: one URL is not a Redis URL: %v", source, err)
	}
	if ok {
		scheme += "://"
	}
	return exit.Fail(exit.Usage, "write redis://host:port, say redis://"+meant(host),
		"%s %q is not a Redis URL: %v", source, scheme+host, err)
}

// address matches a host and a port, and nothing that can be a password.
var address = regexp.MustCompile(`^([\w.-]*|\[[0-9A-Fa-f:.]*\])(:\d*)?$`)

// meant returns what a host and port were probably meant to be, for a hint: it puts localhost in the place of a missing
// host, and 6379 in the place of a port that is not from 1 to 65535. The regular expression address must match host.
func meant(host string) string {
	parts := address.FindStringSubmatch(host)
	name, port := parts[1], parts[2]
	if name == "" {
		name = "localhost"
	}
	if n, err := strconv.ParseUint(strings.TrimPrefix(port, ":"), 10, 16); (err != nil || n == 0) && (port != "" || host == "") {
		port = ":6379"
	}
	return name + port
}
