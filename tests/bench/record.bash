# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154 # sourced by run, whose variables it uses
# spoolrecord against perf record, which copies the same part of the stack (32 KiB) as often (999 Hz) and leaves the unwinding
# to perf script. The same program (tests/librecord/workload.c) is recorded by one after the other: the functions that each
# finds, the sizes of their files, and the processor time that they take, of which the program's is no part: they attach
# to it when it runs. bare_record is the loop beside both: it takes the same samples from the kernel and forgets them. Then what the program itself loses, and whether the default ring loses anything at ten times the rate. Root
# raises the kernel's limit of the rate for that, and puts it back.
#   RECORD_MS=N  processor time of each of the three parts of the program recorded, 3000 unless given

make_record() {
    record_workload=$bin/../tests/workload
    record_works=
    record_perf=
    [ -x "$bin/spoolrecord" ] && [ -x "$record_workload" ] || {
        echo "record: left out, there is no spoolrecord or no workload (tests are not built)"
        return
    }
    "$record_workload" probe || return 0
    record_works=1
    command -v perf >/dev/null && record_perf=1
    [ -n "$record_perf" ] || echo "record: there is no perf here to compare with"
}

# recorded NAME MODE MS COMMAND...: runs the workload, COMMAND -p PID beside it, and keeps the latter's processor time
recorded() {
    local name=$1 mode=$2 ms=$3 child recorder
    shift 3
    rm -f "$work/pid" "$work/gate"
    "$record_workload" --report "$work/workload" --ready "$work/pid" --gate "$work/gate" "$mode" "$ms" &
    child=$!
    until [ -s "$work/pid" ]; do sleep 0.02; done
    BENCH_CPU=1 "$bin/bare_loops" run "$work/report" "$@" -p "$(cat "$work/pid")" >/dev/null 2>"$work/record.log" &
    recorder=$!
    sleep 0.7
    touch "$work/gate"
    wait $child
    wait $recorder || cat "$work/record.log" >&2
    keep "$name" "$(cat "$work/report")"
}

# own_time NAME COMMAND...: the processor time of a fixed amount of work, with or without a recorder around it, to NAME.own
own_time() {
    local name=$1
    shift
    rm -f "$work/workload"
    "$@" "$record_workload" --report "$work/workload" work 1000 >/dev/null 2>"$work/record.log" || cat "$work/record.log" >&2
    awk '{ print $3 + $4 }' "$work/workload" >>"$work/$name.own"
}

# own_times: in turn, and of each the shortest: what else goes on here only adds to it
own_times() {
    local i name
    rm -f "$work"/*.own
    for i in 1 2 3 4 5; do
        own_time alone
        own_time with-spoolrecord "${ours[@]}" -o "$work/work.spool" --
        [ -z "$record_perf" ] || own_time with-perf "${theirs[@]}" -o "$work/work.data" --
    done
    rm -f "$work/work.data"
    for name in alone with-spoolrecord ${record_perf:+with-perf}; do
        keep "$name" "seconds $(sort -g "$work/$name.own" | head -n 1)"
    done
}

record_rate_limit=/proc/sys/kernel/perf_event_max_sample_rate

# recorded_fast MS: one busy thread at 9,999 Hz; record_lost grows by the records that found no room
recorded_fast() {
    local limit lost
    limit=$(cat "$record_rate_limit")
    if [ "$limit" -lt 9999 ] && ! echo 9999 2>/dev/null >"$record_rate_limit"; then
        record_lost=
        return
    fi
    recorded spoolrecord-fast ladder "$1" "$bin/spoolrecord" --summary=json --force -F 9999 -o "$work/fast.spool"
    [ "$limit" -ge 9999 ] || echo "$limit" >"$record_rate_limit"
    lost=$(sed -n 's/.*"lost_events":\([0-9]*\).*/\1/p' "$work/record.log")
    record_lost=$((record_lost + lost))
}

record_lost=0
record_modes='ladder recursion threads'

