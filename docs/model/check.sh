#!/usr/bin/env bash
# check.sh searches all states of lock.pml, plain.pml, left.pml, late.pml, break.pml, members.pml, bound.pml,
# chain.pml, told.pml, wait.pml and ends.pml:
# once for each promise, which must hold, and once for each rule taken out, which must be found to break a promise.
#
#   check.sh             all of it
#   check.sh quick       the rules whose search is short, and the promises with fewer messages
#   check.sh show RULE   the shortest way in which it goes wrong without that rule
#
# It needs spin and a C compiler, and 2 GB of memory (show AGE and PROCESS_ZADD: more). Seconds are
# the processor's. A quick run searches on up to four processors at a time: most of its time goes to the compiler.
set -euo pipefail

models=$(cd "$(dirname "$0")" && pwd) model=lock.pml
mode=${1:-all} shown=${2:-} found=0 failed=0
case $mode in
all | quick) [ $# -le 1 ] ;;
show) [ $# -eq 2 ] ;;
*) false ;;
esac || { sed -n 's/^#   //p' "$0" >&2; exit 2; }

# What a model is searched for: assertions that fail; or, in a model of what happens at some time, a run without an end
# in which that does not happen, though each process goes on at some time if it can (weak fairness).
safety='-DSAFETY' liveness='-DNFAIR=3' finds=$safety

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cp "$models"/*.pml .
TIMEFORMAT=%U

atonce=1
[ "$mode" != quick ] || atonce=$(getconf _NPROCESSORS_ONLN)
[ "$atonce" -le 4 ] || atonce=4 # for the memory
started=0 reported=0

# begin SEARCH ARGS... runs a search, each in a directory of its own if there are several at a time.
begin() {
	if [ "$atonce" = 1 ]; then
		"$@"
		return
	fi
	while [ "$(jobs -pr | wc -l)" -ge "$atonce" ]; do
		sleep 0.05
	done
	report
	started=$((started + 1))
	mkdir $started
	cp "$model" $started
	(
		cd $started
		trap 'echo $? >status' EXIT
		"$@" >said 2>&1
		exit $failed
	) &
}

# report prints what those have said that have ended, in the order in which they were begun.
report() {
	while [ -s $((reported + 1))/status ]; do
		reported=$((reported + 1))
		cat $reported/said
		[ "$(cat $reported/status)" = 0 ] || failed=1
	done
}

# build OPTIMIZE FLAGS... makes the search: pan. Partial order reduction is off. All
# steps look at the nodes, so it would save no state, and nothing depends on it.
build() {
	local optimize=$1
	shift
	rm -f pan* ./*.trail
	spin -a "$@" "$model" >spin.out || { cat spin.out; exit 1; }
	# shellcheck disable=SC2086 # two flags in one word
	${CC:-cc} $optimize -w $finds -DNOREDUCE -DMEMLIM=3500 -o pan pan.c
}

# search WORDS OPTIONS... prints the first part of a line and fills pan.out.
search() {
	local fair=
	[ "$finds" = "$safety" ] || fair='-a -f'
	printf '%-60s ' "$1"
	shift
	# shellcheck disable=SC2086 # two flags in one word, or none
	{ time timeout 900 nice ./pan $fair -m100000 "$@" >pan.out 2>&1 || echo 'error: pan failed, or took too long' >>pan.out; } 2>seconds
}

# say VERDICT prints the rest of it. A verdict in capitals is not what it must be.
say() {
	printf '%-24s %9s states %6.1f s\n' "$1" "$(sed -n 's/ states, stored.*//p' pan.out)" "$(tail -n 1 seconds)"
	case $1 in
	[A-Z]*)
		sed 's/^/    /' pan.out
		failed=1
		;;
	esac
}

# holds MODE WORDS FLAGS... is a promise. It holds if nothing was found and nothing
# was left out.
holds() {
	local when=$1 words=$2
	shift 2
	case $mode-$when in
	quick-quick | quick-both) begin promise "$words" -O1 "$@" ;;
	all-all | all-both) begin promise "$words" -O2 "$@" ;;
	esac
}

# promise WORDS OPTIMIZE FLAGS... searches for what holds names.
promise() {
	local words=$1
	shift
	build "$@"
	search "$words" -w24
	if grep -qE 'assertion violated|acceptance cycle' pan.out; then
		say VIOLATED
	elif grep -qiE '^error|not completed|too small|resource|out of memory|MEMLIM' pan.out || ! grep -q 'errors: 0$' pan.out; then
		say 'NOT SEARCHED TO THE END'
	else
		say holds
	fi
}

