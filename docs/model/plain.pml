/*
 * The optimistic acquire of plain commands over three nodes, for spin. lock.pml has the
 * protocol of the scripts; README.md says how to run both, and what they show.
 *
 * A process is a client. It makes one attempt, optimistic or by the script; the first AGAIN clients
 * go on with the script when their optimistic attempt is over. The optimistic attempt sends to each node a batch of commands, which
 * the node carries out one by one, with anything in between:
 *
 *     SET k t NX PX | ZADD GT CH p | MGET k marker | EXISTS queue | TIME | SCRIPT EXISTS
 *
 * pc says how far a node is: 0, the batch has not left; 1 and on, the next command. With MULTI
 * the node carries out all of them in one step. A batch may be carried out long after its attempt
 * is over, or never. Its answer comes in the step of the last command, or is lost: one that comes
 * later is the same as a client that acts later.
 *
 * As in lock.pml a refusal by the script, giving up and a release are no steps: a key whose
 * attempt is over may end at any moment, and that is decided when the key is looked at.
 *
 * What changes at a node while the batch is there (M: data and marker are gone; P: another
 * process, behind a proxy; T: the clock was set) shows in the answer to the command that looks
 * for it, if it came before that. So it is noted when it happens.
 *
 * Any number of batches is under way to a node, over one connection: they are carried out, and answered, in
 * order. Those of other clients and names change the node, which is in the model. What the answer to an
 * earlier one tells the client is there with FLIGHTS; see below. The answers to all later ones tell it
 * nothing in time, and a connection that ends is that the answer to the batch is lost.
 *
 * Set by -D: CLIENTS; AGAIN; HIGHEST, the largest proposal; EXCLUSION, validity in force, as in
 * lock.pml; BY_END; LOSS, RESTART, STEP, what happens to nodes, TROUBLES times in all or (9)
 * without end; NEIGHBOUR; QUEUES; MULTI; ORDER; FLIGHTS. And names of clauses, each of which takes
 * the clause out.
 */
#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef AGAIN
#define AGAIN 0
#endif
#ifndef HIGHEST
#define HIGHEST 2
#endif
#ifndef TROUBLES
#define TROUBLES 9
#endif
#define most(x, y)  ((x) > (y) -> (x) : (y))
#define least(x, y) ((x) < (y) -> (x) : (y))
#define bit(x)      (1 << (x))
#define quorum(s)   ((s) == 3 || (s) > 4)   /* two or three of three bits */
#define EVENTS      (LOSS || RESTART || STEP)

/*
 * The commands, and their order: P1 to P6. A model has those that can matter in it. where
 * (the last position at which a change is still seen by the command) is that command's own.
 */
#define Set      1
#define Zadd     2
#define Mget     3
#define Queue    4
#define Time     5
#define Process  6
#if EXCLUSION && !BY_END
#define NUMBERS  0
#else
#define NUMBERS  1
#endif
#if EXCLUSION
#define TIMED    1
#else
#define TIMED    0
#endif

