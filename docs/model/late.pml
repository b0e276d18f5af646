/*
 * A key that is set late, for spin. README.md says how to run it.
 *
 * A has the lock, by nodes 0 and 1 of three. Node 2 hangs with A's acquire of plain commands, and carries
 * it out when the time is up. A hears of it, and has the node drop the key. What A sends to node 2 goes
 * over one connection, in order, and so do the answers; any number is under way. Once, the node may be
 * unable to carry out the release, and then carry out what was sent behind it: the release is sent again.
 * Meanwhile A extends, and B wants the lock. A request to node 0 or 1 is one step with its answer, or
 * never arrives. The node does not count until it has confirmed the release; if A gave up the connection
 * before, it never counts. If it does not have the key, A sets it again (fill), and the node counts: in the
 * code it counts two extensions later, because of nodes that lose data.
 *
 * A node keeps a key for as long as the validity that came with it, which ends at any moment: over says
 * how many have ended, of the acquisition and of the extensions. A relies on the last one that was
 * confirmed. B's never ends.
 *
 * Set by -D: CUT, A gives up the connection, once. What was under way is not answered, and is carried out
 * at any time, or never; a release that was not confirmed is sent again over the next connection. DETACH, A
 * is detached, at any time, and another process takes the lock up, over connections of its own. And names of
 * rules, each of which takes the rule out. MARK: the node that is to drop the key counts for extensions. KEEP:
 * it is told so also when the lock is detached. HANDLE: it counts for the other process, which does not know
 * that it is to drop the key. HAUNTED: it counts again though a release was under way over a connection that A
 * gave up.
 */
mtype = { acquire, extend, release, fill };
#define A 1
#define B 2
#define bit(n)   (1 << (n))
#define two(s)   (((s) & ((s) - 1)) != 0)
#define free(n)  (owner[n] == 0 || owner[n] == A && over > lease[n])
#define has(n)   (owner[n] == A && over <= lease[n])

byte owner[3], lease[3];                    /* lease: of the acquisition (0), or of an extension */
chan out = [6] of { mtype, byte };          /* to node 2: what, and of which extension */
chan back = [6] of { mtype, byte, bit };    /* from it; and whether it has the key, or has released it */
chan old = [6] of { mtype, byte };          /* to node 2, over the connection that was given up */
byte over, begun, confirmed, votes;
byte filled;                                /* of node 2, see Lock.counted in round.go: 0, it counts; FILLING; NEVER */
byte got;                                   /* B's nodes */
bit detached, owed, refused, again;
bit gone, cut, haunted;                     /* A knows that node 2 has no key; a release was under way at the cut */

#define valid    (over <= confirmed)
#define check    assert(!(two(got) && valid))
#define counted  (filled == 0)
#define FILLING  1
#define NEVER    2
#ifndef MOST
#define MOST     3                          /* extensions */
#endif
#define asks     (begun > confirmed)        /* an extension is under way */
#if HAUNTED
#define settled  (filled == NEVER)
#else
#define settled  (filled == NEVER && !haunted)
#endif
#if KEEP
#define drops    1
#else
#define drops    (!detached)
#endif
#if HANDLE
#define healed   0
#else
#define healed   (filled != 0)              /* when it was detached: nothing changes it then */
#endif

inline refill() {
	if :: !detached -> printf("A sets the key at node 2 again\n"); gone = 0; out!fill, 0 :: else fi
}

proctype client() {
	mtype what; byte number; bit yes;
	out!acquire, 0;
end:	do
	:: d_step { back?what, number, yes ->
		if
		:: what == acquire && drops ->
			printf("A hears that node 2 was late\n");
			owed = 1; out!release, 0;
#if !MARK
			filled = (detached -> filled : NEVER);
#endif
		:: what == extend && yes && counted -> votes = votes | (number == begun -> bit(2) : 0)
		:: what == extend && !yes && !owed -> refill()
		:: what == fill && yes && !detached -> filled = (filled == FILLING -> 0 : filled)
		:: what == release -> owed = !yes; again = !yes; gone = yes; filled = (yes && settled && !detached -> FILLING : filled)
		:: else
		fi }
	:: d_step { again -> again = 0; out!release, 0 }
#if CUT
	:: d_step { !cut -> printf("A gives up the connection\n"); cut = 1; haunted = owed && !again;
		do :: back?what, number, yes :: empty(back) -> break od;
		do :: out?what, number -> old!what, number :: empty(out) -> break od;
		if :: owed -> again = 0; out!release, 0 :: else fi }
#endif
#if DETACH
	:: d_step { !detached && valid -> printf("A is detached\n"); detached = 1 }
	:: d_step { detached && begun < MOST && valid -> begun++; votes = 0 }
	:: d_step { detached && asks && has(2) -> printf("the other process extends at node 2\n");
		lease[2] = begun; votes = votes | (healed -> 0 : bit(2)) }
#endif
	:: d_step { !detached && begun < MOST && valid -> printf("A extends\n"); begun++; votes = 0;
		if :: owed :: !owed && gone -> refill() :: else -> out!extend, begun fi }
	:: d_step { asks && has(0) -> lease[0] = begun; votes = votes | bit(0) }
	:: d_step { asks && has(1) -> lease[1] = begun; votes = votes | bit(1) }
	:: d_step { asks && valid && two(votes) -> printf("the extension is confirmed, by %d\n", votes); confirmed = begun; check }
	od
}

inline serve() {
	yes = 0;
	if
	:: (what == acquire || what == fill) && free(2) -> printf("node 2 sets the key\n"); yes = 1;
		owner[2] = A; lease[2] = (what == fill -> begun : 0)
	:: (what == extend || what == fill) && has(2) -> yes = 1; lease[2] = (number > lease[2] -> number : lease[2])
	:: what == release -> yes = 1; if :: owner[2] == A -> printf("node 2 drops the key\n"); owner[2] = 0 :: else fi
	:: what == release && !refused -> printf("node 2 cannot carry out the release\n"); refused = 1
	:: else
	fi
}

proctype node() {
	mtype what; byte number; bit yes;
end:	do
	:: atomic { out?what, number -> serve(); back!what, number, yes }    /* d_step would always take the first way */
	:: atomic { old?what, number -> printf("over the old connection: "); serve() }
	od
}

proctype time() {
end:	do
	:: d_step { valid -> printf("a validity ends\n"); over++ }
	:: d_step { !valid && over < 9 -> over = 9 }
	od
}

proctype rival() {
end:	do
	:: d_step { free(0) -> printf("B has node 0\n"); owner[0] = B; got = got | 1; check }
	:: d_step { free(1) -> printf("B has node 1\n"); owner[1] = B; got = got | 2; check }
	:: d_step { free(2) -> printf("B has node 2\n"); owner[2] = B; got = got | 4; check }
	od
}

init { atomic { owner[0] = A; owner[1] = A; run client(); run node(); run time(); run rival() } }