# without RULE ASSERTION WORDS FLAGS... takes a rule out. What it is there for must
# be what fails.
without() {
	local rule=$1 assertion=$2 words=$3
	shift 3
	if [ "$mode" = show ]; then
		[ "$rule" = "$shown" ] || return 0
		found=1
		build '-O1 -DREACH' "$@"
		if [ "$finds" = "$safety" ]; then
			nice ./pan -i -m10000 >pan.out 2>&1
		else
			nice ./pan -a -f -m10000 >pan.out 2>&1
		fi
		echo "$words"
		spin "$@" -t "$model" | sed '/^spin:/,$d; /^ltl /d; /^Never claim /d'
		return 0
	fi
	begin violation "$assertion" "$words" "$@"
}

# slow SEARCH ARGS... is a search that takes longer than its compilation. A quick run leaves it out.
slow() { [ "$mode" = quick ] || "$@"; }

# violation ASSERTION WORDS FLAGS... searches for what without names.
violation() {
	local assertion=$1 words=$2
	shift 2
	build -O0 "$@"
	search "$words" -w20
	if grep -E 'assertion violated|acceptance cycle' pan.out | grep -qF "$assertion"; then
		say 'violated, as it must be'
	else
		say 'NOT FOUND TO BE VIOLATED'
	fi
}

holds all   'fences: 2 attempts, 2 requests come twice'            -DDUPS=2
holds quick 'fences: 2 attempts, 1 request comes twice'            -DDUPS=1 -DHIGHEST=2
holds all   'fences: 3 attempts'                                   -DATTEMPTS=3 -DHIGHEST=2
holds both  'fences, all nodes are asked to raise: 1 comes twice'  -DRAISE_ALL -DDUPS=1 -DHIGHEST=2
holds all   'fences, nodes forget: 1 request comes twice'          -DFORGETS -DSPREAD=0 -DDUPS=1
holds all   'fences, nodes forget, and grant in quarantine'        -DFORGETS -DGRANTS
holds quick 'fences, nodes forget, and grant in quarantine'        -DFORGETS -DGRANTS -DSPREAD=0
holds all   'fences in the order of completion: 1 comes twice'     -DEXCLUSION -DBY_END -DDUPS=1
holds quick 'fences in the order of completion'                    -DEXCLUSION -DBY_END
holds all   'extension: 1 request comes twice'                     -DEXTEND -DDUPS=1 -DHIGHEST=2
holds quick 'extension'                                            -DEXTEND -DHIGHEST=2
holds both  'exclusion, nodes forget: 3 attempts, 1 comes twice'   -DEXCLUSION -DEXTEND -DFORGETS -DATTEMPTS=3 -DDUPS=1
holds all   'exclusion, clocks step: 3 attempts'                   -DEXCLUSION -DEXTEND -DJUMPS -DATTEMPTS=3
holds quick 'exclusion, clocks step: 2 attempts, 1 comes twice'    -DEXCLUSION -DEXTEND -DJUMPS -DDUPS=1

holds all   'fences, another name in the bucket: 1 comes twice'    -DNEIGHBOUR=2 -DDUPS=1 -DHIGHEST=2
holds quick 'fences, another name in the bucket'                   -DNEIGHBOUR=2 -DHIGHEST=2
holds all   'fences, another name in the bucket, nodes forget'     -DNEIGHBOUR=1 -DFORGETS -DSPREAD=0
holds all   'fences, the table is lost, and no key: 1 comes twice' -DDROPS -DFORGETS -DSPREAD=0 -DDUPS=1

