// Package repotest checks the repository itself: its documents, with their code, commands and pictures, and
// how its packages and their files depend on each other.
package repotest
