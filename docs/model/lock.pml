/*
 * The fenced lock over three nodes, for spin. README.md says how to run it, what it
 * shows, and what it leaves out.
 *
 * A process is an attempt. Its token is fresh, so a client that tries again is just
 * another attempt, and attempts that overlap as they like include those of one
 * client. An attempt carries its own messages: a request is a bit in acq, rai or ext
 * until it is carried out, which may be never, or long after the attempt is over.
 * What a node does is one atomic step, as a script is. The reply comes in the same
 * step or is lost: one that comes later is the same as a client that acts later.
 *
 * Three events are no steps, as they have no effect of their own: a refusal (as if the
 * request were still under way), giving up (as doing nothing more), and a release (as a
 * key that ends; with EXCLUSION, as a validity that ends).
 *
 * Set by -D: ATTEMPTS; DUPS, how many requests are carried out twice; HIGHEST, the
 * largest proposal; EXTEND, a winner extends once; EXCLUSION, see Time; FORGETS or
 * JUMPS, any node may lose its data or have its clock step, at any time, TROUBLES times
 * in all or (9) without end; DROPS, NEIGHBOUR, see The table. And names of rules, each of which
 * takes the rule out.
 */
#ifndef ATTEMPTS
#define ATTEMPTS 2
#endif
#ifndef DUPS
#define DUPS 0
#endif
#ifndef HIGHEST
#define HIGHEST 3
#endif
#ifndef TROUBLES
#define TROUBLES 9
#endif
#define most(x, y)  ((x) > (y) -> (x) : (y))
#define least(x, y) ((x) < (y) -> (x) : (y))
#define bit(x)      (1 << (x))
#define quorum(s)   ((s) == 3 || (s) > 4)   /* two or three of three bits */

byte C[3], owner[3];                        /* a node's counter, 0: it is not there; whose key it has, 0: none */
byte dups = DUPS;
byte begun, touched;                        /* attempts that have a grant; nodes that gave one */
byte fence[ATTEMPTS], top, holders, done;   /* the judge's: no rule looks at them */

/*
 * Time. Without EXCLUSION there is none: a key may end at any moment, and the fences
 * must be right all the same. Whether it has ended is decided when it is looked at,
 * which is as good as an event of its own and makes fewer states.
 *
 * With EXCLUSION over[a] is 0 while the validity of attempt a runs, 1 when only that
 * of its extension does, 2 when its holder has been told (or gave up, or released).
 * A node's key outlives the validity that came with it, since that counts from
 * before the request was sent: so much is asked of clocks, and no more. Numbers do
 * not decide which attempt gets a key, so they are left out, unless BY_END checks them.
 */
byte over[ATTEMPTS], lease[3];                /* lease: as an acquire left the key (0), or an extension (1) */
#if EXCLUSION
#define TIMED    1
#define ended(x) (over[owner[x] - 1] > lease[x])
#else
#define TIMED    0
#define ended(x) 1
#endif
#define free(x)  (owner[x] == 0 || ended(x))
#if EXCLUSION && !BY_END
#define NUMBERS  0
#else
#define NUMBERS  1
#endif

/*
 * Rule: a token for each attempt, v. ONE_TOKEN: one for the first two, which are a
 * client's, one after the other.
 */
#if ONE_TOKEN
#define v    (_pid == 1 -> 1 : 1 + _pid)
#define turn (_pid != 1 || done || over[0] == 2)
#else
#define v    (1 + _pid)
#define turn (begun >= _pid)                /* they are alike: numbered as they begin, no mirror images */
#endif

/*
 * The table. A counter is a bucket of several names. NEIGHBOUR: so often, at any time, another
 * name is granted on a node, with any number that is larger than what is there. Rule: what is
 * there is never made smaller. OVERWRITES: the bucket has the last number of whichever name.
 *
 * With DROPS a node that forgets loses the table, and keeps the keys. Rule: a grant has left a
 * bucket there, so where there is none, an attempt that finds its own key has no grant. MINE_LOST:
 * it has one. Nor is anything raised there. RAISE_LOST: it is.
 */
#if RAISE_LOST
#define stands(x)   1
#else
#define stands(x)   (C[x] > 0)
#endif
#if MINE_LOST
#define mine(x)     (owner[x] == v)
#define number(x)   most(C[x], 1)           /* no counter reads as the least number */
#else
#define mine(x)     (owner[x] == v && C[x] > 0)
#define number(x)   C[x]
#endif

/*
 * Rule: a node has committed t if its counter is t while the key is the attempt's.
 * NOT_STORED: the largest number of a quorum is good enough.
 */
#if NOT_STORED
#define committed(x) (n[x] > 0)
#else
#define committed(x) (n[x] == t)
#endif

