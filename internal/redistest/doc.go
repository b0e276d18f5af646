// Package redistest gives tests their Redis: real servers ([Servers]), real
// servers behind a network that breaks ([Proxies]), or miniredis in virtual time
// ([NewBubble]); and looks that nothing is left running ([NoLeaks]).
//
// Real servers show what Redis does, and cost a process each; a bubble shows what
// our code does when time and failures are exact, at no wait.
package redistest
