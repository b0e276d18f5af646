// Package embedded runs Redis nodes inside the process, for people who have
// nothing installed: to try the library, for examples, and for tests that need
// no more than a node's behaviour.
//
// The nodes are [miniredis] and therefore neither fast nor durable. They expire
// keys by the clock, forget or keep their data over a restart as told, and
// answer INFO as a real server does, which miniredis by itself does not and the
// library needs: a node's run_id says whether it has been restarted.
//
// The package does not import testing, since the command uses it too.
//
// [miniredis]: https://github.com/alicebob/miniredis
package embedded
