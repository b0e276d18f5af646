/*
 * A lock that is broken, for spin. README.md says how to run it, and what it shows.
 *
 * A asks three nodes for the lock, has it when two have granted it, and extends it EXTENSIONS times at most. With
 * NODES=4 there are four nodes, of which three are a quorum, and two keep others from having one.
 * An operator breaks it (breaking in break.go). The operator's first look drops nothing; later looks drop
 * A's token. When the operator has been told that the lock is broken, no extension that begins later may be
 * confirmed. A byte is mostly a set of nodes, with a bit for each.
 *
 * What a node does is one step. A request or its answer may be lost, so a node that is not asked, one that is
 * not reached, and one whose answer is lost are the same; but see UNHEARD. The requests of an extension come
 * at any time, in any order, and more than once: they put no token anywhere. An answer is heard at once where
 * this allows more than if it was heard later. The exception is the yes of a node that does not count yet: it
 * may count when the yes is heard (unheard). An extension begins when the first node carries it out, for the
 * same reason. A's lock never ends, whatever A is told.
 *
 * A's acquire reaches a node in time, or never. If an extension has reached the node, the acquire never will:
 * requests to one node are in order. The operator knows what is true: that the acquire is not under way to a
 * node any more, which was granted, or is refused from its deadline on. Nodes are numbered in the order in
 * which they grant the lock, and mirror images are left out.
 *
 * FENCE: A does not extend. A grant has a number as in lock.pml: any that is proposed, or the counter and one
 * more. The largest is the fence, and a quorum has to store it. When the lock is broken, B asks for it. If A's
 * lock was complete by then, B's fence must be larger. Keys end at any moment here.
 *
 * Set by -D: NODES; EXTENSIONS; UNHEARD, a node may drop the token in a look, and its answer is lost; FENCE, and HIGHEST,
 * the largest number that is proposed. And names of rules, each of which takes the rule out: SECOND, NOTHING,
 * AFTER_ALL, NEVER_HAD, WAIT_FIRST, REFILLED, LANDED, with four nodes ONE, and with FENCE COUNTERS and STORED. And what is not
 * promised: COPY, node 2 carries a filling out once more; GIVEN_UP, it carries the acquire out though an
 * extension has come before, over another connection; ENDS, the token goes in yet another way between two
 * looks; and with FENCE GRANTED, A's lock was granted by a quorum, and not complete.
 */
#ifndef NODES
#define NODES 3
#endif
#ifndef EXTENSIONS
#define EXTENSIONS 3
#endif
#ifndef HIGHEST
#define HIGHEST 2
#endif
#define bit(n)     (1 << (n))
#define all        (bit(NODES) - 1)
#define less(s)    ((s) & ((s) - 1))         /* without one of them */
#if NODES == 4
#define quorum(s)  (less(less(s)) != 0)
#define each(x)    x(0) :: x(1) :: x(2) :: x(3)
#else
#define quorum(s)  (less(s) != 0)
#define each(x)    x(0) :: x(1) :: x(2)
#endif
#if ONE
#define shows(s)   ((s) != 0)
#else
#define shows(s)   (less(s) != 0)           /* the others are no quorum */
#endif

byte has;                                   /* A's token */
byte asked = all;                           /* A's acquire is under way */
#define won        quorum(all & ~asked)
#define first(n)   (!(asked & (bit(n) - 1)))

byte missed;                                /* what has carried this look out, and the answer is lost */
byte gone, before;                          /* what has answered this look, and the one before: its token is gone */
byte twice;                                 /* the nodes that count */
byte coming;                                /* asked, when this look began */
bit looks, broken;                          /* this is not the first; the operator is told so */

/*
 * Rule: a node counts if it has answered two looks. SECOND: one. Rule: the second finds nothing to drop.
 * NOTHING: it may find the token. Rule: the second begins when the first has ended at all nodes. AFTER_ALL: at
 * each by itself.
 */
