// Package integration tests the library through its exported interface: over real redis-servers, through
// proxies that break the network, and over miniredis in virtual time.
package integration
