#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Too little of something: stack bytes, locked memory, ring, descriptors, rights. It is recorded all the same where that is
# possible, and always told.
# shellcheck source=_live.sh
. "$(dirname "$0")/_live.sh"
user_folder

# told NAME PATTERN WHAT: whether a message of NAME says so
told() {
    grep -Eq "$2" "$1.err" || failed "$1: nothing about $3 in: $(cat "$1.err")"
}

# ---- R5: frames larger than the copy ----

record small --stack-size 8K -- "$workload" big 300
fold small
check small ""
at_least "$(field small errors.stack_truncated)" 250 || failed "small: $(field small errors.stack_truncated) of $(field small samples) stacks ended with the copy"
record small-text --stack-size 8K --summary=text -- "$workload" big 100
told small-text 'stack-size' "a larger stack size"

# ---- R6: locked memory ----

if [ "$paranoid" -le 2 ]; then
    # shellcheck disable=SC2016 # for the inner shell
    as_user bash -c 'ulimit -l 0; cd "$1" && shift && exec "$@"' - "$folder" ./spoolrecord --force --summary=json \
        --buffer 16M -o locked.spool -- ./workload ladder 300 2>locked.all || failed "locked: exit status $?: $(cat locked.all)"
    sort_messages locked
    cp "$folder/locked.spool" .
    fold locked
    check locked ladder
    told locked 'perf_event_mlock_kb' "kernel.perf_event_mlock_kb"
    told locked 'RLIMIT_MEMLOCK|ulimit -l' "RLIMIT_MEMLOCK"
else
    left_out "locked memory: kernel.perf_event_paranoid is $paranoid"
fi

# ---- R8: a ring that is not read ----

start tiny ladder 1000
record_attached lost --buffer 512K -p "$(cat tiny.pid)"
open tiny
sleep 0.2
kill -STOP "$recorder"
processor_ms() { awk '{ print ($14 + $15) * 10 }' "/proc/$1/stat" 2>/dev/null; }
enough=$(($(processor_ms "$(cat tiny.pid)") + 550))
[ "$enough" -le 900 ] || enough=900 # of the second that it takes
while [ "$(processor_ms "$(cat tiny.pid)")" -lt "$enough" ]; do sleep 0.05; done
kill -CONT "$recorder"
finish lost
fold lost
check lost ""
at_least "$(field lost lost_events)" 150 || failed "lost: $(field lost lost_events) records are lost by the summary"
in_spool=$("$BIN/spoolcat" --summary --json lost.spool | jq '.lost // 0')
[ "$in_spool" = "$(field lost lost_events)" ] || failed "lost: $in_spool by the spool, $(field lost lost_events) by the summary"
awk -v n="$(field lost samples)" -v l="$(field lost lost_events)" 'BEGIN { exit !(n + l > 930 && n + l < 1070) }' ||
    failed "lost: $(field lost samples) samples and $(field lost lost_events) lost ones are no second"

# ---- descriptors ----

# R10. limited NAME LIMIT OPTION...: attaches to 100 threads with so many descriptors, and expects all of them
limited() {
    local name=$1 limit=$2 lost
    local recorder_command=("$spoolrecord" --force --summary=json -o "$name.spool")
    shift 2
    start "$name" burst 30 100
    (
        ulimit "$limit" "$1" || exit
        exec "${recorder_command[@]}" -p "$(cat "$name.pid")" 2>"$name.all" </dev/null
    ) &
    recorder=$!
    started+=("$recorder")
    events_before=-1
    wait_until 10 events_open "$recorder" || failed "$name: no event is open: $(head -n 3 "$name.all")"
    open "$name"
    finish "$name"
    fold "$name"
    check "$name" ""
    "$BIN/spoolcat" --threads --json "$name.spool" | jq -r 'select(.samples > 0) | .name' | grep -c '^burst-' >"$name.seen"
    lost=$(field "$name" lost_events)
    # The shortest run for 5 ms: some of them may have gone without.
    [ "$lost" -gt 0 ] || at_least "$(cat "$name.seen")" 97 ||
        failed "$name: $(cat "$name.seen") of 100 threads have samples, mode $(field "$name" mode)"
    [ "$lost" = 0 ] || left_out "$name: whether all threads have samples: $lost records are lost on a machine as busy as this"
}