#if SECOND
#define looked(n, found)  1
#elif NOTHING
#define looked(n, found)  (before & bit(n))
#else
#define looked(n, found)  (before & bit(n) && !(found))
#endif

/*
 * Rule: a node that never had the token counts if the second look began when the time for the acquire was
 * up. NEVER_HAD: at once. WAIT_FIRST: if the time is up when the look has ended.
 */
#if NEVER_HAD
#define may(n)     1
#define agreed     quorum(twice)
#elif WAIT_FIRST
bit late;
#define may(n)     1
#define agreed     (quorum(twice & ~coming) || quorum(twice) && late)
#elif GIVEN_UP
byte had;                                   /* what was given the token anew */
#define may(n)     (!(coming & bit(n)) || had & bit(n))
#define agreed     quorum(twice)
#else
#define may(n)     (!(coming & bit(n)))
#define agreed     quorum(twice)
#endif

#define ends(n)    d_step { looks && has & bit(n) -> printf("the key of node %d ends\n", n); has = has & ~bit(n) }

#if !FENCE

#define FILLING 7                           /* it was asked to take the token again */
byte filled[NODES];                         /* see Lock.counted in round.go. 0: it was always there */
byte unheard[NODES];                        /* the extension of a yes that is under way */
byte filling;                               /* the request is under way */
byte yes[EXTENSIONS + 1];                   /* by extension: who has said so */
byte begun, confirmed, told;                /* extensions; told: the last that began before the lock was broken */
#if NODES == 4
byte shown;                                 /* the last of which so many have said yes that the others are no quorum */
hidden byte k;
#define pass       k : 1 .. 2               /* what counts now may show an earlier one */
#else
#define shown      confirmed
#endif
#if COPY
byte copies;                                /* node 2 may carry a filling out once more */
#endif
hidden byte i, j;
#define breaks     told = begun
#define drop(n)    has = has & ~bit(n)

/*
 * Rule: a node that was given the token anew counts after an extension that began later is confirmed, or was
 * confirmed by so many that the others are no quorum. ONE: by one. REFILLED: at once. Rule: later than it is known to have the token. LANDED: later than it was asked.
 */
#if REFILLED
#define counts(n)  1
#else
#define counts(n)  (filled[n] == 0 || filled[n] < shown)
#endif
#if LANDED
#define mark       begun
#else
#define mark       FILLING
#endif
#define landed(n)  filled[n] = (filled[n] == FILLING -> begun : filled[n])

/* vote counts what node n has said, and what is heard of others because of it. */
inline vote(n, r) {
	yes[r] = yes[r] | bit(n);
#if NODES == 4
	for (pass) {
	for (i : 1 .. EXTENSIONS) {
		if
		:: i > shown && shows(yes[i]) ->
			printf("extension %d is confirmed, by %d, and that is enough to count by\n", i, yes[i]);
			shown = i;
			for (j : 0 .. NODES - 1) {
				if
				:: unheard[j] > confirmed && counts(j) -> yes[unheard[j]] = yes[unheard[j]] | bit(j); unheard[j] = 0
				:: else
				fi
			}
		:: else
		fi
	}
#endif
	for (i : 1 .. EXTENSIONS) {
		if
		:: i > confirmed && quorum(yes[i]) ->
			printf("extension %d is confirmed, by %d\n", i, yes[i]);
			assert(!broken || i <= told);
			confirmed = i;
			for (j : 0 .. NODES - 1) {
				if
				:: unheard[j] && unheard[j] <= confirmed -> unheard[j] = 0
				:: unheard[j] > confirmed && counts(j) -> yes[unheard[j]] = yes[unheard[j]] | bit(j); unheard[j] = 0
				:: else
				fi
			}
		:: else
		fi
	}
#if NODES == 4
	}
	k = 0;
#endif
	for (i : 1 .. confirmed) { yes[i] = 0 }
	i = 0; j = 0
}

