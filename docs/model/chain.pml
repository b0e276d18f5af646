/*
 * Which description of its set a client goes by, for spin. README.md says how to run it, and what it shows.
 *
 * Each node keeps a description of the set. Those that were chosen are 1, 2 and 3, by their epochs: each
 * differs from the one before by one member. Operators choose the next one, and any client tells a node a later
 * one, at any time. Node 0 is wrong: it may keep anything, at any time, and show each client something else.
 * It shows what was chosen, nothing, F2 and F3, which nobody has chosen, with the epochs 2 and 3, and with all that is
 * good for them in their past. Which members these have does not matter: no client may go by them.
 *
 * A client has heard of each node at some time, and may have slept since. It goes by believed() in
 * internal/wire/believed.go. It begins with description 1, or knows none and was given some nodes that are members,
 * or were. Where node 0 is one of the witnesses, there are three at least: it is a minority.
 *
 * How one description of an epoch is chosen, and not two, is in members.pml, and so are locks. Here it is what
 * nodes keep: nobody can count by a description that no quorum of its members keeps.
 *
 * Set by -D: COUNTED, what quorums keep is looked at, and no client; FOUND, a client that wakes is. And names of rules, each of which takes
 * the rule out: ONE_WORD, ANY_PAST; with COUNTED BY_ONE, CHOSEN_BY, FOLLOWED, COUNTS_LATER; and with FOUND SAME, LAST_ONLY.
 * ROLLBACK: node 0 also goes back to what it kept when it counted for a change.
 */
#define NODES  4
#define F2     4
#define F3     5
#define UNMET  7
#define bit(x)        (1 << (x))
#define in(s, n)      (((s) >> (n)) & 1)
#define size(s)       (in(s, 0) + in(s, 1) + in(s, 2) + in(s, 3))
#define epoch(d)      (d == F2 -> 2 : (d == F3 -> 3 : d))

byte has[NODES];                            /* what the node keeps; 0: nothing */
byte mem[4];                                /* the members by each that was chosen; 0: all that were ever members */
byte last = 1;                              /* the last one that was chosen */
byte low = 1;                               /* the last one for which node 0 has counted, or which it was told */

/*
 * Rule: a node vouches for the description that it keeps, and for those in its past. ANY_PAST: for all of earlier epochs.
 * SAME: for the one that it keeps. F3 has F2 in its past.
 */
#if ANY_PAST
#define past(h, d)    1
#elif SAME
#define past(h, d)    0
#else
#define past(h, d)    (d < F2 && h < F2 || d == 1 || h == F3)
#endif
#define follows(h, d) (h == d || h != UNMET && epoch(h) > epoch(d) && past(h, d))

/* How many of some nodes vouch for a description, by what they keep, and how many keep this one. */
#define vouch(s, d)   (in(s, 0) * follows(has[0], d) + in(s, 1) * follows(has[1], d) + in(s, 2) * follows(has[2], d) + \
	in(s, 3) * follows(has[3], d))
#define keep(s, d)    (in(s, 0) * (has[0] == d) + in(s, 1) * (has[1] == d) + in(s, 2) * (has[2] == d) + \
	in(s, 3) * (has[3] == d))
#define most(k, s)    (2 * (k) > size(s))

/*
 * Rule: a description is chosen by a majority of the members before, which keep theirs (CHOSEN_BY: by one), and
 * followed by another one only when a majority of these vouches for it (FOLLOWED: at once; COUNTS_LATER: also those
 * count that keep any later one, whatever it has in its past).
 */
#if CHOSEN_BY
#define chooses       (keep(mem[last], last) > 0)
#else
#define chooses       most(keep(mem[last], last), mem[last])
#endif
#define later(n)      (in(mem[last - 1], n) * (epoch(has[n]) >= last))
#if FOLLOWED
#define settled       1
#elif COUNTS_LATER
#define settled       (last == 1 || most(later(0) + later(1) + later(2) + later(3), mem[last - 1]))
#else
#define settled       (last == 1 || most(vouch(mem[last - 1], last), mem[last - 1]))
#endif
#define possible(s)   (size(s) > 1 && (!in(s, 0) || size(s) > 2))
#define next(n, m)    mem[last + 1] = mem[last] ^ bit(n) ^ (m); last++; mem[0] = mem[0] | mem[last]; \
	low = (has[0] < F2 && has[0] > low -> has[0] : low)
/* Rule: one member comes or goes. BY_ONE: one comes and one goes, at once. */
#define change(n)     d_step { last < 3 && settled && chooses && possible(mem[last] ^ bit(n)) -> \
	printf("description %d: node %d comes or goes\n", last + 1, n); next(n, 0) }
#define swap(n, m)    d_step { last < 3 && settled && chooses && in(mem[last], n) && !in(mem[last], m) && \
	possible(mem[last] ^ bit(n) ^ bit(m)) -> \
	printf("description %d: node %d for node %d\n", last + 1, m, n); next(n, bit(m)) }

