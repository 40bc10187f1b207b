#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Public cases about inlined functions and lines: O9, O10, O35. The tools here are linked with fake_lines.c.
export BIN=$BUILD/tests/fake_lines
. "$(dirname "$0")/_cases.sh"
export FAKE_LINES=lines

# inlined: g, called in line 12 of f, is inlined into f at 0x1020; in a process app, below main.
inlined() {
    cat >lines <<'END'
1010 main@/src/main.c:7:5
1020 g@/src/g.h:34:30|f@/src/f.c:12:10
1021 f@/src/f.c:13:10
1030 h@/src/h.h:3:1|g@/src/g.h:35:30|f@/src/f.c:12:10
END
    make <<'END'
interval 10ms
comm 40 app
thread 40 41 "worker 1"
module app 40 0x10000-0x20000 0x1000 /x/app
sample 10ms 40 41 app+0x1021 app+0x1010
sample 20ms 40 41 app+0x1020 app+0x1010
sample 60ms 40 41 app+0x1010
sample 70ms 40 41 app+0x1030 app+0x1010
END
}

# The Lines of a location, as `go tool pprof -raw` prints them.
lines_at='[.location[] | select(.address == $at)] as $l | . as $p | $l[].line | map("\($p.function[.function_id - 1].name):\(.line)") | join(" ")'

# ddprof PR #436, parca#1494, parca PR #3415: innermost first in pprof, innermost last in what is root first.
O9() {
    inlined
    convert_samples
    folded 'app;main 1
app;main;f 1
app;main;f;g 1
app;main;f;g;h 1'
    stacks 'main 1
main|f 1
main|f|g 1
main|f|g|h 1'
    pprof '. as $p | [.location[] | [.line[] | $p.function[.function_id - 1].name] | join(",")] | sort | join(" ")' \
        'f g,f h,g,f main'
    pprof '.mapping[0] | .has_functions, .has_filenames, .has_line_numbers, .has_inline_frames' '1
1
1
1'
    to_folded --annotate
    folded 'app;main 1
app;main;f 1
app;main;f;g_[i] 1
app;main;f;g_[i];h_[i] 1'
    to_pprof --inline-locations
    pprof '[.location[].line | length] | unique | join(" ")' 1
    pprof "$pprof_stacks" 'main 1
main|f 1
main|f|g 1
main|f|g|h 1'
    # All three levels have the same address then.
    pprof '[.location[].address] | group_by(.) | map(length) | sort | join(" ")' '1 1 2 3'
    # A limit may fall inside of a chain: what is shown and what is omitted add up.
    convert_samples --max-depth 2
    folded 'app;[1 frames omitted];f;g 1
app;[2 frames omitted];g;h 1
app;main 1
app;main;f 1'
    stacks '[1 frames omitted]|f|g 1
[2 frames omitted]|g|h 1
main 1
main|f 1'
    # The same for the other cuts.
    convert_samples --root-at='^g$'
    folded 'app;g 1
app;g;h 1
app;main 1
app;main;f 1'
    stacks 'g 1
g|h 1
main 1
main|f 1'
    convert_samples --skip-below='^g$'
    folded 'app;main 1
app;main;f 1
app;main;f;g 2'
    stacks 'main 1
main|f 1
main|f|g 2'
}

# parca PR #2171: the innermost level has the sampled line, each other the line of the call.
O10() {
    inlined
    to_pprof
    for at in '0x10020 g:34 f:12' '0x10030 h:3 g:35 f:12' '0x10021 f:13' '0x10010 main:7'; do
        pprof "$((${at%% *})) as \$at | $lines_at" "${at#* }"
    done
    pprof '[.function[] | "\(.name) \(.filename):\(.start_line)"] | sort | join(", ")' \
        'f /src/f.c:10, g /src/g.h:30, h /src/h.h:1, main /src/main.c:5'
    # The browser has the start of the function.
    to_speedscope
    speedscope '[.frames[] | "\(.name) \(.file):\(.line)"] | sort | join(", ")' \
        'f /src/f.c:10, g /src/g.h:30, h /src/h.h:1, main /src/main.c:5'
    go_pprof -raw || return 0
    grep -A1 '0x10020' go.out | tr -s ' \n' ' ' | grep -q 'g /src/g.h:34.* f /src/f.c:12' || die "$(<go.out)"
}

# py-spy#201: one function sampled on 50 lines is one frame, and one row.
O35() {
    {
        printf '%s\n' 'interval 10ms' 'comm 40 app' 'module app 40 0x10000-0x20000 0x1000 /x/app'
        for ((i = 0; i < 50; i++)); do printf 'sample %dms 40 41 app+0x%x app+0x1010\n' $((i * 10 + 10)) $((0x1100 + i)); done
    } | make
    {
        echo '1010 main@/src/main.c:7:5'
        for ((i = 0; i < 50; i++)); do printf '%x f@/src/f.c:%d:10\n' $((0x1100 + i)) $((10 + i)); done
    } >lines
    convert_samples
    folded 'app;main;f 50'
    stacks 'main|f 50'
    pprof '(.function | length), (.location | length), ([.location[].line[].line] | unique | length)' '2
51
51'
    speedscope '[.frames[] | "\(.name) \(.line)"] | sort | join(", ")' 'f 10, main 5'
    speedscope '.profiles[0].entries' 1
    go_pprof -top || return 0
    [ "$(grep -c ' f$' go.out)" = 1 ] || die "$(<go.out)"
}

run_cases
