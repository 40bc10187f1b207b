#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The public cases O9, O10 and O35 on a program that a compiler made: what inlined.sh says, but the chains are in DWARF.
# Samples are put at addresses that binutils gives, so no recorder is needed.
. "$(dirname "$0")/_cases.sh"
common=(--sysroot / --perf-map-dir . --debug-dir .)
built=$PWD/built
mkdir "$built"

# The line numbers below are those of this text.
cat >"$built/prog.c" <<'END'
volatile unsigned sink;
unsigned table[64];

__attribute__((always_inline)) static inline void g(unsigned n)
{
    sink = n * 3;
    sink = n + 5;
}

__attribute__((noinline)) void f(unsigned n)
{
    sink = n;
    g(n);
    sink = n ^ 1;
}

__attribute__((noinline)) unsigned many(unsigned n)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < n; i++) {
        sum += table[i & 63];
        sum ^= sum << 3;
        sink = sum;
        sum += i * 7;
        sink = sum + 1;
    }
    return sum;
}

int main(int argc, char **argv)
{
    (void)argv;
    f((unsigned)argc);
    many((unsigned)argc);
    return 0;
}
END
compilers=()
for compiler in gcc clang; do
    command -v "$compiler" >/dev/null && compilers+=("$compiler")
done
[ ${#compilers[@]} -gt 0 ] || compilers=("${CC:-cc}")

# build COMPILER OPTION...: prog, its map of one executable segment, and the addresses of its lines.
build() {
    local compiler=$1
    shift
    (cd "$built" && "$compiler" -O2 -g -fno-omit-frame-pointer "$@" -o prog prog.c) || die "$compiler $*"
    prog=$built/prog
    # "ADDRESS LINE" of each instruction
    objdump -d --no-show-raw-insn -j .text "$prog" | sed -n 's/^ *\([0-9a-f]*\):.*/0x\1/p' >"$built/instructions"
    addr2line -e "$prog" <"$built/instructions" | sed -n 's/.*prog\.c:\([0-9]*\).*/\1/p; t; s/.*/-/p' |
        paste -d ' ' "$built/instructions" - >"$built/lines"
    read -r segment_offset segment_address segment_size < <(readelf -lW "$prog" |
        awk '$1 == "LOAD" && $7 $8 ~ /E/ { print $2, $3, $5; exit }')
}

# address SYMBOL LINE: the first instruction of the function whose innermost line is LINE, as an offset in the file; 1 when
# there is none.
address() {
    local start size at line
    read -r start size < <(readelf -sW "$prog" | awk -v name="$1" '$8 == name { print "0x" $2, $3; exit }')
    while read -r at line; do
        [ "$line" = "$2" ] && [ $((at)) -ge $((start)) ] && [ $((at)) -lt $((start + size)) ] || continue
        offset=$(printf '0x%x' $((at - segment_address + segment_offset)))
        return 0
    done <"$built/lines"
    return 1
}

# module LINE...: a spool with that program as module `app` of process 40, and statements.
capture() {
    local end
    end=$(printf '0x%x' $((0x10000000 + (segment_size + 0xfff & ~0xfff) + 0x1000)))
    {
        printf '%s\n' 'interval 10ms' 'comm 40 app' \
            "module app 40 0x10000000-$end $((segment_offset & ~0xfff)) $prog"
        cat
    } | make
}

names='. as $p | [.location[] | [.line[] | "\($p.function[.function_id - 1].name):\(.line)"] | join(" ")] | sort | join(", ")'

inlined_calls() {
    local in_main in_f in_g
    address main 34 || address main 35 || die "no call in main"
    in_main=$offset
    address f 14 || die "no line 14 in f"
    in_f=$offset
    address f 7 || address f 6 || die "g is not inlined into f"
    in_g=$offset
    g_line=$(addr2line -e "$prog" "$(printf '%x' $((in_g - segment_offset + segment_address)))" | sed 's/.*:\([0-9]*\).*/\1/')
    main_line=$(addr2line -e "$prog" "$(printf '%x' $((in_main - segment_offset + segment_address)))" | sed 's/.*:\([0-9]*\).*/\1/')
    capture <<END
sample 10ms 40 41 app+$in_f app+$in_main
sample 20ms 40 41 app+$in_g app+$in_main
sample 60ms 40 41 app+$in_main
END
}

check_inlined() {
    local source=$built/prog.c
    inlined_calls
    convert_samples
    folded 'app;main 1
app;main;f 1
app;main;f;g 1'
    stacks 'main 1
main|f 1
main|f|g 1'
    pprof "$names" "f:14, g:$g_line f:13, main:$main_line"
    pprof '[.function[] | "\(.name) \(.filename):\(.start_line)"] | sort | join(", ")' \
        "f $source:10, g $source:4, main $source:31"
    pprof '.mapping[0] | .has_functions, .has_filenames, .has_line_numbers, .has_inline_frames' '1
1
1
1'
    speedscope '[.frames[] | "\(.name) \(.file):\(.line)"] | sort | join(", ")' \
        "f $source:10, g $source:4, main $source:31"
    to_folded --annotate --with-lines --trim-path "$built/=" --root-at='^f$'
    folded "app;f (prog.c:13);g (prog.c:$g_line)_[i] 1
app;f (prog.c:14) 1
app;main (prog.c:$main_line) 1"
    to_pprof --inline-locations
    pprof '[.location[].line | length] | unique | join(" ")' 1
    pprof "$pprof_stacks" 'main 1
main|f 1
main|f|g 1'
    convert_samples --no-inlines
    folded 'app;main 1
app;main;f 2'
    pprof "$names" "f:13, f:14, main:$main_line"
    to_pprof
    go_pprof -raw || return 0
    grep -q "g $source:$g_line" go.out || die "$(<go.out)"
}

# The same in what compilers differ in: who made it, which version of DWARF, and where it lies.
O9_O10() {
    local compiler options
    for compiler in "${compilers[@]}"; do
        build "$compiler"
        (check_inlined) || die "$compiler ${options-}"
    done
    compiler=${compilers[0]}
    for options in '-gdwarf-4 -fdebug-types-section -gz'; do
        # shellcheck disable=SC2086 # several words
        build "${compilers[0]}" $options
        (check_inlined) || die "$compiler ${options-}"
    done
}

# A debug file has it all; one of another build nothing, and -v says so.
O9_separate() {
    build "${compilers[0]}" -Wl,--build-id
    inlined_calls
    objcopy --only-keep-debug "$prog" "$built/prog.debug"
    objcopy --strip-all --add-gnu-debuglink="$built/prog.debug" "$prog"
    to_folded
    folded 'app;main 1
app;main;f 1
app;main;f;g 1'
    to_folded -v
    ! grep -q '^no debug info' spool2folded.err || die "$(<spool2folded.err)"
    (cd "$built" && "${compilers[0]}" -O1 -g -Wl,--build-id -o other prog.c && objcopy --only-keep-debug other prog.debug)
    to_folded -v
    grep -q "^no .*$prog (.*prog.debug: its CRC-32" spool2folded.err || die "$(<spool2folded.err)"
}

# One function sampled on all its lines is one frame.
O35() {
    local line count=0
    build "${compilers[0]}"
    address main 34 || address main 35 || die "no call in main"
    local in_main=$offset
    for line in $(seq 17 29); do
        address many "$line" || continue
        count=$((count + 1))
        echo "sample $((count * 10))ms 40 41 app+$offset app+$in_main"
    done >samples
    [ "$count" -ge 4 ] || die "$count lines"
    capture <samples
    convert_samples
    folded "app;main;many $count"
    stacks "main|many $count"
    pprof '(.function | length), ([.location[].line[].line] | unique | length)' "2
$((count + 1))"
    speedscope '[.frames[] | "\(.name) \(.line)"] | sort | join(", ")' 'main 31, many 17'
}

run_cases
