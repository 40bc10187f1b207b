#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Example programs on programs that run: stack_histogram of commands and processes, live_top on spoolrecord's pipe.
"$BUILD/tests/workload" probe || exit $?
. "$SRC/tests/examples/_examples.sh"
histogram=$examples/stack_histogram
workload=$BUILD/tests/workload

# check_sums: counts of all stacks add up to the samples; sets samples
check_sums() {
    read -r samples < <(sed -n '1s/^\([0-9]*\) samples of [0-9]* stacks, [0-9]* lost, [0-9]* truncated$/\1/p' out)
    [ "${samples:-0}" -gt 30 ] || failed "few samples: $(head -n 3 out)"
    awk -v samples="$samples" '/^ *[0-9]+ +[0-9.]+%  / { if ($1 > before && before) exit 1; before = $1; all += $1
            if ((d = $2 - 100 * $1 / samples) > 0.051 || d < -0.051) exit 1 }
        END { exit all != samples }' out || failed "counts or shares are wrong: $(head -n 20 out)"
}

# A command: its heaviest stack is the one where all its time goes.
run 0 "$histogram" -n 10000 "$workload" ladder 150
silent
check_sums
awk '/%  workload [0-9]+$/ { stack++; next } stack == 1 && NF' out | sed 's/^ *//; s/+0x.*//' | head -n 6 >heaviest
printf '%s\n' spin ladder_c ladder_b ladder_a run_ladder main | diff - heaviest || failed "another heaviest stack"

# Equal stacks of two processes are two entries.
# shellcheck disable=SC2016 # for the inner shell
run 0 "$histogram" -n 10000 sh -c '"$0" ladder 60 & "$0" ladder 60; wait' "$workload"
check_sums
[ "$(grep -oE '%  workload [0-9]+$' out | sort -u | wc -l)" = 2 ] || failed "not two processes: $(grep % out)"
run 0 "$histogram" -n 1 "$workload" ladder 60
[ "$(grep -c '%  ' out)" = 1 ] || failed "not one stack: $(grep % out)"

# A process that runs, with more mappings than the pipe between the two libraries holds; it outlives the recording.
if command -v python3 >/dev/null; then
    python3 - many <<'END' &
import mmap, os
fd = os.open("many", os.O_RDWR | os.O_CREAT)
os.write(fd, b"\0" * 4096)
held = [mmap.mmap(fd, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC) for i in range(4000)]
open("ready", "w").close()
while True:
    pass
END
    pid=$!
    for ((i = 0; i < 500; i++)); do
        [ ! -e ready ] || break
        sleep 0.02
    done
    run 0 "$histogram" -n 10000 -p $pid -d 1
    silent
    check_sums
    ! grep -vqE "^\$|^        |%  python3[.0-9]* $pid\$|^$samples samples of" out || failed "not of that process: $(head out)"
    # An interrupt ends it, too.
    "$histogram" -n 1 -p $pid >out 2>err &
    recorder=$!
    sleep 0.4
    kill -INT $recorder
    wait $recorder || failed "exit status $? after an interrupt: $(<err)"
    grep -q '^[0-9]* samples of' out || failed "nothing after an interrupt: $(<out)"
    kill -KILL $pid || failed "it has ended with the recording"
    wait $pid 2>/dev/null
else
    echo "left out: no python3"
fi

run 1 "$histogram" ./nosuch
says "stack_histogram: ./nosuch: No such file or directory"
run 1 "$histogram" -p 2147483647
says "stack_histogram: recording: process 2147483647 does not exist"
run 2 "$histogram"
says "stack_histogram: usage: *"
run 2 "$histogram" -p 1 true
says "stack_histogram: usage: *"
run 2 "$histogram" -n 1x true
says "stack_histogram: 1x: not a number from 1 to 2147483647"
closed "$histogram" "$workload" ladder 60
status=0
"$histogram" "$workload" ladder 60 <&- >&- 2>err || status=$?
[ $status = 1 ] && [[ $(<err) == *"writing: Bad file descriptor"* ]] || failed "exit status $status without standard output: $(<err)"

# The other way round: another process records.
"$BIN/spoolrecord" --quiet -o - -- "$workload" ladder 1100 2>record.err | tee copy.spool | run 0 "$examples/live_top"
silent
samples=$("$BIN/spoolcat" --summary --json copy.spool | grep -oE '"samples":[0-9]+' | head -n 1)
[ "$(sed -n 's/^the end: \([0-9]*\) samples.*/"samples":\1/p' out)" = "${samples:-none}" ] ||
    failed "the spool has $samples: $(<out)"
grep -qE '^[0-9]+ samples' out || failed "no screen before the end: $(<out)"
sed -n '/^the end/,$p' out | sed -n 3p | grep -qE '^ *(9[0-9]|100)\.[0-9]%  *(9[0-9]\.[0-9]|100.0)%  spin$' ||
    failed "spin is not on top: $(<out)"
exit $bad
