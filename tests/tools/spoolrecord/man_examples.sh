#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The examples of the manual page, each of them run, and one for each option: they record app, which the other pages'
# spools are made of. Where nothing can be recorded, what can be told without is, and the rest skipped.
#
# What an example cannot have here stands for something else: 4711 and 4720 for processes that run app, ten seconds and more for a
# fifth of one, and 4999 samples a second for what the kernel permits if that is less.
. "$(dirname "$0")/../_man_examples.sh"
may_warn='kernel frames|ring buffer|events|clamped|65528' # what the machine or its load decides

refused=$("$BUILD/tests/workload" probe 2>&1) && refused=
trap '[ -z "${one-}" ] || kill "$one" "$two"' EXIT
most=4999
if [ -r /proc/sys/kernel/perf_event_max_sample_rate ]; then
    limit=$(</proc/sys/kernel/perf_event_max_sample_rate)
    most=$((limit < most ? limit : most))
fi

prepare() {
    world/app 300 &
    one=$!
    world/app 300 &
    two=$!
}
before_block() { # an older spool is refused
    rm -f ./*.spool
}
substitute() {
    command=$(sed -E "s/\b4711\b/$one/g; s/\b4720\b/$two/g; s/\b4999\b/$most/g; s/ -d [0-9]+/ -d 0.2/" <<<"$command")
    if [ -n "$refused" ] && ! [[ $command =~ --(help|version|completion) ]]; then
        # Only what is asked of it counts.
        xargs -n 1 <<<"${command%%[|>;]*}" | sed 's/^/spoolrecord /' >>"$log"
        command='echo nothing is recorded'
        shown=
    fi
}

man_examples spoolrecord
if [ "$bad" = 0 ] && [ -n "$refused" ]; then
    echo "nothing can be recorded here: $refused"
    exit 77
fi
exit "$bad"
