package wire

// A NativeAnswer is a node's answer to a command that compares the token itself, and so needs no script. Redis has such
// commands since 8.4; Valkey has some since 8.1, and all since 9.0. They serve a lock of one key that is held
// exclusively. As with an acquire by plain commands (PlainAnswer), other clients' commands may come between any two.
//
// An extension is
//
//	SET key token IFEQ token PX ttl
//	EXISTS redlock:broken:token
//
// and, after the last extension or acquire of the write, once for all of them, a part of the trailer:
//
//	TIME
//	SCRIPT EXISTS hash
//
// OK says that the token was there in the instant in which its TTL became whole again. The extend script says the same,
// and SET is one command, so nothing can come between. TIME is later than that instant, and earlier than the answer.
// SCRIPT EXISTS finds the script with the process's run_id in its text: so no other process behind the same connection
// has answered. In every other case the client sends the script, in another write, and the script's reply is the
// extension's, as if there were no such command; it may find the TTL whole already. The other cases are:
//
//   - The key is gone, or has another token.
//   - The token is broken (break.lua). EXISTS comes after SET, so no token counts that came after it was broken.
//   - The process is another one.
//   - The server is full: it carries out the script's PEXPIRE, and refuses SET.
//   - An ACL denies a command.
//
// A release is one of
//
//	DELEX key IFEQ token
//	DELIFEQ key token
//
// and EXISTS key:queue. A client releases in this way only a lock that it acquired by plain commands, when there was no
// queue, and on whose key none of its own attempts has failed lately. If the command deleted the key, the lock is
// released. A waiter may be there all the same:
//
//   - It entered the queue before the key was deleted: a node puts a waiter into the queue in the step that refuses it
//     the lock, or that finds an earlier waiter there. EXISTS comes later, and sees the queue. The client calls the
//     waiters that are next in another write (Wake), which leaves at once; the release script does so in the same step.
//   - It asked after the key was deleted, and before EXISTS. Either it found the key free and has the lock; or another
//     client has the lock, and its release calls the waiter; or there is a queue, and the item above applies.
//   - Between EXISTS and Wake, the first waiter has asked by itself, or another client has taken the key. Wake looks
//     for holders, and calls no waiter that cannot have the lock; the new holder's release does. A waiter that is
//     called twice asks twice, and no more.
//   - All waiters have left the queue: Wake calls none.
//   - Wake is lost with its connection: the waiter asks with its next heartbeat, as after any lost call.
//
// If the key was not deleted, the token was not there at that moment, or the server refuses the command. The client
// sends the release script, in another write. The script reports what is there instead, and deletes the token if it has
// come since: late, over a connection that was given up.
//
// Nothing is less safe than with the scripts: the token is unique, and what a command does depends on nothing but the
// token. Whether the server has forgotten anything does not matter to a release; nor to an extension: it has the token.
type NativeAnswer struct {
	Done     bool  // extend: SET said OK; release: the key was deleted
	Broken   int64 // extend: the reply of EXISTS; 1: the token is broken
	Queues   int64 // release: the reply of EXISTS; 1: there is a queue
	Err      error // the first error that the server sent to one of these commands
	*Trailer       // extend: the answers to the commands behind it
}

// Extended returns the node's time, in microseconds, if the answer to an extension without a script proves that the
// lock was extended; 0: it does not prove it, and the client must send the extend script.
func (a *NativeAnswer) Extended() int64 {
	if !a.Done || a.Broken > 0 || a.Err != nil || a.Failed != nil || a.Known != 1 {
		return 0
	}
	return a.Time
}

// Waited reports whether other clients wait for the lock that the release deleted, or may wait, since a command failed:
// the client must then call them (Wake).
func (a *NativeAnswer) Waited() bool { return a.Queues > 0 || a.Err != nil }