/*
 * Rule: no raise where the counter is above t. It can be, though the key is the
 * attempt's, if the key ended and a copy of the request set it anew; the holder in
 * between may have taken t. RAISE_ABOVE: such a node says yes. Rule: only a node
 * whose grant is a vote is asked. RAISE_ALL: all are, of which some may have forgotten
 * what others have committed.
 */
#if RAISE_ABOVE
#define raisable(x) (owner[x] == v && stands(x))
#else
#define raisable(x) (owner[x] == v && stands(x) && C[x] <= t)
#endif
#if RAISE_ALL
#define asked 7
#else
#define asked set
#endif

/*
 * Rule: a node counts for an extension if its counter is not above t, be the key
 * still there or set anew: then no other has won with its vote since. MINE_PROVES: a
 * key that is there is proof enough. NO_WITNESS: one that was gone counts, too.
 */
#if NO_WITNESS
#define witness(x) 1
#elif MINE_PROVES
#define witness(x) (C[x] <= t || owner[x] == v)
#else
#define witness(x) (C[x] <= t)
#endif

/*
 * Rule: a node that forgot has no vote until all locks that it may have granted are
 * over. Here: until the one that it had is, so it may vote sooner than in truth. The
 * same goes for a node whose clock stepped, which ended its keys; only the clients
 * find that out (all have seen its clock before), so it grants, and is not counted.
 * NO_QUARANTINE, NO_DETECTION: it votes at once. GRANTS: one that forgot grants, too,
 * and is not counted. VOUCHES: its grants are not, but their extension is.
 */
byte had[3], asof[3];                       /* the key that was lost, and its lease */
#define past(x)    (had[x] == 0 || over[had[x] - 1] > asof[x])
#if GRANTS || JUMPS
#define grants(x)  1
#else
#define grants(x)  votes(x)
#endif
#if VOUCHES
#define vouches(x) (votes(x) || owner[x] == v)
#else
#define vouches(x) votes(x)
#endif

/*
 * Rule: n = max(C + 1, p), with p the client's clock, clamped to the node's. While
 * no node forgets, clocks do not matter: p is any number, and another at each node. With FORGETS it is any that the clamp lets through: SPREAD ticks, which are
 * twice S and what the nodes' clocks differ. Quarantine must be longer than that. A
 * tick has more numbers than can be counted up in it. NO_CLAMP: any number again.
 */
#if FORGETS && !EXCLUSION
#ifndef SPREAD
#define SPREAD   1
#endif
#if NO_QUARANTINE
#define QUARANTINE 0
#elif !defined(QUARANTINE)
#define QUARANTINE (SPREAD + 1)
#endif
#define END      (SPREAD + 1)               /* the last tick */
#define TICK     16
byte now, back[3];                          /* when the node votes again */
#define votes(x) (now >= back[x])
#if NO_CLAMP
#define low      0
#define high     (END + SPREAD)
#else
#define low      now
#define high     (now + SPREAD)
#endif
#else
#define TICK     1
#define low      0
#define high     HIGHEST
#if NO_QUARANTINE || NO_DETECTION
#define votes(x) 1
#else
#define votes(x) past(x)
#endif
#endif

hidden byte i, x, set;                      /* used within one step */

inline pick(when, s) {                      /* nodes are alike, too: numbered as they grant */
  if
  :: (when) && s & 1 -> i = 0
  :: (when) && s & 2 && touched > 0 -> i = 1
  :: (when) && s & 4 && touched > 1 -> i = 2
  fi
}

inline only(condition) {                    /* else it is a refusal */
  if :: condition :: else -> goto end fi
}

inline taken(s) {
  if :: s = s & ~bit(i) :: dups > 0 -> dups-- fi
}

/*
 * What is promised. An attempt is complete with its last commit: if it were later,
 * it would have less to be compared with. first is the largest fence that was
 * complete before its own first commit. BY_END: before its last.
 */
#if BY_END
#define bound top
#else
#define bound first
#endif
inline complete() {
  if
  :: quorum(yes) && !won && !over[_pid] ->  /* the clock is looked at after the last vote */
    printf("attempt %d HOLDS, its fence is %d\n", _pid + 1, t);
    assert(!TIMED || !holders);
    for (x : 0 .. ATTEMPTS - 1) { assert(!NUMBERS || t != fence[x]) }
    assert(!NUMBERS || t > bound);
    holders = holders + TIMED; fence[_pid] = t * NUMBERS; top = most(top, t * NUMBERS);
    won = 1; yes = 0; first = 0;
#if EXTEND
    ext = 7
#else
    done = done + !TIMED
#endif
  :: else
  fi
}

/* With a quorum of grants: choose the fence now, or wait for more of them. */
#define at(x) (committed(x) -> since[x] : 255)
inline decide() {
  set = (n[0] > 0) | (n[1] > 0) << 1 | (n[2] > 0) << 2;
  if
  :: quorum(set) ->
    t = most(most(n[0], n[1]), n[2]);
    yes = committed(0) | committed(1) << 1 | committed(2) << 2;
    rai = asked & ~yes;
    first = least(least(at(0), at(1)), at(2));
    n[0] = 0; n[1] = 0; n[2] = 0; since[0] = 0; since[1] = 0; since[2] = 0;
    complete()
  :: set != 7
  fi
}