#ifdef ORDER1                               /* an order given with -D */
#elif ZADD_FIRST && NUMBERS                 /* MGET before ZADD */
#define ORDER1 Set
#define ORDER2 Mget
#define ORDER3 Zadd
#elif SET_FIRST && NUMBERS                  /* ZADD before SET */
#define ORDER1 Zadd
#define ORDER2 Set
#define ORDER3 Mget
#elif MARKER_ORDER && NUMBERS               /* GET of the marker before SET, and k is not looked at */
#define ORDER1 Mget
#define ORDER2 Set
#define ORDER3 Zadd
#elif MARKER_ORDER
#define ORDER1 Mget
#define ORDER2 Set
#define ORDER3 Time
#define ORDER4 Process
#elif TIME_ORDER
#define ORDER1 Time
#define ORDER2 Set
#define ORDER3 Mget
#define ORDER4 Process
#elif PROCESS_ORDER && !NUMBERS
#define ORDER1 Process
#define ORDER2 Set
#define ORDER3 Mget
#define ORDER4 Time
#elif PROCESS_ORDER
#define ORDER1 Process
#define ORDER2 Set
#define ORDER3 Zadd
#define ORDER4 Mget
#elif QUEUE_ORDER                           /* EXISTS before SET */
#define ORDER1 Queue
#define ORDER2 Set
#define ORDER3 Mget
#elif QUEUES
#define ORDER1 Set
#define ORDER2 Mget
#define ORDER3 Queue
#elif !NUMBERS
#define ORDER1 Set
#define ORDER2 Mget
#define ORDER3 Time
#define ORDER4 Process
#elif RESTART
#define ORDER1 Set
#define ORDER2 Zadd
#define ORDER3 Mget
#define ORDER4 Process
#else
#define ORDER1 Set
#define ORDER2 Zadd
#define ORDER3 Mget
#endif
#ifndef ORDER2
#define ORDER2 0
#endif
#ifndef ORDER3
#define ORDER3 0
#endif
#ifndef ORDER4
#define ORDER4 0
#endif
#ifndef ORDER5
#define ORDER5 0
#endif
#ifndef ORDER6
#define ORDER6 0
#endif
#ifndef ORDER7
#define ORDER7 0
#endif
#define DONE     8                          /* nothing of the batch is left to be carried out */
#define op(j)    (((ORDER1 << 3 | ORDER2 << 6 | ORDER3 << 9 | ORDER4 << 12 | ORDER5 << 15 | ORDER6 << 18 | ORDER7 << 21) >> (3 * (j))) & 7)
#define where(o) ((ORDER1 == o) + 2 * (ORDER2 == o) + 3 * (ORDER3 == o) + 4 * (ORDER4 == o) + 5 * (ORDER5 == o) + 6 * (ORDER6 == o) + 7 * (ORDER7 == o))
#if EVENTS
#define LEFT     0                          /* leaving is a step, since something may happen before it */
#else
#define LEFT     1
#endif

byte C[3], owner[3];                        /* a node's counter, 0: it is not there; whose key it has, 0: none */
byte pc[3 * CLIENTS] = DONE;                     /* of client c at node x: at(c, x) */
byte bad[CLIENTS];                          /* nodes that will not count, a bit for each */
byte begun, touched;                        /* clients that have begun; nodes that were reached */
byte fence[CLIENTS], top, holders, done;    /* the judge's: no clause looks at them */
#define at(c, x) pc[3 * (c) + (x)]

/*
 * Tokens: 1 + c of the optimistic attempt of client c, 1 + CLIENTS + c of its script attempt.
 * Clause: that is a new one. NEW_TOKEN: it is the same.
 */
#define token(c)  (1 + (c))
#if NEW_TOKEN
#define second(c) (1 + (c))
#define forgotten 0
#else
#define second(c) (1 + CLIENTS + (c))
#define forgotten (NUMBERS == 0)                  /* a key that may end at any moment blocks no other */
#endif

/*
 * Time, as in lock.pml. over[t - 1] is 1 when the attempt is over. With EXCLUSION a key outlives
 * the validity that came with it, unless the node loses it.
 */
bit over[2 * CLIENTS];
#if EXCLUSION
#define ended(x) (over[owner[x] - 1])
#else
#define ended(x) 1
#endif
#define free(x)  (owner[x] == 0 || ended(x))

/*
 * Quarantine, as in lock.pml: a node that forgot, or whose clock was set, has no vote until the
 * locks that it had are over; for fences, until QUARANTINE ticks have gone by. It grants
 * meanwhile, and is not counted. Clause: a batch counts only if the node had a vote when it left.
 * QUARANTINE: also if not.
 */
