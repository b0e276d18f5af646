package wire

// A NativeAnswer is what a node says to a command that compares the token itself, and needs no script
// for it: Redis has such commands since 8.4, Valkey some of them since 8.1, and all since 9.0. They are
// for a lock of one key that is held exclusively. As with an acquire of plain commands (PlainAnswer),
// other clients' commands may come between any two.
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
// OK says that the token was there, in the same instant in which its TTL became a whole one. That is
// what the script says, and it is one command, so nothing can come between. The time is later than
// that, and earlier than the answer. The server knows the script that has the process's run_id in its
// text: no other process behind the same connection has answered. In every other case (the
// key is gone, or another token's; the token is broken (break.lua), which is looked at after SET, so that no token counts
// that has come after it was broken; the process is another one; the server is full, where the script's
// PEXPIRE is carried out and SET is not; an ACL) the script is sent, in another write, and its reply is
// that of the extension: as if there were no such command. So the script may find the token's TTL
// whole already.
//
// A release is one of
//
//	DELEX key IFEQ token
//	DELIFEQ key token
//
// and EXISTS key:queue. It is for a lock that was acquired by plain commands, as there was no queue
// then, and on whose key no attempt of this client has come to nothing lately. If the key was deleted,
// the lock has been released. A waiter may be there all the same:
//
//   - It entered the queue before the key was deleted: a node has a waiter enter the queue in the step
//     that refuses it the lock, or that finds an earlier waiter there. EXISTS comes later, and sees the
//     queue. The waiters that are next are called in another write (Wake), which leaves at once. A
//     lock that is released by the script calls them in the same step.
//   - It asked after the key was deleted, and before EXISTS: it has found the key free and has the lock;
//     or another client has, whose release calls it; or there is a queue, of which the item above says
//     that it is called.
//   - Between EXISTS and the call, the first waiter has asked by itself, or another client has taken
//     the key: then the call, which looks for holders, calls none that cannot have the lock. Its new
//     holder's release does. A waiter that is called twice asks twice, and no more.
//   - All waiters have left the queue: none is called.
//   - The call gets lost, with its connection: the waiter asks with its next heartbeat, as after any
//     call that got lost.
//
// If the key was not deleted, the token was not there at that moment, or the server refuses the
// command. The script is sent, in another write. It says what is there instead, and deletes the token
// if that has come since: late, over a connection that was given up.
//
// Nothing is less safe than with the scripts: the token is unique, and what is done depends on nothing
// but the token. That a server has forgotten something is no matter to a release; and to an
// extension as little as by the script, since the token is there.
type NativeAnswer struct {
	Done     bool  // SET said OK; or the key was deleted
	Broken   int64 // extend: EXISTS
	Queues   int64 // release: EXISTS
	Err      error // what the server said first to one of these instead
	*Trailer       // extend
}

// Extended is the node's time if the lock was extended by an answer to be relied on; 0: the script has to say
// what is there.
func (a *NativeAnswer) Extended() int64 {
	if !a.Done || a.Broken > 0 || a.Err != nil || a.Failed != nil || a.Known != 1 {
		return 0
	}
	return a.Time
}

// Waited reports whether other clients wait, or may wait, for the lock that was deleted.
func (a *NativeAnswer) Waited() bool { return a.Queues > 0 || a.Err != nil }
