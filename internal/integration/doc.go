// Package integration tests the library through its exported interface: over real redis-servers, through
// proxies that break the network, and over miniredis in virtual time. The tests of packages that are too
// small for a test program of their own are here as well: facts, nodeurl, printable and sim.
package integration