byte had[3];
byte now, back[3];
#ifndef SPREAD
#define SPREAD   0
#endif
#ifndef AGES
#define AGES     1                          /* how old an optimistic attempt may be, in ticks */
#endif
#ifndef WAIT
#define WAIT     (SPREAD + AGES + 1)        /* the quarantine */
#endif
#if EVENTS && NUMBERS
#define CLOCK    1
#define END      (SPREAD + AGES + 1)        /* the last tick */
#define TICK     16
#define low      now
#define high     (now + SPREAD)
#define votes(x) (now >= back[x])
#else
#define CLOCK    0
#define TICK     1
#define low      0
#define high     HIGHEST
#define votes(x) (had[x] == 0 || over[had[x] - 1])
#endif
#if QUARANTINE
#define voted(x) 1
#elif FLIGHTS
#define voted(x) (votes(x) || unseen[3 * _pid + (x)])
#else
#define voted(x) votes(x)
#endif

/*
 * What a client knows of a node's clock. As a rule all know at once that it was set. With FLIGHTS a client
 * knows by an answer: TIME in the batch shows it (unseen), unless the answer to an earlier batch has shown it
 * before (noticed). That one may have come when this batch had left; with FLIGHTS=1, one batch is under way at
 * a time, it has not. Clause: the node has a vote also when the answer comes, by what is known then. AFTER: it
 * need not. Marker and process are compared with what was known when the batch left, and a client learns of
 * new ones when no answer is owed: so there is no other case.
 */
#if FLIGHTS
bit unseen[3 * CLIENTS], noticed[3 * CLIENTS];
#define settled(k, y) unseen[3 * (k) + (y)] = 0; noticed[3 * (k) + (y)] = 0   /* they matter no more */
#else
#define settled(k, y) skip
#endif
#if FLIGHTS && !AFTER
#define still(x) (votes(x) || !noticed[3 * _pid + (x)])
#else
#define still(x) 1
#endif

/*
 * Clause: p is not older than AGES when the batch leaves, so that the quarantine leaves room for
 * it. AGE: it may be older.
 */
#if AGE
#define leaves   1
#else
#define leaves   (now <= born + AGES)
#endif

/*
 * Clauses about the answers. ADVANCED: ZADD may have said 0. STILL_MINE: k may be another's.
 */
#if ADVANCED
#define advanced 1
#else
#define advanced (p > C[i])
#endif
#if STILL_MINE || MARKER_ORDER
#define mine     1
#else
#define mine     (owner[i] == token(_pid))
#endif
/* MARKER, TIME, PROCESS: what has changed is not looked at. */
#if MARKER
#define seesM    0
#else
#define seesM    where(Mget)
#endif
#if TIME || FLIGHTS
#define seesT    0
#else
#define seesT    where(Time)
#endif
#if PROCESS
#define seesP    0
#else
#define seesP    where(Process)
#endif

/*
 * Clause: nothing is raised on this path. NO_RAISE: where all is well but that ZADD said 0, the
 * client raises to a larger number, as after a grant by the script. RAISE_STRICT: the node says
 * yes only if that is larger than its counter.
 */
#if RAISE_STRICT
#define NO_RAISE 1
#define raisable(x) (owner[x] == v && C[x] > 0 && C[x] + 1 <= t + ph)
#else
#define raisable(x) (owner[x] == v && C[x] > 0 && C[x] <= t)
#endif

/*
 * Clause: a batch is not sent again. NO_RESEND: it is, so often. Each copy must meet all clauses
 * by itself. With NO_RESEND and MERGED the two answers to a batch are put together: a key that
 * the first copy has set is as good as one that the second has, and so is the number.
 */

/*
 * The queue. With QUEUES the last client waits, by the script: it is in the queue of each node
 * that has refused it, until it holds the lock or is over. A node gives no key to another
 * meanwhile. A batch that left when two nodes had it in their queues must not win before it.
 * Clause: no queue. QUEUE: there may be one.
 */
#if QUEUES
byte queue;
bit passed[CLIENTS];                        /* the attempt began when the waiter was in two queues */
#define waits     (_pid == CLIENTS - 1)
#define waited(x) (queue & bit(x) && !waits)
#else
#define waits     0
#define waited(x) 0
#endif
#if QUEUE
#define none(x)   1
#else
#define none(x)   !waited(x)
#endif

