package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is the version and the commit that the go command has written into the binary.
func version() string {
	name, revision, modified := "(unknown)", "", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		name = info.Main.Version
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				revision = ", commit " + s.Value[:min(12, len(s.Value))]
			case s.Key == "vcs.modified" && s.Value == "true":
				modified = " and changes"
			}
		}
	}
	return fmt.Sprintf("redlock %s (%s %s/%s%s%s)", name, runtime.Version(), runtime.GOOS, runtime.GOARCH, revision, modified)
}
