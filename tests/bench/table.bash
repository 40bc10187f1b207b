# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154 # sourced by run, whose variables it uses
# The end of tests/bench/run: one table with a line of each part, for the README. Seconds are ours; "loops" is how many times what
# the bare loops take for the same input, "peer" how many times ours a program takes that packages bring. Each ratio is
# between two that had the same input in the same rounds; the two ratios of a line are not of one input.

# over NUMBER NUMBER: the first by the second, or nothing when one is missing
over() {
    [ -z "$1" ] || [ -z "$2" ] || awk -v a="$1" -v b="$2" 'BEGIN { if (b > 0) printf "%.2f", a / b }'
}

# plus NUMBER NUMBER: the sum, or nothing when one is missing
plus() {
    [ -z "$1" ] || [ -z "$2" ] || awk -v a="$1" -v b="$2" 'BEGIN { print a + b }'
}

# line WHAT OURS LOOPS PEER RATIO
line() {
    [ -n "$2" ] || { printf '| %s | not measured | | | |\n' "$1" && return; }
    printf '| %s | %s | %s | %s | %s |\n' "$1" "$2" "${3:+$3 x}" "${5:+$4}" "${5:+$5 x}"
}

# in_seconds NAME TEXT: its median with what it was for, or nothing
in_seconds() {
    [ ! -s "$work/$1.seconds" ] || awk -v v="$(seconds "$1")" -v text="$2" 'BEGIN { printf "%.2f s, %s", v, text }'
}

# unwound KEY: of the C++ compiler's stacks
unwound() {
    [ ! -s "$work/unwind-cpp.bench" ] || awk -v key="$1" '{ for (i = 1; i < NF; i++) if ($i == key) print $(i + 1) }' "$work/unwind-cpp.bench"
}

# recorded_seconds PREFIX: of all modes, or nothing
recorded_seconds() {
    [ ! -s "$work/$1-ladder.seconds" ] || record_sum "$1"
}

report_table() {
    local ours
    printf '\n| part | ours | to the bare loops | peer | which takes |\n| --- | --- | ---: | --- | ---: |\n'
    line "reading" "$(in_seconds read-fd "10 million samples, every check")" "$(over "$(seconds read-fd)" "$(seconds decode-file)")" \
        "\`perf report --stats\`" "$(over "$(seconds perf-stats)" "$(seconds perf-summary)")"
    line "folding" "$(in_seconds folded "the same to $(mebibytes "$work/folded")")" \
        "$(over "$(seconds folded)" "$(plus "$(seconds hash)" "$(seconds write)")")" \
        "\`perf script\`, folded in C" "$(over "$(seconds perf)" "$(seconds perf-folded)")"
    line "pprof" "$(in_seconds pprof "the same to $(mebibytes "$work/pprof"), gzip'd")" \
        "$(over "$(seconds pprof)" "$(plus "$(seconds hash)" "$(seconds gzip)")")" \
        "\`go tool pprof -proto\`, which copies that" "$(over "$(seconds perf-go)" "$(seconds perf-pprof)")"
    line "speedscope" "$(in_seconds speedscope "the same to $(mebibytes "$work/speedscope")")" \
        "$(over "$(seconds speedscope)" "$(plus "$(seconds hash)" "$(seconds write-speedscope)")")" \
        "\`perf script\`, to be imported" "$(over "$(seconds perf-script)" "$(seconds perf-speedscope)")"
    line "symbols" "$(in_seconds symbols-answer "$peer_addresses addresses of libLLVM")" \
        "$(over "$(column symbols-lookup ns median)" "$(column symbols-lookup bare_ns median)")" \
        "\`llvm-symbolizer\`" "$(over "$(seconds symbols-peer)" "$(seconds symbols-answer)")"
    line "DWARF" "$(in_seconds shuffled-ours "${dwarf_many:-} chains of 104 MB of C++")" \
        "$(over "$(seconds shuffled-passes)" "$(seconds dwarf-read)")" \
        "\`llvm-symbolizer\`" "$(over "$(seconds shuffled-llvm)" "$(seconds shuffled-ours)")"
    line "" "$(in_seconds few-ours "$dwarf_few of them")" "" "\`addr2line\` of binutils" "$(over "$(seconds few-binutils)" "$(seconds few-ours)")"
    ours=$(unwound warm)
    line "unwinding" "${ours:+$ours ns, a frame of a C++ compiler}" "$(over "$ours" "$(unwound bare)")" \
        "libdw" "$(over "$(unwound libdw)" "$ours")"
    ours=$(recorded_seconds spoolrecord)
    line "recording" "${ours:+$(awk -v v="$ours" 'BEGIN { printf "%.2f", v }') s, of 9 s at 999 Hz}" "$(over "$ours" "$(recorded_seconds bare)")" \
        "\`perf record\` and \`perf script\`" "$(over "$(plus "$(recorded_seconds perf)" "$(recorded_seconds script)")" "$ours")"
}

mebibytes() {
    [ ! -f "$1" ] || awk -v size="$(stat -c %s "$1")" 'BEGIN { printf "%.0f MiB", size / 1048576 }'
}