#if NEW_TOKEN
#define v     (1 + _pid)
#else
#define v     (1 + _pid + CLIENTS * ph)
#endif
#if QUEUES || AGAIN && AGAIN < CLIENTS
#define alike 0
#else
#define alike 1
#endif
#define turn  (!alike || begun >= _pid)
#define open  (done < CLIENTS)

hidden byte i, x, c, o, set, count;         /* used within one step */

inline pick(when, s) {                      /* nodes are alike: numbered as they are reached */
  if
  :: (when) && (s) & 1 -> i = 0
  :: (when) && (s) & 2 && touched > 0 -> i = 1
  :: (when) && (s) & 4 && touched > 1 -> i = 2
  fi
}
inline only(condition) {
  if :: condition :: else -> goto end fi
}
inline reached() {
  touched = most(touched, i + 1); begun = most(begun, _pid + 1)
}

/* Only what changes the node is left of a batch that will not count. */
inline skip_reads(k, y) {
  do
  :: bad[k] & bit(y) && at(k, y) > 0 && at(k, y) != DONE && op(at(k, y)) != Set && op(at(k, y)) != Zadd ->
    if :: op(at(k, y)) == 0 -> at(k, y) = DONE :: else -> at(k, y)++ fi
  :: else -> break
  od;
  if :: bad[k] & bit(y) || at(k, y) == DONE -> settled(k, y) :: else fi;
  if :: at(k, y) == DONE -> bad[k] = bad[k] & ~bit(y) :: else fi
}

/* What is promised: as in lock.pml. */
#if BY_END
#define bound top
#else
#define bound (first - 1)
#endif
inline complete() {
  if
  :: quorum(yes) && !won && !over[_pid + CLIENTS * ph] ->
    printf("client %d HOLDS, its fence is %d\n", _pid + 1, t);
    assert(!TIMED || !holders);
    for (x : 0 .. CLIENTS - 1) { assert(!NUMBERS || t != fence[x]) }
    assert(!NUMBERS || t > bound);
#if QUEUES
    assert(waits || ph || !passed[_pid] || queue == 0);  /* overtaken */
    if :: waits -> queue = 0 :: else fi;
#endif
    holders = holders + TIMED; fence[_pid] = t * NUMBERS; top = most(top, t * NUMBERS);
    won = 1; yes = 0; first = 0; rai = 0; cnt = 0; weak = 0; soft = 0;
    since[0] = 0; since[1] = 0; since[2] = 0; n[0] = 0; n[1] = 0; n[2] = 0;
    done = done + !TIMED
  :: else
  fi
}

#define from(s, x) (s & bit(x) -> since[x] : 255)
inline earliest(s) {
  first = least(least(from(s, 0), from(s, 1)), from(s, 2))
}

/* The optimistic attempt has heard of a node that counts. */
inline judge() {
  if
  :: quorum(cnt) && t == 0 -> t = p; yes = cnt; earliest(cnt); complete()
#if NO_RAISE
  :: !quorum(cnt) && quorum(cnt | soft) && t == 0 ->
    select (t : 1 .. HIGHEST + 1);
    only(t > p);
    rai = cnt | soft; yes = 0; first = 255
#endif
  :: else
  fi
}

/* The script attempt: with a quorum of grants, choose the fence now, or wait for more of them. */
inline decide() {
  set = (n[0] > 0) | (n[1] > 0) << 1 | (n[2] > 0) << 2;
  if
  :: quorum(set) ->
    t = most(most(n[0], n[1]), n[2]);
    yes = (n[0] == t) | (n[1] == t) << 1 | (n[2] == t) << 2;
    rai = set & ~yes;
    earliest(yes);
    n[0] = 0; n[1] = 0; n[2] = 0; since[0] = 0; since[1] = 0; since[2] = 0;
    complete()
  :: set != 7
  fi
}