without NOT_STORED       't!=fence' 'fences: the largest number is not stored'            -DNOT_STORED
without RAISE_ABOVE      't!=fence' 'fences: raise says yes above the fence'              -DRAISE_ABOVE -DDUPS=1 -DHIGHEST=2
without ONE_TOKEN        't!=fence' 'fences: one token for all attempts of a client'      -DONE_TOKEN
without ONE_TOKEN        'holders'  'exclusion: one token for all attempts of a client'   -DONE_TOKEN -DEXCLUSION -DATTEMPTS=3
without NO_QUARANTINE    't!=fence' 'fences: a node forgets and votes at once'            -DNO_QUARANTINE -DFORGETS -DTROUBLES=1
without NO_QUARANTINE    'holders'  'exclusion: a node forgets and votes at once'         -DNO_QUARANTINE -DFORGETS -DTROUBLES=1 -DEXCLUSION
slow without SHORT_QUARANTINE 't!=fence' 'fences: quarantine no longer than the clamp is wide' -DQUARANTINE=1 -DFORGETS -DTROUBLES=1
without NO_CLAMP         't!=fence' 'fences: a node forgets, nothing is clamped'          -DNO_CLAMP -DFORGETS -DTROUBLES=1 -DSPREAD=0
without NO_DETECTION     'holders'  'exclusion: a clock steps unnoticed'                   -DNO_DETECTION -DJUMPS -DTROUBLES=1 -DEXCLUSION
without RAISE_ALL        't!=fence' 'fences: a node in quarantine is asked to raise'      -DRAISE_ALL -DGRANTS -DFORGETS -DTROUBLES=1 -DSPREAD=0
without VOUCHES          'holders'  'exclusion: a node in quarantine is asked to extend'  -DVOUCHES -DGRANTS -DFORGETS -DTROUBLES=1 -DEXCLUSION -DEXTEND
without NO_WITNESS       'first<=t' 'extension: a key that was gone counts'               -DNO_WITNESS -DEXTEND
without MINE_PROVES      'first<=t' 'extension: a key that is there proves itself'        -DMINE_PROVES -DEXTEND

without OVERWRITES       't!=fence' 'fences: a bucket has the last number of any name'     -DOVERWRITES -DNEIGHBOUR=1 -DHIGHEST=2
without RAISE_LOST       't!=fence' 'fences: raised where the counter is lost'             -DRAISE_LOST -DDROPS -DFORGETS -DSPREAD=0 -DDUPS=1
slow without MINE_LOST        't>first' 'fences: a key that is mine, and no counter'           -DMINE_LOST -DDROPS -DFORGETS -DSPREAD=0 -DDUPS=1

# What is not promised, lest it be believed.
without BY_END           't>top'    'keys end early: fences in the order of completion'   -DBY_END
slow without FORGETFUL        'first<=t' 'keys end early, a node forgets: extension'           -DEXTEND -DFORGETS -DTROUBLES=1 -DSPREAD=0
without GRANTS           't!=fence' 'a copy outlasts a quarantine in which nodes grant'   -DGRANTS -DFORGETS -DTROUBLES=1 -DSPREAD=0 -DDUPS=1

# The optimistic acquire of plain commands.
model=plain.pml
nodes='-DEXCLUSION -DLOSS -DSTEP -DRESTART'
once='-DTROUBLES=1'
holds both  'plain: fences'                                        -DHIGHEST=2
holds both  'plain: fences, in MULTI'                              -DMULTI
holds both  'plain: fences in the order of completion'             -DEXCLUSION -DBY_END
holds all   'plain: fences, then the script, in MULTI'             -DAGAIN=1 -DMULTI
holds all   'plain: fences, a node loses its data'                 -DLOSS $once
holds all   'plain: fences, a node is another process'             -DRESTART $once -DAGES=0
holds all   'plain: fences, another name in the bucket'            -DNEIGHBOUR=1
holds quick 'plain: fences, another name in the bucket'            -DNEIGHBOUR=1 -DHIGHEST=1
holds all   'plain: fences, then the script'                       -DAGAIN=1 -DHIGHEST=1
holds all   'plain: fences, a batch is sent again'                 -DNO_RESEND
holds quick 'plain: fences, a node loses its data, in MULTI'       -DLOSS $once -DAGES=0 -DMULTI
holds all   'plain: fences, raised to what is above the counter'   -DRAISE_STRICT
holds all   'plain: exclusion, whatever happens to nodes'          $nodes
holds all   'plain: exclusion, then the script'                    $nodes -DAGAIN=1
holds both  'plain: exclusion, in MULTI'                           $nodes -DMULTI
holds both  'plain: exclusion, several in flight, in MULTI'        $nodes -DMULTI -DFLIGHTS=2
holds all   'plain: exclusion, several in flight'                  -DEXCLUSION -DSTEP -DFLIGHTS=2
holds both  'plain: the queue, 3 clients'                          -DQUEUES -DEXCLUSION -DCLIENTS=3

# Clauses that are not needed for it.
holds all   'plain: validity in force: k may be anything'          -DSTILL_MINE -DEXCLUSION -DBY_END
holds all   'plain: exclusion: k may be anything'                  -DSTILL_MINE $nodes
holds all   'plain: fences, in MULTI: k may be anything'           -DSTILL_MINE -DMULTI
holds all   'plain: EXISTS queue comes first'                      -DQUEUE_ORDER -DQUEUES -DEXCLUSION -DCLIENTS=3
holds all   'plain: exclusion: SCRIPT EXISTS right behind SET'     $nodes -DORDER1=1 -DORDER2=6 -DORDER3=3 -DORDER4=5
holds both  'plain: one batch in flight: the vote at its leaving'  -DAFTER -DEXCLUSION -DSTEP -DMULTI -DFLIGHTS=1

