package facts

import (
	"regexp"
	"strings"
)

// missing are the ways in which servers and proxies say that they do not have a command: Redis and Valkey to a command
// and to a subcommand, and what is in front of servers that others run.
var missing = []*regexp.Regexp{
	regexp.MustCompile("(?i)^(?:unknown|unsupported) command:? ['\"`]([a-z0-9_.|-]+)"),
	regexp.MustCompile("(?i)^command is not available: ['\"`]?([a-z0-9_.|-]+)"),
	regexp.MustCompile(`(?i)^unknown subcommand .*'([a-z]+)'\. Try ([a-z]+) help`),
}

// Missing returns the command, in capitals, that a server lacks, by the text of its error; "" for all other errors.
func Missing(text string) string {
	text = strings.TrimPrefix(text, "ERR ")
	for _, way := range missing {
		if found := way.FindStringSubmatch(text); len(found) == 3 {
			return strings.ToUpper(found[2] + " " + found[1])
		} else if found != nil {
			return strings.ToUpper(found[1])
		}
	}
	return ""
}

// lacks is the field for a command that the server does not have. INFO cannot have it, since its name has a colon.
const lacks = "command:lacks"

// Lacks returns the error of a command that locks need and the server lacks, in the server's words; nil: none is known.
func (f Facts) Lacks() error {
	if name := f[lacks]; name != "" {
		return said("ERR unknown command '" + strings.ToLower(name) + "'")
	}
	return nil
}