limited soft -Sn 64
[ "$(field soft mode)" = inherit ] || failed "the soft limit of descriptors was not raised: mode $(field soft mode)"
if [ "$(id -u)" = 0 ] || [ "$paranoid" -le 0 ]; then
    limited system-wide -n 64
    [ "$(field system-wide mode)" = system-wide ] || failed "64 descriptors: mode $(field system-wide mode)"
    told system-wide 'RLIMIT_NOFILE|ulimit -n' "the mode"
else
    left_out "system-wide sampling: it needs root or kernel.perf_event_paranoid 0"
fi

# Somebody who may not sample all programs: an event for each thread, or none at all and a message.
if [ "$paranoid" -gt 0 ] && [ "$paranoid" -le 2 ]; then
    # ulimited LIMIT OPTION...: attaches as a user
    ulimited() {
        # shellcheck disable=SC2016 # for the inner shell
        as_user bash -c 'ulimit -n "$1"; cd "$2" && shift 2 && exec ./spoolrecord "$@"' - "$1" "$folder" "${@:2}"
    }
    as_user "$user_workload" --ready "$folder/pid" --gate "$folder/gate" burst 60 60 &
    started+=($!)
    wait_until 10 test -s "$folder/pid" || die "the workload does not begin"
    status=0
    ulimited 20 --force --summary=none -o few.spool -p "$(cat "$folder/pid")" 2>few.err || status=$?
    [ $status = 125 ] || failed "60 threads with 20 descriptors: exit status $status"
    told few 'RLIMIT_NOFILE|ulimit -n' "descriptors"
    ulimited 100 --force --summary=json -o per-thread.spool -p "$(cat "$folder/pid")" 2>per-thread.all &
    recorder=$!
    sleep 1
    as_user touch "$folder/gate"
    finish per-thread
    cp "$folder/per-thread.spool" .
    fold per-thread
    check per-thread ""
    [ "$(field per-thread mode)" = per-thread ] || failed "100 descriptors: mode $(field per-thread mode)"
    told per-thread 'RLIMIT_NOFILE|ulimit -n' "the mode"
    at_least "$(field per-thread threads)" 57 || failed "per-thread: $(field per-thread threads) threads have samples"
else
    left_out "an event for each thread: kernel.perf_event_paranoid is $paranoid"
fi

# ---- rights ----

if [ "$(id -u)" = 0 ] && [ "$paranoid" -gt 0 ]; then
    start owned ladder 200
    status=0
    as_user "$user_record" --force --summary=none -o "$folder/owned.spool" -p "$(cat owned.pid)" 2>owned.err || status=$?
    [ $status = 125 ] || failed "recording another user's process: exit status $status"
    [ "$(wc -l <owned.err)" = 1 ] || failed "recording another user's process: $(cat owned.err)"
    told owned 'CAP_PERFMON|CAP_SYS_PTRACE' "the right that is missing"
    open owned
else
    left_out "another user's process: it needs root to have one"
fi

if [ "$paranoid" = 2 ]; then
    as_user "$user_record" --force --summary=json -k -o "$folder/kernel.spool" -- "$user_workload" ladder 300 2>kernel.all ||
        failed "kernel: exit status $?: $(cat kernel.all)"
    sort_messages kernel
    cp "$folder/kernel.spool" .
    fold kernel
    check kernel ladder
    [ "$(field kernel kernel_enabled)" = false ] || [ "$(field kernel kernel_enabled)" = 0 ] || failed "kernel: kernel_enabled is $(field kernel kernel_enabled)"
    told kernel 'perf_event_paranoid' "kernel.perf_event_paranoid"
else
    left_out "kernel frames refused: kernel.perf_event_paranoid is $paranoid"
fi
if [ "$(id -u)" = 0 ] || [ "$paranoid" -le 1 ]; then
    record privileged -k -- "$workload" storm 300
    [ "$(field privileged kernel_enabled)" = true ] || failed "kernel frames are not there for root"
    "$BIN/spool2folded" --quiet --kernel=only privileged.spool >privileged.kernel
    [ -s privileged.kernel ] || failed "no stack has kernel frames"
    fold privileged --kernel=drop
else
    left_out "kernel frames: they need root or kernel.perf_event_paranoid 1"
fi

# ---- a rate that the kernel does not have ----

status=0
limit=$(cat /proc/sys/kernel/perf_event_max_sample_rate)
"$spoolrecord" --force -F $((limit + 1)) -o fast.spool -- "$workload" ladder 10 2>fast.err || status=$?
[ $status = 125 ] || [ $status = 2 ] || failed "a rate above the kernel's: exit status $status"
told fast "$limit" "the highest rate, $limit"

exit $bad