without ADVANCED      't!=fence'    'plain: ZADD says 0'                                 -DADVANCED
slow without STILL_MINE    't!=fence'    'plain: the key may be of another'                   -DSTILL_MINE
slow without ZADD_FIRST    't!=fence'    'plain: MGET before ZADD'                            -DZADD_FIRST
without SET_FIRST     't>'          'plain: ZADD before SET'                             -DSET_FIRST
without NO_RAISE      't!=fence'    'plain: raised, as after a grant'                    -DNO_RAISE
without NEW_TOKEN     't!=fence'    'plain, fences: the script has the same token'       -DNEW_TOKEN -DAGAIN=1
without NEW_TOKEN     'holders'     'plain, exclusion: the script has the same token'    -DNEW_TOKEN -DAGAIN=1 $nodes $once
slow without NO_RESEND     't>'          'plain: sent again, two answers are put together'    -DNO_RESEND -DMERGED
without MARKER        'holders'     'plain, exclusion: any marker'                       -DMARKER $nodes $once
without MARKER        't!=fence'    'plain, fences: any marker'                          -DMARKER -DLOSS $once -DAGES=0
without MARKER_ORDER  'holders'     'plain, exclusion: the marker before SET'            -DMARKER_ORDER $nodes $once
without MARKER_ORDER  't!=fence'    'plain, fences: the marker before SET'               -DMARKER_ORDER -DLOSS $once -DAGES=0
without TIME          'holders'     'plain: any TIME'                                    -DTIME $nodes $once
without TIME_ORDER    'holders'     'plain: TIME before SET'                             -DTIME_ORDER $nodes $once
without PROCESS       'holders'     'plain, exclusion: any process'                      -DPROCESS $nodes $once
slow without PROCESS       't!=fence'    'plain, fences: any process'                         -DPROCESS -DRESTART $once -DAGES=0
without PROCESS_ORDER 'holders'     'plain, exclusion: SCRIPT EXISTS before SET'         -DPROCESS_ORDER $nodes $once
slow without PROCESS_ORDER 't!=fence'    'plain, fences: SCRIPT EXISTS before SET'            -DPROCESS_ORDER -DRESTART $once -DAGES=0
slow without PROCESS_ZADD  't!=fence'    'plain, fences: SCRIPT EXISTS before ZADD'           -DRESTART $once -DAGES=0 -DORDER1=1 -DORDER2=6 -DORDER3=2 -DORDER4=3
without QUARANTINE    'holders'     'plain, exclusion: the vote is not looked at'        -DQUARANTINE $nodes $once
without QUARANTINE    't!=fence'    'plain, fences: the vote is not looked at'           -DQUARANTINE -DLOSS $once -DAGES=0
without AFTER         'holders'     'plain: the vote when the answer comes'   -DAFTER -DFLIGHTS=2 -DEXCLUSION -DSTEP $once
slow without AGE           't!=fence'    'plain: the proposal may be old'                     -DAGE -DLOSS $once -DAGES=0
without QUEUE         'queue==0'    'plain: the queue is not looked at (order alone)'    -DQUEUE -DQUEUES -DEXCLUSION -DCLIENTS=3

# What an attempt leaves at a node.
model=left.pml
holds both  'left: nothing'
holds both  'left: nothing for longer than a TTL, connections end' -DCUT -DTTL
holds both  'left: nothing, if the node closes the connection'     -DCUT -DKILL
without BEHIND        '!(key)'      'left: the release overtakes the batch'              -DBEHIND
without ALL_SENT      '!(key)'      'left: only nodes that count are released'           -DALL_SENT
without NO_TTL        '!(key)'      'left: the key has no TTL'                           -DCUT -DTTL -DNO_TTL
without CUT           '!(key)'      'left: something, but for a TTL (not promised)'      -DCUT

