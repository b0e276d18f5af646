// Package redistest gives tests their Redis: real servers ([Servers]), real servers behind a network with
// faults ([Proxies]), or miniredis in virtual time ([NewBubble]).
//
// Real servers show what Redis does, and cost a process each. A bubble shows what the library does when
// times and failures are exact, and takes no time.
package redistest