/* The optimistic attempt is over: its batches may still be carried out, and do not count. */
inline leave() {
  ph = 1; cnt = 0; weak = 0; soft = 0; t = 0; yes = 0; first = 0; rai = 0;
  since[0] = 0; since[1] = 0; since[2] = 0;
  for (x : 0 .. 2) {
    settled(_pid, x);
    if
    :: at(_pid, x) == 0 || forgotten -> at(_pid, x) = DONE; bad[_pid] = bad[_pid] & ~bit(x)
    :: at(_pid, x) % DONE > 0 && !forgotten -> bad[_pid] = bad[_pid] | bit(x); skip_reads(_pid, x)
    :: else
    fi
  }
}

/* A node carries out the next command of the batch. */
inline command() {
  o = op(at(_pid, i)); count = 1;
  if
  :: o == Set ->
    if
    :: free(i) -> owner[i] = token(_pid); printf("client %d: node %d SET OK\n", _pid + 1, i + 1)
    :: NUMBERS && owner[i] && !(bad[_pid] & bit(i)) -> printf("client %d: node %d SET nil\n", _pid + 1, i + 1);
#if MERGED
      count = (owner[i] == token(_pid))
#else
      count = 0
#endif
    :: NUMBERS && owner[i] && bad[_pid] & bit(i)
    :: NUMBERS == 0 && !free(i) -> goto end /* a refusal, without effect: as if it were still under way */
    fi;
    if :: since[i] -> since[i] = 1 + top :: else fi
  :: o == Zadd ->
    if
    :: advanced -> printf("client %d: node %d ZADD %d over %d\n", _pid + 1, i + 1, p, C[i]);
      since[i] = (bad[_pid] & bit(i) || ph -> 0 : 1 + top)
    :: else -> printf("client %d: node %d ZADD %d says 0\n", _pid + 1, i + 1, p);
#if NO_RAISE
      if :: !ph && !(bad[_pid] & bit(i)) -> weak = weak | bit(i) :: else fi
#elif MERGED
      count = (since[i] > 0)
#else
      count = 0
#endif
    fi;
    C[i] = most(C[i], p)
  :: o == Mget  -> count = mine
#if FLIGHTS && !TIME
  :: o == Time  -> count = !unseen[3 * _pid + i]
#endif
#if QUEUES
  :: o == Queue -> count = none(i)
#endif
  :: else
  fi;
  bad[_pid] = bad[_pid] | (count -> 0 : bit(i));
  at(_pid, i) = at(_pid, i) + 1;
  if :: bad[_pid] & bit(i) -> since[i] = 0; weak = weak & ~bit(i); skip_reads(_pid, i) :: else fi
}