/* A node takes a later one, and is told if it is a member, or was one before it. */
#define told(d, n)    (d <= last && (in(mem[d], n) || in(mem[d - 1], n)))
#define tell(d, n)    d_step { d <= last && told(d, n) && epoch(has[n]) < d -> printf("node %d is told %d\n", n, d); has[n] = d }

/* Node 0 keeps anything. */
#if ROLLBACK
#define goes(d)       1
#else
#define goes(d)       (d == 0 || d >= low)
#endif
#define wrong(d)      d_step { has[0] != d && (d > 3 || d <= last) && goes(d) -> printf("node 0 keeps %d\n", d); has[0] = d }

active proctype nodes() {
	d_step { mem[1] = 7; has[0] = 1; has[1] = 1; has[2] = 1 }
	if :: true :: d_step { mem[1] = 15; has[3] = 1 } fi;
	mem[0] = mem[1];
end:	do
	:: change(0) :: change(1) :: change(2) :: change(3)
#if BY_ONE
	:: swap(0, 3) :: swap(1, 3) :: swap(2, 3)
#endif
	:: tell(2, 0) :: tell(2, 1) :: tell(2, 2) :: tell(2, 3)
	:: tell(3, 0) :: tell(3, 1) :: tell(3, 2) :: tell(3, 3)
	:: wrong(0) :: wrong(1) :: wrong(2) :: wrong(3) :: wrong(F2) :: wrong(F3)
	od
}

/* No two clients can count by two descriptions at a time: of one of them no quorum of the members keeps it. */
#define counted(d)    (d <= last && most(keep(mem[d], d), mem[d]))
#define both          (counted(1) && counted(2) || counted(1) && counted(3) || counted(2) && counted(3))
#if COUNTED
active proctype counting() {
end:	d_step { both -> printf("two descriptions are kept by quorums\n"); assert(!both) }
}
#endif

/*
 * The client. Rule: a description is believed if a majority of the witnesses vouches for it (ONE_WORD: if one does), or
 * half of them while the others have been heard of, and keep none. Then its members are the witnesses.
 * LAST_ONLY: they stay.
 */
#if !COUNTED
byte heard[NODES], known, by;               /* by: the witnesses */
#define says(n, d)    (in(by, n) * follows(heard[n], d))
#define none(n)       (in(by, n) * (heard[n] == 0))
#define yes(d)        (says(0, d) + says(1, d) + says(2, d) + says(3, d))
#define nothing       (none(0) + none(1) + none(2) + none(3))
#define shown(d)      (in(by, 0) && heard[0] == d || in(by, 1) && heard[1] == d || in(by, 2) && heard[2] == d || in(by, 3) && heard[3] == d)
#if ONE_WORD
#define believed(d)   (shown(d) && epoch(d) > epoch(known))
#else
#define believed(d)   (shown(d) && epoch(d) > epoch(known) && \
	(2 * yes(d) > size(by) || 2 * yes(d) == size(by) && yes(d) + nothing == size(by)))
#endif
#if LAST_ONLY
#define witnesses(d)
#else
#define witnesses(d)  by = mem[d]
#endif
#define adopt(d)      known = d; assert(known <= last); witnesses(d)

#if FOUND
/*
 * A client that knows the first description wakes when those nodes that are not wrong have been told all that there is,
 * and answer. It finds the last one, whatever node 0 shows.
 */
#define due(n)        (n == 0 || !in(mem[0], n) || has[n] == (told(3, n) -> 3 : (told(2, n) -> 2 : has[n])))
active proctype client() {
	byte d;
	d_step { last > 1 && due(1) && due(2) && due(3) ->
		known = 1; by = mem[1];
		heard[0] = has[0]; heard[1] = has[1]; heard[2] = has[2]; heard[3] = has[3];
		do
		:: believed(3) -> adopt(3)
		:: !believed(3) && believed(2) -> adopt(2)
		:: !believed(3) && !believed(2) -> break
		od;
		printf("the client finds %d of %d\n", known, last);
		assert(known == last)
	}
}
#else
#define hears(n)      d_step { in(by, n) && heard[n] != has[n] -> heard[n] = has[n] }
#define give(s)       (size(s) > 0 && possible(s) && (s & mem[0]) == s)
#define given(s)      d_step { known == 0 && by == 0 && give(s) -> by = s }
#define goes_by(d)    d_step { believed(d) -> printf("the client goes by %d\n", d); adopt(d) }
active proctype client() {
	mem[0] != 0;
	d_step { heard[0] = UNMET; heard[1] = UNMET; heard[2] = UNMET; heard[3] = UNMET }
	if
	:: d_step { known = 1; by = mem[1] }
	:: given(3) :: given(6) :: given(7) :: given(11) :: given(13) :: given(14) :: given(15)
	fi;
end:	do
	:: hears(0) :: hears(1) :: hears(2) :: hears(3)
	:: goes_by(1) :: goes_by(2) :: goes_by(3) :: goes_by(F2) :: goes_by(F3)
	od
}
#endif
#endif
