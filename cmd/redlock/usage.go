package main

const usage = `redlock runs a command while holding a lock over several Redis servers.

Usage:
    redlock run --key KEY [flags] -- CMD [ARG ...]
    redlock elect --key KEY [flags] -- CMD [ARG ...]
    redlock lock --key KEY [flags]
    redlock extend|unlock LOCK [flags]
    redlock status|watch|wait KEY [flags]
    redlock doctor [flags]
    redlock prepare [flags]
    redlock bench [flags]
    redlock demo
    redlock chaos [flags]
    redlock completion bash|zsh|fish
    redlock version
    redlock help [COMMAND]

    run      waits for the lock KEY, runs CMD while it holds it, releases it
    elect    runs CMD wherever the lock KEY is, for ever: as the leader of many
    lock     waits for the lock KEY, and prints it, for scripts of several commands
    extend   gives LOCK, which lock has printed, its full time again
    unlock   releases it
    status   says who has the lock KEY and who waits for it, node by node
    watch    says it again whenever that has changed
    wait     waits until nobody has it
    doctor   examines Redis servers, and says what has to change
    prepare  has new Redis servers ready for locks, so that nobody has to wait
             for the first one
    bench    measures what locks cost on your Redis servers, from this machine
    demo     shows on five nodes inside this process how a lock changes hands
             while nodes fail; takes some seconds and needs nothing installed
    chaos    looks for a way to break the lock: runs thousands of schedules in
             which everything fails that can, and judges what came of it
    completion  prints what completes commands and flags: . <(redlock completion bash)
    version  shows the version
    help     shows this text, or the one on a command with its flags and exit codes

Example, for which no Redis is needed:
    $ redlock run --embedded --key demo -- sh -c 'echo "holding $REDLOCK_KEY"'
    holding demo
`

const usageRun = `redlock run waits for a lock, runs a command while it holds it, and releases it.

Usage:
    redlock run --key KEY [flags] -- CMD [ARG ...]

    --key KEY      the lock's name, and the key that it has on the nodes. Repeated:
                   all of them are locked, or none
    -s, --shared   with others who say so, too: readers, of whom there may be any
                   number as long as nobody has the lock alone
    --slots N      with N-1 others at most who say so, too. Not with --shared, or
                   several keys
    --separator S  keys are paths whose parts S separates, and a lock takes in what
                   lies below it: with / a lock on a/b excludes a and a/b/c, and
                   not a/c. Everybody who uses the same nodes should give the same.
    --node URL     a Redis server: redis://[user:password@]host:port[/db],
                   rediss://... for TLS, or unix:///path/to/socket; several are
                   separated by commas or spaces, and --node may be repeated.
                   A majority must answer, so give 3 or 5 independent servers.
                   Default: the environment's REDLOCK_NODES
    --nodes FILE   the same from a file, a URL on each line, # before comments: there
                   passwords are nobody else's to see. Or REDLOCK_NODES_FILE.
                   Certificates are checked as SSL_CERT_FILE and SSL_CERT_DIR say.
    --embedded     five nodes inside this process, and no Redis, to try things out:
                   such a lock excludes nobody else
    --ttl D        how long the nodes keep the lock if this process dies; it is
                   renewed while CMD runs. Default 10s, least 100ms
    --max-ttl D    the longest --ttl of anybody on these nodes: for so long a node has
                   no vote that is new or may have forgotten. Everybody must give the
                   same, as REDLOCK_MAX_TTL, say. Default: --ttl, which then everybody
                   has to give the same
    -w, --timeout D
                   how long to wait for the lock; 0s asks only once.
                   Default: for as long as it takes.
    -n, --nonblock the same as --timeout 0s
    -E, --conflict-exit-code N
                   what to exit with when others have the lock. Default 75
    --min-hold D   keeps the lock for so long, also when CMD ends before: a machine
                   whose clock is behind finds it taken when its own time comes
    --max-hold D   has CMD end before it has had the lock for longer
    --lost-signal S  what CMD gets when the lock ends before it does. Default TERM
    --lost-grace D   how long after that it gets a SIGKILL. Default 1s, or a quarter
                   of --ttl if that is less
    --shell        CMD is for sh -c: redlock run --key k --shell -- 'a | b'

    D is a duration like 500ms, 30s or 1m30s.

CMD gets stdin, stdout and stderr, and in its environment
    REDLOCK_KEY    the lock's name: of several, the first
    REDLOCK_TOKEN  the value that its key has on the nodes
    REDLOCK_FENCE  a number, larger than that of every earlier lock on KEY. If
                   CMD sends it along with what it writes, and the receiver
                   refuses smaller ones than it has seen, then a CMD that was
                   stopped for longer than its lock lasted can do no harm.
                   With --shared it is that of the last lock before that was not.
    REDLOCK_EXPIRES  until when the lock is valid if it is not renewed, in
                   milliseconds since 1970
    REDLOCK_QUORUM how many nodes must agree, of how many: 3/5

A node that is new, was restarted or has lost its data has no vote for as long as
a lock that it may have forgotten: --ttl and a little more, at least 2s. That is a
matter of seconds, and of one node as a rule; but with new nodes the first lock
ever has to wait for it. See redlock help prepare.

SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are passed on to CMD and all that
it has started, its process group; one that comes before CMD has started ends the
waiting, and leaves nothing behind. In a terminal Ctrl-C and Ctrl-Z do what they do
without redlock, in pipelines and scripts, too.

If the lock cannot be renewed, the group gets --lost-signal in time for SIGKILL to come
before others can have the lock. If the lock turns out to be gone, others may have it
during --lost-grace. If redlock itself is killed, or stopped for longer than the lock
lasts, a second process that it has started ends the group.

Exit status:
    that of CMD; 128+N if signal N ended it, or ended the waiting
    64   the command line cannot be used
    69   too few nodes gave a usable answer until --timeout, or would have had a
         vote by then: look at the nodes
    75   others had the lock until --timeout: try again later
    79   CMD was ended because the lock was, by --max-hold or the nodes, or the lock was
         lost before CMD ended; whatever CMD's own status was
    126  CMD cannot be executed
    127  CMD was not found
What is wrong is said on stderr, in lines that begin with "redlock: ".

Example: machines with this in their crontab do the backup one at a time; one
whose turn has not come within a minute leaves it to the next night:
    $ export REDLOCK_NODES="redis://a:6379 redis://b:6379 redis://c:6379"
    $ redlock run --key backup --timeout 1m -- /usr/local/bin/backup --full
`

