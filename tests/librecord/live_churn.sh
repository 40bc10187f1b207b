#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What has gone is not kept: libraries that are unloaded, processes that end. And files beyond the limit of descriptors
# are opened in turn. live_churn.c tells how much its parent, the recorder, has.
# shellcheck source=_live.sh
. "$(dirname "$0")/_live.sh"
churn=$BUILD/tests/live_churn

# churn NAME MODE FIRST REST US: records it; first and last are what the recorder had, "KIB FILES"
churn() {
    local name=$1
    shift
    timeout 60 "$spoolrecord" --force --summary=json -F 1999 -o "$name.spool" -- \
        "$churn" "$@" "$BUILD/tests/workload_plugin_a.so" >"$name.held" 2>"$name.all" </dev/null ||
        failed "$name: exit status $?: $(head -n 3 "$name.all")"
    sort_messages "$name"
    read -r first_kib first_files < <(awk 'NR == 1 { print $4, $6 }' "$name.held")
    read -r last_kib last_files < <(awk 'END { print $4, $6 }' "$name.held")
    echo "$name: $(tr '\n' ' ' <"$name.held"), $(field "$name" samples) samples, $(field "$name" truncated_stacks) truncated"
    [ "$(wc -l <"$name.held")" = 2 ] || failed "$name: no report"
}

# grows NAME KIB: at most by so much. Sanitizers keep freed memory for a while.
grows() {
    [ -z "${SANITIZE_FLAGS:-}" ] || return 0
    at_least "$2" $((last_kib - first_kib)) || failed "$1: the recorder has grown from $first_kib to $last_kib KiB"
}

churn libraries libraries 200 400 500
grows libraries 1024
at_least $((first_files + 80)) "$last_files" || failed "libraries: $last_files descriptors are open"

churn forks forks 50 100 1000
grows forks 512
at_least $((first_files + 8)) "$last_files" || failed "forks: $last_files descriptors are open"

ulimit -n 64
churn limit open 10 90 2000
at_least 64 "$last_files" || failed "limit: $last_files descriptors are open"
at_least $(($(field limit samples) / 20)) "$(field limit truncated_stacks)" ||
    failed "limit: $(field limit truncated_stacks) of $(field limit samples) stacks are truncated: $(cat limit.err)"

exit $bad
