#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Public cases about frames and what they are made of: O8, O11, O12, O20, O23, O24, O25, O26, O30, O35. Inlined
# functions, O9 and O10, are in inlined.sh.
. "$(dirname "$0")/_cases.sh"

# perfparser PR #43: a call as the last instruction of a function belongs to it, not to its neighbour. And nothing is
# subtracted from an address that is the first of a function.
O8() {
    mkdir root
    common=(--sysroot root --perf-map-dir .)
    cat >adjacent.c <<'END'
#ifdef __x86_64__
#define CALL "call callee\n"
#else
#define CALL "bl callee\n"
#endif
__asm__(".text\n"
        ".globl callee\n.hidden callee\n.type callee, %function\ncallee: nop\nnop\n.size callee, .-callee\n"
        ".globl caller\n.type caller, %function\ncaller: nop\n" CALL ".size caller, .-caller\n"
        ".globl neighbour\n.type neighbour, %function\nneighbour: nop\nnop\n.size neighbour, .-neighbour\n");
END
    # shellcheck disable=SC2086 # a list
    "$CC" -shared -fPIC adjacent.c -o root/adjacent.so || die "$CC"
    place root/adjacent.so callee
    callee=$offset
    place root/adjacent.so neighbour
    neighbour=$offset
    place root/adjacent.so caller
    [ $((offset + size)) = $((neighbour)) ] || die "they are not adjacent"
    last=$(printf '0x%x' $((offset + size - 1))) # what a recorder makes of the return address
    make <<END
comm 40 app
module lib 40 0x100000-0x200000 0 /adjacent.so
sample 1ms 40 41 lib+$callee lib+$last
sample 2ms 40 41 lib+$neighbour
sample 3ms 40 41 lib+$offset
END
    convert_samples
    folded 'app;caller 1
app;caller;callee 1
app;neighbour 1'
    stacks 'caller 1
caller|callee 1
neighbour 1'
    pprof '[.location[].address] | sort | join(" ")' \
        "$(printf '%s\n' "$callee" "$last" "$neighbour" "$offset" | while read -r a; do echo $((a + 0x100000)); done |
            sort -n | paste -sd ' ')"
}

# flamegraph-rs#193: cut stacks are under one root.
O11() {
    make <<'END'
interval 1ms
names f g h
comm 40 app
sample 1ms 40 41 f g [truncated]
sample 2ms 40 41 f [truncated]
sample 3ms 40 41 f h
END
    convert_samples
    folded 'app;[truncated];f 1
app;[truncated];g;f 1
app;h;f 1'
    stacks '[truncated]|f 1
[truncated]|g|f 1
h|f 1'
    pprof '[.location[] | select(.line | length == 0)] | length' 0
    pprof '.comment | map(select(test("truncated"))) | .[]' '2 stacks truncated'
    # Behind the root frames.
    to_folded --root=thread
    [ "$(head -1 folded)" = 'app-40;41;[truncated];f 1' ] || die "$(<folded)"
    # Its omitted frames are above the marker.
    convert_samples --max-depth 1
    folded 'app;[1 frames omitted];f 2
app;[2 frames omitted];f 1'
    stacks '[1 frames omitted]|f 2
[2 frames omitted]|f 1'
}

# speedscope#386: recursion, 5,000 deep.
O12() {
    make <<'END'
interval 1ms
names f main
comm 40 app
sample 1ms 40 41 f*5000 main
sample 2ms 40 41 main
END
    convert
    [ "$(head -2 folded | tail -1 | tr ';' '\n' | grep -c '^f')" = 5000 ] || die "folded has other stacks"
    pprof '[.sample[].stack | length] | sort | join(" ")' '1 5001'
    speedscope '[.profiles[0].runs[].stack | length] | join(" ")' '2001 1'
    speedscope '.profiles[0].runs[0].stack | .[0], .[1], .[-1]' '[3001 frames omitted]
f
f'
    if [ -e speedscope.json ]; then
        [ "$(wc -l <spool2speedscope.err)" = 1 ] || die "$(<spool2speedscope.err)"
        grep -qE '2,?000' spool2speedscope.err || die "the warning: $(<spool2speedscope.err)"
    fi
    # Recursion that is folded, and a limit of the user's own: no warning.
    convert_samples --fold-recursion
    folded 'app;main 1
app;main;f 1'
    stacks 'main 1
main|f 1'
    convert_samples --max-depth 3
    folded 'app;[4998 frames omitted];f;f;f 1
app;main 1'
    stacks '[4998 frames omitted]|f|f|f 1
main 1'
    [ ! -s spool2speedscope.err ] || die "$(<spool2speedscope.err)"
}