active [CLIENTS] proctype client() {
  byte p, born;                             /* the proposal of the optimistic attempt, and its tick */
  byte cnt, since[3];                       /* nodes that count; 1 + top at the commit */
  byte weak, soft;                          /* nodes where ZADD said 0; and all else is well */
  byte acq, rai, n[3];                      /* the script attempt: nodes to be asked, to raise; numbers granted */
  byte t, yes, first;                       /* the fence; the nodes that committed it */
  bit ph, won, fin;                         /* ph: the script attempt runs */
#if NO_RESEND
  byte again = NO_RESEND;
#endif
end:
  do
  /* It begins: optimistically, or with the script. */
  :: atomic { turn && !fin && !ph && p == 0 && !waits ->
    begun = most(begun, _pid + 1);
    born = now;
#if QUEUES
    passed[_pid] = quorum(queue);
#endif
    select (p : low .. high); p = most(p * TICK, 1);
    printf("client %d proposes %d\n", _pid + 1, p);
    for (x : 0 .. 2) { at(_pid, x) = LEFT }
    if :: !NUMBERS -> p = 1 :: else fi }
  :: atomic { turn && !fin && !ph && !won && (p == 0 || !TIMED && _pid < AGAIN) ->
    begun = most(begun, _pid + 1);
    printf("client %d goes on with the script\n", _pid + 1);
    over[_pid] = TIMED;
    if :: p > 0 -> leave() :: else -> ph = 1 fi;
    acq = 7 }

  /* A batch leaves. */
#if EVENTS
  :: atomic { pick(open && !ph && p > 0 && !won, (at(_pid, 0) == 0) | (at(_pid, 1) == 0) << 1 | (at(_pid, 2) == 0) << 2);
    only(leaves);
    reached();
    at(_pid, i) = 1;
    bad[_pid] = bad[_pid] | (voted(i) -> 0 : bit(i));
    printf("client %d: the batch for node %d leaves\n", _pid + 1, i + 1);
    skip_reads(_pid, i) }
#endif
#if FLIGHTS
#define may(x) ((unseen[3 * _pid + x] && at(_pid, x) < FLIGHTS) << x)
  /* The answer to an earlier batch shows that the clock was set. */
  :: atomic { pick(open && !ph && p > 0 && !won, may(0) | may(1) | may(2));
    unseen[3 * _pid + i] = 0; noticed[3 * _pid + i] = (at(_pid, i) == 1);
    printf("client %d sees that the clock of node %d was set\n", _pid + 1, i + 1) }
#endif

  /* A node carries out a command, or with MULTI all of them. */
  :: atomic { pick(open && p > 0, (at(_pid, 0) % DONE > 0) | (at(_pid, 1) % DONE > 0) << 1 | (at(_pid, 2) % DONE > 0) << 2);
    reached();
    command();
#if MULTI
    do
    :: at(_pid, i) != DONE && op(at(_pid, i)) != 0 -> command()
    :: else -> break
    od;
#endif
    if
    :: at(_pid, i) != DONE && op(at(_pid, i)) == 0 ->  /* that was the last, and all is well */
      at(_pid, i) = DONE;
      count = still(i); settled(_pid, i);
      if
      :: printf("           the answer of node %d is lost\n", i + 1); since[i] = 0; weak = weak & ~bit(i)
      :: !ph && !won && count ->
        printf("           node %d counts for client %d\n", i + 1, _pid + 1);
        cnt = cnt | bit(i) & ~weak; soft = soft | bit(i) & weak; weak = weak & ~bit(i); judge()
      fi
    :: else
    fi }

#if NO_RESEND
  /* A batch is sent again. */
  :: atomic { pick(open && p > 0 && !ph && !won && again > 0 && !quorum(cnt), (at(_pid, 0) > LEFT) | (at(_pid, 1) > LEFT) << 1 | (at(_pid, 2) > LEFT) << 2);
    again--;
    printf("client %d: the batch for node %d is sent again\n", _pid + 1, i + 1);
    at(_pid, i) = 1; bad[_pid] = bad[_pid] & ~bit(i);
    cnt = cnt & ~bit(i)
#if !MERGED
    ; since[i] = 0
#endif
    }
#endif

  /* The script attempt. */
  :: atomic { pick(open && turn && ph && !fin, acq);
    only((owner[i] == v && (NUMBERS == 0 || C[i] > 0) || owner[i] != v && free(i)) && !waited(i));
    reached();
    if
    :: owner[i] == v                        /* already mine */
    :: free(i) && owner[i] != v ->
#if NUMBERS
      select (x : low .. high); x = x * TICK;
      x = most(C[i] + 1, x);
      C[i] = x;
#else
      C[i] = 1;
#endif
      owner[i] = v
    fi;
    acq = acq & ~bit(i);
    x = C[i];
    printf("client %d: node %d grants %d\n", _pid + 1, i + 1, x);
    if
    :: printf("           its reply is lost\n")
    :: t == 0 && !won && votes(i) -> n[i] = x; since[i] = 1 + top; decide()
    fi }

  :: atomic { pick(open && !won && !fin, rai);
    only(raisable(i));
    C[i] = t;
    printf("client %d: node %d says yes to %d\n", _pid + 1, i + 1, t);
    rai = rai & ~bit(i);
    if
    :: printf("           its reply is lost\n")
    :: yes = yes | bit(i); first = least(first, 1 + top); complete()
    fi }

  /* With EXCLUSION an attempt is over: the lock is released, given up, or its validity has ended. */
#if EXCLUSION
  :: atomic { !ph && p > 0 && !fin ->
    over[_pid] = 1; holders = holders - won; won = 0;
    printf("client %d: the optimistic attempt is over\n", _pid + 1);
    leave();
    if :: _pid < AGAIN -> acq = 7 :: else -> fin = 1 fi }
  :: atomic { ph && !fin ->
    over[_pid + CLIENTS] = 1; holders = holders - won; fin = 1; won = 0;
    printf("client %d is over\n", _pid + 1);
#if QUEUES
    if :: waits -> queue = 0 :: else fi;
#endif
    rai = 0; yes = 0; first = 0; t = 1; n[0] = 0; n[1] = 0; n[2] = 0; since[0] = 0; since[1] = 0; since[2] = 0;
    if
    :: !NUMBERS -> acq = 0;
      for (x : 0 .. 2) {
        if :: owner[x] == v -> owner[x] = 0 :: else fi;
        if :: had[x] == v -> had[x] = 0 :: else fi }
    :: else -> acq = 0
    fi }
#endif

#if QUEUES
  /* The waiter is refused, and enters the queue. */
  :: atomic { pick(waits && ph && !fin && !won, acq & ~queue);
    only(owner[i] && owner[i] != v);
    queue = queue | bit(i);
    printf("client %d waits at node %d\n", _pid + 1, i + 1) }
#endif
  od
}