measure_record() {
    [ -n "$record_works" ] || return 0
    local mode ms=${RECORD_MS:-3000} ours=("$bin/spoolrecord" --quiet --force -F 999)
    local theirs=(perf record -q -e cpu-clock:u -F 999 --call-graph "dwarf,32768")
    : >"$work/ours.self" && : >"$work/theirs.self"
    record_bytes=0 record_perf_bytes=0
    for mode in $record_modes; do
        recorded "spoolrecord-$mode" "$mode" "$ms" "${ours[@]}" -o "$work/$mode.spool"
        recorded "bare-$mode" "$mode" "$ms" "$bin/bare_record" -F 999
        "$bin/spool2folded" --quiet --root=none "$work/$mode.spool" |
            awk '{ n = $NF; sub(/ [0-9]+$/, ""); sub(/.*;/, ""); print $0, n }' >>"$work/ours.self"
        record_bytes=$((record_bytes + $(stat -c %s "$work/$mode.spool")))
        [ -n "$record_perf" ] || continue
        recorded "perf-$mode" "$mode" "$ms" "${theirs[@]}" -o "$work/$mode.data"
        BENCH_CPU=1 "$bin/bare_loops" run "$work/report" perf script --no-inline -i "$work/$mode.data" -F ip,sym,dso \
            >"$work/$mode.script" 2>/dev/null
        keep "script-$mode" "$(cat "$work/report")"
        awk '/^$/ { leaf = 1; next } FNR == 1 { leaf = 1 } leaf { print $2, 1; leaf = 0 }' "$work/$mode.script" >>"$work/theirs.self"
        record_perf_bytes=$((record_perf_bytes + $(stat -c %s "$work/$mode.data")))
        rm "$work/$mode.data"
    done
    recorded spoolrecord-start ladder 1 "${ours[@]}" -o "$work/start.spool"
    recorded_fast "$ms"
    own_times
}

# record_sum PREFIX: medians of its modes
record_sum() {
    local mode
    for mode in $record_modes; do
        seconds "$1-$mode"
    done | awk '{ n += $1 } END { print n + 0 }'
}

# record_share TEXT LIMIT NAME: of the time that the program ran for, without what the recorder takes once
record_share() {
    ratio "$1" "$2" "$(awk -v all="$(seconds "$3")" -v once="$(seconds spoolrecord-start)" 'BEGIN { print 100 * (all - once) }')" \
        "$(awk -v ms="${RECORD_MS:-3000}" 'BEGIN { print ms / 1000 }')"
}

report_record() {
    [ -n "$record_works" ] || return 0
    printf '\n%-44s %8s %8s %8s %9s\n' "recording at 999 Hz, processor time" "median s" min max "peak MiB"
    for mode in $record_modes; do
        row "spoolrecord-$mode" "spoolrecord -p, $mode"
        row "bare-$mode" "bare loop: empties the rings, $mode"
        row "perf-$mode" "perf record --call-graph dwarf -p, $mode"
        row "script-$mode" "perf script of that"
    done
    row spoolrecord-start "spoolrecord -p, begin and end only"
    row spoolrecord-fast "spoolrecord -p, ladder at 9,999 Hz"
    echo
    record_share "spoolrecord: percent of one core, one busy thread" 2 spoolrecord-ladder
    if [ -n "$record_lost" ]; then
        record_share "spoolrecord: percent of one core, the same at 9,999 Hz" "" spoolrecord-fast
        ratio "spoolrecord: records lost in all rounds at 9,999 Hz" 0 "$record_lost" 1
    else
        echo "9,999 Hz: left out, kernel.perf_event_max_sample_rate is $(cat "$record_rate_limit")"
    fi
    ratio "spoolrecord / emptying the rings" "" "$(record_sum spoolrecord)" "$(record_sum bare)"
    ratio "a program recorded by spoolrecord / alone" 1.02 "$(seconds with-spoolrecord)" "$(seconds alone)"
    megabytes_of "spoolrecord: MiB of spools" $record_bytes
    [ -n "$record_perf" ] || return 0
    ratio "a program recorded by perf / alone" "" "$(seconds with-perf)" "$(seconds alone)"
    ratio "spoolrecord / (perf record + perf script)" 1 "$(record_sum spoolrecord)" \
        "$(awk -v a="$(record_sum perf)" -v b="$(record_sum script)" 'BEGIN { print a + b }')"
    megabytes_of "perf record: MiB of perf.data" $record_perf_bytes
    ratio "spools / perf.data" 0.01 $record_bytes $record_perf_bytes
    # The last round's samples, by the function on top.
    awk '{ n[FILENAME] += $NF; name = $0; sub(/ [0-9]+$/, "", name); sub(/[+]0x[0-9a-f]+$/, "", name); self[FILENAME, name] += $NF; names[name] }
        END {
            for (name in names) {
                a = 100 * self[ARGV[1], name] / n[ARGV[1]]
                b = 100 * self[ARGV[2], name] / n[ARGV[2]]
                d = a > b ? a - b : b - a
                if (d > worst) { worst = d; which = name }
            }
            printf "%-62s %6.2f  (limit 2)%s %s\n", "self share of a function, points apart at most",
                worst, worst <= 2 ? "" : "  EXCEEDED", which
        }' "$work/ours.self" "$work/theirs.self"
}

megabytes_of() {
    awk -v text="$1" -v size="$2" 'BEGIN { printf "%-62s %6.2f\n", text, size / 1048576 }'
}