# A key that is set late.
model=late.pml
holds both  'late: exclusion'
holds both  'late: exclusion, detached'                            -DDETACH
holds both  'late: exclusion, the connection is given up'          -DCUT -DMOST=2
holds all   'late: exclusion, it is given up, 3 extensions'        -DCUT
holds both  'late: exclusion, it is given up, detached'            -DCUT -DDETACH -DMOST=2
holds all   'late: exclusion, it is given up, detached, 3'         -DCUT -DDETACH
without MARK          '!((((got&(got-1))'    'late: the key counts for extensions'                -DMARK
without KEEP          '!((((got&(got-1))'    'late: a lock that was detached has it dropped'      -DKEEP -DDETACH
without HANDLE        '!((((got&(got-1))'    'late: the handle does not say that it will go'      -DHANDLE -DDETACH
without HAUNTED       '!((((got&(got-1))'    'late: it counts again, and a release is under way'   -DHAUNTED -DCUT -DMOST=2

# A lock that is broken.
model=break.pml
holds all   'break: no extension'
holds all   'break: no extension, four nodes'                     -DNODES=4 -DEXTENSIONS=2
holds all   'break: no extension, and nodes lose their data'      -DLOSES
holds both  'break: the next fence is larger'                      -DFENCE -DHIGHEST=3
without NOTE          'i<=told'     'break: a node that has the note confirms'           -DNOTE
without QUORUM        'i<=told'     'break: one node with the note is enough'            -DQUORUM
without AGAIN         'i<=told'     'break: nobody looks whether the note is there'      -DAGAIN -DLOSES
without REFILLED      'i<=told'     'break: a node that is refilled counts at once'      -DREFILLED -DLOSES
slow without ONE           'i<=told'     'break: it counts if one other node has confirmed'  -DONE -DNODES=4 -DEXTENSIONS=2 -DLOSES
without COUNTERS      'fenceB>fence' 'break: the counter is deleted, too'                -DCOUNTERS -DFENCE
without STORED        'fenceB>fence' 'break: the fence is not stored'                    -DSTORED -DFENCE

# What is not promised, lest it be believed.
without LATE          'i<=told'     'break: an acquire comes to a node that was emptied' -DLATE -DLOSES
without GRANTED       'fenceB>fence' 'break: granted by a quorum, and not complete'      -DGRANTED -DFENCE -DHIGHEST=3

# A change of members.
model=members.pml
chosen='!((known&(1<<2)))'
holds both  'members: exclusion'
holds all   'members: exclusion, extension'                        -DEXTEND
holds both  'members: one description is chosen'                   -DCHOICE
holds both  'members: chosen, and one of three loses its data'     -DCHOICE -DTHREE -DLOSES=1
holds all   'members: chosen, and one of four loses its data'      -DCHOICE -DLOSES=1
holds both  'members: chosen, a third one keeps something else'    -DCHOICE -DTHREE -DLOSES=1 -DWRONG
holds all   'members: chosen, a fourth one keeps something else'   -DCHOICE -DLOSES=1 -DWRONG
without BY_ONE        'holders'     'members: two nodes change at once'                  -DBY_ONE
slow without WAIT          'holders'     'members: the next change at once'                   -DWAIT
without ONE_ONLY      'holders'     'members: two descriptions with one epoch'           -DONE_ONLY
without EPOCH         'holders'     'members: any description counts'                    -DEPOCH
slow without EXTEND_EPOCH  'holders'     'members: any description counts for an extension'   -DEXTEND_EPOCH -DEXTEND
without BACK          'holders'     'members: a node takes an older description'         -DBACK
without MAJORITY      "$chosen"     'members: chosen by two of four'                     -DMAJORITY -DCHOICE
without PROMISE       "$chosen"     'members: chosen without a promise'                  -DPROMISE -DCHOICE
without ADOPT         "$chosen"     'members: what was taken is not adopted'             -DADOPT -DCHOICE
without FORGOTTEN     "$chosen"     'members: one that has forgotten counts at once'     -DFORGOTTEN -DCHOICE -DTHREE -DLOSES=1
without UNANIMOUS     "$chosen"     'members: it counts when all have answered'          -DUNANIMOUS -DCHOICE -DTHREE -DLOSES=1
without DENIED        "$chosen"     'members: what one keeps counts, though denied'      -DDENIED -DCHOICE -DTHREE -DLOSES=1 -DWRONG

# Which description a client goes by.
model=chain.pml
kept='!((((((1<=last)'
holds all   'chain: nothing that was not chosen'
holds both  'chain: one description is kept by a quorum'           -DCOUNTED
holds both  'chain: a client that wakes finds the last one'        -DFOUND

# Rules that are not needed for it: who chooses the next one keeps this one.
holds both  'chain: kept by a quorum: the next change at once'     -DFOLLOWED -DCOUNTED
holds both  'chain: kept by a quorum: any later one counts'        -DCOUNTS_LATER -DCOUNTED

