//go:build !linux

package redisproc

import "errors"

// LimitFiles needs Linux.
func (s *Server) LimitFiles(int64) error {
	return errors.New("redisproc: only on Linux can the files of a process be limited")
}

// IgnoreFileLimit has nothing to do where there is no limit.
func IgnoreFileLimit() {}