const usageElect = `redlock elect stands for election: it waits for a lock, runs a command while it holds
it, and when the command has ended, or the lock, it begins again. Of all that stand for
the same key one runs its command at a time.

Usage:
    redlock elect --key KEY [flags] -- CMD [ARG ...]

It takes the flags of redlock run (see redlock help run), but for --timeout, --nonblock,
--conflict-exit-code, --min-hold, --max-hold, --shared and --slots.

When CMD ends by itself, whatever its status, the lock is given back, and whoever waits
for it is first; a second later this one waits again. If the lock cannot be renewed, CMD
gets --lost-signal in time to end before others can have the lock.

SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on to CMD, and end the election with it;
SIGUSR1 and SIGUSR2 are only passed on.

Exit status:
    that of CMD, when a signal has ended it; 128+N if signal N ended the waiting
    64, 69, 126, 127  as for redlock run

Example: three machines run this as a service; one of them is the scheduler:
    $ export REDLOCK_NODES="redis://a:6379 redis://b:6379 redis://c:6379"
    $ redlock elect --key scheduler --ttl 5s -- /usr/local/bin/scheduler
`

const usageLock = `redlock lock waits for a lock and prints it; redlock extend gives it its full time
again, and prints it anew; redlock unlock releases it. In between nobody renews it: it ends
after --ttl, whatever the script is doing. Where one command does the work, redlock run
is better: it renews, and ends the command before the lock ends.

Usage:
    redlock lock --key KEY [flags]
    redlock extend LOCK [flags]
    redlock unlock LOCK [flags]

    --node URL     a Redis server, as for redlock run: see redlock help run.
    --nodes FILE   Default: the environment's REDLOCK_NODES, or REDLOCK_NODES_FILE

and for lock, as for redlock run:
    --key KEY      the lock's name. Repeated: all of them are locked, or none
    -s, --shared   with others who say so, too
    --slots N      with N-1 others at most who say so, too
    --separator S  keys are paths, and a lock takes in what lies below it
    --ttl D        how long the lock lasts, from lock or the last extend on. Default 10s
    --max-ttl D    the longest --ttl of anybody on these nodes: for so long a node has
                   no vote that is new or may have forgotten, ten minutes with 10m.
                   Everybody must give the same, as REDLOCK_MAX_TTL, say
    -w, --timeout D
                   how long to wait for the lock; 0s asks only once.
                   Default: for as long as it takes.
    -n, --nonblock the same as --timeout 0s
    -E, --conflict-exit-code N
                   what to exit with when others have the lock. Default 75

LOCK is what lock or extend has printed, as one argument, or else from stdin: a line of
JSON, with the lock's name, token and fence, and until when it is valid. Whoever has it can
extend and release the lock.

Exit status:
    0    the lock is ours until what was printed says; unlock: it is released
    64   the command line cannot be used
    69   too few nodes gave a usable answer. extend, unlock: the lock is as it was
    73   the lock could not be printed, and was given back
    75   lock: others had it until --timeout
    79   extend, unlock: it was not ours any more; others may have had it
    128+N  signal N ended the waiting
What is wrong is said on stderr, in lines that begin with "redlock: ".

Example: a deployment in steps, each of which takes less than a minute; what it writes to
can refuse a smaller fence than it has seen:
    $ export REDLOCK_NODES="redis://a:6379 redis://b:6379 redis://c:6379" REDLOCK_MAX_TTL=1m
    $ lock=$(redlock lock --key deploy --ttl 1m) || exit
    $ ./build.sh
    $ lock=$(redlock extend "$lock") || exit
    $ ./publish.sh --fence "$(echo "$lock" | jq .fence)"
    $ redlock unlock "$lock"
`