without ONE_WORD      'known<=last' 'chain: one node is enough'                          -DONE_WORD
without ANY_PAST      'known<=last' 'chain: a later one vouches for any earlier one'     -DANY_PAST
without BY_ONE        "$kept"       'chain: two members change at once'                  -DBY_ONE -DCOUNTED
without CHOSEN_BY     "$kept"       'chain: one member chooses the next one'             -DCHOSEN_BY -DCOUNTED
without SAME          'known==last' 'chain: a node vouches only for what it keeps'       -DSAME -DFOUND
without LAST_ONLY     'known==last' 'chain: the witnesses stay the same'                 -DLAST_ONLY -DFOUND

# What is not promised, lest it be believed.
without ROLLBACK      "$kept"       'chain: a member goes back to an earlier one'        -DROLLBACK -DCOUNTED

# The longest TTL of a set.
model=bound.pml
holds both  'bound: longer, a node loses its data twice'           -DLOSSES=2
holds both  'bound: shorter'                                       -DDOWN

without BY_ALL        'won[0]'      'bound: longer, when a majority keeps the second'    -DBY_ALL
slow without STEP          'won[0]'      'bound: longer, in one step'                         -DSTEP
slow without STEP          'won[0]'      'bound: shorter, in one step'                        -DSTEP -DDOWN
without OTHER         'won[0]'      'bound: longer, quarantines go by the shorter one'   -DOTHER
slow without OTHER         'won[0]'      'bound: shorter, quarantines go by the shorter one'  -DOTHER -DDOWN
slow without WAIT          'won[0]'      'bound: shorter, the locks of before may be held'    -DWAIT -DDOWN
slow without CHECK         'won[0]'      'bound: nobody looks how long a lock lives'          -DCHECK

# What is not promised, lest it be believed.
without TWICE         'won[0]'      'bound: shorter, a node loses its data twice'        -DDOWN -DLOSSES=2

# A member that is told a description again.
model=told.pml
holds all   'told: exclusion, quorums meet: 3 losses'
holds quick 'told: exclusion, quorums meet: 2 losses'              -DLOSSES=2
holds both  'told: exclusion, they need not meet: 3 losses'        -DWIDE

without QUARANTINE_TOLD 'holders'   'told: a node that is told again votes at once'      -DQUARANTINE_TOLD
without SINCE         'holders'     'told: what members have shown may be from before'   -DSINCE -DWIDE -DLOSSES=0
without MAJORITY      'holders'     'told: since all others kept it or none'             -DMAJORITY -DWIDE -DLOSSES=0

# Waiting: the waiter is served.
model=wait.pml finds=$liveness cycle='acceptance cycle'
holds all   'wait: the waiter is served'
holds all   'wait: the waiter is served, a node is down'           -DDOWN
holds both  'wait: the waiter is served, others try'               -DDOWN -DTRY
without QUEUE         "$cycle"      'wait: a client that tries goes before the waiters'  -DQUEUE -DDOWN -DTRY
without TICKET        "$cycle"      'wait: a waiter has a new ticket for each attempt'   -DTICKET -DDOWN
without LEASE         "$cycle"      'wait: a dead waiter keeps its place'                -DLEASE -DDOWN
without TTL           "$cycle"      'wait: the key of a dead holder does not end'        -DTTL -DDOWN
without GIVE_BACK     "$cycle"      'wait: without a quorum, the keys stay'              -DGIVE_BACK -DDOWN
without HEARTBEAT     "$cycle"      'wait: nobody tries again without a call'            -DHEARTBEAT -DDOWN

# A change of members: it ends.
model=ends.pml
holds both  'ends: a change ends, a member is down'                -DDOWN
holds all   'ends: a change ends'
without PAUSE         "$cycle"      'ends: operators do not pause'                       -DPAUSE -DDOWN
without ADOPT         "$cycle"      'ends: what was taken is not adopted'                -DADOPT -DDOWN
without KEPT          "$cycle"      'ends: one that keeps the next one does not count'   -DKEPT -DDOWN

wait
report
if [ $reported != $started ]; then
	echo "check.sh: $((started - reported)) searches have not ended" >&2
	failed=1
fi
if [ "$mode" != show ]; then
	echo "$SECONDS s by the clock"
elif [ $found = 0 ]; then
	echo "check.sh: no rule has the name $shown" >&2
	exit 2
fi
exit $failed
