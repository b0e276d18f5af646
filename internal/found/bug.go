package main

import (
	"regexp"
	"strings"
)

// A bug is a row of docs/found.md.
type bug struct {
	Name  string // what make found calls it: words with hyphens
	What  string // what went wrong, for a user
	Since string // the commit that brought it, or since when it was there
	By    string // what found it
	Mend  string // the commit that mended it, abbreviated to 7 digits or more

	// Run shows it: a go test, which fails in the tree before Mend and passes in that of Mend. Dir is the module
	// in which it runs; "": the root.
	Dir string
	Run string

	// Files are the files with the test, as paths from the root. They are taken from the tree of Mend; or if
	// Kept, since the mend has none that is compiled without it, from internal/found/testdata/NAME.
	Files []string
	Kept  bool

	// Says is what the failure prints, a regular expression; "": the test's name, as FAIL.
	Says string

	// Needs is a program that Run needs beside Go, "" if none.
	Needs string

	// Not says why it cannot be shown again. Run is empty then.
	Not string
}

// summary is the first sentence of what went wrong.
func (b bug) summary() string {
	first, _, _ := strings.Cut(b.What, ". ")
	return strings.TrimSuffix(first, ".")
}

// symptom is the summary without the cause behind a colon. What stands before the colon must say enough by itself:
// "Two holders" does not.
func (b bug) symptom() string {
	symptom, _, found := strings.Cut(b.summary(), ": ")
	if !found || len(symptom) < 40 {
		return b.summary()
	}
	return symptom
}

// finder is what found it, without the seeds and how often.
func (b bug) finder() string {
	return regexp.MustCompile(`[,:] .*`).ReplaceAllString(b.By, "")
}