const usageLook = `redlock status says who has a lock and who waits for it, node by node; redlock watch
says it again whenever that has changed; redlock wait waits until nobody has it.

Usage:
    redlock status KEY [flags]
    redlock watch KEY [flags]
    redlock wait KEY [flags]

    --node URL     a Redis server, as for redlock run: see redlock help run.
                   Default: the environment's REDLOCK_NODES
    --separator S  keys are paths, as for redlock run
    --json         status and watch: one JSON object, and no table; durations are in
                   milliseconds
    --every D      watch: how often the nodes are asked. Default 1s
    --timeout D    wait: for how long; 0s asks once. Default: for as long as it takes

A lock is free if a majority of the nodes could grant it, held if a majority has it for
one holder, split if neither, and unknown if too few nodes have answered, or have a vote.
To have waited is not to have the lock: somebody else may be faster. That is what redlock run is for.

Exit status:
    0    it has been said; wait: nobody has the lock
    64   the command line cannot be used
    69   too few nodes have answered to tell
    75   wait: somebody still had it when --timeout was over
    128+N  signal N ended it

Example: who is in the way?
    $ redlock status backup
    "backup": held by token 0f6a5d3e-61a7-4c3b-9d0e-6f1c7f4f2f10, fence 1795291247523619
    8.4s left unless renewed

    node    has                                   left   fence             waiting
    a:6379  0f6a5d3e-61a7-4c3b-9d0e-6f1c7f4f2f10  8.4s   1795291247523619  0
    b:6379  0f6a5d3e-61a7-4c3b-9d0e-6f1c7f4f2f10  8.4s   1795291247523619  0
    c:6379  -                                     -      -                 0        unreachable: connection refused
`

const usageDoctor = `redlock doctor examines the Redis servers of a lock, and says what has to change.

Usage:
    redlock doctor [flags]

    --node URL     a Redis server, as for redlock run: see redlock help run.
                   Default: the environment's REDLOCK_NODES
    --ttl D        what redlock run is given on these nodes. Default 10s
    --no-quarantine  clients have Options.Quarantine off, so that nothing keeps a node
                   from voting that has forgotten a lock: then nodes must not forget

    D is a duration like 500ms, 30s or 1m30s.

It asks whether they can be reached, are as many as make sense, do not depend on each
other (the same server twice, a replica, a node of a cluster, the same host), keep what
they are given (eviction, persistence), agree about the time, are fast enough for the
TTL, and are of a kind and version that is supported, whose scripts stay in one process;
and takes a lock on a key of its own, and releases it. It says what each of them is.

What has to change is marked with "!", what should be thought about with "?".

Exit status:
    0    nothing has to change
    1    something has to change
    64   the command line cannot be used

Example:
    $ redlock doctor --node redis://a:6379,redis://b:6379,redis://c:6379
    ! c:6379: its maxmemory-policy is allkeys-lru, so it may drop locks
      redis-cli -h c -p 6379 config set maxmemory-policy noeviction, and in its redis.conf
    a:6379, b:6379: nothing to say
    1 thing has to change
`

