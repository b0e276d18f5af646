package main

import (
	"fmt"

	"github.com/quorumlock/redlock/cmd/redlock/internal/build"
	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/flags"
)

// version is redlock version.
func version(c *console.Console, _ string, args []string) (int, error) {
	asJSON, err := flags.OnlyJSON("version", args)
	switch {
	case err != nil:
	case asJSON:
		err = c.PrintJSON(build.This())
	default:
		_, err = fmt.Fprintln(c.Stdout, build.Line())
	}
	return 0, err
}
