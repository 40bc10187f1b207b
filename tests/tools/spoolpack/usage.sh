#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The command line: help, usage errors.
. "$(dirname "$0")/_common.sh"
cp "$cases/one-sample.spool" in

run 0 "$spoolpack" --help
equal err ''
run 0 "$spoolpack" --version
[[ $(head -1 out) == 'spoolpack '[0-9]*.[0-9]*.[0-9]* ]] || die "$(<out)"

# usage TEXT ARGS...
usage() {
    local text=$1
    shift
    run 2 "$spoolpack" "$@"
    equal out ''
    equal err "spoolpack: $text (see --help)"
}
usage "where to? -o DIR is a store, -o FILE.tar.gz one file" in
usage "unknown option '--no-symbols'" --no-symbols -o store in
usage "--output was given more than once" -o a -o b in
usage "--level: 'all' is not one of names, lines, full" --level=all -o store in
usage "--check and --prune contradict each other" --check --prune store
usage "--list and --check contradict each other" --list --check store
usage "--json goes with --list" --json -o store in
usage "--json goes with --list" --json --check store
usage "--dry-run goes with --prune" --dry-run --list store
usage "--older-than goes with --prune" --older-than 5 -o store in
usage "--older-than: '5h' is not a time like 2.5s, 250ms, 30us, 12ns or a number of seconds" --prune --older-than 5h store
usage "--check: no store was given" --check
usage "--list: a store cannot be read from standard input" --list -
usage "--sysroot is about packing, --list about what was packed" --list --sysroot / store
usage "--salvage is about packing, --check about what was packed" --check --salvage store
usage "--level is about packing, --prune about what was packed" --prune --level=full store
usage "--output is about packing, --check about what was packed" --check -o x store
usage '--dry-run and --quiet contradict each other' --prune --dry-run -q store
usage "--force goes with -o FILE.tar.gz" --force -o store in
usage "--force goes with -o FILE.tar.gz" --force -o - in
usage "--force is about packing, --prune about what was packed" --prune --force store
usage "unknown option '--gzip'" --gzip -o store in
usage "in: input and output are the same file" -o in in
[ ! -e store ] && [ ! -e a ] || die "a store after a usage error"

# --progress: packing, hashing and checking are told of.
run 0 "$spoolpack" -q -o store in
run 0 "$spoolpack" --progress=always --no-kernel-symbols -o store in
grep -q '^spoolpack: packing symbols of files, 0 %' err || die "$(<err)"
grep -q '^spoolpack: hashing the spool, 54 B, 100 %' err || die "$(<err)"
cp "$o2" cap
run 0 "$spoolpack" -q --no-kernel-symbols "${files[@]}" -o store cap
run 0 "$spoolpack" --progress=always --check store
[[ $(<err) == 'spoolpack: checking files, 0 %'* ]] || die "$(<err)"
run 0 "$spoolpack" --check store
equal err ''

# A tar file does not go to a terminal.
command -v script >/dev/null || exit 0
script -qec "$spoolpack -o - in" /dev/null </dev/null 2>/dev/null | tr -d '\r' >seen || true
equal seen 'spoolpack: standard output: binary output is not written to a terminal'
