// Package redistest gives tests their Redis: real servers ([Servers]), real servers behind a network with
// faults ([Proxies]), or miniredis in virtual time ([NewBubble]).
//
// Real servers show what Redis does, and cost a process each. A bubble shows what the library does when
// times and failures are exact, and takes no time.
//
// The tests of what it is made of, and of the other stand-ins for a Redis, are here too: of memredis,
// faultproxy, port and leaks, and of the model, which is compared with miniredis and with servers. Each
// package with tests is a program to link, which takes longer than most of these tests.
package redistest
