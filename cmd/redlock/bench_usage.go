package main

const usageBench = `redlock bench measures what locks cost on your Redis servers, from the machine where
it runs, to choose a TTL, a NodeTimeout, and how many nodes, and which.

Usage:
    redlock bench [flags]

    --node URL     a Redis server, as for redlock run: see redlock help run.
                   Default: the environment's REDLOCK_NODES
    --nodes FILE   the same from a file, or REDLOCK_NODES_FILE
    --embedded     five nodes inside this process, which show what it does, and no
                   more: they are slower than any Redis
    --ttl D        what redlock run is given on these nodes. Default 10s
    --timeout D    how long to wait for new nodes, which have no vote at first (see
                   redlock help prepare); 0s asks only once. Default: for as long as
                   it takes.
    --callers N    how many lock at once: a number, or several for a line each.
                   Default 1,16,128, and 1,4,16 with --embedded
    --for D        how long each measurement takes, besides a tenth of that before it
                   to warm up. Default 2s, least 100ms
    --key KEY      what the names of all locks begin with. Default redlock:bench: and
                   something random, so that nobody else's locks are touched
    --json         one JSON object, and no tables; durations are in milliseconds

    D is a duration like 500ms, 30s or 1m30s.

It measures, one after the other:
    each node      how long it takes to answer, while one lock after the other is taken
                   and released, and all nodes are waited for; how often its answer was
                   among those that made the majority; and what was no answer, or a no.
    many callers   cycles of lock and unlock a second, each caller with a name of his
                   own, as callers of one Locker, and how long a cycle takes.
    one lock       how it changes hands among 8 clients (3 with --embedded)
                   that wait for it again and again, as so many processes would, and
                   hold it for no time; and how long each waits for his turn.
All of it by the library as your programs use it, so what this machine and its network
take is in the figures. Servers that others use are slower meanwhile, for them, too.

When it ends it holds no lock. What stays is a counter for each name, of about 130
bytes, for 25 hours (docs/operations.md): 129 of them with the default. The queue of
those who waited last may stay for a minute.

SIGINT and SIGTERM end it early, with what has been measured so far.

Exit status:
    0    it was measured
    64   the command line cannot be used
    69   there was no quorum, or none during a whole measurement: look at the nodes
    73   the result cannot be written
    128+N  signal N ended it

Example: one of three nodes is farther away:
    $ export REDLOCK_NODES="redis://a:6379 redis://b:6379 redis://c:6379"
    $ redlock bench --callers 1,16
    3 nodes, and a quorum is 2; TTL 10s, so NodeTimeout is 500ms
    the names of all locks begin with redlock:bench:63ab0f23
    4 measurements of 2s, with a warm-up each: about 8.8s

    from asking a node until it has answered, one lock at a time

    node       p50     p99  longest  in majority  failed
    a:6379  0.23ms  2.97ms   5.14ms        100 %  -
    b:6379  0.22ms  1.97ms   5.08ms        100 %  -
    c:6379  2.67ms  6.00ms   9.47ms          1 %  -

    lock and unlock, each caller a lock of his own

    callers  a second     p50     p99  longest  failed
          1     2,758  0.27ms  2.74ms   9.14ms  -
         16     5,993  2.38ms  9.11ms   16.4ms  -

    one lock that 8 clients wait for again and again

                                           a second     p50     p99  longest    mean
    from a release to the next who has it       486  1.47ms  8.85ms   21.3ms  2.05ms
    from asking for it to having it                  13.8ms  52.2ms   87.0ms  15.9ms
    the longest wait is 5.5 times the mean

    what it means

    - A lock waits twice, to acquire and to release, for the slowest node of the fastest
      majority: a:6379, 2.97ms at p99. If the fastest node fails, that is c:6379, 6.00ms.
    - NodeTimeout 500ms leaves room: it is 83 times the 6.00ms of c:6379.
    - By these figures a TTL of 100ms or more will do: 10s is enough. Its NodeTimeout
      leaves room, and a renewal that takes as long as the longest cycle or hand-over
      above, 21.3ms, comes in time. They do not say for how long your processes may stand
      still, which is the better reason for a long one.
    - One name serves at most 486 holders a second, who hold it for no time at all. What
      each holds it for comes on top of 1.47ms: where that is too few, have more names.
`
