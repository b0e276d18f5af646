// Package exit has the exit codes of redlock, and the failure that ends it with one.
package exit

import "fmt"

// The codes for redlock's own reasons, when there is no command's status to pass on. The first five are from
// sysexits.h, where scripts look them up; NotExecutable, NotFound and Signal are the shell's. Lost is next to the first
// and not one of them: no command that follows sysexits.h uses that number itself.
const (
	Usage         = 64
	NoQuorum      = 69 // for chaos: the arena cannot run here
	System        = 71
	CannotWrite   = 73
	Busy          = 75
	Lost          = 79
	NotExecutable = 126
	NotFound      = 127
	Signal        = 128 // plus the signal's number

	// Found means that demo, doctor or chaos has found a fault.
	Found = 1
)

// A Failure is an error with an exit code: what is wrong, and what the user can do about it.
type Failure struct {
	Code       int
	Text, Hint string
	Silent     bool // it is not shown, as the user has asked
}

func (f *Failure) Error() string { return f.Text }

// Fail makes a Failure, with the exit code, a hint for the user ("": none) and the text of the error.
func Fail(code int, hint, format string, args ...any) *Failure {
	return &Failure{Code: code, Text: fmt.Sprintf(format, args...), Hint: hint}
}