const usagePrepare = `redlock prepare has new Redis servers ready for locks, so that nobody has to wait
for the first one.

Usage:
    redlock prepare [flags]

    --node URL     a Redis server, as for redlock run: see redlock help run.
                   Default: the environment's REDLOCK_NODES
    --ttl D        what redlock run is given on these nodes. Default 10s
    --max-ttl D    the same, or REDLOCK_MAX_TTL
    --timeout D    how long to wait until all nodes vote; 0s asks only once.
                   Default: for as long as it takes.
    --no-wait      does not wait for votes, but only makes sure that the nodes'
                   time runs, and says when it is over
    --reset-fences ADDRESS
                   mends a node that was far ahead of the time once, and still
                   numbers locks as if it were (its grants are no votes): it is
                   new again, and when all nodes vote, its numbers of the future
                   are dropped. ADDRESS is host:port, as errors say it; its clock
                   must be right by then.

    D is a duration like 500ms, 30s or 1m30s.

A node that does not remember what it was may have forgotten a lock which is still
held. So it gets no vote until every such lock has ended: for --ttl and a little
more, 10.1s if nothing is said, and never less than 2s. New nodes are no exception,
since nodes that have all lost their data look just like them.

The time runs from when anybody connects to a node for the first time, and goes on
by itself. redlock prepare connects, and waits until all nodes vote. Run it when
nodes are deployed; where all vote already it ends at once. What it writes to each
node is one key, redlock:marker. After a restart the time runs anew, for that node:
so when servers are restarted on purpose, prepare after each one lets the next wait
for it. Where other programs have announced a longer TTL, the time is made of that.

Exit status:
    0    all nodes vote; with --no-wait: they will, without anything more
    64   the command line cannot be used
    69   there were nodes without a vote when --timeout was over, or nodes that
         --no-wait could not reach; it says which, and why
    128+N  signal N ended the waiting
What it waits for, and what is wrong, is said on stderr, in lines that begin with
"redlock: "; the result on stdout.

Example: the last step of a deployment, and what it prints:
    $ export REDLOCK_NODES="redis://a:6379 redis://b:6379 redis://c:6379"
    $ redlock prepare --timeout 1m
    redlock: 3 nodes have no vote for 10.1s: each is new, or has lost its data
    all 3 nodes vote
`

const usageChaos = `redlock chaos looks for a way to break the lock. It runs the library through
thousands of schedules in which nodes die, hang and forget, the network is cut and
slow, and clients are stopped and killed; and it judges what came of each: were two
locks on one name ever valid at once, was everybody told in time, is anything left?

Usage:
    redlock chaos [flags]

    --arena NAME     where: model (the library over model nodes, in virtual time:
                     hundreds of schedules a second), miniredis (with go-redis and
                     Lua, in virtual time as well), real (processes over
                     redis-server), or all, which leaves out what cannot be had
                     here. Several are separated by commas, or --arena is repeated.
                     Default: model,miniredis
    --scenario NAME  what goes wrong, in quotes or with hyphens for spaces; several
                     as above. Default: all that there are
    --schedules N    how many in each arena, shared by the scenarios, each of which
                     has one at least. Default: as many of 30,000 as can be had in
                     25s in model, of 100 in 15s in miniredis, of 40 in 2m in real
    --for D          ends after D, however much is done; the arenas share it.
                     Without --schedules it does not end before, either.
    --seed S         of the first schedule of each scenario; the others count up
                     from there. The same seed means the same schedules, and in
                     model the same history to the last event. Default: a fresh one
    --nodes N        how many nodes, 1 to 8. Default: each scenario has its own
    --ttl D          how long locks live. Default: each scenario has its own
    --report FILE    writes a page with the histories, to be opened in a browser
    --save DIR       writes each history that violates what it must not to DIR, as
                     ARENA-SCENARIO-SEED.jsonl, up to 100 of each scenario
    --history FILE   writes the history of the one schedule that is run
    --json           prints one JSON object, and no progress
    --list           shows the arenas and the scenarios

    D is a duration like 90s, 10m or 8h.

With one --arena, one --scenario and --schedules 1 it shows that schedule: what went
wrong, what came of it, and a digest of its history, to be compared by eye.

Some scenarios must fail: they break promises that cannot be kept, and the judge has
to notice. One that has not failed is "not shown", and a fault only if it has had two
thousand schedules in model, with the nodes and the TTL that it has itself.

SIGINT and SIGTERM end it early, with what has been found so far. GOGC is 400 while
it runs, unless the environment says otherwise.

Exit status:
    0    all promises were kept, but for those that cannot be
    1    there were violations, or what must fail did not, or nothing was run
    64   the command line cannot be used
    69   the arena cannot be had here: there is no redis-server
    73   a file cannot be written
    130  ended by SIGINT; 143 by SIGTERM

Examples: a first look; one schedule once more, with its history in a file; and a
night, of which every bad history is kept:
    $ redlock chaos --report chaos.html
    $ redlock chaos --arena model --scenario everything --seed 7 --schedules 1 --history 7.jsonl
    $ redlock chaos --arena all --for 8h --save bad
`
