/*
 * What an optimistic attempt leaves at a node, for spin. README.md says how to run it.
 *
 * Nodes do not know of each other, and an attempt is released at each of them by itself: so this is
 * one node, and one attempt that is released, won or not. The batch and the release go to the node
 * in this order over one connection. The client may give the connection up. It then releases over
 * another one, while what was written to the first may still be carried out, from where the node
 * was, at any time, or never; and it releases once more, some time later. An answer may be lost.
 *
 * Set by -D: CUT, the connection may be given up; KILL, and the node closes it before the release is
 * carried out (CLIENT KILL); TTL, the key ends at last. And names of rules, each of which takes the
 * rule out: BEHIND, the release may overtake the batch; ALL_SENT, only a node that is known to count
 * is released; NO_TTL, the key is set without a TTL.
 */
#define DONE 3
bit key;                                    /* the node has it */
byte pc;                                    /* the next command: 0 SET, 1 and on: the others */
byte releases;                              /* that are to be carried out */
bit cut, over, heard;                       /* given up; all is sent; the node counts, as the client knows */

active proctype node() {
end:
  do
  :: d_step { pc != DONE ->                 /* the next command of the batch */
    printf("the node carries out command %d\n", pc + 1);
    key = key || pc == 0;
    pc = (pc == 2 -> DONE : pc + 1) }
#if BEHIND
  :: d_step { releases > 0 ->
#else
  :: d_step { releases > 0 && (pc == DONE || cut) ->
#endif
    printf("the node carries out a release\n");
    releases--; key = 0;
#if KILL
    pc = DONE
#endif
    }
#if TTL && !NO_TTL
  :: d_step { over && key -> printf("the key ends\n"); key = 0 }
#endif
  od
}

active proctype client() {
  if :: pc == DONE -> heard = 1 :: skip fi; /* the answer was heard, or not */
#if CUT
  if :: printf("the connection is given up\n"); cut = 1 :: skip fi;
#endif
#if ALL_SENT
  releases = heard;
#else
  releases = 1;
#endif
#if CUT
  if :: cut -> (releases == 0); if :: printf("one more release\n"); releases = 1 :: skip fi :: else fi;
#endif
  over = 1
}

/* When nothing is left to happen, nothing is left. */
active proctype judge() {
  (over && timeout);
  assert(!key)
}
