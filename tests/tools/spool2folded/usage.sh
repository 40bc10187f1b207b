#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The command line: help, manual page, usage errors, a terminal as standard input, progress.
. "$(dirname "$0")/_common.sh"
page=$(dirname "$0")/../../../tools/spool2folded/spool2folded.1
cp "$cases/one-sample.spool" in

run 0 "$spool2folded" --help
equal err ''
awk 'length > 79 { print; bad = 1 } END { exit bad }' out || die "--help is too wide"
run 0 "$spool2folded" --version
[[ $(head -1 out) == 'spool2folded '[0-9]*.[0-9]*.[0-9]* ]] || die "$(<out)"
grep -qx 'spool versions read: 1 2 3 4' out || die "$(<out)"
grep -Eqx 'optional features: (none|lzma)' out || die "$(<out)"

# Every option of --help stands in the manual page, and the other way round.
if [ -r "$page" ]; then
    "$spool2folded" --help | sed -n 's/^  *\(-., \)\{0,1\}--\(\[no-\]\)\{0,1\}\([a-z-]*\).*/\3/p' | sort -u >in-help
    grep -o 'Fl -[a-z-]*' "$page" | sed 's/Fl -//' | sort -u >in-page
    diff in-help in-page || die "--help (<) and spool2folded.1 (>) have different options"
else
    echo "left out: there is no $page"
fi

# usage TEXT ARGS...
usage() {
    local text=$1
    shift
    run 2 "$spool2folded" "$@"
    equal out ''
    equal err "spool2folded: $text (see --help)"
}
usage "unknown option '--frobnicate'" --frobnicate in
usage "unknown option '-z'" -z in
usage "option '--root' needs a value (none|process|pid|thread)" in --root
usage "option '--annotate' takes no value" --annotate=yes in
usage "--root: 'all' is not one of none, process, pid, thread" --root=all in
usage "--weight: '' is not one of samples, time" --weight= in
usage "--kernel: 'yes' is not one of keep, drop, only" --kernel yes in
usage "--runtime: 'x' is not one of hide, show" --runtime=x in
usage "--demangle: 'x' is not one of full, short, none" --demangle=x in
usage "--unresolved: 'x' is not one of address, module" --unresolved=x in
usage "--max-depth: '0' is not in 1 to 4294967295" --max-depth=0 in
usage "--max-depth: '-1' is not a number" --max-depth -1 in
usage "--pid: 'x' in 'x' is not a number" --pid x in
usage "--pid: '' in '1,' is not a number" --pid 1, in
usage "--output was given more than once" -o a -o b in
usage "--quiet and --verbose contradict each other" -qv in
usage "--strict and --salvage contradict each other" --strict --salvage in
usage "--kallsyms and --no-kernel-symbols contradict each other" --kallsyms=x --no-kernel-symbols in
usage "--no-symbols and --debug-dir contradict each other" --no-symbols --debug-dir=/ in
usage "--no-symbols and --symbols contradict each other" --symbols . --no-symbols in
usage "--debug-dir: the name is empty" --debug-dir= in
usage "--symbols: the name is empty" --symbols '' in
usage "--no-symbols and --sysroot contradict each other" --no-symbols --sysroot=/ in
usage "--no-symbols and --demangle contradict each other" --no-symbols --demangle=full in
usage "--from and --to contradict each other: nothing lies from 2000000000 ns to 1000000000 ns" --from 2 --to 1s in
usage "'-' was given more than once, but standard input can be read only once" - in -
for pattern in 'a(' 'a[' '*('; do
    run 2 "$spool2folded" --frame-filter="$pattern" in
    [[ $(<err) == "spool2folded: --frame-filter: '$pattern' is no regular expression: "* ]] || die "$(<err)"
    [ "$(wc -l <err)" = 1 ] || die "$(<err)"
done
# Patterns that the C library would crash or hang on.
usage "--frame-filter: the pattern is longer than 4096 bytes" \
    --frame-filter="$(printf '(%.0s' {1..30000})a$(printf ')%.0s' {1..30000})" in
usage "--root-at: the pattern nests groups deeper than 100" --root-at="$(printf '(%.0s' {1..1000})a$(printf ')%.0s' {1..1000})" in
usage "--skip-below: the repeats in the pattern multiply to more than 10000" \
    --skip-below '((((a{1,255}){1,255}){1,255}){1,255})' in
# Words are not abbreviated, options neither.
usage "unknown option '--annot'" --annot in
usage "--root: 'proc' is not one of none, process, pid, thread" --root=proc in
# What comes with later issues is not silently ignored now.
for options in --with-lines --inlines --no-inlines --debuginfod '--trim-path a=b' '--vmlinux f' \
    '--gzip-level 1' --timestamps --overview --json --records --follow; do
    # shellcheck disable=SC2086 # several words
    usage "unknown option '${options%% *}'" $options in
done
[ ! -e a ] && [ ! -e b ] || die "files after a usage error"

# The last of two counts; options may follow operands; -- ends them.
run 0 "$spool2folded" --no-symbols --root=pid in --root=none
equal out 'a+0x180 1'
cp in ./--reverse
run 0 "$spool2folded" --no-symbols --root=none -- --reverse
equal out 'a+0x180 1'

# What the user names as a folder of symbols must be one.
mkdir one two
run 0 "$spool2folded" --symbols one --symbols=two in
equal err ''
echo >archive
mkfifo fifo
for case in 'absent: No such file or directory' 'archive: not a folder (unpack an archive first)' \
    'fifo: not a folder' 'one/x: No such file or directory' 'archive/x: Not a directory'; do
    rm -f made
    run 1 "$spool2folded" --symbols one --symbols "${case%%:*}" -o made in
    equal out ''
    equal err "spool2folded: --symbols $case"
    [ ! -e made ] || die "a document in spite of: $case"
done

# Other folders that are none cost a warning each, however many spools there are; the environment's cost nothing.
run 0 "$spool2folded" --sysroot absent --debug-dir absent --debug-dir one --debug-dir archive --perf-map-dir fifo in in
equal err 'spool2folded: --sysroot absent: No such file or directory
spool2folded: --debug-dir absent: No such file or directory
spool2folded: --debug-dir archive: not a folder
spool2folded: --perf-map-dir fifo: not a folder'
run 0 "$spool2folded" -q --sysroot absent --debug-dir absent --perf-map-dir absent in
equal err ''
SPOOL_DEBUG_DIRS=absent:archive run 0 "$spool2folded" in
equal err ''

# --progress: nothing unless it is wanted, on standard error alone.
run 0 "$spool2folded" --no-symbols in
cp out expected
equal err ''
run 0 "$spool2folded" --no-symbols --progress=always in
grep -q '^spool2folded: in: 54 B of 54 B, 1 samples' err || die "$(<err)"
same out expected

# A terminal as standard input.
command -v script >/dev/null || exit 0
script -qec "$spool2folded; echo exit \$?" /dev/null </dev/null 2>/dev/null | tr -d '\r' >seen || true
grep -q 'no SPOOL was given and standard input is a terminal (see --help)' seen || die "$(<seen)"
grep -q 'exit 2' seen || die "$(<seen)"
# Text may go to a terminal.
script -qec "$spool2folded --no-symbols in" /dev/null </dev/null 2>/dev/null | tr -d '\r' >seen || true
same seen expected
