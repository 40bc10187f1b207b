# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154 # sourced by run, whose variables it uses
# The unwinder on stacks that perf record has copied, against libdw's unwind tables over the same stacks and perf
# script: a C++ compiler, a debugger, Python, a Rust compiler, signal handlers with realigned frames. Recorded once; all ways
# are timed by the replay itself, five rounds in turn, in processor time.
#   UNWIND_SECONDS=N  of each program recorded, 5 unless given: some 160 MB, removed afterwards
#   UNWIND_GDB=FILE   what the debugger reads, a C library with its debug file unless given

# shellcheck source=../librecord/_unwind_replay.sh
. "$root/tests/librecord/_unwind_replay.sh"

# set:limit warm:limit cold
unwind_sets='cpp:150:190 gdb:60:100 python:25:280 rust:150:420 signal:70:90'

unwind_text() {
    case $1 in
    cpp) echo "C++ compiler" ;;
    gdb) echo "debugger" ;;
    python) echo "Python" ;;
    rust) echo "Rust compiler" ;;
    signal) echo "signals and realigned stacks" ;;
    esac
}

make_unwind() {
    local why
    unwind_works=
    why=$(cd "$work" && replay_possible) || { echo "unwind: left out, $why" && return 0; }
    replay_build "$bin/../lib/librecord.a" "$work/unwind_replay" || return 0
    unwind_works=1
}

# unwind_record SET FILE
unwind_record() {
    local event=cpu-clock:u seconds=${UNWIND_SECONDS:-5}
    case $1 in
    cpp) replay_make_cpp && replay_cpp "$2" $event "$seconds" ;;
    gdb) replay_make_gdb && replay_libc=${UNWIND_GDB:-$replay_libc} && replay_gdb "$2" $event "$seconds" ;;
    python) replay_make_python && replay_python "$2" $event "$seconds" "$(replay_pythons | tail -n 1)" ;;
    rust) replay_make_rust && replay_rust "$2" $event "$seconds" ;;
    signal)
        [ -x "$bin/../tests/workload" ] &&
            replay_record "$2" $event 60 "$bin/../tests/workload" signal "$((seconds * 1000))"
        ;;
    esac
}

# The replay has rounds of its own, and what it compares stands in one process.
measure_unwind() {
    local set name
    [ -n "$unwind_works" ] && [ ! -e "$work/unwind.measured" ] || return 0
    touch "$work/unwind.measured"
    for set in $unwind_sets; do
        name=${set%%:*}
        (cd "$work" && unwind_record "$name" unwind.data) || { echo "unwind: left out: $(unwind_text "$name")" && continue; }
        "$work/unwind_replay" bench "$work/unwind.data" >"$work/unwind-$name.bench"
        "$work/unwind_replay" check "$work/unwind.data" >"$work/unwind-$name.check" || echo "unwind: $(unwind_text "$name"): frames differ"
        BENCH_CPU=1 "$bin/bare_loops" run "$work/report" perf script --no-inline -F ip,sym -i "$work/unwind.data" \
            >"$work/script" 2>/dev/null
        keep "unwind-$name-script" "$(cat "$work/report")"
        grep -c '^[[:space:]]*[0-9a-f]' "$work/script" >"$work/unwind-$name.lines"
        rm -f "$work/unwind.data"
    done
}

report_unwind() {
    [ -n "$unwind_works" ] || return 0
    local set name warm cold
    printf '\n%-29s %6s %9s %6s %6s %8s %6s %7s %6s %6s %11s\n' "unwinding, ns per frame" depth "complete" warm cold uncached libdw \
        "/ warm" far bare "perf script"
    for set in $unwind_sets; do
        IFS=: read -r name warm cold <<<"$set"
        [ -s "$work/unwind-$name.bench" ] || continue
        awk -v text="$(unwind_text "$name")" -v warm="$warm" -v cold="$cold" -v script="$(seconds "unwind-$name-script")" \
            -v lines="$(cat "$work/unwind-$name.lines")" '
            { for (i = 1; i < NF; i += 2) v[$i] = $(i + 1) }
            END {
                printf "%-29s %6.1f %7.2f %% %6.1f %6.1f %8.1f %6.1f %7.1f %6.1f %6.1f %11.0f  (limits %d / %d)%s\n", text,
                    v["frames"] / v["samples"], v["complete-percent"], v["warm"], v["cold"], v["uncached"], v["libdw"],
                    v["libdw/warm"], v["far"], v["bare"], script * 1e9 / lines, warm, cold,
                    v["warm"] <= warm && v["cold"] <= cold ? "" : "  EXCEEDED"
            }' "$work/unwind-$name.check" "$work/unwind-$name.bench"
    done
}
