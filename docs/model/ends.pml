/*
 * A change of members ends, for spin. README.md says how to run it, and what it shows. In members.pml no two descriptions are
 * chosen; here one is, and a majority keeps it.
 *
 * Three members keep a description, and two operators want the next one, each another. The first one dies at any moment, or
 * not at all; the second one goes on. DOWN: the last member answers nobody. What a member does is one atomic step. Each
 * operator goes on at some time if it can (weak fairness).
 *
 * An operator makes one ballot after another (choose in internal/set/choice.go). A new ballot is larger than all that there
 * are, as the time is. So there is no end of them; but only their order counts, and they are numbered anew each time.
 *
 * Set by -D: DOWN; and names of rules, each of which takes the rule out: PAUSE, ADOPT, KEPT.
 */
#define bit(x)      (1 << (x))
#define two(s)      ((s) == 3 || (s) >= 5)
#if DOWN
#define NODES       2
#else
#define NODES       3
#endif

byte promised[NODES], taken[NODES], wants[NODES]; /* of a member: ballots, and the description that it has taken */
byte has[NODES];                                  /* of a member: the next description that it keeps; 0: none yet */
byte ballot[3], best[3];                          /* of an operator: its ballot, and the largest with which it knows one taken */
bit dead;                                         /* the first operator */

#define kept(d)     (bit(0) * (has[0] == d) | bit(1) * (has[1] == d) | bit(2) * (has[NODES - 1] == d && NODES == 3))
#define ended       (two(kept(1)) || two(kept(2)))

/* A new ballot; and the numbers that nobody has any more are taken out. */
inline renumber() {
	d_step {
	b = 0; ballot[me] = 15; best[me] = 0;
	do
	:: x = 16; n = 0;                           /* the smallest above b */
		do
		:: n < NODES ->
			x = (promised[n] > b && promised[n] < x -> promised[n] : x);
			x = (taken[n] > b && taken[n] < x -> taken[n] : x); n++
		:: else -> break
		od;
		n = 1;
		do
		:: n < 3 ->
			x = (ballot[n] > b && ballot[n] < x -> ballot[n] : x);
			x = (best[n] > b && best[n] < x -> best[n] : x); n++
		:: else -> break
		od;
		if
		:: x == 16 -> break
		:: else
		fi;
		b++; n = 0;
		do
		:: n < NODES ->
			promised[n] = (promised[n] == x -> b : promised[n]); taken[n] = (taken[n] == x -> b : taken[n]); n++
		:: else -> break
		od;
		n = 1;
		do
		:: n < 3 -> ballot[n] = (ballot[n] == x -> b : ballot[n]); best[n] = (best[n] == x -> b : best[n]); n++
		:: else -> break
		od
	od;
	b = 0; x = 0; n = 0; yes = 0; shows = 0; took = 0; next = 0; value = me
	}
}

/*
 * Rule: an operator whose ballot came to nothing pauses, for a time by chance. So sooner or later one pause of it is as long
 * as a whole ballot of the other (lucky). PAUSE: it goes on at once.
 */
bit lucky, waits[3];
proctype luck() {
	do
	:: !lucky -> lucky = 1
	od
}

/*
 * Rule: a member that keeps the next description counts as one that has taken it with the largest ballot, if another one
 * shows the same, or the operator wants it. KEPT: it never counts. Rule: what a member has taken becomes what the operator
 * wants. ADOPT: it goes on with its own.
 */
#if KEPT
#define shown       0
#else
#define shown       (shows && (two(shows) || took & bit(next) || value == next && best[me] == 0) -> shows : 0)
#endif
proctype operator(byte me) {
	byte n, yes, shows, took, next, value, b, x;
	bit alone;
	{
	do
	:: ended -> break
	:: !ended -> alone = waits[3 - me]; renumber();
		do                                      /* promises */
		:: d_step { n < NODES && has[n] == 0 && promised[n] < ballot[me] -> promised[n] = ballot[me]; yes = yes | bit(n);
			printf("member %d promises it to operator %d\n", n, me);
			took = took | (taken[n] -> bit(wants[n]) : 0);
#if !ADOPT
			value = (taken[n] > best[me] -> wants[n] : value);
#endif
			best[me] = (taken[n] > best[me] -> taken[n] : best[me]); n++ }
		:: d_step { n < NODES && has[n] == 0 && promised[n] >= ballot[me] -> took = took | (taken[n] -> bit(wants[n]) : 0); n++ }
		:: d_step { n < NODES && has[n] != 0 -> shows = shows | bit(n); next = has[n]; n++ }
		:: n == NODES -> break
		od;
		if
		:: atomic { two(yes | shown) ->
#if !ADOPT
			value = (shown -> next : value);
#endif
			n = 0; yes = 0 };
			do                                  /* takes it, or keeps it */
			:: d_step { n < NODES && has[n] == 0 && promised[n] <= ballot[me] -> promised[n] = ballot[me]; taken[n] = ballot[me];
				printf("member %d takes description %d from operator %d\n", n, value, me); wants[n] = value; yes = yes | bit(n); n++ }
			:: d_step { n < NODES && has[n] == 0 && promised[n] > ballot[me] -> n++ }
			:: d_step { n < NODES && has[n] != 0 -> yes = yes | (has[n] == value -> bit(n) : 0); n++ }
			:: n == NODES -> break
			od;
			if
			:: two(yes) -> n = 0;               /* it is chosen, and the members are told */
				do
				:: d_step { n < NODES -> printf("operator %d tells member %d description %d\n", me, n, value); has[n] = (has[n] -> has[n] : value); n++ }
				:: n == NODES -> break
				od
			:: else
			fi
		:: else
		fi;
		atomic { n = 0; yes = 0; shows = 0; took = 0; next = 0; value = 0; ballot[me] = 0; best[me] = 0;
			waits[3 - me] = waits[3 - me] && !alone; alone = 0 };
#if !PAUSE
		if
		:: d_step { lucky && !waits[3 - me] -> lucky = 0; waits[me] = 1 };
			!waits[me] || ended || me == 2 && dead; waits[me] = 0
		:: else
		fi
#endif
	od
	} unless { me == 1 && dead }
}

/* The first operator dies at any moment, or not at all. */
proctype fate() {
	if
	:: atomic { dead = 1; printf("operator 1 is dead\n") }
	:: 1
	fi
}

init {
	atomic {
	run operator(1); run operator(2); run fate();
#if !PAUSE
	run luck()
#endif
	}
}

ltl ends { <> ended }
