package scenario

import "time"

// boundWaiting sets the bounds for waiting and its order.
//
// A waiter is in the queues after a round trip, or after two if its lanes are busy, and a client
// that was being granted the lock meanwhile has it by then. A dead waiter keeps its place for three
// heartbeats, and the next one makes its attempt a heartbeat later. A waiter that is called has the
// lock a few round trips after the release, or after an attempt in vain and the pause that follows
// several of these. Lanes that have lost their node
// try to reach it every second, and it may be in quarantine then.
//
// To a client that has not looked for a while, a fast clock looks like one that was set (see quartz
// in clocks.go of package vote): it may wait for the quarantine of nodes that are well, and is in
// no queue meanwhile.
func (p *Plan) boundWaiting(clients int) {
	s, r := p.Scenario, &p.Run
	if s.Fails != nil || s.Wrong || s.Once { // clocks that are wrong make wrong tickets; or no client waits
		return
	}
	if s.Reserve > 0 || s.Own || s.Settings { // a node that comes has empty queues; or clients have other quorums, or none; or the set refuses some
		return
	}
	quarantine := max(p.Options.Quarantine, 0)
	fast := s.Fast && clients > 1 && quarantine > 0
	r.TTL, r.Slight = p.TTL, p.slight()
	if !fast {
		r.Settle = 40*p.RTT + 6*r.Slight + 4*r.Lag
	}
	if !s.Plain && (s.Others[1] == 0 || s.Prompt) { // a client of another library leaves behind what it could not release, if anything goes wrong
		beat := min(max(p.TTL/10, 100*time.Millisecond), time.Second)
		r.Idle = 4*beat + p.Options.NodeTimeout + time.Second
		if fast {
			r.Idle += quarantine
		}
		if s.Prompt {
			r.Idle = beat/4 + 20*p.RTT
			if s.Others[1] > 0 { // a waiter that has not seen the foreign holder yet sees it with its next heartbeat
				r.Idle += beat
			}
		}
	}
	r.Grace = 2*time.Second + p.TTL + quarantine
}

// boundChanges makes the bound for waiting longer where members change, or settings.
//
// A client that goes by an earlier description is refused by the nodes that have a later one, and learns of
// it when it joins them again. A node that has lost its data is told by a client that is sure of the
// description, which needs the word of the others; and it has no vote for a quarantine, which is as long
// as the set's MaxTTL demands.
func (p *Plan) boundChanges() {
	if s := p.Scenario; s.Reserve > 0 || s.Own || s.Settings {
		p.Run.Bound += 2*p.longest() + 4*p.Options.NodeTimeout + 4*time.Second
	}
	if p.Scenario.Planned { // a lock may be held for all of it
		p.Run.Bound += p.Span
	}
}

// longest is the longest MaxTTL that the set may have.
func (p *Plan) longest() time.Duration {
	if p.Scenario.Own {
		return max(4*p.TTL, 10*time.Second)
	}
	return p.TTL
}

// boundMemory sets the bounds for memory. At the end of the run a node has, for all names together,
// its markers and its tables of counters. A lane that stops keeps what comes in until that is
// noticed, what was under way, and a release for each lock that was held.
func (p *Plan) boundMemory(clients int) {
	p.Run.Found = p.Scenario.Find
	if p.Scenario.Weigh {
		p.Run.MostKeys, p.Run.MostBytes = 8, 1<<20
		p.Run.MostRequests = 24 + 16*p.Workers
	}
}

// slight is a delay that makes no attempt fail: a fraction of the time that it has.
func (p *Plan) slight() time.Duration { return min(40*time.Millisecond, p.Options.NodeTimeout/8) }
