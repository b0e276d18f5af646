/*
 * The longest TTL of a set, and how it changes, for spin. README.md says how to run it, and what it shows.
 *
 * Three nodes keep a description of their set, which bounds two things: the TTL of the locks that count by it
 * (longest), and for how long a node has no vote that has lost its data (quarantine). It changes in two steps, from
 * a short TTL of one tick to a long one of two, or with DOWN from the long one to the short one:
 *
 *                    1     2     3               DOWN  1     2     3
 *   longest          1     1     2                     2     1     1
 *   quarantine       1     2     2                     2     2     1
 *
 * A node keeps a later description as soon as any client tells it, which may be never. Node 0 loses its data, LOSSES
 * times, and is told a description again, perhaps by a client that has slept and knows no later one. A client may take any node
 * for one that is away: so it may always tell node 0 the first description, and a later one if the others have shown it.
 *
 * Two clients lock, again and again, each time by any description that was chosen. A lock is valid for its TTL from when it
 * was asked for, and a node keeps the key for as long from its grant. Time goes by in ticks, at any moment.
 *
 * Set by -D: DOWN, LOSSES. And names of rules, each of which takes the rule out: BY_ALL, STEP, OTHER, CHECK; and
 * with DOWN WAIT, STEP, OTHER, CHECK.
 */
#define LONG 2
#define NEVER 3                             /* since: longer ago than any quarantine */
#ifndef LOSSES
#define LOSSES 1
#endif
#define bit(x)    (1 << (x))
#define two(s)    (((s) & ((s) - 1)) != 0)

/* Rule: there is a description in between. STEP: the second one is like the third one. */
#if DOWN
#if STEP
#define longest(d)    (d == 1 -> 2 : 1)
#define quarantine(d) (d == 1 -> 2 : 1)
#else
#define longest(d)    (d == 1 -> 2 : 1)
#define quarantine(d) (d == 3 -> 1 : 2)
#endif
#else
#if STEP
#define longest(d)    (d == 1 -> 1 : 2)
#define quarantine(d) (d == 1 -> 1 : 2)
#else
#define longest(d)    (d == 3 -> 2 : 1)
#define quarantine(d) (d == 1 -> 1 : 2)
#endif
#endif

/* Rule: quarantines go by the longer TTL while it changes. OTHER: by the one of the locks that count. */
#if OTHER
#define votes(d, n)   (since[n] >= longest(d))
#else
#define votes(d, n)   (since[n] >= quarantine(d))
#endif

/* Rule: no lock counts that is longer. CHECK: nobody looks. */
#if CHECK
#define ttl(d)        LONG
#else
#define ttl(d)        longest(d)
#endif

byte has[3] = 1;                            /* the description that a node keeps; 0: none */
byte since[3] = NEVER;                      /* how long ago it has lost its data */
byte owner[3], key[3];                      /* who has the key, 0: nobody, and for how long still */
byte known = 2;                             /* the descriptions that were chosen */
byte heard;                                 /* the nodes that have shown to the operator that they keep the second one */
byte rest = LONG;                           /* until the locks are over that were counted by the first one, once seen */
byte lost;
bit seen;                                   /* a majority keeps the second description */
byte by[2], got[2], life[2];                /* by which description a client locks; which nodes count; for how long it may yet be valid */
bit won[2];

#define me          (1 + _pid)
#define free(n)     (owner[n] == 0)
#define begin(d)    d_step { life[_pid] == 0 && known & bit(d) -> by[_pid] = d; got[_pid] = 0; life[_pid] = ttl(d) }
#define ask(n)      d_step { life[_pid] > 0 && !won[_pid] && !(got[_pid] & bit(n)) && has[n] == by[_pid] && free(n) && votes(by[_pid], n) -> \
	printf("client %d is granted node %d by description %d\n", me, n, by[_pid]); \
	owner[n] = me; key[n] = ttl(by[_pid]); got[_pid] = got[_pid] | bit(n) }

active [2] proctype client() {
end:	do
	:: begin(1) :: begin(2) :: begin(3)
	:: ask(0) :: ask(1) :: ask(2)
	:: d_step { life[_pid] > 0 && !won[_pid] && two(got[_pid]) -> printf("client %d has the lock\n", me);
		won[_pid] = 1; assert(!(won[0] && won[1])) }
	od
}

#define runs(n)     key[n] = (key[n] -> key[n] - 1 : 0); owner[n] = (key[n] -> owner[n] : 0); since[n] = (since[n] < NEVER -> since[n] + 1 : NEVER)
#define ends(a)     life[a] = (life[a] -> life[a] - 1 : 0); won[a] = won[a] && life[a]
active proctype time() {
end:	do
	:: d_step { printf("a tick\n"); runs(0); runs(1); runs(2); ends(0); ends(1); rest = (seen && rest -> rest - 1 : rest) }
	od
}

#define tell(d, n)  d_step { known & bit(d) && has[n] && has[n] < d -> has[n] = d }
#define again(d)    d_step { known & bit(d) && !has[0] && (d == 1 || has[1] >= d && has[2] >= d) -> printf("node 0 is told description %d again\n", d); has[0] = d }
active proctype nodes() {
end:	do
	:: tell(2, 0) :: tell(2, 1) :: tell(2, 2) :: tell(3, 0) :: tell(3, 1) :: tell(3, 2)
	:: again(1) :: again(2) :: again(3)
	:: d_step { lost < LOSSES -> printf("node 0 loses its data\n"); lost++; has[0] = 0; owner[0] = 0; key[0] = 0; since[0] = 0 }
	od
}

/*
 * Rule: a longer TTL counts when all nodes have kept the second description. BY_ALL: when a majority has. A shorter one
 * counts for quarantines when the locks are over that were counted before. WAIT: at once.
 */
#if DOWN
#if WAIT
#define settled     1
#else
#define settled     (rest == 0)
#endif
#elif BY_ALL
#define settled     1
#else
#define settled     (heard == 7)
#endif
#define hear(n)     d_step { !(heard & bit(n)) && has[n] == 2 -> heard = heard | bit(n); seen = two(heard) }
active proctype operator() {
end:	do
	:: hear(0) :: hear(1) :: hear(2)
	:: d_step { !(known & bit(2)) && has[1] == 1 && (has[0] == 1 || has[2] == 1) -> known = known | bit(2) }
	:: d_step { !(known & bit(3)) && two(heard) && settled -> printf("description 3 is chosen\n"); known = known | bit(3) }
	od
}