#if EVENTS
inline noted(sees) {
  for (c : 0 .. CLIENTS - 1) {
    if
    :: at(c, i) > 0 && at(c, i) <= sees -> bad[c] = bad[c] | bit(i); skip_reads(c, i)
    :: else
    fi
  }
}
inline forgets() {
#if NUMBERS
  back[i] = least(now + WAIT, END + 1)
#else
#if FLIGHTS
  for (c : 0 .. CLIENTS - 1) { noticed[3 * c + i] = noticed[3 * c + i] && !votes(i) }
#endif
  if :: owner[i] && votes(i) && !ended(i) -> had[i] = owner[i] :: else fi
#endif
}
active proctype trouble() {
  byte troubles = TROUBLES;
end:
  do
  :: atomic { pick(open && troubles > 0 && touched > 0, 7);
    only(owner[i] || NUMBERS && C[i]);      /* else it has nothing to lose */
    troubles = troubles - (troubles < 9);
    if
#if LOSS
    :: printf("node %d loses its data\n", i + 1);
      forgets(); owner[i] = 0; C[i] = 0; noted(seesM)
#endif
#if RESTART
    :: printf("node %d is another process, with older data\n", i + 1);
      forgets();
      if :: owner[i] = 0 :: skip fi;
#if NUMBERS
      if :: C[i] = 0 :: C[i] = C[i] - (C[i] % TICK) :: skip fi;
#endif
      noted(seesP)
#endif
#if STEP
    :: printf("the clock of node %d is set\n", i + 1);
      forgets(); owner[i] = 0; noted(seesT)
#if FLIGHTS
      for (c : 0 .. CLIENTS - 1) {
        unseen[3 * c + i] = (c >= begun || at(c, i) <= where(Time) && !(bad[c] & bit(i)))
      }
#endif
#endif
    fi }
#if CLOCK
  :: atomic { open && now < END -> now++;
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
  :: atomic { pick(open && others > 0, 7);
    others--;
    select (x : low .. high); x = x * TICK;
    C[i] = most(C[i] + 1, x);
    touched = most(touched, i + 1);
    printf("node %d grants %d to another name\n", i + 1, C[i]) }
  od
}
#endif
