/*
 * A change of members, for spin. README.md says how to run it, and what it shows.
 *
 * Each node has a description of the set: which nodes are members. Node 3 takes the place of node 0,
 * in two steps that change the set by one node each:
 *
 *   description   0      1        2      3
 *   epoch         0      1        2      2
 *   members       0 1 2  0 1 2 3  1 2 3  0 1 2
 *   quorum        2      3        2      2
 *
 * Description 2 goes on from 1, and 3 takes the change back. One operator wants the one, and another
 * the other. Both must not come to be: their quorums need not meet. CHOICE: only the operators, and
 * how the description after 1 is chosen. Otherwise that is one step, and the locks are looked at.
 *
 * An attempt counts by one description, which may be an old one. What a node does is one atomic step,
 * as a script is. Requests arrive at any time, or never; a refusal is no step, and no more is it if a
 * client or an operator dies. A key ends when the validity that came with it is over, which is at any
 * moment: over[a] is 0 while the validity of attempt a runs, 1 when only that of its extension does, 2
 * when it has ended, or was given up. There are no numbers: they do not decide which attempt gets a key.
 *
 * Set by -D: CHOICE; EXTEND, the first attempt extends once. And names of rules, each of which takes
 * the rule out: BY_ONE, WAIT, ONE_ONLY, EPOCH, EXTEND_EPOCH, BACK; and with CHOICE MAJORITY, PROMISE,
 * ADOPT, FORGOTTEN, UNANIMOUS, DENIED. With CHOICE also LOSES, WRONG and THREE.
 */
#define NONE 4                              /* no description: it is no member */
#define bit(x)       (1 << (x))
#define members(d)   (d == 1 -> 15 : (d == 2 -> 14 : 7))
#define epoch(d)     (d == 3 -> 2 : (d == NONE -> -1 : d))
#define member(d, n) (members(d) & bit(n))
#define two(s)       (((s) & ((s) - 1)) != 0)                       /* bits, at least */
#define three(s)     (two(s) && two((s) & ((s) - 1)))
#define quorum(d, s) (d == 1 -> three((s) & members(d)) : two((s) & members(d)))

byte has[4];                                /* the description at a node */
byte known;                                 /* the descriptions that are in force somewhere */

#if !CHOICE
byte owner[4], lease[4], last[4];           /* whose key a node has, 0: none; if an extension left it; whose it had last */
byte counts[2], got[2], over[2];            /* by which description; which nodes have granted */
byte by[2], ext[2];                         /* the same for its extension; NONE: there is none */
bit won[2], extended[2];
byte holders;

/*
 * Rule: the next change begins when all locks are over that may have been counted by the description
 * before. When a majority of the members before has the new description (seen), nothing more is
 * counted by the old one, and what was is over after the longest validity. old[a] is set if a had a
 * vote by the old description then, and stale[a] if its extension had. WAIT: it begins at once.
 */
bit seen, old[2], stale[2];
#define passed(a)   (!old[a] || over[a] == 2)
#if WAIT
#define settled     1
#else
#define settled     (seen && passed(0) && passed(1))
#endif

/* Rule: a node votes only by its own description. EPOCH: by any; EXTEND_EPOCH: for extensions. */
#if EPOCH
#define same(d, n)  1
#else
#define same(d, n)  (has[n] == d)
#endif
#if EXTEND_EPOCH
#define still(d, n) 1
#else
#define still(d, n) same(d, n)
#endif

#define me          (1 + _pid)
#define free(n)     (owner[n] == 0 || over[owner[n] - 1] > lease[n])
#define mine(n)     (owner[n] == me && !free(n))
#define begin(d)    known & bit(d) -> counts[_pid] = d
#define ask(n)      d_step { !won[_pid] && over[_pid] == 0 && member(counts[_pid], n) && !(got[_pid] & bit(n)) && \
	same(counts[_pid], n) && free(n) -> printf("attempt %d is granted node %d\n", me, n); \
	owner[n] = me; last[n] = me; lease[n] = 0; got[_pid] = got[_pid] | bit(n) }
#define extend(d)   d_step { _pid == 0 && won[0] && over[0] == 0 && by[0] == NONE && known & bit(d) && epoch(d) >= epoch(counts[0]) -> \
	by[0] = d }
#define renew(n)    d_step { by[_pid] != NONE && !extended[_pid] && over[_pid] < 2 && member(by[_pid], n) && !(ext[_pid] & bit(n)) && \
	still(by[_pid], n) && (mine(n) || free(n) && (last[n] == 0 || last[n] == me)) -> \
	printf("attempt %d extends at node %d\n", me, n); \
	owner[n] = me; last[n] = me; lease[n] = 1; ext[_pid] = ext[_pid] | bit(n) }

