#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Recordings that end badly: the recorder is killed, the disk full, the pipe closed. What was recorded until then can be read.
# shellcheck source=_live.sh
. "$(dirname "$0")/_live.sh"

# ---- killed at any moment ----

# killed N SECONDS: kills a recorder that time after it began to write, the first four after they were started; of its spool no
# more than the last 1.5 seconds may be missing, of which the recorder takes one between two writes
killed() {
    local name=killed-$1 after=$2 program
    "$spoolrecord" --force --summary=none -o "$name.spool" -- "$workload" --ready "$name.pid" ladder 4000 2>"$name.err" </dev/null &
    recorder=$!
    [ "$1" -le 4 ] || wait_until 30 test -s "$name.spool"
    sleep "$after"
    kill -KILL "$recorder"
    wait "$recorder" 2>/dev/null
    wait_until 1 test -s "$name.pid" && program=$(cat "$name.pid") && kill -KILL "$program"
    if [ ! -s "$name.spool" ]; then
        [ "$1" -le 4 ] || failed "$name: nothing is written after $after s"
        return
    fi
    fold "$name"
    check "$name" ""
    "$BIN/spoolcat" --summary --json "$name.spool" |
        jq -r '[.samples, (.span_ns // 0) / 1e9] | join(" ")' >"$name.span"
    awk -v after="$after" '{ exit !(after <= 1.5 || $2 >= after - 1.5) }' "$name.span" ||
        failed "$name: killed after $after s, samples and seconds: $(cat "$name.span")"
}

kills=8
moments=$(awk -v kills=$kills 'BEGIN { srand(); for (i = 1; i <= kills; i++) printf "%d %.3f\n", i, i <= 4 ? rand() * 0.3 : 0.6 + rand() * 1.8 }')
echo "$moments" | while read -r n after; do
    if [ $((n % 4)) = 1 ]; then wait; fi
    (
        bad=0
        trap - EXIT
        killed "$n" "$after"
        exit $bad
    ) >"killed-$n.log" 2>&1 || touch "killed-$n.failed" &
    [ "$n" != $kills ] || wait
done
cat killed-*.log
! ls killed-*.failed >/dev/null 2>&1 || bad=1

# ---- a full disk ----

# one_line NAME: one message of what is wrong, and no other than that the command is waited for
one_line() {
    [ "$(grep -vc 'waiting for the command' "$1.err")" = 1 ] || failed "$1: messages: $(cat "$1.err")"
}

status=0
"$spoolrecord" --force --summary=none -o /dev/full -- "$workload" --report full.report threads 300 2>full.err || status=$?
[ $status = 125 ] || failed "full: exit status $status"
one_line full
grep -q 'No space left' full.err || failed "full: $(cat full.err)"
[ -s full.report ] || failed "full: the command did not run to its end"

mkdir disk
if mount -t tmpfs -o size=64k tmpfs disk 2>/dev/null; then
    # All but the first 4 KiB of it are taken.
    dd if=/dev/zero of=disk/taken bs=4096 count=15 status=none
    status=0
    "$spoolrecord" --force --summary=none -o disk/full.spool -- "$workload" --report disk.report threads 700 2>disk.err || status=$?
    cp disk/full.spool .
    umount disk
    [ $status = 125 ] || failed "disk: exit status $status with $(stat -c %s full.spool) bytes"
    one_line disk
    [ -s disk.report ] || failed "disk: the command did not run to its end"
    mv full.spool disk.spool
    fold disk
    check disk ""
else
    left_out "a full disk: nothing can be mounted here"
fi

# ---- a closed pipe ----

(
    "$spoolrecord" --summary=none -o - -- "$workload" --report pipe.report threads 700 2>pipe.err
    echo $? >pipe.status
) | head -c 1000 >pipe.spool
[ "$(cat pipe.status)" = 125 ] || failed "pipe: exit status $(cat pipe.status)"
one_line pipe
[ -s pipe.report ] || failed "pipe: the command did not run to its end"
"$BIN/spoolcat" --quiet --records pipe.spool >/dev/null || failed "pipe: the first 1000 bytes cannot be read"

# ---- a consumer that reads along ----

"$spoolrecord" --summary=none -o - -- "$workload" ladder 2500 2>along.err | cat >along.spool &
started+=($!)
previous=0 last=$(date +%s%N) longest=0
while [ -n "$(jobs -r)" ]; do
    size=$(stat -c %s along.spool 2>/dev/null || echo 0)
    now=$(date +%s%N)
    if [ "$size" != "$previous" ]; then
        [ $((now - last)) -le $longest ] || longest=$((now - last))
        previous=$size last=$now
        "$BIN/spoolcat" --summary --json along.spool 2>/dev/null >>along.summaries
    fi
    sleep 0.05
done
# A second, and what a busy machine adds.
[ $longest -le 1900000000 ] || failed "along: nothing was written for $((longest / 1000000)) ms"
[ "$(jq -s 'map(.samples) | unique | length' along.summaries)" -ge 3 ] ||
    failed "along: samples came all at once: $(jq -sc 'map(.samples)' along.summaries)"
[ "$(jq -s 'map(select(.cut_tail)) | length' along.summaries)" = 0 ] || failed "along: it was flushed inside a record"
mv along.spool whole.spool
fold whole
check whole ladder

# An interrupted recorder finishes its spool; the command goes on.
"$spoolrecord" --force --summary=json -o interrupted.spool -- "$workload" --report interrupted.report ladder 900 2>interrupted.all &
recorder=$!
started+=("$recorder")
sleep 0.5
kill -INT "$recorder"
finish interrupted
[ -s interrupted.report ] || failed "interrupted: the command did not run to its end"
fold interrupted
check interrupted ladder
at_least 700 "$(count interrupted samples)" || failed "interrupted: sampling went on"

exit $bad
