// Command found shows again a bug of this library that was found after it was merged, on the tree before its
// mend:
//
//	go run ./internal/found NAME ...
//
// Without a name it lists the bugs, with the commit that mended each. docs/found.md is made of the same table (bugs.go).
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	names := os.Args[1:]
	if len(names) == 0 {
		for _, b := range bugs {
			fmt.Printf("%-25s %s  %s\n", b.Name, b.Mend, b.summary())
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	status := 0
	for _, name := range names {
		b, ok := named(name)
		switch {
		case !ok:
			fmt.Fprintf(os.Stderr, "found: no bug is named %q; make found lists them\n", name)
			os.Exit(2)
		case b.Run == "":
			fmt.Printf("%s cannot be shown again: %s\n", name, b.Not)
			status = 1
			continue
		}
		if err := b.show(ctx, os.Stdout); err != nil {
			fmt.Fprintf(os.Stderr, "found: %s: %v\n", name, err)
			status = 1
		}
	}
	os.Exit(status)
}

func named(name string) (bug, bool) {
	for _, b := range bugs {
		if b.Name == name {
			return b, true
		}
	}
	return bug{}, false
}
