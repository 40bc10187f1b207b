#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every stack of every mode is one that can be, whole, and there are as many as the processor time says.
# shellcheck source=_live.sh
. "$(dirname "$0")/_live.sh"

samples=0 truncated=0 user=0 system=0 switches=0

# mode NAME MS: one whose stacks fit
mode() {
    local name=$1
    rm -f "$name.report"
    record "$name" -- "$workload" --report "$name.report" "$name" "$2"
    fold "$name"
    check "$name" "$name"
    samples=$((samples + $(count "$name" samples)))
    truncated=$((truncated + $(count "$name" truncated)))
    read -r user system switches < <(tail -n 1 "$name.report" |
        awk -v u="$user" -v s="$system" -v w="$switches" '{ print u + $3, s + $4, w + $5 }')
    [ "$(field "$name" lost_events)" = 0 ] || failed "$name: $(field "$name" lost_events) records are lost"
    [ "$(count "$name" samples)" = "$(field "$name" samples)" ] ||
        failed "$name: the summary says $(field "$name" samples) samples, there are $(count "$name" samples)"
    [ "$(count "$name" truncated)" = "$(field "$name" truncated_stacks)" ] ||
        failed "$name: the summary says $(field "$name" truncated_stacks) truncated stacks, there are $(count "$name" truncated)"
}

# R1: longjmp, noreturn, signal. R11: signal. R12: mremap. R13: dlopen, reload.
for name in ladder recursion deep realigned longjmp noreturn signal fork exec dlopen mremap memfd; do
    mode $name 300
done
mode plt 2000 # some processors are seldom seen in a stub: one sample in 300
mode threads 200
mode reload 500
mode storm 60

at_least $((truncated * -1000)) $((samples * -5)) || failed "$truncated of $samples stacks are truncated"
# Samples that hit the kernel are left out. How it tells user time from system time is an estimate, their sum is not. A sample
# that falls due around a context switch is taken in the scheduler, so in the kernel: measured, a tenth of one for each switch,
# with perf as well. That counts on a busy machine only.
awk -v n=$samples -v u="$user" -v s="$system" -v w="$switches" -v hz=$hz 'BEGIN {
    printf "%d samples, %.3f s of user time and %.3f s of system time at %d Hz, %d context switches\n", n, u, s, hz, w
    exit !(n >= 0.98 * u * hz - w / 10 && n <= 1.02 * (u + s) * hz)
}' || failed "these are not within 2 %"

# R5: stacks that do not fit: the marker, and the reason in the summary.
record deeper -- "$workload" deeper 300
fold deeper
check deeper deeper
at_least "$(field deeper errors.depth_limit)" 250 || failed "deeper: $(field deeper errors.depth_limit) stacks met the depth limit"
record big -- "$workload" big 300
fold big
check big big
at_least "$(field big errors.stack_truncated)" 250 || failed "big: $(field big errors.stack_truncated) stacks met the end of the copy"
record big-64k --stack-size 64K -- "$workload" big 300
fold big-64k
check big-64k big-64k
grep -q 65528 big-64k.err || failed "the clamped stack size is not told: $(cat big-64k.err)"

# A program whose files are deleted while it runs: names come from a file of the same build id, put there afterwards.
mkdir gone kept
cp "$workload" "$BUILD"/tests/workload_plugin_*.so gone
cp gone/* kept
"$spoolrecord" --force --summary=json -o gone.spool -- gone/workload --ready gone.pid --gate gone.gate ladder 300 2>gone.all &
recorder=$!
started+=("$recorder")
wait_until 10 test -s gone.pid || failed "gone: it does not begin"
rm -r gone
touch gone.gate
finish gone
mv kept gone
fold gone
check gone ladder

# A program in memory has no names at all, but all its frames.
record memory -- "$workload" memfd-exec 300
fold memory
awk '{ n += $NF; if (gsub(/memfd:workload/, "") == 7 && !/truncated/) whole += $NF } END { exit !(n >= 200 && whole >= 0.9 * n) }' \
    memory.folded || failed "memory: $(head -n 3 memory.folded)"

exit $bad