/* An extension begins with its first answer. The last of them only matters if it begins when the lock is broken. */
#define last       (broken -> told + 1 : EXTENSIONS - 1)
#define begin(r)   begun = (begun < r -> r : begun)
#define begins(r)  (won && r <= begun + 1 && r <= last)

#if GIVEN_UP
#define cut(n)     skip                     /* it may be carried out, over a connection that was given up */
#define copy(n)    had = had | bit(n)
#else
#define cut(n)     asked = asked & ~bit(n)
#endif

#define grant(n)   d_step { asked & bit(n) && (won || first(n)) -> printf("node %d grants\n", n); \
	asked = asked & ~bit(n); has = has | bit(n) }
#define fails(n)   d_step { won && asked & bit(n) -> printf("node %d grants no more\n", n); asked = asked & ~bit(n) }
#define empty(n)   d_step { (begun > confirmed || begins(begun + 1)) && !(has & bit(n)) && !(filling & bit(n)) -> \
	begin(confirmed + 1); printf("node %d: extension %d finds no token\n", n, begun); \
	cut(n); unheard[n] = 0; filled[n] = mark; filling = filling | bit(n) }
#define fill(n)    d_step { filling & bit(n) -> printf("node %d is given the token anew\n", n); \
	has = has | bit(n); filling = filling & ~bit(n); landed(n); copy(n) }
#define extend(n, r) d_step { begins(r) && r > confirmed && has & bit(n) && !(yes[r] & bit(n)) && unheard[n] != r -> \
	begin(r); printf("node %d: extension %d\n", n, r); \
	cut(n); filling = filling & ~bit(n); landed(n); \
	if :: counts(n) -> unheard[n] = 0; vote(n, r) :: else -> unheard[n] = r fi }
#define ext1(n)    extend(n, 1)
#define ext2(n)    extend(n, 2)
#define ext3(n)    extend(n, 3)
#define ext4(n)    extend(n, 4)
#if COPY
#define copy(n)    copies = copies | (bit(n) & bit(2))
#define again(n)   d_step { copies & bit(n) -> printf("node %d is given the token by a copy\n", n); \
	copies = copies & ~bit(n); has = has | bit(n) }
#elif !GIVEN_UP
#define copy(n)    skip
#endif

active proctype holder() {
end:	do
#if COPY
	:: each(again)
#endif
	:: each(grant)
	:: each(fails)
	:: each(empty)
	:: each(fill)
	:: each(ext1)
#if EXTENSIONS > 1
	:: each(ext2)
#endif
#if EXTENSIONS > 2
	:: each(ext3)
#endif
#if EXTENSIONS > 3
	:: each(ext4)
#endif
#if WAIT_FIRST
	:: d_step { won && !late -> printf("the time is up\n"); late = 1; asked = 0 }
#endif
#if ENDS
	:: each(ends)
#endif
	od
}

#else

byte counter[NODES];
byte mine[NODES], his[NODES];               /* the number that a node has given to A, and to B; 0: none */
byte hasB, fence, fenceB;
bit done, doneB, old;                       /* complete; old: A's was when the lock was broken */
#if GRANTED
#define breaks     old = quorum(upto(mine, 255))
#else
#define breaks     old = done
#endif
#if COUNTERS
#define drop(n)    counter[n] = (has & bit(n) -> 0 : counter[n]); has = has & ~bit(n)
#else
#define drop(n)    has = has & ~bit(n)
#endif

#define next(n, p) (counter[n] + 1 > p -> counter[n] + 1 : p)
#define among(x, n, v) (x[n] && x[n] <= (v) -> bit(n) : 0)
#define upto(x, v) (among(x, 0, v) | among(x, 1, v) | among(x, 2, v))
#define equal(x, n, v) (x[n] == (v) -> bit(n) : 0)
#define stored(x, v) quorum(equal(x, 0, v) | equal(x, 1, v) | equal(x, 2, v))
#define check      assert(!(done && doneB && old) || fenceB > fence)

