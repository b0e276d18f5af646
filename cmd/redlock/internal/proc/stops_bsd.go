//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package proc

// passesStops: see stops_linux.go. Here a caught SIGTSTP could not be given back.
const passesStops = false

func stopsUs() (restore func()) { return func() {} }
