/*
 * A lock that is broken, for spin. README.md says how to run it, and what it shows.
 *
 * A asks three nodes for the lock, has it when two have granted it, and extends it EXTENSIONS times at most. With
 * NODES=4 there are four nodes, of which three are a quorum, and two keep others from having one.
 * An operator breaks it (breaking in break.go): a node drops A's token and notes that it is broken. When a quorum has said so,
 * the operator looks whether they have the note still. When a quorum has, the lock is broken, and no extension that begins
 * later may be confirmed. A byte is mostly a set of nodes, with a bit for each.
 *
 * What a node does is one step. A request or its answer may be lost, so a node that is not asked, one that is
 * not reached, and one whose answer is lost are the same. The requests of an extension come
 * at any time, in any order, and more than once: they put no token anywhere. An answer is heard at once where
 * this allows more than if it was heard later. The exception is the yes of a node that does not count yet: it
 * may count when the yes is heard (unheard). An extension begins when the first node carries it out, for the
 * same reason. A's lock never ends, whatever A is told.
 *
 * A's acquire may come to a node at any time, also once more, and behind an extension, and so may what gives a node the
 * token anew. With LOSES, nodes lose their data again and again, and then nothing comes that was under way to the node.
 *
 * FENCE: A does not extend. A grant has a number as in lock.pml: any that is proposed, or the counter and one
 * more. The largest is the fence, and a quorum has to store it. When the lock is broken, B asks for it. If A's
 * lock was complete by then, B's fence must be larger. Keys end at any moment here.
 *
 * Set by -D: NODES; EXTENSIONS; LOSES; FENCE, and HIGHEST, the largest number that is proposed. And names of rules, each of which takes
 * the rule out: NOTE, QUORUM, with LOSES AGAIN, REFILLED, and with four nodes ONE, and with FENCE COUNTERS and STORED. And what is not
 * promised: with LOSES LATE, what was under way comes all the same; and with FENCE GRANTED, A's lock was granted by a
 * quorum, and not complete.
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
byte noted;                                 /* that it is broken */
byte said, seen;                            /* what has told the operator so, and had the note still when a quorum had */
byte granted;
bit broken;                                 /* the operator was told so by a quorum */

/* Rule: a quorum has to note it. QUORUM: one node. */
#if QUORUM
#define enough(s)  ((s) != 0)
#else
#define enough(s)  quorum(s)
#endif

/* Rule: the operator looks whether they have the note still. AGAIN: it does not. */
#if AGAIN
#define agreed     enough(said)
#else
#define agreed     enough(seen)
#endif

#if !FENCE

byte filled[NODES];                         /* see Lock.counted in round.go. 0: it was always there */
byte unheard[NODES];                        /* the extension of a yes that is under way */
byte filling;                               /* the request is under way */
byte asked = all;                           /* the acquire is under way */
byte yes[EXTENSIONS + 1];                   /* by extension: who has said so */
byte begun, confirmed, told;                /* extensions; told: the last that began before the lock was broken */
#define won        quorum(granted)
#if NODES == 4
byte shown;                                 /* the last of which so many have said yes that the others are no quorum */
hidden byte k;
#define pass       k : 1 .. 2               /* what counts now may show an earlier one */
#else
#define shown      confirmed
#endif
hidden byte i, j;
#define breaks     told = begun
#define drop(n)    has = has & ~bit(n)

/* Rule: a node that has noted it confirms no extension. NOTE: it does. */
#if NOTE
#define may(n)     (has & bit(n))
#else
#define may(n)     (has & ~noted & bit(n))
#endif

/*
 * Rule: a node that was given the token anew counts after an extension that began later is confirmed, or was
 * confirmed by so many that the others are no quorum. ONE: by one. REFILLED: at once.
 */
#if REFILLED
#define counts(n)  1
#else
#define counts(n)  (filled[n] == 0 || filled[n] < shown)
#endif

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

#define comes(n)   d_step { asked & bit(n) && !(has & bit(n)) -> printf("node %d grants\n", n); \
	has = has | bit(n); granted = granted | (noted & bit(n) -> 0 : bit(n)) }
#define empty(n)   d_step { (begun > confirmed || begins(begun + 1)) && !may(n) && !(filling & bit(n)) -> \
	begin(confirmed + 1); printf("node %d: extension %d finds no token, or the note\n", n, begun); \
	unheard[n] = 0; filled[n] = begun; filling = filling | bit(n) }
#define fill(n)    d_step { filling & bit(n) -> printf("node %d is given the token anew\n", n); \
	has = has | bit(n); filling = filling & ~bit(n) }
#define extend(n, r) d_step { begins(r) && r > confirmed && may(n) && !(yes[r] & bit(n)) && unheard[n] != r -> \
	begin(r); printf("node %d: extension %d\n", n, r); \
	filling = filling & ~bit(n); \
	if :: counts(n) -> unheard[n] = 0; vote(n, r) :: else -> unheard[n] = r fi }
#define ext1(n)    extend(n, 1)
#define ext2(n)    extend(n, 2)
#define ext3(n)    extend(n, 3)
#if LATE
#define lost(n)
#else
#define lost(n)    asked = asked & ~bit(n); filling = filling & ~bit(n);
#endif
#define loses(n)   d_step { won && (has | noted) & bit(n) -> printf("node %d loses its data\n", n); \
	lost(n) has = has & ~bit(n); noted = noted & ~bit(n) }

active proctype holder() {
end:	do
	:: each(comes)
	:: each(empty)
	:: each(fill)
	:: each(ext1)
#if EXTENSIONS > 1
	:: each(ext2)
#endif
#if EXTENSIONS > 2
	:: each(ext3)
#endif
#if LOSES
	:: each(loses)
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

#define first(n)   ((granted & (bit(n) - 1)) == bit(n) - 1)
#define next(n, p) (counter[n] + 1 > p -> counter[n] + 1 : p)
#define among(x, n, v) (x[n] && x[n] <= (v) -> bit(n) : 0)
#define upto(x, v) (among(x, 0, v) | among(x, 1, v) | among(x, 2, v))
#define equal(x, n, v) (x[n] == (v) -> bit(n) : 0)
#define stored(x, v) quorum(equal(x, 0, v) | equal(x, 1, v) | equal(x, 2, v))
#define check      assert(!(done && doneB && old) || fenceB > fence)

#define ends(n)    d_step { has & bit(n) -> printf("the key of node %d ends\n", n); has = has & ~bit(n) }
#define grant(n, p) d_step { !(granted & bit(n)) && first(n) && !(hasB & bit(n)) -> \
	counter[n] = next(n, p); mine[n] = counter[n]; printf("node %d grants %d to A\n", n, counter[n]); \
	granted = granted | bit(n); has = has | bit(n) }
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

#define ends_it    if :: agreed -> printf("the lock is broken\n"); broken = 1; breaks; said = 0; seen = 0 :: else fi
#define notes(n)   d_step { !broken && !(said & bit(n)) -> printf("node %d drops the token and notes that it is broken\n", n); \
	drop(n); noted = noted | bit(n); said = said | bit(n); ends_it }
#define looks(n)   d_step { !broken && enough(said) && said & bit(n) && !(seen & bit(n)) -> \
	if :: noted & bit(n) -> printf("node %d has the note\n", n); seen = seen | bit(n) \
	:: else -> printf("node %d has no note\n", n); said = said & ~bit(n) fi; ends_it }

active proctype operator() {
end:	do
	:: each(notes)
	:: each(looks)
	od
}
