#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The command line: help, usage errors, terminals, progress.
. "$(dirname "$0")/_common.sh"
cp "$cases/one-sample.spool" in

run 0 "$spoolcat" --help
equal err ''
run 0 "$spoolcat" --version
[[ $(head -1 out) == 'spoolcat '[0-9]*.[0-9]*.[0-9]* ]] || die "$(<out)"
grep -qx 'spool versions read: 1 2 3 4' out || die "$(<out)"
grep -Eqx 'optional features: (none|[a-z]+( [a-z]+)*)' out || die "$(<out)"

# usage TEXT ARGS...
usage() {
    local text=$1
    shift
    run 2 "$spoolcat" "$@"
    equal out ''
    equal err "spoolcat: $text (see --help)"
}
usage "unknown option '--frobnicate'" --frobnicate in
usage "unknown option '--rec', did you mean --records?" --rec in
usage "unknown option '--summry', did you mean --summary?" --summry in
usage "unknown option '-j', did you mean --json?" -json in
usage "--kernel: 'dorp' is not one of keep, drop, only, did you mean drop?" --kernel=dorp --samples in
usage "unknown option '-z'" -qz in
usage "unknown option '-f': --follow goes on reading what grows" -f in
usage "unknown option '-c'" -c in # --color, --comm, --completion
usage "option '--output' needs a value (FILE)" in --output
usage "option '--json' takes no value" --json=yes in
usage "--progress: 'sometimes' is not one of auto, always, never" --progress=sometimes in
usage "--quiet and --verbose contradict each other" -qv in
usage "--strict and --salvage contradict each other" --strict --salvage in
usage "--quiet and --progress=always contradict each other" --progress=always -q in
usage "--json and --color=always contradict each other" --color=always --json in
usage "--output was given more than once" -o a -o b in
usage "'-' was given more than once, but standard input can be read only once" - in -
[ ! -e a ] && [ ! -e b ] || die "files after a usage error"
# The record view shows all there is: nothing is selected, shaped or named.
for option in --pid=1 --from=1 --kernel=drop --no-symbols --sysroot=/ --debug-dir=/ --symbols=. --max-depth=3 \
    --no-inlines --trim-path=a=b --vmlinux=x; do
    run 2 "$spoolcat" --records $option in
    [ "$(wc -l <err)" = 1 ] || die "$option: $(<err)"
done

# What the user names as a symbol archive must be a folder or a tar file; said once, whatever the number of spools.
run 0 "$spoolcat" --stacks --symbols . in
echo >archive
run 1 "$spoolcat" --stacks --symbols=absent -o made in in
equal err 'spoolcat: --symbols absent: No such file or directory'
run 1 "$spoolcat" --stacks --symbols archive in in
equal out ''
[[ $(<err) == 'spoolcat: --symbols archive: '?* && $(wc -l <err) = 1 ]] || die "no tar file: $(<err)"
# Others cost a warning, which is said once, too.
run 0 "$spoolcat" --stacks --sysroot absent --debug-dir archive --perf-map-dir . in in
equal err 'spoolcat: --sysroot absent: No such file or directory
spoolcat: --debug-dir archive: not a folder'
[ ! -e made ] || die "a file in spite of an error"

# A kernel file that cannot be used never fails anything.
run 0 "$spoolcat" --stacks --vmlinux absent in in
equal err 'spoolcat: --vmlinux absent: No such file or directory; it is not used'
run 0 "$spoolcat" --stacks --vmlinux . in
equal err 'spoolcat: --vmlinux .: not a regular file; it is not used'

# --progress: nothing unless it is wanted, on standard error alone.
"$spoolcat" --json in >expected
run 0 "$spoolcat" --json --progress=auto in
equal err ''
same out expected
run 0 "$spoolcat" --json --progress=always in
grep -q '^spoolcat: in: 54 B of 54 B, .*1 sample$' err || die "$(<err)"
same out expected

# A terminal as input or as standard input, and color on one as output.
command -v script >/dev/null || exit 0
script -qec "$spoolcat; echo exit \$?" /dev/null </dev/null 2>/dev/null | tr -d '\r' >seen || true
grep -q 'no SPOOL was given and standard input is a terminal (see --help)' seen || die "$(<seen)"
grep -q 'exit 2' seen || die "$(<seen)"
script -qec "$spoolcat /dev/tty; echo exit \$?" /dev/null </dev/null 2>/dev/null | tr -d '\r' >seen || true
grep -q 'spoolcat: /dev/tty: is a terminal' seen || die "$(<seen)"
grep -q 'exit 1' seen || die "$(<seen)"
script -qec "env -u NO_COLOR TERM=xterm $spoolcat in" /dev/null </dev/null 2>/dev/null >seen || true
grep -q "$(printf '\033\\[')" seen || die "no color on a terminal"
# Where the progress line and the output share a terminal, the line is taken away first.
script -qec "stty cols 80; TERM=dumb $spoolcat --stacks --no-symbols --progress=always in" /dev/null </dev/null 2>/dev/null |
    tr -d '\n' >seen || true
grep -q "naming stacks" seen || die "no progress: $(<seen)"
grep -q "$(printf '\r\033\\[K')1 sample of " seen || die "the line stays: $(<seen)"
script -qec "NO_COLOR=1 TERM=xterm $spoolcat in" /dev/null </dev/null 2>/dev/null >seen || true
! grep -q "$(printf '\033\\[')" seen || die "color in spite of NO_COLOR"
