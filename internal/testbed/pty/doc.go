// Package pty makes pseudo-terminals for tests. It works on Linux only.
package pty
