package set

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/wire"
)

// identify acts on the address that n, which was just joined, says is its own. Unless that is n.Name, n may be a copy of
// another server's data (vote.Alias): a goroutine asks which process answers there. Until the answer, and if another one
// answers, n counts as keeping nothing. t is what n keeps (description and own address), runID names n's process. Caller
// holds s.mu.
func (s *Set) identify(n *node, t wire.Kept, runID string) {
	if t.Description == nil || t.Self == n.Name || strings.HasPrefix(t.Self, wire.AnyAddress) || runID == "" || s.cfg.Identify == nil || s.closed {
		n.vote.SaysNoAlias(t.Description != nil)
		return
	}
	alias := n.vote.SaysAlias(t.Self, runID)
	if alias == nil {
		return
	}
	s.tasks.Add(1)
	go func() {
		defer s.tasks.Done()
		ctx, cancel := context.WithTimeout(s.ctx, max(s.cfg.NodeTimeout, time.Second))
		defer cancel()
		id, err := s.cfg.Identify(ctx, alias.Self)
		if err != nil {
			id = ""
		}
		if !alias.Answered(id) {
			return
		}
		s.mu.Lock()
		s.consider()
	}()
}

// copies returns an error if given nodes have copies of other servers' data, and the rest is no majority; else nil. Caller
// holds s.mu.
func (s *Set) copies() error {
	var those []string
	of := ""
	for _, n := range (*s.nodes.Load())[:len(s.given)] {
		if self := n.vote.CopyOf(); self != "" {
			those = append(those, n.Name)
			if of != "" {
				of += ", "
			}
			of += fmt.Sprintf("%s has that of %s", n.Name, self)
		}
	}
	if len(those) == 0 || 2*(len(s.given)-len(those)) > len(s.given) {
		return nil
	}
	return fmt.Errorf("redlock: nodes have the data of other servers, which answer at their own addresses (%s), and with that the description of their set: make these forget it, with redlock members forget %s", of, strings.Join(those, " "))
}
