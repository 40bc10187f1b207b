#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The command line: help, usage errors, a terminal as standard input, progress.
. "$(dirname "$0")/_common.sh"
cp "$cases/one-sample.spool" in

run 0 "$spool2folded" --help
equal err ''
run 0 "$spool2folded" --version
[[ $(head -1 out) == 'spool2folded '[0-9]*.[0-9]*.[0-9]* ]] || die "$(<out)"
grep -qx 'spool versions read: 1 2 3 4' out || die "$(<out)"
grep -Eqx 'optional features: (none|[a-z]+( [a-z]+)*)' out || die "$(<out)"

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
usage "--no-symbols and --no-inlines contradict each other" --no-inlines --no-symbols in
usage "--no-symbols and --inlines contradict each other" --no-symbols --no-inlines --inlines in
usage "--no-symbols and --vmlinux contradict each other" --no-symbols --vmlinux=x in
usage "--vmlinux and --no-kernel-symbols contradict each other" --vmlinux=x --no-kernel-symbols in
usage "--vmlinux: the name is empty" --vmlinux= in
usage "--with-lines and --no-symbols contradict each other" --with-lines --no-symbols in
usage "--trim-path: 'a' is not of the form OLD=NEW" --trim-path a in
usage "--trim-path: OLD is empty in '=b'" --trim-path==b in
# No server is known unless the user names one.
for urls in '' ' ' unset; do
    [ "$urls" = unset ] && unset DEBUGINFOD_URLS || export DEBUGINFOD_URLS=$urls
    usage "--debuginfod: DEBUGINFOD_URLS names no server" --debuginfod in
done
usage "--no-symbols and --debuginfod contradict each other" --debuginfod --no-symbols in
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
usage "unknown option '--annot', did you mean --annotate?" --annot in
usage "--root: 'proc' is not one of none, process, pid, thread, did you mean process?" --root=proc in
# What other tools have is not silently ignored.
for options in '--gzip-level 1' --inline-locations --timestamps --overview --json --records --follow; do
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

# What the user names as a symbol archive must be a folder or a tar file.
mkdir one two
run 0 "$spool2folded" --symbols one --symbols=two in
equal err ''
echo >archive
mkfifo fifo
for case in 'absent: No such file or directory' 'fifo: neither a folder nor a tar file' \
    'one/x: No such file or directory' 'archive/x: Not a directory'; do
    rm -f made
    run 1 "$spool2folded" --symbols one --symbols "${case%%:*}" -o made in
    equal out ''
    equal err "spool2folded: --symbols $case"
    [ ! -e made ] || die "a document in spite of: $case"
done
run 1 "$spool2folded" --symbols one --symbols archive -o made in
[[ $(<err) == 'spool2folded: --symbols archive: '?* && $(wc -l <err) = 1 ]] || die "no tar file: $(<err)"
[ ! -e made ] || die "a document in spite of an archive that is none"

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
grep -q '^spool2folded: in: 54 B of 54 B, .*1 sample$' err || die "$(<err)"
grep -qx 'spool2folded: naming stacks, 0 %' err || die "$(<err)"
same out expected
# Writing is told of once there is much.
long=$(printf 'x%.0s' {1..200})
awk -v long="$long" 'BEGIN {
    for (i = 0; i < 2000; i++) print "names f" i " " long i
    for (i = 0; i < 2000; i++) print "sample " i "us 1 1 f" i " " long i
}' | make large
run 0 "$spool2folded" --progress=always large -o written
grep -q '^spool2folded: writing, [1-9]' err || die "$(<err)"
run 0 "$spool2folded" large -o written
equal err ''

# A terminal as standard input.
command -v script >/dev/null || exit 0
script -qec "$spool2folded; echo exit \$?" /dev/null </dev/null 2>/dev/null | tr -d '\r' >seen || true
grep -q 'no SPOOL was given and standard input is a terminal (see --help)' seen || die "$(<seen)"
grep -q 'exit 2' seen || die "$(<seen)"
# Its line is drawn over, and gone before a message and at the end; not among the text of a document.
script -qec "$spool2folded --sysroot absent --progress=always large -o written" /dev/null </dev/null 2>/dev/null >seen || true
tr '\r' '\n' <seen >lines
grep -q $'^spool2folded: large: .* of .*\033\[K' lines || die "$(cat -v seen)"
[ "$(tail -c 4 seen | od -An -c | tr -d ' ')" = '\r033[K' ] || die "$(tail -c 100 seen | cat -v)"
script -qec "$spool2folded --no-symbols --progress=always large" /dev/null </dev/null 2>/dev/null >seen || true
! grep -q writing seen || die "progress among the text"
# Text may go to a terminal.
script -qec "$spool2folded --no-symbols in" /dev/null </dev/null 2>/dev/null | tr -d '\r' >seen || true
same seen expected
