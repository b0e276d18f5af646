// Package repotest checks the repository itself: its documents, with their code, commands and pictures, and
// the imports of its packages.
package repotest