active [ATTEMPTS] proctype attempt() {
  byte acq = 7, rai, ext;                   /* requests on their way, a bit for each node */
  byte n[3], since[3];                      /* the numbers granted; top at that moment */
  byte t, yes, first;                       /* the fence; the nodes that committed it */
  bit won, sure;                            /* sure: the extension is confirmed */
end:
  do
  :: atomic { pick(turn && done < ATTEMPTS, acq);
    only(mine(i) || free(i) && grants(i));
    if
    :: mine(i)                              /* again: it is told the number that it has */
    :: free(i) ->
      select (x : low .. high); x = x * TICK;
      C[i] = (NUMBERS -> most(C[i] + 1, x) : 1); owner[i] = v; lease[i] = 0
    fi;
    printf("attempt %d: node %d grants %d\n", _pid + 1, i + 1, C[i]);
    touched = most(touched, i + 1); begun = most(begun, _pid + 1);
    taken(acq);
    if
    :: printf("           its reply is lost\n")
    :: t == 0 && votes(i) -> n[i] = number(i); since[i] = top; decide()
    fi }

  :: atomic { pick(done < ATTEMPTS, rai);
    only(raisable(i));
    C[i] = most(C[i], t);
    printf("attempt %d: node %d says yes to %d, and has %d\n", _pid + 1, i + 1, t, C[i]);
    taken(rai);
    if
    :: printf("           its reply is lost\n")
    :: !won -> yes = yes | bit(i); complete()
    fi }

  :: atomic { pick(done < ATTEMPTS, ext);
    only(witness(i) && (owner[i] == v || free(i) && grants(i)));
    set = vouches(i);
    owner[i] = v; lease[i] = 1; C[i] = most(C[i], t);
    printf("attempt %d: node %d extends, and has %d\n", _pid + 1, i + 1, C[i]);
    taken(ext);
    if
    :: printf("           its reply is lost\n")
    :: !sure && set ->
      first = (yes -> first : top); yes = yes | bit(i);
      if
      :: quorum(yes) ->
        printf("attempt %d HAS EXTENDED\n", _pid + 1);
        assert(first <= t);                 /* no other won after it and before the first of these votes */
        sure = 1; first = 0; done = done + !TIMED
      :: else
      fi
    fi }

  :: atomic { TIMED && turn && begun > _pid && over[_pid] < 2 ->
    over[_pid] = (sure && !over[_pid] -> 1 : 2);
    only(over[_pid] == 2);
    printf("attempt %d is over\n", _pid + 1);
    holders = holders - won;
    only(!NUMBERS);                         /* without them nothing of it matters any more: */
    acq = 0; ext = 0; t = 1; yes = 0; sure = 0; n[0] = 0; n[1] = 0; n[2] = 0;
    for (x : 0 .. 2) {                      /* a key that may end at any moment blocks no other */
      if :: owner[x] == v -> owner[x] = 0; lease[x] = 0 :: else fi;
      if :: had[x] == v -> had[x] = 0; asof[x] = 0 :: else fi
    } }
  od
}

#if FORGETS || JUMPS
active proctype trouble() {
  byte troubles = TROUBLES;
end:
  do
  :: atomic { pick(done < ATTEMPTS && touched > 0 && troubles > 0, 7);
    only(owner[i] || !TIMED && C[i]);       /* else it has nothing to lose */
    troubles = troubles - (troubles < 9);
    printf("node %d loses its keys\n", i + 1);
#if EXCLUSION
    if :: past(i) && !ended(i) -> had[i] = owner[i]; asof[i] = lease[i] :: else fi;
#else
    C[i] = 0; back[i] = least(now + QUARANTINE, END + 1);
#endif
#if !DROPS
    owner[i] = 0; lease[i] = 0
#endif
    }
#if FORGETS && !EXCLUSION
  :: atomic { done < ATTEMPTS && now < END -> now++;
    printf("the clock says %d\n", now * TICK);
    for (x : 0 .. 2) { back[x] = (votes(x) -> 0 : back[x]) } }
#endif
  od
}
#endif

#if NEIGHBOUR
active proctype neighbour() {
  byte others = NEIGHBOUR;
end:
  do
  :: atomic { pick(done < ATTEMPTS && others > 0, 7);
    others--;
    select (x : low .. high); x = x * TICK;
#if OVERWRITES
    C[i] = most(x, 1);
#else
    C[i] = most(C[i] + 1, x);
#endif
    touched = most(touched, i + 1);
    printf("node %d grants %d to another name\n", i + 1, C[i]) }
  od
}
#endif
