//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package proc

// passesStops: see stops_linux.go. Here SIGTSTP would be ours for good.
const passesStops = false

func stopsUs() (restore func()) { return func() {} }
