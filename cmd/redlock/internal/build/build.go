// Package build says from which source this binary was built.
package build

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// An Info is what the go command has written into the binary.
type Info struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"` // the source had changes that were not committed
}

// This returns version, commit and platform of this binary.
func This() Info {
	b := Info{Version: "(unknown)", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.Version = info.Main.Version
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
	}
	return b
}

// Line returns version, platform and commit in one line.
func Line() string {
	b := This()
	commit, modified := "", ""
	if b.Commit != "" {
		commit = ", commit " + b.Commit[:min(12, len(b.Commit))]
	}
	if b.Modified {
		modified = " and changes"
	}
	return fmt.Sprintf("redlock %s (%s %s/%s%s%s)", b.Version, b.Go, b.OS, b.Arch, commit, modified)
}
