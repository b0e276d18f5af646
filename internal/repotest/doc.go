// Package repotest checks the repository itself: its documents, with their code and commands, and the
// imports of its packages.
package repotest
