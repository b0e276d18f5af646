package build

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// A Info is what the go command has written into the binary.
type Info struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"` // there were changes besides the commit
}

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

// Line is the version and the commit in one line.
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
