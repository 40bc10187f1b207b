#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The worst shapes that inputs can have (ARCHITECTURE.md, "Worst shapes"), in two sizes of one to four: the larger one
# may take a little more than four times the processor's time and the memory, where n^2 would be sixteen times.
# SIZE=N, by hand, makes all of them N times as large; VERBOSE=1 prints what was measured.
set -u
export LC_ALL=C
worst=$BUILD/tests/spoolworst
size=${SIZE:-1}
mkdir -p root maps

die() {
    echo "FAILED: $*" >&2
    exit 1
}

# Makes the input of a shape, and what lies beside it.
make_input() { # SHAPE N
    case $1 in
    mapped) "$worst" perf-map "$2" >maps/perf-40.map ;;
    kernel-frames) "$worst" kallsyms "$2" >kallsyms ;;
    shared-ranges | nested-abbrevs | shared-lines | many-pieces)
        "$worst" "$1" "$2" >program.s || return 1
        "$CC" -nostdlib -static -Wl,-Ttext=0x401000 -Wl,-z,noseparate-code -Wl,--build-id=none \
            -o root/program program.s || return 1
        set -- of-program "$2"
        ;;
    esac
    "$worst" "$1" "$2" >input
}

measure() { # SHAPE N COMMAND...: its cost
    local shape=$1
    make_input "$shape" "$2" || return 1
    shift 2
    set -- "$BIN/$1" "${@:2}" --sysroot root --perf-map-dir maps --quiet
    [ "$shape" != kernel-frames ] || set -- "$@" --kallsyms kallsyms
    "$BUILD/tests/cost" "$@" input 3>&1 >output 2>messages
}

# grows SHAPE N COMMAND...: fails when N times four takes more than it should, twice in a row: machines are busy.
grows() {
    local shape=$1 n=$(($2 * size)) few many try
    shift 2
    # A sanitizer makes all of it slower, and memory mean nothing.
    [ -z "${SANITIZE_FLAGS-}" ] || n=$((n / 5))
    for try in 1 2; do
        few=$(measure "$shape" $n "$@") || die "$shape $n: $* ($(head -3 messages))"
        many=$(measure "$shape" $((4 * n)) "$@") || die "$shape $((4 * n)): $* ($(head -3 messages))"
        [ -z "${VERBOSE-}" ] || echo "$shape $n $*: ms, KiB: $few, of four times as much: $many"
        if [ "${many% *}" -le $((8 * ${few% *} + 150)) ] &&
            { [ -n "${SANITIZE_FLAGS-}" ] || [ "${many#* }" -le $((6 * ${few#* } + 16384)) ]; }; then
            return
        fi
    done
    die "$shape $n: $*: ms, KiB: $few, of four times as much: $many"
}

grows deep 20000 spool2folded
grows renamed 1000 spool2pprof # whose document is n^2
grows recursive 20000 spool2folded
grows nested 15000 spool2folded
grows retired 15000 spool2folded
grows replaced 10000 spool2pprof
grows ended 10000 spool2folded
grows long-path 1000 spool2folded
grows long-name 3000 spool2pprof --frame-filter n
grows jit 15000 spool2folded
grows thread-renamed 10000 spool2speedscope
grows thread-numbers 10000 spool2pprof
grows processes 5000 spool2speedscope
grows notes 8000 spool2folded
grows python 15000 spool2folded
grows ksymbols 8000 spool2folded
grows kernel-modules 8000 spool2folded
grows backwards 40000 spool2speedscope
grows far-apart 20000 spool2speedscope
grows gaps 40000 spool2speedscope
grows mapped 15000 spool2folded
grows kernel-frames 15000 spool2folded
grows shared-ranges 3000 spool2pprof
grows nested-abbrevs 3000 spool2pprof
grows shared-lines 2000 spool2pprof
grows many-pieces 8000 spool2pprof
