// Package repotest checks the repository itself: its documents, their code and commands,
// and what the packages import.
package repotest
