/*
 * Waiting for a lock, for spin: the waiter is served. README.md says how to run it, and what it shows.
 *
 * Three nodes, of which two are a quorum; DOWN: the last one answers nobody. Each has the key of the lock, and a queue of
 * waiters. Four clients, named by their tickets: 0 holds the lock at first; 1 waits before the waiter; 2 is the waiter, which
 * stays until it has the lock; 3 comes again and again, each time with a later ticket. 0 and 1 may die at any moment.
 *
 * What a node does is one atomic step, as a script is. There are no times: the key of a client that is dead ends at some time
 * (its TTL), and so does its place in a queue (its lease). Each client, and time, goes on at some time if it can (weak
 * fairness); nothing else is assumed of how fast they are.
 *
 * Set by -D: DOWN; TRY, client 3 tries and does not wait; FORGETS, as many at most: a node loses its queue. And names of
 * rules, each of which takes the rule out: QUEUE, TICKET, LEASE, TTL, GIVE_BACK, HEARTBEAT.
 */
#define NONE        4
#define bit(x)      (1 << (x))
#define two(s)      ((s) == 3 || (s) >= 5)
#if DOWN
#define NODES       2
#else
#define NODES       3
#endif

byte owner[NODES];                          /* whose key a node has */
byte queue[NODES];                          /* the clients that wait there */
bit dead[4], called[4], served;

/*
 * Rule: a node gives a free lock to no client while one with a lower ticket waits there. QUEUE: it gives it to any. Rule: a
 * waiter keeps its ticket. TICKET: it has a later one with each attempt, so client 3 may have come before.
 */
#if QUEUE
#define before(c)   0
#elif TICKET
#define before(c)   (c == 2 -> 11 : (c == 3 -> 3 : bit(c) - 1))
#else
#define before(c)   (bit(c) - 1)
#endif
#if TRY
#define place(c)    (c == 3 -> 0 : bit(c))
#else
#define place(c)    bit(c)
#endif

/* A node grants the lock; or the client waits there. */
inline ask(n) {
	if
	:: owner[n] == NONE && !(queue[n] & before(me)) || owner[n] == me ->
		printf("node %d grants it to client %d\n", n, me); owner[n] = me; got = got | bit(n); queue[n] = queue[n] & ~bit(me)
	:: else -> printf("node %d refuses client %d\n", n, me); queue[n] = queue[n] | place(me)
	fi
}

/* A client gives its key back, and keeps a place in the queue, or none. The node calls the first waiter, or the call is lost. */
inline give(n, as) {
	if
	:: owner[n] == me -> printf("node %d has it back from client %d\n", n, me); owner[n] = NONE
	:: else
	fi;
	queue[n] = queue[n] & ~bit(me) | as;
#if HEARTBEAT
	if
	:: owner[n] == NONE && queue[n] -> called[(queue[n] & 2 -> 1 : (queue[n] & 4 -> 2 : 3))] = 1
	:: 1
	fi
#endif
}

/*
 * An attempt asks one node after another, that of client 3 in the other order. Rule: what it was granted without a quorum is
 * given back. GIVE_BACK: it stays. Rule: a waiter tries again when it is called, and at some time without a call (a heartbeat).
 * HEARTBEAT: only when called.
 */
#define node        (me == 3 -> NODES - 1 - n : n)
#if HEARTBEAT
#define again       (called[me] || me == 3)
#else
#define again       1
#endif
proctype client(byte me) {
	byte n, got;
	{
	do
	:: atomic { n < NODES -> ask(node); n++ }
	:: atomic { n == NODES && two(got) -> printf("client %d has the lock\n", me); n = 0; served = served || me == 2 };
		do                                      /* it has had the lock */
		:: atomic { n < NODES -> give(node, 0); n++ }
		:: atomic { n == NODES -> n = 0; got = 0; break }
		od;
		if
		:: me == 1 -> break
		:: else
		fi
	:: atomic { n == NODES && !two(got) -> n = 0 };
#if GIVE_BACK
		n = NODES;
#endif
		do
		:: atomic { n < NODES -> give(node, place(me)); n++ }
		:: atomic { n == NODES && again -> called[me] = 0; n = 0; got = 0; break }
		od
	od
	} unless { dead[me] }
}

/* Client 0 releases the lock, or dies first. */
proctype holder() {
	byte me, n;
	do
	:: atomic { dead[0] = 1; printf("the holder is dead\n") }; break
	:: atomic { n < NODES -> give(n, 0); n++ }
	:: n == NODES -> break
	od
}

/* Client 1 dies at any moment, or not at all. */
proctype fate() {
	if
	:: atomic { dead[1] = 1; printf("client 1 is dead\n") }
	:: 1
	fi
}

/* Rule: a key ends when its client is dead. TTL: it does not. Rule: so does a place in a queue. LEASE: it does not. */
#if TTL
#define ends(n)     0
#else
#define ends(n)     (owner[n] == 0 && dead[0] || owner[n] == 1 && dead[1])
#endif
#if LEASE
#define expires(n)  0
#else
#define expires(n)  (queue[n] & 2 && dead[1])
#endif
#define pass(n)     d_step { ends(n) -> owner[n] = NONE } :: d_step { expires(n) -> queue[n] = queue[n] & ~2 }
proctype time() {
	do
	:: pass(0) :: pass(1)
#if !DOWN
	:: pass(2)
#endif
	od
}

/* Nodes lose their queues, or the waiters' places there are over, since they were late. */
#if FORGETS
proctype loss() {
	byte times;
	do
	:: times < FORGETS -> times++;
		if
		:: queue[0] = 0 :: queue[1] = 0
		fi
	:: break
	od
}
#endif

init {
	atomic {
	owner[NODES - 1] = NONE;
	owner[0] = 0; owner[1] = 0;
	run client(1); run client(2); run client(3); run holder(); run fate(); run time();
#if FORGETS
	run loss()
#endif
	}
}

ltl is_served { <> served }
