//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package main

// passesStops: see terminal_linux.go. Here SIGTSTP would be ours for good.
const passesStops = false

func stopsUs() (restore func()) { return func() {} }
