/*
 * A member that has lost its data is told a description again, for spin. README.md says how to run it, and what it shows.
 *
 * Members may lose their data, and two descriptions be kept, X and Y: a program has made the set anew, say, while other
 * members were away. A node that keeps none is told one of the two (mayTell in internal/set/members.go). A node that
 * keeps one is told no other one.
 *
 *                 members       quorum
 *   X             0 1 2         2
 *   Y             0 1 2         2
 *   Y with WIDE   0 1 2 3 4     3
 *
 * Two quorums meet, except with WIDE: 0 1, and 2 3 4.
 *
 * What a node does is one atomic step, as a script is. Requests arrive at any time, or never. A client acts
 * on what it has learned at any earlier moment. There is any number of clients, so the model has what any of
 * them may have learned: counts[n] is the descriptions that the node has kept with its present marker, and
 * saw[n] the nodes that have shown X, or Y, since the node has lost its data.
 *
 * Two attempts, each by either description. A lock never ends: when one of the two has ended, there cannot
 * be two holders. A third attempt would only have keys that are in the way. So a node that has a new
 * marker while an attempt is under way never has a vote again, and grants nothing.
 *
 * At the beginning no lock is held, and nodes keep none. With WIDE all have kept Y before, and some have
 * lost it: X is kept at 0 only, or at 0 1 2, or at 0 1 while 2 keeps none. All others keep Y.
 *
 * Set by -D: LOSSES, how many at most; WIDE. And names of rules, each of which takes the rule out: QUARANTINE_TOLD, and with
 * WIDE SINCE and MAJORITY.
 */
#ifndef LOSSES
#define LOSSES 3
#endif
#if WIDE
#define NODES 5
#else
#define NODES 3
#endif
#define NONE 0
#define X    1
#define Y    2
#define bit(x)       (1 << (x))
#define two(s)       (((s) & ((s) - 1)) != 0)                       /* bits, at least */
#define three(s)     (two(s) && two((s) & ((s) - 1)))
#if WIDE
#define members(d)   (d == X -> 7 : 31)
#define quorum(d, s) ((d == X && two((s) & 7)) || (d == Y && three(s)))
#else
#define members(d)   7
#define quorum(d, s) two(s)
#endif
#define member(d, n) (members(d) & bit(n))

typedef nodes { byte from[3] };             /* of each description: a set of nodes */

byte keeps[NODES];
byte counts[NODES];                         /* a set of descriptions */
byte owner[NODES];                          /* whose key a node has, 0: none */
bit barred[NODES];                          /* it has no vote */
nodes saw[NODES], ever;                     /* ever: the nodes that have shown it at any time */
byte by[2], got[2];                         /* by which description; which nodes have granted */
bit won[2];
byte holders, lost;
hidden byte i;

/* Rule: a node with a new marker has no vote. QUARANTINE_TOLD: it has one. */
inline marked(n) {
	counts[n] = 0;
#if !QUARANTINE_TOLD
	barred[n] = (got[0] | got[1]) != 0
#endif
}

/* A node keeps something else than before. What others have shown before that is of no use. */
inline keep(n, d) {
	keeps[n] = d;
	counts[n] = counts[n] | (d -> bit(d) : 0);
	saw[n].from[X] = 0; saw[n].from[Y] = 0;
	for (i : 0 .. NODES - 1) {
		if
		:: i != n ->
			saw[n].from[X] = saw[n].from[X] | (d != X && counts[i] & bit(X) -> bit(i) : 0);
			saw[n].from[Y] = saw[n].from[Y] | (d != Y && counts[i] & bit(Y) -> bit(i) : 0);
			saw[i].from[d] = saw[i].from[d] | (d && keeps[i] != d -> bit(n) : 0)
		:: else
		fi
	}
	i = 0;
#if SINCE || MAJORITY
	ever.from[d] = ever.from[d] | bit(n)
#endif
}

#define me          (1 + _pid)
#define ask(n)      d_step { !won[_pid] && member(by[_pid], n) && !(got[_pid] & bit(n)) && \
	counts[n] & bit(by[_pid]) && !barred[n] && owner[n] == 0 -> printf("attempt %d is granted node %d\n", me, n); \
	owner[n] = me; got[_pid] = got[_pid] | bit(n) }

active [2] proctype attempt() {
	if :: by[_pid] = X :: by[_pid] = Y fi;
end:	do
	:: ask(0) :: ask(1) :: ask(2)
#if WIDE
	:: ask(3) :: ask(4)
#endif
	:: d_step { !won[_pid] && quorum(by[_pid], got[_pid]) ->
		printf("attempt %d has the lock, by description %d\n", me, by[_pid]);
		won[_pid] = 1; holders++; assert(holders == 1) }
	od
}

#define forget(n)   d_step { lost < LOSSES && keeps[n] != NONE -> printf("node %d loses its data\n", n); \
	lost++; owner[n] = 0; marked(n); keep(n, NONE) }

/*
 * A node that keeps none is told a description. While quorums meet, it may be either. Rule: with WIDE a majority of
 * the members has shown it since the loss. SINCE: at any time. MAJORITY: or all others have, but for those that have kept
 * none at any time.
 */
#if !WIDE
#define may(d, n)   1
#elif SINCE
#define may(d, n)   quorum(d, ever.from[d] & ~bit(n))
#elif MAJORITY
#define may(d, n)   (quorum(d, saw[n].from[d]) || (members(d) & ~(saw[n].from[d] | ever.from[NONE] | bit(n))) == 0)
#else
#define may(d, n)   quorum(d, saw[n].from[d])
#endif
#define tell(d, n)  d_step { keeps[n] == NONE && member(d, n) && may(d, n) -> \
	printf("node %d is told description %d\n", n, d); keep(n, d) }

#define change(n)   forget(n) :: tell(X, n) :: tell(Y, n)

active proctype world() {
#if WIDE
	if
	:: d_step { printf("X is kept at 0, Y at 1 2 3 4\n"); keep(0, X); keep(1, Y); keep(2, Y); keep(3, Y); keep(4, Y) }
	:: d_step { printf("X is kept at 0 1 2, Y at 3 4\n"); keep(0, X); keep(1, X); keep(2, X); keep(3, Y); keep(4, Y) }
	:: d_step { printf("X is kept at 0 1, Y at 3 4\n"); keep(0, X); keep(1, X); keep(3, Y); keep(4, Y) }
	fi;
#if SINCE || MAJORITY
	d_step { ever.from[Y] = 31; ever.from[NONE] = 7 }
#endif
#endif
end:	do
	:: change(0) :: change(1) :: change(2)
#if WIDE
	:: change(3) :: change(4)
#endif
	od
}
