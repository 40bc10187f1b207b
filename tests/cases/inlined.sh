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

# --no-inlines: the function whose code it is, with the line in it, in all outputs.
O9_without_inlines() {
    inlined
    convert_samples --no-inlines
    folded 'app;main 1
app;main;f 3'
    stacks 'main 1
main|f 3'
    pprof '[.location[].line | length] | unique | join(" ")' 1
    for at in '0x10020 f:12' '0x10030 f:12' '0x10021 f:13' '0x10010 main:7'; do
        pprof "$((${at%% *})) as \$at | $lines_at" "${at#* }"
    done
    pprof '.mapping[0] | .has_functions, .has_filenames, .has_line_numbers, .has_inline_frames' '1
1
1
null'
    to_folded --no-inlines --annotate
    ! grep -q '_\[i\]' folded || die "$(<folded)"
    "$BIN/spoolcat" "${common[@]}" --samples --json --no-inlines cap | jq -r '.frames[0] | "\(.name) \(.line) \(.inlined)"' >cat.out
    equal spoolcat "$(<cat.out)" 'f 13 false
f 12 false
main 7 false
f 12 false'
}

# Lines in collapsed stacks, and shorter paths everywhere.
O10_lines_and_paths() {
    inlined
    to_folded --with-lines
    folded 'app;main (/src/main.c:7) 1
app;main (/src/main.c:7);f (/src/f.c:12);g (/src/g.h:34) 1
app;main (/src/main.c:7);f (/src/f.c:12);g (/src/g.h:35);h (/src/h.h:3) 1
app;main (/src/main.c:7);f (/src/f.c:13) 1'
    convert_samples --trim-path /src/= --trim-path=/x=/y --no-inlines
    to_folded --with-lines --with-modules --annotate --trim-path /src/= --trim-path=/x=/y --max-depth 1
    folded 'app;[1 frames omitted];f (app) (f.c:13) 1
app;[2 frames omitted];g (app) (g.h:34)_[i] 1
app;[3 frames omitted];h (app) (h.h:3)_[i] 1
app;main (app) (main.c:7) 1'
    pprof '[.function[].filename] | sort | join(" ")' 'f.c main.c'
    pprof '.mapping[0].filename' /y/app
    speedscope '[.frames[].file] | sort | join(" ")' 'f.c main.c'
    "$BIN/spoolcat" "${common[@]}" --samples --trim-path /src/=s/ --trim-path /x/= --pid 40 cap >cat.out
    equal spoolcat "$(sed -n 6,9p cat.out)" '            10020 g+0x0 (app) (inlined) s/g.h:34
            10020 f+0x0 (app) s/f.c:12
            10010 main+0x0 (app) s/main.c:7'
    "$BIN/spoolcat" "${common[@]}" --samples --json --trim-path /src/=s/ --trim-path /x/= cap |
        jq -r '.frames[0] | [.module.path, .file, .line, .inlined] | map(tostring) | join(" ")' >cat.out
    equal spoolcat "$(sed -n 2p cat.out)" 'app s/g.h 34 true'
    "$BIN/spoolcat" --records cap | grep -q ' path=/x/app' || die 'records are not as they are'
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
