package main

import "fmt"

// version is redlock version.
func (c *command) version(_ string, args []string) (int, error) {
	asJSON, err := onlyJSON("version", args)
	switch {
	case err != nil:
	case asJSON:
		err = c.printJSON(thisBuild())
	default:
		_, err = fmt.Fprintln(c.stdout, version())
	}
	return 0, err
}