active [2] proctype attempt() {
	by[_pid] = NONE;
	if :: begin(0) :: begin(1) :: begin(2) :: begin(3) fi;
end:	do
	:: ask(0) :: ask(1) :: ask(2) :: ask(3)
	:: d_step { !won[_pid] && over[_pid] == 0 && quorum(counts[_pid], got[_pid]) ->
		printf("attempt %d has the lock, by description %d\n", me, counts[_pid]);
		won[_pid] = 1; holders++; assert(holders == 1) }
#if EXTEND
	:: extend(0) :: extend(1) :: extend(2) :: extend(3)
	:: renew(0) :: renew(1) :: renew(2) :: renew(3)
#endif
	:: d_step { by[_pid] != NONE && !extended[_pid] && over[_pid] == 0 && quorum(by[_pid], ext[_pid]) ->
		printf("attempt %d has extended, by description %d\n", me, by[_pid]);
		extended[_pid] = 1; counts[_pid] = by[_pid]; old[_pid] = old[_pid] && stale[_pid] }
	:: d_step { over[_pid] == 0 && extended[_pid] -> over[_pid] = 1 }
	:: d_step { over[_pid] < 2 && got[_pid] && (over[_pid] == 1 || !extended[_pid]) ->
		printf("attempt %d is over\n", me);
		over[_pid] = 2; holders = holders - won[_pid] }
	od
}

/*
 * Rule: a node takes a description that is newer than its own, from any client, at any time. BACK:
 * also an older one.
 */
#if BACK
#define newer(d, n) (has[n] != d)
#else
#define newer(d, n) (epoch(d) > epoch(has[n]))
#endif
#define tell(d, n)  d_step { known & bit(d) && newer(d, n) -> has[n] = d }
active proctype news() {
end:	do
	:: tell(1, 0) :: tell(1, 1) :: tell(1, 2) :: tell(1, 3)
	:: tell(2, 0) :: tell(2, 1) :: tell(2, 2) :: tell(2, 3)
#if ONE_ONLY
	:: tell(3, 0) :: tell(3, 1) :: tell(3, 2)
#endif
#if BACK
	:: tell(0, 0) :: tell(0, 1) :: tell(0, 2)
#endif
	od
}

#define has1(n)     (bit(n) * (has[n] == 1))
#define moved(n)    (bit(n) * (epoch(has[n]) > 0))
active proctype time() {
end:	d_step { quorum(0, moved(0) | moved(1) | moved(2)) -> printf("a majority has a new description\n");
		seen = 1;
		old[0] = got[0] && counts[0] == 0; old[1] = got[1] && counts[1] == 0;
		stale[0] = by[0] == 0 && ext[0] }
}

/* The next change, as it was chosen. ONE_ONLY: two were. */
active proctype change() {
end:	d_step { settled && three(has1(0) | has1(1) | has1(2) | has1(3)) -> printf("description 2 is in force\n");
#if ONE_ONLY
		known = known | bit(3);
#endif
		known = known | bit(2) }
}

#else

/*
 * Rule: a description is chosen by a majority of the members before (Paxos, for a single value). An
 * operator has a ballot, which a client's token and time would do for. A node promises to take no
 * smaller one, and says what it has taken. An operator that learns of that takes it for its own. A
 * node that has a description in force takes no more. MAJORITY: two of the four are enough; PROMISE:
 * none is asked for; ADOPT: the operator keeps its own.
 *
 * LOSES, as many at most: nodes lose their data, and may be told description 1 again when a majority has shown it since
 * (told.pml). From then on they count only if all members count. UNANIMOUS: if all have answered; FORGOTTEN: at once.
 *
 * A node that has been told the next description counts as one that has taken it with the largest ballot, if another one
 * shows the same, or the operator wants it; or, when all have answered and one of them may have forgotten what it took, if
 * none shows anything else. DENIED: though another one does. With WRONG the last node has description 3 at the beginning,
 * which nobody has chosen, nor wants. THREE: there are three members, and not four.
 */
byte promised[4], taken[4], wants[3];       /* ballots; what the operator of each wants */
bit again[4];                               /* it has lost its data, and was told description 1 again */
byte saw[4];                                /* which others have shown that since the loss */
byte losses;
#ifndef LOSES
#define LOSES 0
#endif
#if THREE || MAJORITY
#define enough(s)   two(s)
#else
#define enough(s)   three(s)
#endif
#if THREE
#define everyone    7
#else
#define everyone    15
#endif

