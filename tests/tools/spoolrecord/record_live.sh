#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The tool over librecord and a kernel: what it records is what ran.
. "$(dirname "$0")/_common.sh"
command -v jq >/dev/null || { echo "no jq in PATH" && exit 77; }

cat >burn.c <<'END'
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
volatile unsigned long sink;
__attribute__((noinline)) static void leaf(double seconds)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    do {
        for (int i = 0; i < 100000; i++)
            sink += (unsigned long)i * 7;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    } while ((double)(now.tv_sec - begin.tv_sec) + (double)(now.tv_nsec - begin.tv_nsec) / 1e9 < seconds);
}
__attribute__((noinline)) static void middle(double seconds)
{
    leaf(seconds);
    sink++;
}
int main(int argc, char **argv)
{
    middle(argc > 1 ? atof(argv[1]) : 1);
    sink++;
    return argc > 2 ? atoi(argv[2]) : 0;
}
END
"$CC" -O1 -g -o burn burn.c
need_perf

# A command: its status, a spool that is whole, samples at the rate that was asked for, stacks to the root.
run 5 "$spoolrecord" -q --summary=json -F 500 ./burn 0.6 5
jq -r 'keys_unsorted | join(" ")' err >keys
equal keys "sample_events samples lost_events lifecycle_gaps kernel_enabled event frequency_hz missing_pid missing_tid \
idle_tid missing_timestamp empty_stack truncated_stacks ignored_user_callchain throttled errors bytes duration_ns \
processes threads mode"
jq -e '.samples > 240 and .samples < 360 and .lost_events == 0 and .frequency_hz == 500 and .processes == 1 and
    .threads == 1 and .duration_ns > 540000000' err >/dev/null || die "$(cat err)"
[ "$(jq .bytes err)" = "$(stat -c %s profile.spool)" ] || die "$(jq .bytes err) bytes, not $(stat -c %s profile.spool)"
"$BIN/spoolcat" --records --strict profile.spool >records || die "the spool is not whole"
"$BIN/spool2folded" --root=none profile.spool >folded
total() { awk '{ n += $NF } END { print n + 0 }' "$@"; }
grep -E '(^|;)main;middle;leaf' folded >through
(($(total through) * 100 >= $(total folded) * 95)) || die "$(total through) of $(total folded) stacks are right"
[ "$("$BIN/spoolcat" --summary --json profile.spool | jq .samples)" = "$(jq .samples err)" ] || die "samples differ"

# Children, and a pipe.
run 0 sh -c '"$0" -q -o - sh -c "./burn 0.3 & ./burn 0.3; wait" | "$1" --root=pid >by-pid' "$spoolrecord" "$BIN/spool2folded"
[ "$(grep -o 'burn-[0-9]*' by-pid | sort -u | wc -l)" = 2 ] || die "$(cat by-pid)"
run 0 "$spoolrecord" -q --force --no-inherit sh -c './burn 0.3; :'
"$BIN/spool2folded" profile.spool >folded
hasnt folded 'leaf'

# Processes that run already; --duration; what does not exist.
./burn 100 &
target=$!
trap 'kill $target' EXIT
run 0 "$spoolrecord" --force -p $target -d 0.5
has err 'profile\.spool: [0-9]+ samples in 0\.[5-9]'
"$BIN/spool2folded" profile.spool >folded
has folded 'burn;.*main;middle;leaf'
[ "$(sed 's/.*) //; s/ .*//' /proc/$target/stat)" = R ] || die "the process was not resumed"
run 125 "$spoolrecord" -o none.spool -p 2147483647
equal err 'spoolrecord: process 2147483647 does not exist'
gone none.spool
./burn 0.8 &
run 0 "$spoolrecord" -q --force -p $!

# What cannot be run; limits.
run 127 "$spoolrecord" -o none.spool no-such-command-here
equal err 'spoolrecord: no-such-command-here: No such file or directory'
touch not-executable
run 126 "$spoolrecord" -o none.spool ./not-executable
run 125 "$spoolrecord" -o none.spool -F 100000000 true
has err "$(cat /proc/sys/kernel/perf_event_max_sample_rate)"
gone none.spool
run 0 "$spoolrecord" --force --stack-size 64K true
has err '65528'
run 0 "$spoolrecord" -q --force -F max --stack-size 512 --format=4 --plain --start-time 17 --event=cpu-clock true
"$BIN/spoolcat" --json profile.spool | head -1 >header
jq -e '.version == 4 and .start_us == 17' header >/dev/null || die "$(cat header)"
run 0 "$spoolrecord" -q --force --interval 5000 ./burn 0.1
"$BIN/spoolcat" --json profile.spool | head -1 >header
jq -e '.version == 3 and .interval_us == 5000' header >/dev/null || die "$(cat header)"

# A signal finishes the spool; the command goes on. A full disk and a closed pipe end the recording alone.
in_foreground "$spoolrecord" --force sh -c './burn 1.2; exit 6' 2>err
sleep 0.6
kill -TERM $pid
status=0
wait $pid || status=$?
[ $status = 6 ] || die "status $status: $(cat err)"
"$BIN/spoolcat" --summary --strict profile.spool >summary || die "the spool is not whole"
run 125 "$spoolrecord" -q -o /dev/full sh -c './burn 0.2; touch went-on'
equal err 'spoolrecord: /dev/full: write failed: No space left on device'
[ -e went-on ] || die "the command was not waited for"
