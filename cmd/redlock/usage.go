package main

const usage = `redlock runs a command while holding a lock over several Redis servers.

Usage:
    redlock run --key KEY [flags] -- CMD [ARG ...]
    redlock demo
    redlock version
    redlock help [run]

    run      waits for the lock KEY, runs CMD while it holds it, releases it
    demo     shows on five nodes inside this process how a lock changes hands
             while nodes fail; takes some seconds and needs nothing installed
    version  shows the version
    help     shows this text, or the one on run with its flags and exit codes

Example, for which no Redis is needed:
    $ redlock run --key demo -- sh -c 'echo "holding $REDLOCK_KEY"'
    holding demo
`

const usageRun = `redlock run waits for a lock, runs a command while it holds it, and releases it.

Usage:
    redlock run --key KEY [flags] -- CMD [ARG ...]

    --key KEY      the lock's name, and the key that it has on the nodes
    --node URL     a Redis server: redis://[user:password@]host:port[/db],
                   rediss://... for TLS, or unix:///path/to/socket; several are
                   separated by commas or spaces, and --node may be repeated.
                   A majority must answer, so give 3 or 5 independent servers.
                   Default: the environment's REDLOCK_NODES. Without either,
                   five nodes are started inside this process, to try things
                   out: such a lock excludes nobody else.
    --ttl D        how long the nodes keep the lock if this process dies; it is
                   renewed while CMD runs. Default 10s, least 100ms. Everybody
                   who uses the same nodes should give the same.
    --timeout D    how long to wait for the lock; 0s asks only once.
                   Default: for as long as it takes.

    D is a duration like 500ms, 30s or 1m30s.

CMD gets stdin, stdout and stderr, and in its environment REDLOCK_KEY and
REDLOCK_TOKEN: the lock's name, and the value that its key has on the nodes.

SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are passed on to CMD; one
that comes before CMD has started ends the waiting, and leaves nothing behind.
If the lock is lost while CMD runs, CMD gets a SIGTERM, and one second later a
SIGKILL: others may have the lock from then on.

Exit status:
    that of CMD; 128+N if signal N ended it, or ended the waiting
    64   the command line cannot be used
    69   too few nodes gave a usable answer until --timeout: look at the nodes
    75   others had the lock until --timeout: try again later
    79   the lock was lost before CMD ended, whatever CMD's own status was
    126  CMD cannot be executed
    127  CMD was not found
What is wrong is said on stderr, in lines that begin with "redlock: ".

Example: machines with this in their crontab do the backup one at a time; one
whose turn has not come within a minute leaves it to the next night:
    $ export REDLOCK_NODES="redis://a:6379 redis://b:6379 redis://c:6379"
    $ redlock run --key backup --timeout 1m -- /usr/local/bin/backup --full
`
