// Package memredis runs Redis nodes inside the process, for people who have nothing
// installed: to try the library, for examples, and for tests that need no more than a
// node's behaviour.
//
// The nodes are [miniredis] and therefore neither fast nor durable. They expire keys by the
// clock, forget or keep their data over a restart as told, and answer INFO as a real server
// does, which miniredis by itself does not and the library needs: a node's run_id says
// whether it has been restarted (Engine).
//
// A [Node] is reached without a network: over in-memory connections, behind a path of
// internal/testbed/faultproxy. It works in a testing/synctest bubble, where all of it happens in
// virtual time, and outside of one. A [TCPNode] of a [Cluster] listens on the loopback
// interface.
//
// The package does not import testing: the command and the chaos harness, which run outside
// of tests, use it, too.
//
// [miniredis]: https://github.com/alicebob/miniredis
package memredis
