#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The command line: its own options, and what contradicts what.
. "$(dirname "$0")/_common.sh"

refused() { # MESSAGE OPTION...
    local message=$1
    shift
    run 2 "$spool2pprof" "$@" "$o2"
    equal err "spool2pprof: $message (see --help)"
    equal out ''
}

refused "--gzip-level: '10' is not in 0 to 9" --gzip-level 10
refused "--gzip-level: '' is not a number" --gzip-level=
refused "--labels: 'x' is not one of pid, tid, process, thread" --labels pid,x
refused "--labels: '' is not one of pid, tid, process, thread" --labels pid,,tid
refused "--labels: '' is not one of pid, tid, process, thread" --labels pid,
refused "--comment: the text is empty" --comment ''
for option in --no-symbols --no-kernel-symbols --sysroot=/ --debug-dir=/ --symbols=/ --perf-map-dir=/ --perf-maps=all \
    --kallsyms=x --vmlinux=x; do
    refused "--unsymbolized and ${option%%=*} contradict each other" --unsymbolized $option
done
refused "--unsymbolized and --demangle contradict each other" --unsymbolized --demangle=short
refused "--unsymbolized and --no-inlines contradict each other" --unsymbolized --no-inlines
refused "--inline-locations and --no-inlines contradict each other" --no-inlines --inline-locations
refused "--inline-locations and --unsymbolized contradict each other" --inline-locations --unsymbolized
refused "--inline-locations and --no-symbols contradict each other" --inline-locations --no-symbols

# The report; what it says of names that are left out.
run 0 "$spool2pprof" -v --unsymbolized "$o2" -o profile
[ "$(tail -1 err)" = 'names of the kernel and of perf maps are left out (--unsymbolized)' ] || die "$(<err)"