#define grant(n, p) d_step { asked & bit(n) && first(n) && !(hasB & bit(n)) -> \
	counter[n] = next(n, p); mine[n] = counter[n]; printf("node %d grants %d to A\n", n, counter[n]); \
	asked = asked & ~bit(n); has = has | bit(n) }
#define choose(n)  d_step { !fence && mine[n] && quorum(upto(mine, mine[n])) -> fence = mine[n]; printf("A chooses %d\n", fence) }
#define raise(n)   d_step { fence && mine[n] && mine[n] < fence && has & bit(n) && counter[n] < fence -> \
	counter[n] = fence; mine[n] = fence; printf("node %d raises A to %d\n", n, fence) }
#define grantB(n, p) d_step { broken && !his[n] && !(has & bit(n)) -> \
	counter[n] = next(n, p); his[n] = counter[n]; printf("node %d grants %d to B\n", n, counter[n]); \
	hasB = hasB | bit(n) }
#define chooseB(n) d_step { !fenceB && his[n] && quorum(upto(his, his[n])) -> fenceB = his[n]; printf("B chooses %d\n", fenceB) }
#define raiseB(n)  d_step { fenceB && his[n] && his[n] < fenceB && hasB & bit(n) && counter[n] < fenceB -> \
	counter[n] = fenceB; his[n] = fenceB; printf("node %d raises B to %d\n", n, fenceB) }
#define endsB(n)   d_step { hasB & bit(n) -> printf("B's key of node %d ends\n", n); hasB = hasB & ~bit(n) }
#if STORED
#define complete(x, v) (v != 0)
#else
#define complete(x, v) (v && stored(x, v))
#endif
#define grant1(n)  grant(n, 1)
#define grant2(n)  grant(n, 2)
#define grant3(n)  grant(n, 3)
#define grantB1(n) grantB(n, 1)
#define grantB2(n) grantB(n, 2)
#define grantB3(n) grantB(n, 3)

active proctype clients() {
end:	do
	:: each(grant1) :: each(grant2)
	:: each(grantB1) :: each(grantB2)
#if HIGHEST > 2
	:: each(grant3)
	:: each(grantB3)
#endif
	:: each(choose) :: each(raise)
	:: each(chooseB) :: each(raiseB)
	:: each(ends) :: each(endsB)
	:: d_step { !done && complete(mine, fence) -> printf("A has the lock: %d\n", fence); done = 1; check }
	:: d_step { !doneB && complete(his, fenceB) -> printf("B has the lock: %d\n", fenceB); doneB = 1; check }
	od
}
#endif

#define look(n)    d_step { !broken && !((gone | missed) & bit(n)) && (looks || !(has & bit(n))) -> \
	if :: has & bit(n) -> printf("look: node %d drops the token\n", n) :: else -> printf("look: node %d has no token\n", n) fi; \
	if :: looks && may(n) && looked(n, has & bit(n)) -> twice = twice | bit(n) :: else fi; \
	gone = gone | bit(n); drop(n); decide }
#define miss(n)    d_step { looks && !broken && has & bit(n) && !((gone | missed) & bit(n)) -> \
	printf("node %d drops the token, unheard\n", n); missed = missed | bit(n); drop(n) }
#define more(n)    d_step { looks && !broken && gone & bit(n) && !(twice & bit(n)) -> gone = gone & ~bit(n); before = before | bit(n) }
#define decide     if :: agreed -> printf("the lock is broken\n"); broken = 1; breaks; \
	gone = 0; before = 0; twice = 0; coming = 0; missed = 0 :: else fi

active proctype operator() {
end:	do
	:: each(look)
#if UNHEARD
	:: each(miss)
#endif
#if AFTER_ALL
	:: each(more)
#endif
	:: d_step { !broken && (gone || missed || !looks) -> printf("the next look\n");
		looks = 1; before = gone; gone = 0; twice = 0; coming = asked; missed = 0 }
#if WAIT_FIRST
	:: d_step { !broken && agreed -> decide }
#endif
	od
}