# pyroscope#4807, lightswitch#414: ids are positions (decode_pprof.mjs complains). On everything that was recorded.
O20() {
    for spool in "$stackpulse"/ladder/*.spool "$stackpulse"/python/*.spool "$stackpulse"/kernel/*.spool \
        "$stackpulse"/synth/{basic,churn,unpinned,deep}.spool; do
        inputs=("$spool")
        common=(--sysroot "$FIXTURES/sysroot" --perf-map-dir "$stackpulse/python")
        to_pprof
        pprof '[.location[].id] == [range(1; (.location | length) + 1)]' true
    done
}

# go#25743: pprof has nothing to say of a profile in which everything has a name.
O23() {
    make <<'END'
interval 1ms
names f main
comm 40 app
sample 1ms 40 41 f main
END
    to_pprof
    pprof '[.mapping[] | select(.has_functions != 1)] | length' 0
    if go_pprof -top; then [ ! -s go.err ] || die "$(<go.err)"; fi
    # The same of a program that exists.
    inputs=("$stackpulse/ladder/ladder-O2.spool")
    common=(--sysroot "$FIXTURES/sysroot" --perf-map-dir .)
    to_pprof --frame-filter='^plugin_spin$' --root-at='^plugin_entry$'
    pprof '[.sample[].stack | join("|")] | unique | join(" ")' 'plugin_entry|plugin_spin'
    pprof '.mapping[0].filename' /opt/demo/ladder-O2
    if go_pprof -top; then
        grep -qx 'File: ladder-O2' go.out || die "$(<go.out)"
        ! grep -qi 'warning\|binar' go.err || die "$(<go.err)"
    fi
}

# parca#1264: a stack of which nothing is left counts all the same.
O24() {
    make <<'END'
interval 1ms
names f main
comm 40 app
sample 1ms 40 41 @0xffffffff81000010 @0xffffffff81000020
sample 2ms 40 41 @0xffffffff81000010 f main
sample 3ms 40 41 f main
END
    convert_samples --kernel=drop
    folded 'app;[no frames] 1
app;main;f 2'
    stacks '[no frames] 1
main|f 2'
    convert_samples --kernel=only
    folded 'app;0xffffffff81000020;0xffffffff81000010 1
app;main;f;0xffffffff81000010 1'
    stacks '0xffffffff81000020|0xffffffff81000010 1
main|f|0xffffffff81000010 1'
    convert_samples --frame-filter='^f$' --kernel=drop
    folded 'app;main;f 2'
    stacks 'main|f 2'
    # What hides never drops: the totals are those of the stacks with everything in them.
    inputs=("$stackpulse/python/py312.spool")
    common=(--sysroot "$FIXTURES/sysroot" --perf-map-dir "$stackpulse/python")
    for runtime in hide show; do
        convert_samples --runtime=$runtime
        awk '{ n += $NF } END { print n }' folded >folded.$runtime
        [ ! -e pprof.json ] || jq '[.sample[].value[0]] | add' pprof.json >pprof.$runtime
        [ ! -e speedscope.json ] || jq '[.profiles[].busy] | add' speedscope.json >speedscope.$runtime
    done
    for total in *.hide *.show; do
        cmp "$total" folded.show || die "$total: $(<"$total")"
    done
}

# go#64566: no samples, with an interval and without.
O25() {
    for interval in 0 10ms; do
        make <<<"interval $interval"
        for options in '' --root=thread --timeline --reverse; do
            # shellcheck disable=SC2086 # none or one
            to_folded $options
            folded ''
        done
        to_pprof
        pprof '.sample, .location, .function, .mapping | length' '0
0
0
0'
        [ $interval = 0 ] && types=samples/count || types='samples/count cpu/nanoseconds'
        pprof '[.sample_type[] | "\(.type)/\(.unit)"] | join(" ")' "$types"
        pprof 'has("period_type"), has("period")' 'true
true'
        to_speedscope
        speedscope '.profiles[] | .name, .type, .endValue, .entries' 'no samples
sampled
0
0'
        if go_pprof -top; then grep -q '^Type: ' go.out || die "$(<go.out)"; fi
        go_pprof -raw || true
    done
    # Samples, but none of them selected.
    make <<'END'
names f
sample 1ms 40 41 f
END
    convert --pid 1
    folded ''
    pprof '.sample | length' 0
    speedscope '.profiles[0].name' 'no samples'
}

# pprof PR #674, perf_data_converter#36: kernel functions without a module are one mapping.
O26() {
    cat >kallsyms <<'END'
ffffffff81000000 T _text
ffffffff81000100 T do_one
ffffffff81000200 t do_two
ffffffff81000300 T do_three
ffffffff81001000 T _etext
END
    make <<'END'
interval 1ms
names main
comm 40 app
sample 1ms 40 41 @0xffffffff81000110 @0xffffffff81000210 main
sample 2ms 40 41 @0xffffffff81000310 main
END
    common+=(--kallsyms kallsyms)
    convert_samples
    folded 'app;main;do_three 1
app;main;do_two;do_one 1'
    stacks 'main|do_three 1
main|do_two|do_one 1'
    # 2^63 and 2^64-1; what a double makes of them does not matter here
    pprof '[.mapping[] | select(.filename == "[kernel.kallsyms]") | .memory_start, .memory_limit] | map(tostring) | join(" ")' \
        '9223372036854775808 18446744073709551615'
    pprof '. as $p | [.location[] | select($p.mapping[.mapping_id - 1].filename == "[kernel.kallsyms]")] | length' 3
    speedscope '[.frames[] | select(.file == "[kernel.kallsyms]") | .name] | sort | join(" ")' 'do_one do_three do_two'
}

# inferno PR #182, FlameGraph PR #232: [vdso] is not the kernel, nvidia.ko is.
O30() {
    make <<'END'
interval 1ms
names main
comm 40 app
module vdso 40 0x10000-0x12000 0 [vdso]
kernel-module nvidia 0xffffffffc0000000-0xffffffffc0010000 0 nvidia.ko
sample 1ms 40 41 nvidia+0x20 vdso+0x10 main
END
    to_folded --annotate
    folded 'app;main_[j];[vdso]+0x10;nvidia.ko+0x20_[k] 1'
    to_pprof
    pprof '[.mapping[].filename] | sort | join(" ")' '[jit] [vdso] nvidia.ko'
    to_speedscope
    speedscope '[.frames[] | .name + " " + .file] | sort | join(", ")' '[vdso]+0x10 [vdso], main [jit], nvidia.ko+0x20 nvidia.ko'
}

# py-spy#201: a function sampled at many places is one function. (With lines: inlined.sh.)
O35() {
    {
        printf '%s\n' 'interval 1ms' 'comm 40 app' 'names main' 'jit f 40 0x10000-0x11000 [jit-1-10000-1000] 0x10000-0x11000 f'
        for ((i = 0; i < 50; i++)); do printf 'sample %dms 40 41 f+%d main\n' $((i + 1)) $((i * 3)); done
    } | make
    convert_samples
    folded 'app;main;f 50'
    pprof '(.function | length), (.location | length)' '2
51'
    stacks 'main|f 50'
    speedscope '.frames | length' 2
    speedscope '.profiles[0].entries' 1
    go_pprof -top || return 0
    [ "$(grep -c ' f$' go.out)" = 1 ] || die "$(<go.out)"
}

run_cases