/* What an operator has heard in this step: who counts, who counts if all have answered, who has which next description; what was taken. */
#define all         ((heard | maybe | has2 | has3 | none) == everyone)
#if DENIED
#define only(d, other) 1
#else
#define only(d, other) (!other && !(took & ~bit(d)))
#endif
#define shown(d, s, other) (s && (two(s) || (took & bit(d)) || own == d || (all && (none || maybe) && only(d, other))))
#define kept(d)     ((shown(2, has2, has3) && (d == 0 || d == 2) -> has2 : 0) | (shown(3, has3, has2) && (d == 0 || d == 3) -> has3 : 0))
#if FORGOTTEN
#define yes(d)      (heard | maybe | kept(d))
#elif UNANIMOUS
#define yes(d)      (heard | (all -> maybe : 0) | kept(d))
#else
#define yes(d)      (heard | ((heard | maybe | kept(d)) == everyone -> maybe : 0) | kept(d))
#endif
#define asked(n)    ((heard | maybe | has2 | has3 | none) & bit(n))
#define hear(n)     heard = heard | (again[n] -> 0 : bit(n)); maybe = maybe | (again[n] -> bit(n) : 0)
#define promise(n)  d_step { asking && !asked(n) && has[n] == 1 && promised[n] < ballot -> promised[n] = ballot; hear(n); \
	took = took | (taken[n] -> bit(wants[taken[n]]) : 0); best = (taken[n] > best -> taken[n] : best) }
#define take(n)     d_step { !asking && !asked(n) && has[n] == 1 && promised[n] <= ballot -> \
	printf("node %d takes description %d of ballot %d\n", n, wants[ballot], ballot); \
	promised[n] = ballot; taken[n] = ballot; hear(n); took = took | bit(wants[ballot]) }
#define show(n)     d_step { !asked(n) && has[n] != 1 -> has2 = has2 | bit(n) * (has[n] == 2); has3 = has3 | bit(n) * (has[n] == 3); \
	none = none | bit(n) * (has[n] == NONE) }
#define put(n)      d_step { known & bit(wants[ballot]) && (has[n] == 1 || has[n] == NONE) -> has[n] = wants[ballot] }

proctype operator(byte ballot) {
	bit asking;
	byte heard, maybe, has2, has3, none, took, best, own;
#if WRONG
	own = 2;
#else
	own = 1 + ballot;
#endif
	wants[ballot] = own;
#if !PROMISE
	asking = 1;
#endif
end:	do
	:: promise(0) :: promise(1) :: promise(2)
	:: take(0) :: take(1) :: take(2)
	:: show(0) :: show(1) :: show(2)
	:: put(0) :: put(1) :: put(2)
#if !THREE
	:: promise(3) :: take(3) :: show(3) :: put(3)
#endif
	:: d_step { asking && enough(yes(0)) -> asking = 0;
#if !ADOPT
		wants[ballot] = (kept(2) -> 2 : (kept(3) -> 3 : (best -> wants[best] : own)));
#endif
		heard = 0; maybe = 0; has2 = 0; has3 = 0; none = 0; took = 0 }
	:: d_step { !asking && enough(yes(wants[ballot])) && !(known & bit(wants[ballot])) ->
		printf("description %d is in force\n", wants[ballot]);
		known = known | bit(wants[ballot]);
		assert(!(known & bit(2)) || !(known & bit(3))) }
	od
}

#if LOSES
#define lose(n)     d_step { losses < LOSES && has[n] != NONE -> printf("node %d loses its data\n", n); \
	losses++; has[n] = NONE; promised[n] = 0; taken[n] = 0; again[n] = 0; saw[n] = 0 }
#define look(n, m)  d_step { has[n] == NONE && has[m] == 1 && !(saw[n] & bit(m)) -> saw[n] = saw[n] | bit(m) }
#define back(n)     d_step { has[n] == NONE && enough(saw[n]) -> has[n] = 1; again[n] = 1 }
active proctype loss() {
end:	do
	:: lose(0) :: lose(1) :: back(0) :: back(1)
	:: look(0, 1) :: look(0, 2) :: look(1, 0) :: look(1, 2)
#if !(THREE && WRONG)
	:: lose(2) :: back(2) :: look(2, 0) :: look(2, 1)
#endif
#if !THREE && !WRONG
	:: lose(3) :: back(3) :: look(3, 0) :: look(3, 1) :: look(3, 2)
#endif
#if !THREE
	:: look(0, 3) :: look(1, 3) :: look(2, 3)
#endif
	od
}
#endif
#endif

init {
	known = bit(0) | bit(1);
#if CHOICE
	has[0] = 1; has[1] = 1; has[2] = 1; has[3] = 1;
#if WRONG && THREE
	has[2] = 3;
#elif WRONG
	has[3] = 3;
#endif
	run operator(1); run operator(2)
#else
	has[3] = NONE;
#if BY_ONE
	known = bit(0) | bit(2)             /* both steps at once */
#endif
#endif
}
