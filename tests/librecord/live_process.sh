#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Processes and threads that begin and end, before, while and after a recorder attaches.
# shellcheck source=_live.sh
. "$(dirname "$0")/_live.sh"

# samples_of NAME PATTERN: samples whose stack matches
samples_of() {
    awk -v p="$2" '$0 ~ p { n += $NF } END { print n + 0 }' "$1.folded"
}

# ---- launched ----

# R9: a child without exec has its parent's mappings.
record fork -- "$workload" fork 300
fold fork
check fork fork
[ "$(field fork processes)" = 2 ] || failed "fork: $(field fork processes) processes"
"$BIN/spoolcat" --threads --json fork.spool >fork.threads
[ "$(jq -s '[.[] | select(.name == "workload" and .samples > 200) | .pid] | unique | length' fork.threads)" = 2 ] ||
    failed "fork: $(cat fork.threads)"

record forkless --no-inherit -- "$workload" fork 300
fold forkless
check forkless ""
[ "$(samples_of forkless child_main)" = 0 ] || failed "a child is there with --no-inherit"
at_least "$(samples_of forkless parent_b)" 200 || failed "the parent is missing with --no-inherit"
record threads --no-inherit -- "$workload" threads 200
fold threads
check threads threads
"$BIN/spoolcat" --threads --json threads.spool >threads.threads
for n in 0 1 2 3; do
    at_least "$(jq -s "[.[] | select(.name == \"ladder-$n\") | .samples] | add // 0" threads.threads)" 100 ||
        failed "threads: ladder-$n: $(cat threads.threads)"
done

record chain -- sh -c "'$workload' ladder 300; exec '$workload' ladder2 300"
fold chain
check chain "" -v other='^(sh|dash|bash|busybox)'
at_least "$(samples_of chain 'run_ladder;')" 200 || failed "chain: the first program is missing"
at_least "$(samples_of chain 'run_ladder2;')" 200 || failed "chain: the second program is missing"
"$BIN/spool2folded" --quiet --root=pid chain.spool >chain.pid
awk '/run_ladder/ && !/^workload-[0-9]+;/ { print; bad = 1 } END { exit bad }' chain.pid >chain.names ||
    failed "chain: another process name: $(head -n 3 chain.names)"

status=0
"$spoolrecord" --force --summary=none -o status.spool -- sh -c 'exit 3' 2>status.err || status=$?
[ $status = 3 ] || failed "a command's exit status 3 becomes $status"

# ---- attached ----

start one ladder 400
record_attached one -p "$(cat one.pid)"
open one
finish one
fold one
check one ladder
at_least "$(count one samples)" 200 || failed "one: $(count one samples) samples"

start first ladder 300
start second ladder2 300
record_attached two -p "$(cat first.pid),$(cat second.pid)"
open first
open second
finish two
fold two
check two ""
at_least "$(samples_of two 'run_ladder;')" 200 || failed "two: the first is missing"
at_least "$(samples_of two 'run_ladder2;')" 200 || failed "two: the second is missing"

# R7: 200 threads that run in bursts: each has its share. Where the recorder does not get the processor in time, with so many
# others waiting for it, that is told, and still nobody is missing.
start burst burst 48 200
record_attached burst -p "$(cat burst.pid)"
open burst
finish burst
fold burst
check burst ""
"$BIN/spoolcat" --threads --json burst.spool | jq -r '[.name, .tid, .samples] | join(" ")' >burst.threads
awk -v hz=$hz -v lost="$(field burst lost_events)" '
    FILENAME ~ /threads$/ { samples[$1 " " $2] = $3; next }
    $1 == "thread" {
        want = $4 * hz / 1000
        have = samples[$2 " " $3] + 0
        off = have > want ? have - want : want - have
        total += have
        wanted += want
        seen++
        if ($4 > 30 && have == 0)
            print $2 ": no samples in " $4 " ms"
        else if (lost == 0 && off > 0.2 * want && off > 4 * sqrt(want)) # of 200, one may be 3 off
            print $2 ": " have " samples in " $4 " ms"
    }
    END {
        if (seen != 200)
            print seen " threads"
        if (total + lost < 0.85 * wanted || total > 1.05 * wanted)
            print total " samples and " lost " lost records, expected " wanted
        printf "burst: %d samples, %d lost, %d expected\n", total, lost, wanted >"/dev/stderr"
    }' burst.threads burst.report >burst.missing
[ ! -s burst.missing ] || failed "burst: $(head -n 5 burst.missing)"

# Descendants that are there already.
rm -f d.gate
sh -c "'$workload' --ready d1.pid --gate d.gate ladder 300 & '$workload' --ready d2.pid --gate d.gate ladder2 300 & wait" &
shell=$!
started+=("$shell")
wait_until 10 test -s d1.pid -a -s d2.pid || failed "descendants: they do not begin"
record_attached family --descendants -p $shell
touch d.gate
finish family
fold family
check family "" -v other='^(sh|dash|bash|busybox|libc|ld-)'
at_least "$(samples_of family 'run_ladder;')" 200 || failed "descendants: the first is missing"
at_least "$(samples_of family 'run_ladder2;')" 200 || failed "descendants: the second is missing"

# state PID: R, S, T, ...
state() {
    sed 's/.*) \(.\).*/\1/' "/proc/$1/stat"
}
is_stopped() {
    [ "$(state "$1")" = T ]
}
start stopped ladder 200
pid=$(cat stopped.pid)
kill -STOP "$pid"
wait_until 5 is_stopped "$pid" || failed "it does not stop"
record stopped -d 0.3 -p "$pid"
is_stopped "$pid" || failed "a stopped process was resumed: it is in state $(state "$pid")"
kill -CONT "$pid"
open stopped
start running ladder 300
record running -d 0.2 -p "$(cat running.pid)"
! is_stopped "$(cat running.pid)" || failed "a running process was left stopped"
open running

# Threads of the kernel are not waited for: no signal stops them.
if [ "$(cat /proc/2/comm)" = kthreadd ] && [ "$(id -u)" = 0 ]; then
    begun=$SECONDS
    record kernel -d 0.2 --descendants -p 2
    ((SECONDS - begun <= 5)) || failed "kernel threads take $((SECONDS - begun)) s"
    [ "$(grep -c 'process 2 is a kernel thread: ' kernel.err)" = 1 ] || failed "kernel threads: $(cat kernel.err)"
    ! grep -q 'cannot be stopped' kernel.err || failed "kernel threads: $(cat kernel.err)"
else
    left_out "kernel threads: not seen here, or not for this user"
fi

# A process that ends while it is attached to: recorded, or no longer there, and said in one line.
for n in $(seq 20); do
    "$workload" ladder $((n % 5)) &
    pid=$!
    status=0
    timeout 20 "$spoolrecord" --force --summary=none -o dying.spool -p $pid 2>dying.err </dev/null || status=$?
    case $status in
    0) ;;
    125) [ "$(wc -l <dying.err)" = 1 ] || failed "dying: $(cat dying.err)" ;;
    *) failed "dying: exit status $status: $(cat dying.err)" ;;
    esac
    wait "$pid" || failed "dying: the process itself ended with status $?"
done

exit $bad
